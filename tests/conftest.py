"""How hard the property tests look: `make test-long` has them search much longer."""

import os

from hypothesis import settings

# On a busy machine any test may take its time. The examples are the same in every run, so that
# a failure is about the change at hand.
settings.register_profile("default", deadline=None, derandomize=True, max_examples=40)
settings.register_profile("search", deadline=None, max_examples=2_000)
settings.load_profile("default")

# What runs the tests side by side tells them the width of its own terminal.
os.environ.pop("COLUMNS", None)
