"""What each operator cost, by the shapes of its inputs: `op_analyse`.

The launches stand in `{cpu,gpu}_framework`, a line each; the times in `{cpu,gpu}_op_detail_info`
and, of a GPU's kernels, in `gpu_activity_data`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final, Literal, overload

from longpole.mindspore.errors import ProfileError
from longpole.mindspore.executions import (
    LONGEST_NS,
    Executions,
    read_executions,
    read_kernels,
)
from longpole.mindspore.findings import FileFinding, Findings
from longpole.mindspore.layouts import RankFiles, find_ranks
from longpole.mindspore.operators_compat import compatible_op_analyse
from longpole.mindspore.text import Columns, lines_of, rows_of, stamp, table_of

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    import polars as pl

__all__ = ["OpAnalysis", "OpRow", "analyse_operators", "op_analyse"]

_DETAIL: Final = {
    "kind": ("op_type",),
    "name": ("op_name",),
    "full": ("full_op_name", "op_full_name"),
    "count": ("op_occurrences",),
    "total": ("op_total_time(ms)", "op_total_time(us)"),
}
_DETAIL_UNUSED: Final = (
    "op_side",
    "op_avg_time(ms)",
    "op_avg_time(us)",
    "total_proportion",
    "subgraph",
    "pid",
    "cuda_activity_cost_time(us)",
    "cuda_activity_call_count",
)
_MOST_RUNS: Final = 10**12
_NS: Final = {"(ms)": 1_000_000, "(us)": 1_000}


@dataclass(frozen=True, slots=True)
class OpRow:
    """The runs of an operator, or of a type of operators, with inputs of one shape.

    `total_ns` is null where the runs cannot be assigned to shapes; `kernels_ns` where kernels
    are shared with operators of other rows, and on the CPU.
    """

    asked: str
    op_side: Literal["cpu", "gpu"]
    op_type: str
    input_shapes: str
    n_runs: int
    total_ns: int | None
    kernels_ns: int | None = None

    @property
    def mean_ns(self) -> float | None:
        """The mean time of a run in nanoseconds."""
        return None if self.total_ns is None or not self.n_runs else self.total_ns / self.n_runs


@dataclass(frozen=True, slots=True)
class OpAnalysis:
    """Rows in the order of the question, the dearest first; and what was wrong with the files."""

    device_id: int
    rows: Sequence[OpRow]
    findings: Sequence[FileFinding] = field(default=())

    def frame(self) -> pl.DataFrame:
        """Give the rows as a frame, with `mean_ns`."""
        import polars as pl

        names = (*OpRow.__slots__, "mean_ns")
        rows = [{name: getattr(row, name) for name in names} for row in self.rows]
        times = dict.fromkeys(("n_runs", "total_ns", "kernels_ns"), pl.Int64)
        texts = dict.fromkeys(("asked", "op_side", "op_type", "input_shapes"), pl.String)
        schema: Any = {name: {**texts, **times}.get(name, pl.Float64) for name in names}
        return pl.DataFrame(rows, schema=schema)


@overload
def op_analyse(
    path: str | os.PathLike[str],
    op_name: str | Sequence[str],
    device_id: int | None = None,
    *,
    compat: None = None,
) -> OpAnalysis: ...
@overload
def op_analyse(
    path: str | os.PathLike[str],
    op_name: str | Sequence[str],
    device_id: int | None = None,
    *,
    compat: Literal["mindspore"],
) -> str: ...
def op_analyse(
    path: str | os.PathLike[str],
    op_name: str | Sequence[str],
    device_id: int | None = None,
    *,
    compat: Literal["mindspore"] | None = None,
) -> OpAnalysis | str:
    """Say what operators cost, by the shapes of their inputs, on the CPU and on a GPU.

    Parameters
    ----------
    path
        A MindSpore profile folder, in any layout.
    op_name
        Types (`"MatMul"`) or names (`"MatMul-op79"`) of operators, one or several. A name that
        is not in the profile is a finding.
    device_id
        The device; it may be left out where the profile has one.
    compat
        `"mindspore"` gives the JSON text of MindSpore r2.3's `Profiler.op_analyse`, with its
        faults; the page on MindSpore lists them.

    Raises
    ------
    TypeError
        `op_name` or `device_id` is of another type, or `op_name` is empty.
    ProfileError
        There is no profile, not that device, or a file of the pair is missing.
    RuntimeError
        `compat="mindspore"`, where MindSpore raises it.
    """
    names = _checked(op_name, device_id)
    ranks = find_ranks(path)
    if compat == "mindspore":
        wanted = ranks[0].rank if device_id is None else device_id
        return compatible_op_analyse({files.rank: files for files in ranks}, wanted, names)
    files = _chosen(ranks, device_id)
    found = analyse_operators(files, names)
    if not found.rows:
        message = f"none of the operators is in the profile: {', '.join(names)[:200]}"
        hint = "name types such as 'MatMul', or names such as 'MatMul-op79'"
        raise ProfileError(files.folder, "unknown_operator", message, hint=hint)
    return found


def _checked(op_name: str | Sequence[str], device_id: int | None) -> list[str]:
    if device_id is not None and (isinstance(device_id, bool) or not isinstance(device_id, int)):
        message = f"device_id is a whole number, not {type(device_id).__name__}"
        raise TypeError(message)
    names = [op_name] if isinstance(op_name, str) else op_name
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        message = f"op_name is a str or a list of str, not {type(op_name).__name__}"
        raise TypeError(message)
    if not names or not all(names):
        message = "op_name is empty"
        raise TypeError(message)
    return list(names)


def _chosen(ranks: Sequence[RankFiles], device_id: int | None) -> RankFiles:
    kinds = ("cpu_framework", "gpu_framework", "cpu_op_detail_info", "gpu_op_detail_info")
    having = [files for files in ranks if any(map(files.get, kinds))]
    known = ", ".join(str(files.rank) for files in having) or "none"
    if device_id is not None:
        having = [files for files in having if files.rank == device_id]
    if len(having) != 1:
        code = "several_ranks" if having else "no_such_rank"
        message = f"the devices with operators are {known}"
        raise ProfileError(ranks[0].folder, code, message, hint="name one with device_id")
    return having[0]


def analyse_operators(files: RankFiles, names: Sequence[str] | None = None) -> OpAnalysis:
    """Answer for one rank; with no names, for each type of operators."""
    findings = Findings()
    sides = [side for side in ("cpu", "gpu") if files.get(f"{side}_op_detail_info")]
    rows: list[OpRow] = []
    known: set[str] = set()
    for side in sides:
        profile = _Side(files, side, findings)
        for name in names if names is not None else profile.kinds():
            found = profile.rows(name)
            known.update(row.asked for row in found)
            rows += found
    for name in names or ():
        if name not in known:
            findings.add("unknown_operator", files.folder, None, name)
    if not sides:
        files.need("cpu_op_detail_info")
    return OpAnalysis(files.rank, rows, findings.all())


@dataclass(slots=True)
class _Operator:
    kind: str
    name: str
    full: str
    count: int
    total_ns: int


class _Side:
    """The operators of the host (`cpu`) or of a GPU (`gpu`) of one rank."""

    def __init__(self, files: RankFiles, side: str, findings: Findings) -> None:
        self._files, self._findings = files, findings
        self._side: Literal["cpu", "gpu"] = "cpu" if side == "cpu" else "gpu"
        self._operators = list(_operators(files.need(f"{side}_op_detail_info"), findings))
        self._launches = _launches(files.need(f"{side}_framework"), findings)
        self._runs: Executions | None = None

    def kinds(self) -> list[str]:
        return list(dict.fromkeys(operator.kind for operator in self._operators))

    def rows(self, asked: str) -> list[OpRow]:
        """Group what was asked for by shape, the dearest first."""
        chosen: dict[str, list[_Operator]] = {}
        for operator in self._operators:
            if asked in (operator.kind, operator.name, operator.full):
                chosen.setdefault(operator.name, []).append(operator)
        counts: Counter[str] = Counter()
        times: dict[str, int | None] = {}
        members: dict[str, list[_Operator]] = {}
        for name, operators in chosen.items():
            for shape, (count, total_ns) in self._by_shape(name, operators).items():
                counts[shape] += count
                before = times.get(shape, 0)
                times[shape] = None if None in (before, total_ns) else before + total_ns  # type: ignore[operator]
                members.setdefault(shape, []).extend(operators)
        kernels = self._kernels(members) if self._side == "gpu" else {}
        rows = [
            OpRow(
                asked,
                self._side,
                members[shape][0].kind,
                shape,
                counts[shape],
                total_ns,
                kernels.get(shape),
            )
            for shape, total_ns in times.items()
        ]
        return sorted(rows, key=lambda row: (-(row.total_ns or 0), row.input_shapes))

    def _by_shape(
        self, name: str, operators: Sequence[_Operator]
    ) -> Mapping[str, tuple[int, int | None]]:
        """Give runs and time of the operators of one short name, for each shape they ran with."""
        shapes = self._launches.get(name, Counter())
        count = sum(operator.count for operator in operators)
        total_ns = sum(operator.total_ns for operator in operators)
        if len(shapes) <= 1:
            return {next(iter(shapes), ""): (count, total_ns)}
        times = self._times_in_order(operators)
        order = self._order(name)
        if len(times) != len(order):
            path = self._files.need(f"{self._side}_framework")
            self._findings.add("shapes_not_told_apart", path, None, name)
            return {shape: (n, None) for shape, n in shapes.items()}
        sums: dict[str, list[int]] = {}
        for shape, time_ns in zip(order, times, strict=True):
            found = sums.setdefault(shape, [0, 0])
            found[0] += 1
            found[1] += time_ns
        return {shape: (found[0], found[1]) for shape, found in sums.items()}

    def _times_in_order(self, operators: Sequence[_Operator]) -> list[int]:
        """Give the time of each run of some operators, by start."""
        if self._runs is None:
            path = self._files.get(f"{self._side}_op_execute_timestamp")
            self._runs = read_executions(path, self._findings) if path else Executions()
        runs, names = self._runs, {operator.full for operator in operators}
        chosen = {row for row, name in enumerate(runs.operators) if name in names}
        rows = (row for row, operator in enumerate(runs.operator) if operator in chosen)
        return [time for _, time in sorted((runs.start_ns[n], runs.duration_ns[n]) for n in rows)]

    def _order(self, name: str) -> list[str]:
        path = self._files.need(f"{self._side}_framework")
        lines = (text.split(";", 3) for _, text in lines_of(path, Findings()))
        return [_shape(parts) for parts in lines if len(parts) > 1 and parts[1] == name]

    def _kernels(self, members: Mapping[str, Sequence[_Operator]]) -> dict[str, int]:
        """Give the kernel time of each shape, where no kernel is shared with other shapes.

        The file has one row for each kernel name, with the operator that launched it first.
        """
        path = self._files.get("gpu_activity_data")
        if path is None:
            return {}
        booked: Counter[str] = Counter()
        for kernel in read_kernels(path, self._findings):
            booked[kernel.operator] += round(1000 * (kernel.total_us or 0))
        costs = _kernel_costs(self._files.need("gpu_op_detail_info"), self._findings)
        found = {}
        for shape, operators in members.items():
            known = {booked[operator.full] for operator in operators}
            if all(costs.get(operator.full) in known for operator in operators):
                found[shape] = sum(booked[operator.full] for operator in operators)
            else:
                self._findings.add("shared_kernels", path, None, operators[0].kind)
        return found


def _operators(path: Path, findings: Findings) -> Iterable[_Operator]:
    header, rows = table_of(path, findings)
    columns = Columns(path, header, _DETAIL, findings, known=_DETAIL_UNUSED)
    total = columns.place("total")
    scale = _NS[header[total].strip()[-4:]]
    for line, row in columns.whole(rows):
        count = stamp(row[columns.place("count")], path, line, findings)
        total_ns = _exact(row[total], scale)
        if total_ns is None or (count or 0) > _MOST_RUNS:
            findings.add("bad_number", path, line, repr(row[total][:40]))
            continue
        if count is None:
            continue
        kind, name, full = (row[columns.place(key)].strip() for key in ("kind", "name", "full"))
        yield _Operator(kind, name, full, count, total_ns)


def _kernel_costs(path: Path, findings: Findings) -> dict[str, int]:
    rows = rows_of(path, Findings())
    _, header = next(rows, (0, []))
    needed = {"full": _DETAIL["full"], "cost": ("cuda_activity_cost_time(us)",)}
    known = [name for alias in _DETAIL.values() for name in alias]
    columns = Columns(path, header, needed, findings, known=(*_DETAIL_UNUSED, *known))
    full, cost = columns.place("full"), columns.place("cost")
    good = (row for _, row in rows if len(row) == columns.count)
    return {row[full]: _exact(row[cost], 1000) or 0 for row in good}


def _exact(text: str, scale: int) -> int | None:
    """Read a time of six digits as nanoseconds, exactly."""
    try:
        value = Decimal(text.strip()) * scale
        return round(value) if value.is_finite() and 0 <= value < LONGEST_NS else None
    except (InvalidOperation, OverflowError):
        return None


def _launches(path: Path, findings: Findings) -> dict[str, Counter[str]]:
    """Count the launches of each operator by shape; most lines are the same as one before."""
    seen: Counter[str] = Counter()
    places: dict[str, int] = {}
    for line, text in lines_of(path, findings):
        seen[text] += 1
        places.setdefault(text, line)
    found: dict[str, Counter[str]] = {}
    graphs = set()
    for text, count in seen.items():
        parts = text.split(";", 3)
        if len(parts) != 4:  # noqa: PLR2004 (type, name, graph, shapes)
            findings.add("bad_row", path, places[text])
            continue
        graphs.add(parts[2])
        found.setdefault(parts[1], Counter())[_shape(parts)] += count
    if len(graphs) > 1:
        findings.add("several_graphs", path, None, f"{len(graphs)} graphs")
    return found


def _shape(parts: Sequence[str]) -> str:
    return parts[-1].rstrip(";") if len(parts) > 3 else ""  # noqa: PLR2004
