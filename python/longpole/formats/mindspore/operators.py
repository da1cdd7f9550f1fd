"""The cost of each operator by input shapes: `op_analyse`.

The launches are in `{cpu,gpu}_framework`, one per line; the times in `{cpu,gpu}_op_detail_info`
and, for GPU kernels, in `gpu_activity_data`. Of an Ascend device, both are in its exported files.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from longpole.formats.mindspore.device_tables import DeviceTables, read_devices
from longpole.formats.mindspore.executions import (
    LONGEST_NS,
    Executions,
    read_executions,
    read_kernels,
)
from longpole.formats.mindspore.findings import FileFinding, Findings, ProfileError
from longpole.formats.mindspore.layouts import RankFiles, find_ranks
from longpole.formats.mindspore.text import CsvFile, TextFile, exact_ns

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

    import polars as pl

    from longpole.formats.mindspore.layouts import RankFiles

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
    """The runs of an operator, or of an operator type, with the same input shapes."""

    asked: str
    """The requested operator or type."""
    op_side: Literal["cpu", "gpu", "device"]
    """Where it ran; `device` for an Ascend device."""
    op_type: str
    input_shapes: str
    n_runs: int
    total_ns: int | None
    """Total time; None if the runs cannot be assigned to shapes."""
    kernels_ns: int | None
    """Kernel time; None if kernels are shared with operators of other rows, and on the CPU."""
    mean_ns: float | None


@dataclass(frozen=True, slots=True)
class OpAnalysis:
    """Rows in the order of the requested names, most expensive first, and problems of the files."""

    device_id: int
    rows: Sequence[OpRow]
    findings: Sequence[FileFinding] = field(default=())

    def frame(self) -> pl.DataFrame:
        """Return the rows as a frame."""
        import polars as pl

        texts = dict.fromkeys(("asked", "op_side", "op_type", "input_shapes"), pl.String)
        times = dict.fromkeys(("n_runs", "total_ns", "kernels_ns"), pl.Int64)
        schema: Any = {**texts, **times, "mean_ns": pl.Float64}
        return pl.DataFrame(list(map(asdict, self.rows)), schema=schema)


def op_analyse(
    path: str | os.PathLike[str],
    op_name: str | Sequence[str],
    device_id: int | None = None,
) -> OpAnalysis:
    """Return the cost of operators by input shapes, on the CPU, a GPU or an Ascend device.

    Parameters
    ----------
    path
        A MindSpore profile folder, in any layout, or a folder with exported files of Ascend
        devices (`PROF_*`, `*_ascend_ms`).
    op_name
        One or more types (`"MatMul"`) or names (`"MatMul-op79"`) of operators; exported files have
        types only. A name that is not in the profile becomes a finding.
    device_id
        The device, or rank; optional if the profile has only one.

    Raises
    ------
    TypeError
        `op_name` or `device_id` has the wrong type, or `op_name` is empty.
    ProfileError
        The profile or the device does not exist, or a file of the pair is missing.
    """
    names = _checked(op_name, device_id)
    folder = Path(path)
    try:
        found = analyse_operators(_chosen(find_ranks(path), device_id), names)
    except ProfileError:
        devices = [each for each in read_devices(folder) if each.shapes]
        if not devices:
            raise
        found = _of_device(_chosen_device(devices, device_id), names)
    if not found.rows:
        message = f"none of the operators is in the profile: {', '.join(names)[:200]}"
        hint = "name types such as 'MatMul', or names such as 'MatMul-op79'"
        raise ProfileError(folder, "unknown_operator", message, hint=hint)
    return found


def _chosen_device(devices: Sequence[DeviceTables], device_id: int | None) -> DeviceTables:
    having = [each for each in devices if device_id is None or (each.rank or 0) == device_id]
    if len(having) != 1:
        known = ", ".join(str(each.rank or 0) for each in devices)
        code = "several_ranks" if having else "no_such_rank"
        message = f"the devices with operators are {known}"
        raise ProfileError(devices[0].folder, code, message, hint="name one with device_id")
    return having[0]


def _of_device(device: DeviceTables, names: Sequence[str]) -> OpAnalysis:
    """Return the rows of an Ascend device, from its exported files."""
    rows: list[OpRow] = []
    findings = Findings()
    for name in names:
        shapes = [each for each in device.shapes if each.type == name]
        rows += [
            OpRow(
                asked=name,
                op_side="device",
                op_type=each.type,
                input_shapes=each.input_shapes or "",
                n_runs=each.n_runs,
                total_ns=each.total_ns,
                kernels_ns=each.total_ns,
                mean_ns=each.total_ns / each.n_runs if each.n_runs else None,
            )
            for each in shapes
        ]
        if not shapes:
            findings.add("unknown_operator", device.folder, None, name)
    return OpAnalysis(device.rank or 0, rows, (*device.findings, *findings.all()))


def _checked(op_name: str | Sequence[str], device_id: int | None) -> list[str]:
    if device_id is not None and (isinstance(device_id, bool) or not isinstance(device_id, int)):
        message = f"device_id must be an integer, not {type(device_id).__name__}"
        raise TypeError(message)
    names = [op_name] if isinstance(op_name, str) else op_name
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        message = f"op_name must be a str or a list of str, not {type(op_name).__name__}"
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
    """Return the answer for one rank; without names, for each operator type."""
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

    def kinds(self) -> list[str]:
        return list(dict.fromkeys(operator.kind for operator in self._operators))

    def rows(self, asked: str) -> list[OpRow]:
        """Group the requested operators by shape, most expensive first."""
        chosen: dict[str, list[_Operator]] = {}
        for operator in self._operators:
            if asked in (operator.kind, operator.name, operator.full):
                chosen.setdefault(operator.name, []).append(operator)
        counts: Counter[str] = Counter()
        times: dict[str, list[int | None]] = {}
        members: dict[str, list[_Operator]] = {}
        for name, operators in chosen.items():
            for shape, (count, total_ns) in self._by_shape(name, operators).items():
                counts[shape] += count
                times.setdefault(shape, []).append(total_ns)
                members.setdefault(shape, []).extend(operators)
        kernels = self._kernels(members) if self._side == "gpu" else {}
        rows = []
        for shape, parts in times.items():
            known = [part for part in parts if part is not None]
            total_ns = sum(known) if len(known) == len(parts) else None
            runs = counts[shape]
            mean_ns = None if total_ns is None or not runs else total_ns / runs
            origin = (asked, self._side, members[shape][0].kind, shape)
            rows.append(OpRow(*origin, runs, total_ns, kernels.get(shape), mean_ns))
        return sorted(rows, key=lambda row: (-(row.total_ns or 0), row.input_shapes))

    def _by_shape(
        self, name: str, operators: Sequence[_Operator]
    ) -> Mapping[str, tuple[int, int | None]]:
        """Return runs and time of the operators with one short name, for each of their shapes."""
        shapes = self._launches.get(name, Counter())
        count = sum(operator.count for operator in operators)
        total_ns = sum(operator.total_ns for operator in operators)
        if len(shapes) <= 1:
            return {next(iter(shapes), ""): (count, total_ns)}
        times, order = self._times_in_order(operators), self._shapes_in_order[name]
        if len(times) != len(order):
            path = self._files.need(f"{self._side}_framework")
            self._findings.add("shapes_not_told_apart", path, None, name)
            return {shape: (n_launches, None) for shape, n_launches in shapes.items()}
        sums: dict[str, tuple[int, int]] = {}
        for shape, time_ns in zip(order, times, strict=True):
            n_runs, total_ns = sums.get(shape, (0, 0))
            sums[shape] = (n_runs + 1, total_ns + time_ns)
        return sums

    @cached_property
    def _runs(self) -> Executions:
        path = self._files.get(f"{self._side}_op_execute_timestamp")
        return read_executions(path, self._findings) if path else Executions()

    def _times_in_order(self, operators: Sequence[_Operator]) -> list[int]:
        """Return the time of each run of the given operators, in order of start."""
        runs, names = self._runs, {operator.full for operator in operators}
        chosen = {row for row, name in enumerate(runs.operators) if name in names}
        rows = (row for row, operator in enumerate(runs.operator) if operator in chosen)
        return [
            time for _, time in sorted((runs.start_ns[row], runs.duration_ns[row]) for row in rows)
        ]

    @cached_property
    def _shapes_in_order(self) -> dict[str, list[str]]:
        """Return the shapes of each launch of operators that were launched with several shapes."""
        path = self._files.need(f"{self._side}_framework")
        found: dict[str, list[str]] = {}
        for text in TextFile(path, Findings()).lines():
            parts = text.split(";", 3)
            if len(self._launches.get(parts[1] if len(parts) > 1 else "", ())) > 1:
                found.setdefault(parts[1], []).append(_shape(parts))
        return found

    @cached_property
    def _booked(self) -> Counter[str]:
        """Return the kernel time by the full name of the operator that first launched a kernel."""
        booked: Counter[str] = Counter()
        for kernel in read_kernels(self._files.need("gpu_activity_data"), self._findings):
            booked[kernel.operator] += round(1000 * (kernel.total_us or 0))
        return booked

    @cached_property
    def _kernel_costs(self) -> dict[str, int]:
        """Return the kernel time that each operator caused, by full name."""
        file = CsvFile(self._files.need("gpu_op_detail_info"), Findings())
        file.find({"full": _DETAIL["full"], "cost": ("cuda_activity_cost_time(us)",)})
        return {row["full"]: exact_ns(row["cost"], 1000, LONGEST_NS) or 0 for row in file.rows()}

    def _kernels(self, members: Mapping[str, Sequence[_Operator]]) -> dict[str, int]:
        """Return the kernel time of each shape, if no kernel is shared with other shapes."""
        path = self._files.get("gpu_activity_data")
        if path is None:
            return {}
        found = {}
        for shape, operators in members.items():
            booked = [self._booked[operator.full] for operator in operators]
            if all(self._kernel_costs.get(operator.full) in booked for operator in operators):
                found[shape] = sum(booked)
            else:
                self._findings.add("shared_kernels", path, None, operators[0].kind)
        return found


def _operators(path: Path, findings: Findings) -> Iterable[_Operator]:
    file = CsvFile(path, findings)
    file.find(_DETAIL, _DETAIL_UNUSED)
    scale = _NS[file.name_of("total")[-4:]]
    for row in file.rows():
        count, total_ns = file.stamp(row["count"]), exact_ns(row["total"], scale, LONGEST_NS)
        if total_ns is None or (count or 0) > _MOST_RUNS:
            file.report("bad_number", repr(row["total"][:40]))
        elif count is not None:
            yield _Operator(row["kind"], row["name"], row["full"], count, total_ns)


def _launches(path: Path, findings: Findings) -> dict[str, Counter[str]]:
    """Count the launches of each operator by shape; most lines repeat an earlier one."""
    seen: Counter[str] = Counter()
    places: dict[str, int] = {}
    file = TextFile(path, findings)
    for text in file.lines():
        seen[text] += 1
        places.setdefault(text, file.line)
    found: dict[str, Counter[str]] = {}
    graphs = set()
    for text, count in seen.items():
        parts = text.split(";", 3)
        if len(parts) != 4:  # noqa: PLR2004 (type, name, graph, shapes)
            file.report("bad_row", line=places[text])
            continue
        graphs.add(parts[2])
        found.setdefault(parts[1], Counter())[_shape(parts)] += count
    if len(graphs) > 1:
        findings.add("several_graphs", path, None, f"{len(graphs)} graphs")
    return found


def _shape(parts: Sequence[str]) -> str:
    return parts[-1].rstrip(";") if len(parts) > 3 else ""  # noqa: PLR2004
