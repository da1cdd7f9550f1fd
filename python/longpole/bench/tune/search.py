"""Searches a space: screens many candidates cheaply, then measures the best ones in turns."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

from longpole.bench.comparison.differences import LOOKS
from longpole.bench.records.environment import fingerprint_changes
from longpole.bench.records.reading import ResultsFile
from longpole.bench.records.store import Store, make_room
from longpole.bench.run.cluster import Cluster
from longpole.bench.run.job import Policy
from longpole.bench.run.runner import Runner
from longpole.bench.tune.commands import Commands
from longpole.bench.tune.finals import Finalist, finalists_of, hold_finals
from longpole.bench.tune.functions import SCREENING_S, Functions
from longpole.bench.tune.objective import Candidate, Ledger, Step, measuring_s
from longpole.bench.tune.space import TaskError, label_of
from longpole.bench.tune.strategies import Effort, find_strategy
from longpole.bench.tune.task import Command, Function
from longpole.devices import Found, select
from longpole.rows.statistics import Interval
from longpole.words.data import Data

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from longpole.bench.records.record import Record
    from longpole.bench.tune.finals import Finals
    from longpole.bench.tune.space import Point, Space
    from longpole.bench.tune.strategies import Strategy
    from longpole.bench.tune.task import Task
    from longpole.devices import Device

Stage: TypeAlias = Literal["screening", "finals"]

_MOST_TURNS: Final = 25
_FINALS_SHARE: Final = 0.1
"""Time limit of all runs of the finals without a budget, as a fraction of the screening time."""


class Runs(Protocol):
    """Runs candidates."""

    def run(self, points: Sequence[Point]) -> list[Record]:
        """Run each point once."""
        ...


class Bench(Runs, Protocol):
    """Measures candidates."""

    @property
    def n_known(self) -> int:
        """Return the number of runs of an earlier search."""
        ...

    @property
    def n_outdated(self) -> int:
        """Return the number of runs repeated because program or environment have changed."""
        ...

    def turns(
        self, points: Sequence[Point], number: int, n_turns: int, run_s: float
    ) -> list[list[Record]]:
        """Make a run in which the points take turns; return the records of each.

        The run has `n_turns` turns, or as many as fit into `run_s` if the number is only known
        then.
        """
        ...


@dataclass(frozen=True, slots=True)
class Tuning(Data):
    """The result of a search."""

    device: str
    """Device of the measurements; empty if unknown."""
    metric: str
    goal: str
    unit: str
    """Unit of the values; empty if only the candidates know it."""
    strategy: str
    n_points: int
    """Number of combinations of the parameters, before constraints."""
    n_allowed: int | None
    """Number of combinations that meet the constraints; None if there are too many to list."""
    n_known: int
    """Number of runs of an earlier search."""
    n_outdated: int
    """Number of runs of an earlier search that were repeated, because the program, the files that
    it names or imports, or the environment have changed since."""
    outcomes: dict[str, int]
    """Number of candidates by outcome."""
    n_screening_runs: int
    screening_s: float
    """Measuring time until the finalists were found, in seconds."""
    screening_noise: float | None
    """Difference between the first two runs of a candidate, the median of all that ran twice."""
    finals_s: float
    """Measuring time of the finals, in seconds."""
    gate: float
    confidence: float
    """Confidence that the best of the finalists is the winner or tied with it."""
    winner: Finalist | None
    """Best finalist; None if every candidate failed."""
    baseline: Finalist | None
    """The baseline as a finalist; None if it failed."""
    speedup: float | None
    """Ratio of the baseline's cost to that of the winner."""
    speedup_interval: Interval | None
    finalists: list[Finalist]
    """All finalists, best first."""
    curve: list[Step]
    """Best candidate so far over the screening."""
    candidates: list[Candidate]
    """All candidates, in the order of their first runs."""

    @property
    def tied(self) -> list[Finalist]:
        """Return the finalists that are indistinguishable from the winner."""
        return [each for each in self.finalists if each.is_tied and each is not self.winner]


