"""Search a space of candidates for the best one, and report those tied with it."""

from longpole.bench.reference import Reference
from longpole.bench.tune.kernel_tuner import read_t1
from longpole.bench.tune.objective import Objective
from longpole.bench.tune.search import Tuning, tune
from longpole.bench.tune.space import Space, TaskError, powers_of_two
from longpole.bench.tune.strategies import STRATEGIES, Effort, find_strategy
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
    "TaskError",
    "Tuning",
    "find_strategy",
    "powers_of_two",
    "read_t1",
    "read_task",
    "tune",
]
