"""A machine that never was: simulates what GPU programs do, and knows why they took so long.

    program -> engine -> truth          what really waited for what
                     \\-> kineto -> layouts -> a trace, as torch would have written it

A program (`program`, `catalogue`, `programs`) is run by the engine (`engine`) on a machine
(`machine`), perhaps with changes (`changes`). While it runs, the engine notes the causes of every
moment; `truth` walks back along them. `kineto` turns the same run into records and `layouts` into
bytes; `large` repeats a small trace until it is a large one.
"""

from .changes import Change, Drop, NoWait, Scale
from .large import write_large
from .machine import Machine
from .program import Program
from .programs import graphed, inference, training
from .run import Run, simulate

__all__ = [
    "Change",
    "Drop",
    "Machine",
    "NoWait",
    "Program",
    "Run",
    "Scale",
    "graphed",
    "inference",
    "simulate",
    "training",
    "write_large",
]
