"""How all tests run: what they need, when they are tried again, how hard properties look."""

import gc
import os
import re
import signal
import threading

import pytest
from hypothesis import settings

pytest_plugins = ["oracles.needs", "oracles.real_time", "oracles.sentences"]

# On a busy machine any test may take its time. The examples are the same in every run, so that
# a failure is about the change at hand. `make test-long` has them search much longer.
settings.register_profile("default", deadline=None, derandomize=True, max_examples=25)
settings.register_profile("search", deadline=None, max_examples=2_000)
settings.load_profile("default")

# In the background of a script Ctrl-C is ignored, and every process started here would ignore it.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Variables with which users of longpole, terminals and shells change what it does and prints, but
# not those with which this suite is asked for more.
_OF_USERS = re.compile(
    r"LONGPOLE_(?!WRITE_SENTENCES$|REQUIRE_GPU$|CHROMIUM$)|PYTORCH_TUNABLEOP_|MS_PROFILER_OPTIONS$"
    r"|PYTEST_ADDOPTS$|(NO|FORCE)_COLOR$|CLICOLOR|COLUMNS$|LINES$"
)


@pytest.fixture(scope="session", autouse=True)
def _no_variables_of_users():
    """Remove what the shell of a user, or a terminal, would change in answers and in output."""
    with pytest.MonkeyPatch.context() as patch:
        for name in filter(_OF_USERS.match, [*os.environ]):
            patch.delenv(name)
        yield


def pytest_collection_finish() -> None:
    """Freeze what was collected, so that garbage collection does not visit it."""
    gc.collect()
    gc.freeze()
