"""Search a space of candidates for the best one, and say what it cannot be told from."""

from longpole.bench.reference import Reference
from longpole.bench.tune.objective import Objective
from longpole.bench.tune.search import Tuning, tune
from longpole.bench.tune.space import Space, powers_of_two
from longpole.bench.tune.strategies import STRATEGIES, Effort
from longpole.bench.tune.task import Command, Function, Task, read_task

__all__ = [
    "STRATEGIES",
    "Command",
    "Effort",
    "Function",
    "Objective",
    "Reference",
    "Space",
    "Task",
    "Tuning",
    "powers_of_two",
    "read_task",
    "tune",
]
