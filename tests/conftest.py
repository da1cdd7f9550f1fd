"""How all tests run: what they need, when they are tried again, how hard properties look."""

import os
import signal
import threading

from hypothesis import settings

pytest_plugins = ["oracles.needs", "oracles.real_time", "oracles.sentences"]

# On a busy machine any test may take its time. The examples are the same in every run, so that
# a failure is about the change at hand. `make test-long` has them search much longer.
settings.register_profile("default", deadline=None, derandomize=True, max_examples=25)
settings.register_profile("search", deadline=None, max_examples=2_000)
settings.load_profile("default")

# What runs the tests side by side tells them the width of its own terminal.
os.environ.pop("COLUMNS", None)

# In the background of a script Ctrl-C is ignored, and every process started here would ignore it.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)
