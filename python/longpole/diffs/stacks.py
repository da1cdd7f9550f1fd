"""Keys that identify the same event in two traces: by stack, shape and name."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from longpole.trace.trace import Trace

# Odd constants of splitmix64.
_FIRST: Final = 0xBF58476D1CE4E5B9
_SECOND: Final = 0x94D049BB133111EB

_NUMBER: Final = r"\d+"

# Suffixes that compilers add to kernel names: files and lines of OpenMP regions, and hashes.
_OPENMP: Final = r"(__omp_offloading_)[0-9a-f]+_[0-9a-f]+_"
_LINE: Final = r"_l\d+(?:\.kd)?$"
_HASH: Final = r"[0-9a-f]{8,}"
_MODULE: Final = "nn.Module: "


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys of the rows of `Trace.events`; equal keys mean the same event in any trace."""

    name: NDArray[np.uint64]
    shape: NDArray[np.uint64]
    """Keys of the input shapes; 0 if not recorded."""
    stack: NDArray[np.uint64]
    """Keys of the operators, modules and annotations around an event, and the event itself."""
    operators: NDArray[np.uint64]
    """Keys like `stack`, but of the operators only."""


def keys_of(trace: Trace, events: pl.DataFrame, *, has_shapes: bool = True) -> Keys:
    """Compute the keys of all events of a trace, without shapes if the other side has none.

    Numbers in the names of annotations and modules are ignored, and so are Python frames, whose
    lines change with every edit of a file.
    """
    import numpy as np

    names = _name_keys(events)
    is_operator = (events["kind"] == "operator").to_numpy()
    frames = np.zeros(len(names), bool)
    frames[_frames(events, trace).to_numpy()] = True
    return Keys(
        name=names,
        shape=_shape_keys(trace, len(names)) if has_shapes else np.zeros(len(names), np.uint64),
        stack=_stacked(events, np.where(is_operator | frames, names, 0)),
        operators=_stacked(events, np.where(is_operator, names, 0)),
    )


def mixed(*keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Combine several keys into one.

    Examples
    --------
    >>> import numpy as np
    >>> one, two = np.array([1, 2], np.uint64), np.array([2, 1], np.uint64)
    >>> bool((mixed(one, two) == mixed(two, one)).any())
    False
    """
    import numpy as np

    mix = np.zeros(keys[0].shape, np.uint64)
    for key in keys:
        mix = (mix * np.uint64(_FIRST)) ^ key
        mix = (mix ^ (mix >> np.uint64(29))) * np.uint64(_SECOND)
    return mix


def _name_keys(events: pl.DataFrame) -> NDArray[np.uint64]:
    """Hash names; those of annotations and modules without their numbers."""
    import numpy as np
    import polars as pl

    text = pl.col("name").cast(pl.String).fill_null("")
    plain = text.str.replace_all(_NUMBER, "#").hash(seed=7)
    text = text.str.replace(_OPENMP, "${1}").str.replace(_LINE, "").str.replace_all(_HASH, "#")
    is_module = text.str.starts_with(_MODULE)
    each = (
        events.select("name")
        .unique()
        .select(
            code=pl.col("name").to_physical() + 1,
            key=pl.when(is_module).then(plain).otherwise(text.hash(seed=7)),
            plain=plain,
        )
        .with_columns(pl.col("code").fill_null(0))
    )
    codes = (events["name"].to_physical() + 1).fill_null(0).to_numpy()
    is_annotation = (events["kind"] == "annotation").fill_null(value=False).to_numpy()
    key, plain_key = (_by_code(each["code"], each[name])[codes] for name in ("key", "plain"))
    found: NDArray[np.uint64] = np.where(is_annotation, plain_key, key)
    return found


def _by_code(codes: pl.Series, keys: pl.Series) -> NDArray[np.uint64]:
    import numpy as np

    found = np.zeros(int(codes.max() or 0) + 1, np.uint64)  # type: ignore[arg-type]
    found[codes.to_numpy()] = keys.to_numpy()
    return found


def _frames(events: pl.DataFrame, trace: Trace) -> pl.Series:
    """List the annotations, except those of steps, and the modules of the model."""
    import polars as pl

    columns = events.select("event", "kind", "name")
    found = columns.filter((pl.col("kind") == "annotation") | (pl.col("kind") == "python"))
    name = pl.col("name").cast(pl.String)
    is_annotation = (pl.col("kind") == "annotation") & ~pl.col("event").is_in(
        trace.steps["event"].implode()
    )
    is_module = (pl.col("kind") == "python") & name.str.starts_with(_MODULE)
    is_frame = (is_annotation | is_module) & ~name.str.starts_with("ProfilerStep")
    return found.filter(is_frame)["event"]


def _shape_keys(trace: Trace, n_events: int) -> NDArray[np.uint64]:
    import numpy as np
    import polars as pl

    keys = np.zeros(n_events, np.uint64)
    for category in trace.categories:
        args = trace.args(category)
        if args is None or "Input Dims" not in args.columns:
            continue
        shape = pl.col("Input Dims").cast(pl.String).str.replace_all(r"\s", "")
        each = args.select("Input Dims").drop_nulls().unique().with_columns(key=shape.hash(seed=7))
        known = args.select("event", "Input Dims").join(each, on="Input Dims")
        keys[known["event"].to_numpy()] = known["key"].to_numpy()
    return keys


def _stacked(events: pl.DataFrame, own: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Combine the keys of the events around each event, outermost first; 0 adds nothing."""
    import numpy as np

    parents = events["parent"].fill_null(0).to_numpy()
    depths = events["depth"].fill_null(0).to_numpy()
    stack = np.zeros(len(own), np.uint64)
    order = np.argsort(depths, kind="stable")
    borders = np.searchsorted(depths[order], np.arange(int(depths.max(initial=0)) + 2))
    has_parent = events["parent"].is_not_null().to_numpy()
    for start, end in pairwise(borders):
        rows = order[start:end]
        above = np.where(has_parent[rows], stack[parents[rows]], 0)
        stack[rows] = np.where(own[rows] == 0, above, mixed(above, own[rows]))
    return stack