def tune(
    task: Task,
    strategy: str | Strategy = "halving",
    *,
    results: str | os.PathLike[str],
    resume: bool = False,
    force: bool = False,
    reuse: Sequence[str | os.PathLike[str]] = (),
    devices: Found | Cluster | None = None,
    effort: Effort | None = None,
    gate: float = 0.03,
    confidence: float = 0.95,
    budget_s: float | None = None,
    policy: Policy | None = None,
    record_env: Collection[str] = (),
    on_record: Callable[[Record], object] | None = None,
) -> Tuning:
    """Search a space for the best candidate.

    Parameters
    ----------
    task
        What to tune.
    strategy
        A name accepted by `find_strategy`, or a function of space, `evaluate` and effort.
    results
        The file to append records to.
    resume
        Continue such a file: decided runs are not repeated.
    force
        Replace the results of an earlier search.
    reuse
        Results of other searches: runs with the same program, files, environment, device, driver
        and libraries are copied into `results`.
    devices
        The result of `longpole.devices.select`, or the devices of a Ray cluster. Commands are
        screened on all of them, and finalists measured on the first. A function is measured on the
        device of its clock.
    effort
        How much to search.
    gate, confidence
        As for `compare`.
    budget_s
        Time in seconds for seven runs of the finalists; every run has at least one turn of each. By
        default all 28 runs take a tenth of the screening time.
    policy, record_env
        As for `Runner`; the limits apply to each of the two stages.
    on_record
        Called with each record of the screening.

    Raises
    ------
    ResultsError
        The file already contains results and `resume` is not given, or it cannot be written.
    """
    if not resume:
        make_room(results, force=force)
    found = devices or select(None)
    if reuse:
        _copied(reuse, results, _listed(found))
    is_known = resume or bool(reuse)
    decided = ResultsFile(results).decided() if is_known else {}
    limits = policy or Policy()
    place = _Place(task, results, decided, found, limits, is_known, record_env)
    return search(
        task,
        strategy,
        place.opened,
        effort=effort or Effort(),
        gate=gate,
        confidence=confidence,
        budget_s=budget_s,
        on_record=on_record,
    )


def search(
    task: Task,
    strategy: str | Strategy,
    opened: Callable[[Stage], AbstractContextManager[Bench]],
    *,
    effort: Effort,
    gate: float,
    confidence: float,
    budget_s: float | None = None,
    on_record: Callable[[Record], object] | None = None,
) -> Tuning:
    """Search with a bench for each stage, which `opened` opens."""
    ask = find_strategy(strategy) if isinstance(strategy, str) else strategy
    ledger = Ledger(task.objective)
    with opened("screening") as bench:
        evaluate = partial(evaluated, ledger, bench, on_record)
        evaluate([task.start], 1)
        ask(task.space, evaluate, effort)
        n_known, n_outdated = bench.n_known, bench.n_outdated
    points = _finalists(task, ledger, effort)
    with opened("finals") as bench:
        run_s = (budget_s or _usual_budget_s(task, ledger)) / LOOKS[0]
        turns = partial(_turns, ledger, bench, _n_turns(ledger, points, run_s), run_s)
        finals = hold_finals(points, turns, gate, confidence)
        n_known += bench.n_known
        n_outdated += bench.n_outdated
    name = strategy if isinstance(strategy, str) else getattr(strategy, "name", "own")
    counts = {"n_known": n_known, "n_outdated": n_outdated}
    return _answer(task, ledger, finals, strategy=name, **counts)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the candidates of a task are measured, and earlier records of them."""

    task: Task
    results: str | os.PathLike[str]
    decided: Mapping[tuple[str, str], Record]
    devices: Found | Cluster
    policy: Policy
    is_known: bool
    record_env: Collection[str]

    @contextmanager
    def opened(self, stage: Stage) -> Iterator[Bench]:
        """Open the bench of a stage."""
        opened = self._commands if isinstance(self.task.candidate, Command) else self._functions
        with opened(stage) as bench:
            yield bench

    @contextmanager
    def _functions(self, _stage: Stage) -> Iterator[Bench]:
        with Functions(
            self.task,
            self.results,
            decided=self.decided,
            busy=None if self.policy.busy == "refuse" else self.policy.busy,
            lock_clock_mhz=self.policy.lock_clock_mhz,
            timeout_s=self.policy.timeout_s,
            record_env=self.record_env,
        ) as functions:
            yield functions

    @contextmanager
    def _commands(self, stage: Stage) -> Iterator[Bench]:
        is_final = stage == "finals"
        with Runner(
            _first(self.devices) if is_final else self.devices,
            results=self.results,
            resume=self.is_known or is_final,
            policy=self.policy,
            record_env=self.record_env,
        ) as runner:
            yield Commands(
                self.task,
                runner,
                decided=self.decided,
                n_at_once=1 if is_final else len(_listed(self.devices)),
                timeout_s=self.policy.timeout_s,
                is_final=is_final,
                record_env=self.record_env,
            )


def _answer(
    task: Task,
    ledger: Ledger,
    finals: Finals,
    *,
    strategy: str,
    n_known: int,
    n_outdated: int,
) -> Tuning:
    finalists = finalists_of(finals, task.objective.cost, label_of(task.start))
    baseline = next((each for each in finalists if each.is_baseline), None)
    winner = finalists[0] if finalists else None
    candidates = ledger.candidates()
    return Tuning(
        device=ledger.device,
        metric=task.objective.metric,
        goal=task.objective.goal,
        unit=task.objective.unit,
        strategy=strategy,
        n_points=task.space.n_combinations,
        n_allowed=_n_allowed(task.space),
        n_known=n_known,
        n_outdated=n_outdated,
        outcomes=dict(sorted(Counter(each.outcome for each in candidates).items())),
        n_screening_runs=ledger.n_runs,
        screening_s=ledger.measuring_s,
        screening_noise=ledger.noise(),
        finals_s=ledger.finals_s,
        gate=finals.gate,
        confidence=finals.confidence,
        winner=winner,
        baseline=baseline,
        finalists=finalists,
        curve=ledger.curve,
        candidates=candidates,
        **_speedup(winner, baseline),
    )


def _n_allowed(space: Space) -> int | None:
    """Count the points of a space, unless there are too many to list."""
    try:
        return sum(1 for _ in space)
    except TaskError:
        return None


def _speedup(winner: Finalist | None, baseline: Finalist | None) -> dict[str, Any]:
    """Return the speedup of the winner over the baseline."""
    if winner is None or baseline is None:
        return {"speedup": None, "speedup_interval": None}
    if winner is baseline:
        return {"speedup": 1.0, "speedup_interval": Interval(1.0, 1.0)}
    ends = baseline.worse_interval
    return {
        "speedup": None if baseline.worse_by is None else 1 + baseline.worse_by,
        "speedup_interval": None if ends is None else Interval(1 + ends.low, 1 + ends.high),
    }


def evaluated(
    ledger: Ledger,
    bench: Runs,
    on_record: Callable[[Record], object] | None,
    points: Sequence[Point],
    n_runs: int,
) -> list[float | None]:
    """Run points round by round until each has `n_runs` runs, and return their costs."""
    for number in range(1, n_runs + 1):
        due = [point for point in points if ledger.needs_run(label_of(point), number)]
        for point, record in zip(due, bench.run(due), strict=True):
            ledger.enter(point, record)
            if on_record is not None:
                on_record(record)
    return [ledger.cost(label_of(point)) for point in points]


def _finalists(task: Task, ledger: Ledger, effort: Effort) -> list[Point]:
    """Return the best of the screening, and the baseline if it works."""
    chosen = ledger.ranked()[: effort.n_finalists]
    is_extra = task.start not in chosen and label_of(task.start) in ledger.values
    return [*chosen, task.start] if is_extra else chosen


def _usual_budget_s(task: Task, ledger: Ledger) -> float:
    """Return the default budget: a share of the screening, or one run's time for a function."""
    budget_s = _FINALS_SHARE * ledger.measuring_s * LOOKS[0] / LOOKS[-1]
    is_function = isinstance(task.candidate, Function)
    return max(budget_s, SCREENING_S * LOOKS[0]) if is_function else budget_s


