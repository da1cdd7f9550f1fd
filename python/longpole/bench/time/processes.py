"""Times functions in several processes, until it is clear which is faster.

A run is a fresh process in which all functions take turns. After 7, 14 and 28 runs the first
function is compared with each of the others; decided points of the axes are not measured further.
If the first run shows that all others differ from the first by far more than the gate, the other
runs of the point are shorter. Their number stays the same, since runs, not samples, are evidence.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from longpole.bench.comparison.compare import compare
from longpole.bench.comparison.differences import LOOKS, Comparison, Verdict
from longpole.bench.records.environment import fingerprint
from longpole.bench.records.record import Outcome, Record
from longpole.bench.run.guard import Ending, Guard, run_once
from longpole.bench.run.output import Tail
from longpole.bench.time.commands import command_argv, command_records, without_disturbed
from longpole.bench.time.targets import key_of
from longpole.bench.time.timing import WorkPlan
from longpole.bench.time.workers import (
    IMPORT_S,
    device_in_use,
    environment_with,
    guard_of,
    order,
    outcome_of,
    worker_order,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from longpole.bench.reference import Reference
    from longpole.bench.run.conditions import Sampling
    from longpole.bench.run.guard import Stream
    from longpole.bench.time.commands import CommandPlan
    from longpole.bench.time.workers import DeviceInUse
    from longpole.devices import Busy

ALONE: Final = 7
"""Number of runs of a function without a comparison."""

_LARGE_CHANGE: Final = 10.0
"""A change of this many gates is large."""
_ALL_BUT_TAILS: Final = 0.05
"""Share of samples at each end that may overlap with the other function in spite of it."""
_SHARE_OF_BUDGET: Final = 0.2
"""Share of the budget of a run if the change is large."""

# A disturbed run is repeated twice at most.
_MOST_ATTEMPTS: Final = 3


class TargetError(ValueError):
    """A target cannot be timed: the function, module or clock does not exist."""


@dataclass(frozen=True, slots=True)
class Campaign:
    """What to time, and how.

    Parameters
    ----------
    names
        Functions, as `MODULE:FUNC`, or commands. The others are compared with the first.
    points
        Arguments of the calls.
    factory
        Whether they return the function to time.
    clock, cache
        As for `longpole bench time`. Without a cache state, the first run of each point chooses the
        one for the length of its calls.
    n_processes
        Number of processes per point; None compares after 7, 14 and 28, or uses 7 without a
        comparison.
    budget_s
        Time for the runs of one point up to one look.
    gate, confidence
        As for `compare`.
    seed
        Seed of the order in which functions are loaded.
    busy
        What to do if another program uses the device; None for `refuse`.
    lock_clock_mhz
        Clock to lock the device at; None leaves it unchanged. Commands and the clocks of users are
        given a device, and its clock is sampled, only if this or `busy` is given.
    commands
        How to execute the names as commands; None for functions.
    configs
        A Triton kernel, as `MODULE:KERNEL`: each of its configurations is timed, and names are
        `MODULE:FUNC@CONFIGURATION`. See `configurations`.
    copies
        Number of instances of a factory's function; calls rotate through them, each with its own
        buffers.
    arguments
        A point for each name that ends in `@LABEL`, if their arguments differ.
    reference, folder
        Expected result, and the folder of its file.
    work
        Bytes and operations of a call.
    """

    names: Sequence[str]
    points: Sequence[Mapping[str, int | float | str]] = field(default_factory=lambda: [{}])
    factory: bool = False
    clock: str = "cpu"
    cache: str | None = None
    n_processes: int | None = None
    budget_s: float = 5.0
    gate: float = 0.03
    confidence: float = 0.95
    seed: int = 0
    busy: Busy | None = None
    lock_clock_mhz: int | None = None
    commands: CommandPlan | None = None
    configs: str | None = None
    copies: int = 1
    arguments: Mapping[str, Mapping[str, int | float | str]] = field(default_factory=dict)
    reference: Reference | None = None
    folder: str = ""
    work: WorkPlan = field(default_factory=WorkPlan)

    def looks(self) -> tuple[int, ...]:
        """Return the numbers of runs after which to compare."""
        if self.n_processes is not None:
            return (self.n_processes,)
        return LOOKS if len(self.names) > 1 else (ALONE,)


def time_in_processes(campaign: Campaign) -> Iterator[Record]:
    """Time functions, and yield the record of each run as it completes.

    Raises
    ------
    TargetError
        A function, module or clock does not exist.
    DeviceError
        The device does not exist, or another program uses it.
    """
    with device_in_use(campaign.clock, campaign.busy, campaign.lock_clock_mhz) as device:
        guard, sampling = guard_of(device)
        try:
            yield from _looked_at(campaign, _Place(guard, sampling, device))
        finally:
            guard.close()


@dataclass(frozen=True, slots=True)
class _Place:
    """Where runs are made: the guard, its sampling, and the device; None for the CPU.

    `caches` has the cache state that the first run of a point has chosen.
    """

    guard: Guard
    sampling: Sampling
    device: DeviceInUse | None
    caches: dict[str, str] = field(default_factory=dict)


def configurations(kernel: str) -> list[str]:
    """Return the labels of a Triton kernel's configurations, as seen by a separate process.

    Parameters
    ----------
    kernel
        The kernel, as `MODULE:KERNEL`.

    Raises
    ------
    TargetError
        It is not an autotuned kernel.
    """
    said = _Said()
    wanted = {"configs": kernel, "lists_configs": True}
    run_once(worker_order(wanted, IMPORT_S), said.take)
    rows = said.rows()
    if not rows:
        message = f"{kernel} cannot be imported: {said.stderr.telling_line()}"
        raise TargetError(message)
    return [row["label"] for row in rows]


def _looked_at(campaign: Campaign, place: _Place) -> Iterator[Record]:
    """Time all points until they are decided."""
    records: list[Record] = []
    undecided = list(campaign.points)
    of_point = {json.dumps(dict(point)): campaign for point in campaign.points}
    n_runs = 0
    for look in campaign.looks():
        for number in range(n_runs, look):
            for point in undecided:
                name = json.dumps(dict(point))
                found = []
                for record in _undisturbed_run(of_point[name], place, point, number):
                    found.append(record)
                    yield record
                records += found
                if number == 0 and _is_large(found, campaign.gate):
                    of_point[name] = _shorter(campaign)
        n_runs = look
        undecided = _undecided(campaign, undecided, records)
        if not undecided:
            return


def _is_large(records: Sequence[Record], gate: float) -> bool:
    """Whether the samples of a run show that all others differ from the first by many gates."""
    samples = [sorted(record.samples_ns) for record in records if record.outcome is Outcome.OK]
    if len(samples) < max(2, len(records)):
        return False
    base, *others = samples
    return all(_are_apart(base, other, 1 + _LARGE_CHANGE * gate) for other in others)


def _shorter(campaign: Campaign) -> Campaign:
    """Return a campaign with short runs; commands are warm from the first one."""
    plan = campaign.commands
    if plan is not None and plan.n_warm_up == 1:
        plan = replace(plan, n_warm_up=0)
    return replace(campaign, budget_s=_SHARE_OF_BUDGET * campaign.budget_s, commands=plan)


def _are_apart(base: Sequence[float], other: Sequence[float], factor: float) -> bool:
    """Whether one of two sorted samples is longer by a factor, but for their tails."""
    longer, shorter = (
        (base, other) if base[len(base) // 2] > other[len(other) // 2] else (other, base)
    )
    n_longer, n_shorter = (int(_ALL_BUT_TAILS * len(each)) for each in (longer, shorter))
    return longer[n_longer] > factor * shorter[-1 - n_shorter]


def compare_points(campaign: Campaign, records: Sequence[Record]) -> list[tuple[str, Comparison]]:
    """Compare the first function with each of the others; return the comparisons by name."""
    rows = [record.to_dict() for record in records]
    base, *others = campaign.names
    return [
        (
            name,
            compare(
                rows,
                rows,
                campaign.gate,
                confidence=1 - (1 - campaign.confidence) / len(others),
                base_key=base,
                new_key=name,
            ),
        )
        for name in others
    ]


def _undecided(
    campaign: Campaign,
    points: Sequence[Mapping[str, int | float | str]],
    records: Sequence[Record],
) -> list[Mapping[str, int | float | str]]:
    open_keys = {
        difference.key
        for _, comparison in compare_points(campaign, records)
        for difference in comparison.differences
        if difference.verdict is Verdict.INCONCLUSIVE and difference.base and difference.new
    }
    return [point for point in points if key_of(campaign.names[0], point) in open_keys]


def _undisturbed_run(
    campaign: Campaign, place: _Place, point: Mapping[str, int | float | str], number: int
) -> Iterator[Record]:
    """Make a run; a disturbed one is recorded as such and repeated, twice at most."""
    for attempt in range(_MOST_ATTEMPTS):
        found = list(
            _run(campaign, place, point, f"{number}.{attempt}" if attempt else str(number))
        )
        is_disturbed = any(record.sampling.get("is_disturbed") for record in found)
        if not is_disturbed or attempt == _MOST_ATTEMPTS - 1:
            yield from found
            return
        for record in found:
            yield replace(record, sampling={**record.sampling, "is_repeated": True})


def _run(
    campaign: Campaign, place: _Place, point: Mapping[str, int | float | str], number: str
) -> Iterator[Record]:
    """Time all functions at one point, or all commands, in a fresh process."""
    device = place.device
    place.sampling.clear()
    budget_s = campaign.budget_s / ALONE
    seed = f"{campaign.seed}:{number}"
    plan = campaign.commands
    if plan is None:
        cache = campaign.cache or place.caches.get(json.dumps(dict(point)))
        wanted = _wanted(campaign, place.sampling, point, budget_s, seed) | {"cache": cache}
        limit_s = IMPORT_S + 20 * budget_s * len(campaign.names)
        wanted_run = worker_order(wanted, limit_s, device)
    else:
        limit_s = IMPORT_S + plan.limit_s(campaign.names, budget_s)
        argv = command_argv(plan, campaign.names, budget_s, seed)
        wanted_run = order(argv, environment_with(device), limit_s)
    said = _Said()
    ending = place.guard.run(wanted_run, said.take)
    rows = said.rows()
    if ending.exit_code != 0 or len(rows) != len(campaign.names):
        found = _failures(campaign, point, ending, said)
    elif plan is None:
        timed = [Record.from_dict(row) for row in rows]
        _remember_cache(place, point, timed)
        found = iter(timed)
    else:
        rows = without_disturbed(rows, place.sampling.conditions())
        found = command_records(plan, rows, said.stderr.telling_line())
    for record in found:
        yield _told(record, list(campaign.looks()), device)


def _remember_cache(
    place: _Place, point: Mapping[str, int | float | str], timed: Sequence[Record]
) -> None:
    """Keep the cache state of a run for the later runs of the point."""
    for record in timed:
        if (cache := record.sampling.get("cache")) is not None:
            place.caches.setdefault(json.dumps(dict(point)), cache)


def _wanted(
    campaign: Campaign,
    sampling: Sampling,
    point: Mapping[str, int | float | str],
    budget_s: float,
    seed: str,
) -> dict[str, Any]:
    """Return what a process should time in turns."""
    return {
        "names": list(campaign.names),
        "point": dict(point),
        "factory": campaign.factory,
        "clock": campaign.clock,
        "n_samples": None,
        "budget_s": budget_s,
        "seed": seed,
        "readings": [sampling.path, sampling.interval_s],
        "configs": campaign.configs,
        "copies": campaign.copies,
        "arguments": {name: dict(own) for name, own in campaign.arguments.items()},
        "reference": campaign.reference and asdict(campaign.reference),
        "folder": campaign.folder,
        "work": campaign.work.at(point).to_dict(),
    }


def _told(record: Record, looks: list[int], device: DeviceInUse | None) -> Record:
    """Add what the process of the run does not know: the planned looks and the device model."""
    environment = dict(record.environment)
    if device is not None:
        environment |= device.facts
    return replace(record, sampling={**record.sampling, "looks": looks}, environment=environment)


def _failures(
    campaign: Campaign, point: Mapping[str, int | float | str], ending: Ending, said: _Said
) -> Iterator[Record]:
    """Yield a record for each function of a process that failed."""
    outcome, how = outcome_of(ending)
    message = ": ".join(filter(None, [how, said.stderr.telling_line()]))
    run = uuid4().hex[:12]
    for name in campaign.names:
        key = key_of(name, point)
        yield Record(
            id=f"{key} run {run}",
            key=key,
            outcome=outcome,
            message=message,
            run=run,
            exit_code=ending.exit_code,
            environment=fingerprint(),
        )


class _Said:
    """The output of a worker: its rows, and the end of other output."""

    def __init__(self) -> None:
        self.stderr = Tail()
        self._rows = bytearray()

    def take(self, stream: Stream, chunk: bytes) -> None:
        """Process the next chunk."""
        if stream == "stderr":
            self.stderr.feed(chunk)
        else:
            self._rows += chunk

    def rows(self) -> list[dict[str, Any]]:
        """Return the complete rows; raise `TargetError` if one contains an error."""
        lines = bytes(self._rows).split(b"\n")[:-1]
        rows = [json.loads(line) for line in lines]
        if error := next((row["error"] for row in rows if "error" in row), None):
            raise TargetError(error)
        return rows
