"""Tests of real time: they run last, and one that fails on a busy machine is tried once more.

`@pytest.mark.real_time` marks what starts programs that sleep and expects them to be told apart.
`make test` runs these tests alone, one at a time.
"""

from __future__ import annotations

import os

import pytest
from _pytest.runner import runtestprotocol

TRIED_AGAIN = pytest.StashKey[list[str]]()


def is_real_time(item: pytest.Item) -> bool:
    return item.get_closest_marker("real_time") is not None


def is_busy() -> bool:
    """Whether more programs want to run than there are cores."""
    return os.getloadavg()[0] > (os.cpu_count() or 1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=is_real_time)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a test of real time, and once more if it fails while the machine is busy."""
    if not is_real_time(item):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    if any(report.failed for report in reports) and is_busy():
        item.config.stash.setdefault(TRIED_AGAIN, []).append(item.nodeid)
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for name in terminalreporter.config.stash.get(TRIED_AGAIN, []):
        terminalreporter.write_line(f"TRIED AGAIN on a busy machine: {name}")
