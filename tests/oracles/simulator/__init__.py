"""A machine that never was: simulates what GPU programs do, and knows why they took so long.

    program -> engine -> timeline -> truth             what really waited for what
                                  -> kineto -> text      a trace, as torch would write it

A program (`program`, `catalogue`, `programs`, `random_programs`) is run by the engine (`engine`,
`devices`) under some conditions (`machine`, `changes`). While it runs, the causes of every moment
are written down (`timeline`); `truth` walks back along them. `kineto` turns the same timeline into
records and `text` those into bytes; `large` repeats a small trace until it is a large one.
"""

from .changes import Change, Drop, NoWait, Scale
from .large import write_large
from .losses import Losses
from .machine import Machine
from .program import Program
from .programs import graphed, inference, training
from .random_programs import FEATURES, RARE_FEATURES, random_program
from .run import PROGRAMS, Run, simulate

__all__ = [
    "FEATURES",
    "PROGRAMS",
    "RARE_FEATURES",
    "Change",
    "Drop",
    "Losses",
    "Machine",
    "NoWait",
    "Program",
    "Run",
    "Scale",
    "graphed",
    "inference",
    "random_program",
    "simulate",
    "training",
    "write_large",
]
