"""The command `longpole`.

Each verb is a module of its name, imported when it is called: `longpole --help`
must not wait for polars.
"""

from __future__ import annotations

from longpole.cli.program import main

__all__ = ["main"]
