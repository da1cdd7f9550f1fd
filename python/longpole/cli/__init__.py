"""The command `longpole`.

Each command is a file of this folder, or of `bench/`, found by its first line and
imported when it is called: `longpole --help` must not wait for polars.
"""

from __future__ import annotations

from longpole.cli.program import main

__all__ = ["main"]
