"""Figures for notebooks: `longpole.plot.QUESTION(trace)` draws the answer to a question.

Every question of `longpole.analyses` that answers with a table has one, and so have `path` (the
critical path by kind) and `step_times`. Of several ranks, `lateness` draws who came late to which
call, and `rank_path` the critical path across them. Of a search, `best_so_far`,
`parallel_coordinates` and `heat_map` draw what was tried. They need plotly:
`pip install 'longpole[plot]'`.

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
