"""The JSON text of MindSpore's `Profiler.op_analyse`, with its faults.

The shape is truncated at its last bracket, an operator with several shapes counts its whole time
for each, occurrences on a GPU are those of the type, and one unknown operator makes the whole call
fail.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from longpole.opening import read_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from longpole.mindspore.layouts import RankFiles

__all__ = ["compatible_op_analyse"]

_Launch = tuple[str, str, str, str]
"""Type, name, shapes joined by commas, side."""
_Cost = tuple[float, float, float, str]
"""Occurrences, total and mean time (ms on the CPU, us on a GPU), side."""


def compatible_op_analyse(
    ranks: Mapping[int, RankFiles], device_id: int, names: Sequence[str]
) -> str:
    """Return the same answer as MindSpore.

    Raises
    ------
    RuntimeError
        A file of a pair is missing, or an operator is not found.
    """
    files = ranks.get(device_id)
    if files is None or not (files.get("gpu_activity_data") or files.get("cpu_op_detail_info")):
        message = (
            f"The profiling data of this card which device_id is equal to {device_id} does not "
            "exist. Check whether device_id is correct."
        )
        raise RuntimeError(message)
    _check_pairs(files)
    launches = _launches(files)
    costs: dict[str, _Cost] = {}
    for name, cost in [*_cpu_costs(files), *_gpu_costs(files)]:
        costs.setdefault(name, cost)
    found: dict[str, Any] = {name: _rows(name, launches, costs) for name in names}
    return json.dumps({**found, "device_id": str(files.rank)})


def _check_pairs(files: RankFiles) -> None:
    pairs = (
        ("gpu_activity_data", "gpu_framework", "txt"),
        ("cpu_op_detail_info", "cpu_framework", "txt"),
        ("gpu_framework", "gpu_activity_data", "csv"),
        ("cpu_framework", "cpu_op_detail_info", "csv"),
    )
    for kind, other, ending in pairs:
        if files.get(kind) and not files.get(other):
            message = f"The output file <{other}_{files.rank}.{ending}> is not found."
            raise RuntimeError(message)
    if files.get("gpu_activity_data") and not files.get("gpu_op_type_info"):
        message = "The output file <[]> is not found."
        raise RuntimeError(message)


def _text(files: RankFiles, kind: str) -> list[str]:
    path = files.get(kind)
    return read_text(path, is_named=False).splitlines() if path else []


def _launches(files: RankFiles) -> list[_Launch]:
    found: dict[_Launch, None] = {}
    for side in sorted(("cpu", "gpu"), key=lambda side: str(files.get(f"{side}_framework"))):
        for line in dict.fromkeys(_text(files, f"{side}_framework")):
            kind, name, _, *shapes = line.strip(" ").split(";")
            found[kind, name, ",".join(shapes), side] = None
    return list(found)


def _cpu_costs(files: RankFiles) -> Iterator[tuple[str, _Cost]]:
    for line in _text(files, "cpu_op_detail_info")[1:]:
        row = line.strip(" ").split(",")
        yield row[2], (float(row[4]), float(row[5]), float(row[6]), "cpu")


def _gpu_costs(files: RankFiles) -> list[tuple[str, _Cost]]:
    rows = [line.split(",") for line in _text(files, "gpu_op_type_info")[1:]]
    occurrences = {row[0]: int(row[1]) for row in rows}
    found: dict[str, _Cost] = {}
    for line in _text(files, "gpu_activity_data")[1:]:
        row = line.strip(" ").replace(", ", ";").split(",")
        name = row[2].rpartition("/")[2]
        count, total_us = occurrences[name.partition("-")[0]], float(row[-4])
        if name in found:
            total_us = found[name][1] + total_us
            mean_us = round(total_us / count, 4)
            found[name] = (count, round(total_us, 4), mean_us, "gpu")
        else:
            found[name] = (count, total_us, round(total_us / count, 4), "gpu")
    return list(found.items())


def _rows(asked: str, launches: Sequence[_Launch], costs: dict[str, _Cost]) -> list[dict[str, Any]]:
    groups: dict[str, _Cost] = {}
    for kind, name, shape, side in launches:
        cost = costs.get(name)
        is_meant = asked in (kind, name, shape, side)
        if cost is None or cost[3] != side or not is_meant:
            continue
        key = f"[{side}]{shape}"
        groups[key] = _together(groups.get(key), cost)
    if not groups:
        message = (
            f"The information of <{asked}> is not found. Please verify that the operator name is "
            "correct or the operator is used in the network."
        )
        raise RuntimeError(message)
    return [_row(key, cost) for key, cost in groups.items()]


def _together(before: _Cost | None, cost: _Cost) -> _Cost:
    count, total, mean, side = int(cost[0]), *cost[1:]
    if before is None:
        return count, total, mean, side
    count, total = int(before[0]) + count, before[1] + total
    return count, round(total, 4), round(total / count, 4), side


def _row(key: str, cost: _Cost) -> dict[str, Any]:
    count, total, mean, side = cost
    if side == "cpu":
        total, mean = round(total * 1000, 4), round(mean * 1000, 4)
    return {
        "op_side": side,
        "input_shape": key.strip("[").rpartition("]")[2],
        "op_occurrences": int(count),
        "op_total_time(us)": total,
        "op_avg_time(us)": mean,
    }