def _n_turns(ledger: Ledger, points: Sequence[Point], run_s: float) -> int:
    """Return the number of turns that fit into a run, at least one."""
    labels = [label_of(point) for point in points]
    turn_s = sum(ledger.seconds[label] / len(ledger.values[label]) for label in labels)
    return max(1, min(_MOST_TURNS, int(run_s / turn_s))) if turn_s else 1


def _turns(  # noqa: PLR0917 - what to run and how long, then the arguments of `hold_finals`
    ledger: Ledger, bench: Bench, n_turns: int, run_s: float, points: Sequence[Point], number: int
) -> list[list[float] | None]:
    """Make a run of the finalists; return their costs, turn by turn."""
    found: list[list[float] | None] = []
    for records in bench.turns(points, number, n_turns, run_s):
        ledger.finals_s += sum(map(measuring_s, records))
        values = [ledger.objective.values(record) for record in records]
        costs = [ledger.objective.cost(value) for each in values for value in each]
        found.append(costs if all(values) else None)
    return found


def _listed(devices: Found | Cluster) -> list[Device]:
    if isinstance(devices, Cluster):
        return [place.device for place in devices.places]
    return list(devices)


def _first(devices: Found | Cluster) -> Found | Cluster:
    """Return the device of the finals."""
    if isinstance(devices, Cluster):
        return Cluster(devices.places[:1])
    return Found(islice(devices.items(), 1))


def _copied(
    sources: Sequence[str | os.PathLike[str]],
    results: str | os.PathLike[str],
    devices: Sequence[Device],
) -> None:
    """Copy the runs of other searches that were made in the same environment."""
    known = ResultsFile(results).decided() if Path(results).exists() else {}
    with Store(results, resume=True) as store:
        for source in sources:
            for record in ResultsFile(source).decided().values():
                is_new = (record.id, record.digest) not in known
                if is_new and _is_of_today(record.environment, devices):
                    store.append(record)


def _is_of_today(environment: Mapping[str, Any], devices: Sequence[Device]) -> bool:
    """Whether a record was made with the current device, driver, libraries and machine."""
    changes = [text for text in fingerprint_changes(environment) if not text.startswith("boot ")]
    shown = environment.get("device")
    if isinstance(shown, dict):
        names = ("uuid", "name", "driver")
        today = [[getattr(each, name) for name in names] for each in devices]
        return not changes and [shown.get(name) for name in names] in today
    return not changes
