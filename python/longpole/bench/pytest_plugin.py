"""Benchmarks in pytest: the fixture `longpole_bench`, and a comparison with a baseline by runs.

A run is one process, so a pytest that compares starts others: the same command, with only the tests
that have a benchmark. Their records are compared, and the verdict determines the exit status.
"""

from __future__ import annotations

import os
import sys
import tempfile
from argparse import ArgumentTypeError
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from longpole.words.wording import parse_share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from longpole.bench.comparison.differences import Comparison

_INTO: Final = "LONGPOLE_PYTEST_INTO"
"""Environment variable with the record file for a pytest that was started as a run of another."""

_FIXTURE: Final = "longpole_bench"
_RUNS: Final = 7
_LIMIT_S: Final = 3600.0
_GRACE_S: Final = 5.0
_DRAIN_S: Final = 1.0


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("longpole", "benchmarks (longpole)")
    option = group.addoption
    option("--longpole-baseline", metavar="NAME", help="Compare with a baseline, or a file.")
    option("--longpole-save", metavar="NAME", help="Keep the records as a baseline.")
    option(
        "--longpole-records",
        metavar="FILE",
        help="Write the records to this file, which must not exist.",
    )
    option(
        "--longpole-runs",
        type=_number_of_runs,
        metavar="N",
        help=f"Processes to measure in; {_RUNS} to compare or to keep, else 1.",
    )
    option(
        "--longpole-gate",
        type=_share,
        default=0.03,
        metavar="SHARE",
        help="The smallest change that matters, as 3%% or 0.03.",
    )
    option(
        "--longpole-budget-s",
        type=float,
        default=0.7,
        metavar="S",
        help="Seconds for a benchmark in a run.",
    )
    option(
        "--longpole-fail",
        choices=("slower", "inconclusive", "never"),
        default="slower",
        help="Which verdict fails the session; `inconclusive` fails on `slower`, too.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Prepare to store records."""
    config.pluginmanager.register(Benchmarks(config), "longpole-benchmarks")


@pytest.fixture
def longpole_bench(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Time a function; call the fixture with the function and its arguments.

    The function is called once and its result is returned. Then it is timed, under the name of the
    test; several benchmarks in one test need `key`.

    Examples
    --------
    >>> def test_sorting(longpole_bench):
    ...     assert longpole_bench(sorted, [3, 1, 2]) == [1, 2, 3]
    """
    benchmarks: Any = request.config.pluginmanager.get_plugin("longpole-benchmarks")

    def timed(function: Callable[..., Any], *args: Any, key: str = "", **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        name = f"{request.node.nodeid} {key}".rstrip()
        benchmarks.measure(name, lambda: function(*args, **kwargs))
        return result

    return timed


class Benchmarks:
    """The measurements of this session and of the runs that it starts."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._into = os.environ.get(_INTO)
        self._tests: list[str] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._comparison: Comparison | None = None
        self._problem: str | None = None

    @property
    def _n_runs(self) -> int:
        wanted = self._config.getoption("longpole_runs")
        is_for_others = self._config.getoption("longpole_baseline") or self._config.getoption(
            "longpole_save"
        )
        return int(wanted or (_RUNS if is_for_others else 1))

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Remember the tests with a benchmark; in a comparison run, deselect all others."""
        found = [item for item in items if _FIXTURE in getattr(item, "fixturenames", ())]
        self._tests = [item.nodeid for item in found]
        if self._into is not None:
            items[:] = found

    def measure(self, key: str, function: Callable[[], object]) -> None:
        """Time a function and store its record."""
        from longpole.bench.records.store import Store
        from longpole.bench.time.measure import measure
        from longpole.bench.time.timing import Effort

        effort = Effort(budget_s=self._config.getoption("longpole_budget_s"))
        timing = measure(function, key=key, effort=effort)
        with Store(self._records, resume=self._records.exists()) as store:
            store.append(timing.record())
        if timing.message:
            pytest.fail(f"{timing.outcome}: {timing.message}", pytrace=False)

    @property
    def _records(self) -> Path:
        """Return the record file: that of the pytest that started this process, or its own."""
        if self._into is not None:
            return Path(self._into)
        if path := self._config.getoption("longpole_records"):
            return Path(path)
        self._folder = self._folder or tempfile.TemporaryDirectory(prefix="longpole-pytest-")
        return Path(self._folder.name, "records.jsonl")

    def pytest_sessionstart(self) -> None:
        """Raise for options that would falsify the measurement or overwrite something."""
        if self._into is not None:
            return
        if getattr(self._config.option, "numprocesses", None) and self._n_runs > 1:
            message = "benchmarks must not run at the same time: leave out -n"
            raise pytest.UsageError(message)
        path = self._config.getoption("longpole_records")
        if path and Path(path).exists():
            message = f"--longpole-records: {path} exists"
            raise pytest.UsageError(message)
        self._refuse_baselines()

    def _refuse_baselines(self) -> None:
        """Raise before measuring if saving the baseline would fail afterwards."""
        from longpole.bench.records.baselines import baseline_path, find_measurements

        try:
            if name := self._config.getoption("longpole_baseline"):
                find_measurements(name)
            if (name := self._config.getoption("longpole_save")) and baseline_path(name).exists():
                message = f"--longpole-save: there is a baseline {name}"
                raise pytest.UsageError(message)
        except FileNotFoundError as error:
            message = f"--longpole-baseline: {error.strerror}: {error.filename}"
            raise pytest.UsageError(message) from error
        except ValueError as error:
            message = f"--longpole-save: {error}"
            raise pytest.UsageError(message) from error

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Measure in more processes, compare, and set the exit status by the verdict."""
        if self._into is not None or not self._tests or session.exitstatus != pytest.ExitCode.OK:
            return
        for _ in range(self._n_runs - 1):
            if problem := self._another_run():
                self._problem = problem
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
                return
        self._judge(session)

    def _judge(self, session: pytest.Session) -> None:
        from longpole.bench import save_baseline
        from longpole.bench.comparison.compare import compare
        from longpole.errors import LongpoleError

        try:
            if name := self._config.getoption("longpole_baseline"):
                gate = self._config.getoption("longpole_gate")
                self._comparison = compare(name, self._records, gate)
            if name := self._config.getoption("longpole_save"):
                save_baseline(name, self._records)
        except (LongpoleError, OSError, ValueError) as error:
            self._problem = str(error)
            session.exitstatus = pytest.ExitCode.USAGE_ERROR
            return
        if self._comparison is not None and self._comparison.verdict in self._failing():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _failing(self) -> set[str]:
        return {
            "slower": {"slower"},
            "inconclusive": {"slower", "inconclusive"},
            "never": set[str](),
        }[self._config.getoption("longpole_fail")]

    def _another_run(self) -> str | None:
        """Start the same pytest again under a guard; return the reason if it failed."""
        from longpole.bench.run.guard import Order, run_once
        from longpole.bench.run.output import Tail

        said = Tail()
        given = self._config.invocation_params
        order = Order(
            argv=[sys.executable, "-m", "pytest", *map(str, given.args)],
            env={**os.environ, _INTO: str(self._records.absolute())},
            folder=str(given.dir),
            limit_s=_LIMIT_S,
            grace_s=_GRACE_S,
            drain_s=_DRAIN_S,
        )
        ending = run_once(order, lambda _, chunk: said.feed(chunk))
        if ending.exit_code == pytest.ExitCode.OK:
            return None
        return f"a run of the benchmarks ended with exit status {ending.exit_code}:\n{said.text()}"

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Show the times, and the verdict."""
        if self._into is None and (self._problem or self._records_exist()):
            terminalreporter.section("benchmarks (longpole)")
            for line in self._lines():
                terminalreporter.write_line(line)

    def _records_exist(self) -> bool:
        return bool(self._tests) and self._records.exists()

    def _lines(self) -> Iterator[str]:
        from longpole.bench.comparison.differences import comparison_blocks
        from longpole.report.text import text

        if self._problem is not None:
            yield self._problem
        elif self._comparison is not None:
            yield from text(comparison_blocks(self._comparison)).rstrip("\n").split("\n")
        else:
            yield from text([_times(self._records)]).rstrip("\n").split("\n")

    def pytest_unconfigure(self) -> None:
        """Remove records that the user did not ask to keep."""
        if self._folder is not None:
            self._folder.cleanup()


def _times(records: Path) -> Any:
    """Show the time of each benchmark."""
    import math
    from statistics import median

    from longpole.bench.records.samples import gather
    from longpole.report.blocks import Column, Table

    runs = gather(records).runs
    columns = [Column("benchmark", "name"), Column("median", "duration"), Column("runs", "count")]
    return Table(
        columns,
        [
            [key, round(math.exp(median(each.log_times))), len(each.log_times)]
            for key, each in runs.items()
            if each.log_times
        ],
    )


def _number_of_runs(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def _share(text: str) -> float:
    try:
        return parse_share(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from error
