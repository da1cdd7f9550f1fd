"""Chakra graphs: the protobuf files read by ASTRA-sim and its feeders."""

from __future__ import annotations

import warnings
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from longpole._core import read_chakra as read_core
from longpole.errors import WindowError
from longpole.files.writing import new_file, new_files
from longpole.formats.convert.execution_trace import LinkedTrace, Replay, replay_of
from longpole.formats.read import read_trace
from longpole.rows.frames import frame_of

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from typing import BinaryIO

    import polars as pl

    from longpole._core import ChakraTrace as CoreChakraTrace
    from longpole.engine.critical_path import CriticalPath
    from longpole.trace.trace import Trace


def read_chakra(
    source: str | os.PathLike[str] | bytes | BinaryIO,
    *,
    progress: Callable[[int], object] | None = None,
) -> ChakraTrace:
    """Read a Chakra graph (`.et`) written by any tool, plain or gzip.

    Parameters
    ----------
    source
        A path, the bytes themselves, or a binary file object.
    progress
        Called periodically with the number of bytes read. If it raises, reading ends.

    Raises
    ------
    TraceError
        The source is not a Chakra graph, or one of its messages is damaged.
    OSError
        The file cannot be opened or read.

    Examples
    --------
    >>> read_chakra("rank.0.et").check()  # doctest: +SKIP
    """
    return ChakraTrace(read_core(source, progress=progress))


class ChakraTrace:
    """A Chakra graph, as stored in a file."""

    def __init__(self, core: CoreChakraTrace) -> None:
        self._core = core

    def __len__(self) -> int:
        return len(self._core)

    @cached_property
    def nodes(self) -> pl.DataFrame:
        """One row for each node, in the order of the file.

        Columns: `node` (the id), `name`, `type`, `start_us`, `duration_us`, and the attributes
        `duration_ns`, `is_cpu_op` (1 or 0), `tid`, `stream`, `comm_type`, `comm_size` and
        `pg_name`; null if a node lacks one.
        """
        return frame_of(self._core.nodes())

    @cached_property
    def dependencies(self) -> pl.DataFrame:
        """One row for each dependency: `node`, `depends_on`, `kind` (`control` or `data`)."""
        return frame_of(self._core.dependencies())

    @cached_property
    def metadata(self) -> dict[str, str]:
        """Attributes of the file, as strings."""
        return dict(self._core.attributes)

    def attributes(self, row: int) -> dict[str, str]:
        """Return the attributes of the node in a row of `nodes`, as strings."""
        return dict(self._core.attributes_of(row))

    def check(self) -> pl.DataFrame:
        """Find all problems of the graph.

        Columns: `code`, `refused` (whether simulators reject the graph because of it, or never
        finish), `count`, `first_node`, `sentence`, `effect`. Empty for a valid graph.
        """
        return frame_of(self._core.check())

    def replay(self, *, gaps: bool = True) -> Replay:
        """Run the nodes as a simulator would; see `LinkedTrace.replay`."""
        return replay_of(self._core.replay(gaps))


def write_chakra(
    linked: LinkedTrace,
    path: str | os.PathLike[str],
    *,
    gaps: bool = True,
    overwrite: bool = False,
) -> None:
    """Write a linked execution trace as a Chakra graph.

    Parameters
    ----------
    linked
        The result of `link_execution_trace`.
    path
        The file. ASTRA-sim expects one file per rank, `PREFIX.RANK.et`.
    gaps
        Whether to create nodes for the time of threads between operators.
    overwrite
        Whether to replace an existing file.

    Raises
    ------
    FileExistsError
        The file exists and `overwrite` is not set, or it is one of the linked files.
    """
    with new_file(Path(path), force=overwrite, inputs=linked.inputs) as file:
        linked.core.write_chakra(file, gaps)


def write_et_plus(
    linked: LinkedTrace,
    path: str | os.PathLike[str],
    *,
    gaps: bool = True,
    overwrite: bool = False,
) -> None:
    """Write a linked execution trace as an ET+ file (JSON).

    Parameters
    ----------
    linked
        The result of `link_execution_trace`.
    path
        The file.
    gaps
        Whether to create nodes for the time of threads between operators.
    overwrite
        Whether to replace an existing file.

    Raises
    ------
    FileExistsError
        The file exists and `overwrite` is not set, or it is one of the linked files.
    """
    with new_file(Path(path), force=overwrite, inputs=linked.inputs) as file:
        linked.core.write_et_plus(file, gaps)


def write_parquet(
    linked: LinkedTrace, folder: str | os.PathLike[str], *, overwrite: bool = False
) -> None:
    """Write `nodes`, `dependencies`, `unlinked` and `collectives` as Parquet files.

    Raises
    ------
    FileExistsError
        One of the files exists and `overwrite` is not set.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    names = ("nodes", "dependencies", "unlinked", "collectives")
    paths = [folder / f"{name}.parquet" for name in names]
    with new_files(paths, force=overwrite, inputs=linked.inputs) as files:
        for name, file in zip(names, files, strict=True):
            getattr(linked, name).write_parquet(file)


def load_sync_dependencies(
    rank: int,
    kineto_file: str | os.PathLike[str],
    annotation: str = "ProfilerStep",
    instance_id: int = 0,
) -> dict[int, list[int]]:
    """Return the External ids of events that waited for a device, with those of the awaited events.

    The waits are those in the dependency graph of one window; activities that had ended before the
    event began are not among them. The arguments are those of the function with this name in
    Chakra's device trace loader, which returns only waits on the critical path.

    Parameters
    ----------
    rank
        The rank; a trace with another rank causes a warning.
    kineto_file
        The Kineto trace.
    annotation
        The annotation to search in; an empty string for the whole trace.
    instance_id
        Index of its instance, from 0.

    Raises
    ------
    WindowError
        The annotation does not exist.
    """
    trace = read_trace(kineto_file)
    if trace.rank not in {None, rank}:
        warnings.warn(f"the trace is of rank {trace.rank}, not {rank}", stacklevel=2)
    path = _path_of(trace, annotation, instance_id)
    columns = ("target_external_id", "source_external_id")
    found: dict[int, list[int]] = {}
    missing = 0
    for target, source in path.sync_dependencies.filter("waited").select(columns).rows():
        if target is None or source is None:
            missing += 1
        elif target != source and source not in found.setdefault(target, []):
            found[target].append(source)
    if missing:
        warnings.warn(f"{missing} waits have no External id and are left out", stacklevel=2)
    return {target: sources for target, sources in found.items() if sources}


def _path_of(trace: Trace, annotation: str, instance: int) -> CriticalPath:
    """Return the path of the nth annotation whose name contains a string, as in HTA."""
    import polars as pl

    names = trace.annotations.filter(
        pl.col("name").cast(pl.String).str.contains(annotation, literal=True)
    ).sort("start_ns")["name"]
    if not annotation:
        return trace.critical_path(whole=True)
    if not 0 <= instance < len(names):
        message = f"the trace has {len(names)} ranges named {annotation!r}, counted from 0"
        raise WindowError(message)
    name = str(names[instance])
    earlier = sum(str(other) == name for other in names[:instance])
    return trace.critical_path(annotation=name, instance=earlier)
