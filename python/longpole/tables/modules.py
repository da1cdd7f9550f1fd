"""Table `modules`: time of each module of the model, forward and backward."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

import polars as pl

from longpole.engine.windows import window_of
from longpole.files.damage import record_hint
from longpole.tables.catalogue import table
from longpole.tables.frame_times import FrameTimes, no_rows, with_graphs, with_shares
from longpole.trace.graph_contexts import graph_context_times

if TYPE_CHECKING:
    from collections.abc import Iterable

    from longpole.engine.windows import Window
    from longpole.trace.contexts import Frame
    from longpole.trace.trace import Trace

_OWN: Final = ("count", "self_ns", "n_self", "device_self_ns", "backward_self_ns")
_MISSING: Final = "The trace names no modules"
_OR: Final = ", or give a regex for annotations that name them"


@table(FrameTimes, by=("layer", "path"), needs_arguments=True)
def modules(
    trace: Trace,
    window: Window | None = None,
    *,
    by: Literal["path", "layer"] = "layer",
    annotations: str | None = None,
    where: pl.Expr | str | None = None,
    sort: str | None = None,
    top: int = 20,
) -> FrameTimes:
    """Measure the time of each module of the model, forward and backward.

    Modules are the calls of `nn.Module` in Python stacks (`with_stack=True`), the hierarchy that
    operators record (`with_modules=True`, for scripted models), and, on request, annotations.
    `name` is the path from the outermost module, with torch's numbers for the modules of a class.

    A GPU activity counts for the innermost module around the call that launched it. One of the
    backward pass counts for the module of the forward operator, as `backward_self_ns`. So
    `device_self_ns` and `backward_self_ns` of all rows sum to the time of all GPU activities.
    Kernels of CUDA graphs count for the modules that captured them, if their capture is known.

    Parameters
    ----------
    by
        `"path"` has a row for each module, `"layer"` combines modules whose paths differ only in
        numbers, such as the layers of an encoder.
    annotations
        A regular expression for annotations that are modules too.

    Raises
    ------
    ValueError
        The condition or the pattern is invalid, `by` is neither of the two, or the column does not
        exist.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().python("nn.Module: Net_0", (0, 40))
    >>> builder = builder.python("nn.Module: Linear_1", (5, 30))
    >>> trace = builder.launch("gemm", call=(10, 12), work=(20, 60)).read()
    >>> modules(trace, by="path").rows.select("name", "device_self_ns", "device_ns").rows()[:2]
    [('Net_0/Linear_1', 40000, 40000), ('Net_0', 0, 40000)]
    """
    if by not in {"path", "layer"}:
        message = f'by is "layer" or "path", not {by!r}'
        raise ValueError(message)
    window = window_of(trace, window)
    if window is None:
        return FrameTimes("module", no_rows(), 0, top)
    frames: tuple[Frame, ...] = ("module", "annotation") if annotations else ("module",)
    times = graph_context_times(trace, window, *frames, annotation_names=annotations, where=where)
    paths = _paths(times.tree, merges=by == "layer")
    rows = _with_totals(paths, times.tree)
    own = pl.col("device_self_ns") + pl.col("backward_self_ns").fill_null(0)
    ranked, device_ns = with_shares(rows, times, own)
    hint = None if paths else record_hint(trace, _MISSING, "stack", _OR)
    found = FrameTimes("module", ranked, device_ns, top, hint, is_tree=True)
    return with_graphs(found, trace).sorted_by(sort)


def _paths(tree: pl.DataFrame, *, merges: bool) -> list[tuple[str, ...]]:
    """Return the path of each chain; parents come before the modules inside them."""
    paths: list[tuple[str, ...]] = []
    for parent, name in tree.select("parent", pl.col("name").cast(pl.String)).iter_rows():
        paths.append(_path(() if parent is None else paths[parent], name or ""))
    if merges:
        return [tuple(re.sub(r"_\d+$", "", part) for part in path) for path in paths]
    return paths


def _path(around: tuple[str, ...], name: str) -> tuple[str, ...]:
    if name.startswith("TOP("):  # operators record the whole path of modules
        return tuple(re.split(r"\.(?![^(]*\))", name))
    return (*around, name.removeprefix("nn.Module: "))


def _with_totals(paths: list[tuple[str, ...]], tree: pl.DataFrame) -> pl.DataFrame:
    """Sum the chains of each path, and for totals also those of the paths below it."""
    own: dict[tuple[str, ...], list[int]] = {}
    total: dict[tuple[str, ...], list[int]] = {}
    for path, figures in zip(paths, tree.select(_OWN).iter_rows(), strict=True):
        _add(own, [path], figures)
        _add(total, (path[: length + 1] for length in range(len(path))), figures)
    rows = [("/".join(path), *own.get(path, [0] * len(_OWN)), *total[path]) for path in total]
    names = ["name", *_OWN, *(f"all_{name}" for name in _OWN)]
    types = dict.fromkeys(names, pl.Int64) | {"name": pl.String}
    frame = pl.DataFrame(rows, schema=types, orient="row")
    ran = pl.any_horizontal(pl.col("all_count", "all_n_self", "all_backward_self_ns") > 0)
    return frame.filter(ran).select(
        "name",
        "count",
        "self_ns",
        "device_self_ns",
        "backward_self_ns",
        total_ns="all_self_ns",
        n_activities="all_n_self",
        device_ns="all_device_self_ns",
        backward_ns="all_backward_self_ns",
    )


def _add(
    sums: dict[tuple[str, ...], list[int]],
    paths: Iterable[tuple[str, ...]],
    figures: tuple[int, ...],
) -> None:
    for path in paths:
        known = sums.setdefault(path, [0] * len(figures))
        for place, figure in enumerate(figures):
            known[place] += figure
