"""Figures for notebooks: `longpole.plot.QUESTION(trace)` draws the answer to a question.

There is one for every function of `longpole.tables` that returns a table, and for `path` (the
critical path by kind) and `step_times`. For several ranks, `lateness` shows which rank was late to
which call, and `rank_path` the critical path across ranks. For a search, `best_so_far`,
`parallel_coordinates` and `heat_map` show the candidates. All need plotly: `pip install
'longpole[plot]'`.

Examples
--------
>>> import longpole.plot
>>> from longpole.testing import TraceBuilder
>>> trace = TraceBuilder().launch("gemm", call=(0, 10), work=(10, 100)).read()
>>> figure = longpole.plot.path(trace)  # doctest: +SKIP
"""

from longpole.plot.draw import (
    best_so_far,
    figure,
    heat_map,
    lateness,
    parallel_coordinates,
    path,
    question,
    rank_path,
    step_times,
)

__all__ = [
    "best_so_far",
    "figure",
    "heat_map",
    "lateness",
    "parallel_coordinates",
    "path",
    "question",
    "rank_path",
    "step_times",
]


def __getattr__(name: str) -> object:
    return question(name)
