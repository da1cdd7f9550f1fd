"""How long functions or commands take, and how they compare, as an answer."""

from __future__ import annotations

from dataclasses import asdict
from statistics import median
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from longpole.bench.compare.differences import comparison_blocks, plain_difference
from longpole.bench.records.samples import gather
from longpole.bench.time.work import Work
from longpole.cli.answer import exit_codes
from longpole.report.blocks import Column, Headline, Notes, Table
from longpole.report.document import Document
from longpole.wording import count, duration, share

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longpole.bench import Comparison, Record
    from longpole.bench.compare.evidence import Side
    from longpole.bench.time import Campaign
    from longpole.cli.answer.emit import Answer
    from longpole.report.blocks import Block, Cell

    Row: TypeAlias = dict[str, Any]

__all__ = ["timings_answer"]

_SCHEMA: Final = "longpole.bench.time/1"
_MIB: Final = 1 << 20
_GIGA: Final = 1e9
_TERA: Final = 1e12
_RATES: Final = ("bytes_per_s", "flops_per_s", "bandwidth_share", "flops_share")


def timings_answer(
    campaign: Campaign, records: Sequence[Record], comparisons: Sequence[Comparison]
) -> Answer:
    """Say how long each took; 1 where one of them failed."""
    rows = _rows(records)
    differences = [each for comparison in comparisons for each in comparison.differences]
    has_failed = any(row["median_ns"] is None for row in rows)
    document = Document(
        schema=_SCHEMA,
        input={"functions": list(campaign.names)},
        status="abstained" if has_failed else "ok",
        scope={"gate": campaign.gate, "confidence": campaign.confidence},
        data={"functions": rows, "differences": [plain_difference(each) for each in differences]},
        blocks=lambda: _blocks(rows, comparisons),
        records=lambda: rows,
    )
    return document, exit_codes.FINDINGS if has_failed else exit_codes.OK


def _rows(records: Sequence[Record]) -> list[Row]:
    """Sum up the runs of each key."""
    from longpole.bench.compare.evidence import side_of

    measurements = gather(record.to_dict() for record in records)
    messages = {record.key: record.message for record in records if record.message}
    rows = []
    for key, runs in measurements.runs.items():
        side, own = side_of(runs), [record for record in records if record.key == key]
        row = _row(key, side, messages.get(key, ""), runs.n_failed)
        rows.append({**row, **_resources(own), **_rates(side, own)})
    fastest_ns = min((row["median_ns"] for row in rows if row["median_ns"]), default=None)
    for row in rows:
        row["relative"] = row["median_ns"] and fastest_ns and row["median_ns"] / fastest_ns
    return rows


def _row(key: str, side: Side | None, message: str, n_failed: int) -> Row:
    fields: dict[str, Any] = {
        "key": key,
        "median_ns": None,
        "spread": None,
        "n_runs": 0,
        "n_samples": 0,
        "n_failed": n_failed,
        "n_dropped": 0,
    }
    if side is not None:
        fields |= {name: value for name, value in asdict(side).items() if name in fields}
    return {**fields, "message": message}


def _rates(side: Side | None, records: Sequence[Record]) -> Row:
    """Give the rates of a function whose work was told."""
    if side is None or not records:
        return dict.fromkeys(_RATES)
    record = records[0]
    told = record.environment.get("device")
    memory_bytes = told.get("memory_bytes") if isinstance(told, dict) else None
    return Work.of(record.sampling).rates(side.median_ns, record.device, memory_bytes)


def _resources(records: Sequence[Record]) -> Row:
    """Sum up what executions of a command used; all None for a function."""
    from longpole.bench.compare.stats import outliers

    found = [record.sampling for record in records if record.sampling.get("user_ns") is not None]
    times = {
        name: median(each[name] for each in found) if found else None
        for name in ("user_ns", "system_ns")
    }
    peaks = [each["peak_rss_bytes"] for each in found if each["peak_rss_bytes"]]
    samples = [sample for record in records for sample in record.samples_ns] if found else []
    return {
        **times,
        "peak_rss_bytes": max(peaks, default=None),
        "n_outliers": int(outliers(samples).sum()) if samples else None,
        "longest_ns": max(samples, default=None),
    }


def _blocks(rows: Sequence[Row], comparisons: Sequence[Comparison]) -> list[Block]:
    blocks: list[Block] = []
    for row in rows:
        blocks.append(Headline(_headline(row)))
        if notes := list(_notes(row)):
            blocks.append(Notes(notes))
    if len(rows) > 1 and rows[0]["user_ns"] is not None:
        blocks.append(_relative(rows))
    return [*blocks, *(block for each in comparisons for block in comparison_blocks(each))]


def _headline(row: Row) -> str:
    if row["median_ns"] is None:
        return f"{row['key']}: {row['message']}"
    said = f"{row['key']}: {duration(round(row['median_ns']))}, the median of "
    said += f"{count(row['n_runs'], 'run')} ({count(row['n_samples'], 'sample')})"
    return said if row["spread"] is None else f"{said}; runs lie {share(row['spread'])} apart"


def _notes(row: Row) -> Iterator[str]:
    if row["median_ns"] is None:
        return
    if row["n_failed"]:
        yield f"{count(row['n_failed'], 'run')} failed: {row['message']}"
    elif row["message"]:
        yield row["message"]
    if row["user_ns"] is not None:
        yield _used(row)
    if row["bytes_per_s"] or row["flops_per_s"]:
        yield _said_rates(row)
    if row["n_outliers"]:
        yield (
            f"{count(row['n_outliers'], 'execution')} of {row['n_samples']} far from the others, "
            f"the longest {duration(round(row['longest_ns']))}: other programs may have "
            "disturbed them, or caches differ; see --warm-up and --prepare"
        )


def _said_rates(row: Row) -> str:
    """Say rates and shares of the peaks, as far as they are known."""
    found = [
        (row["bytes_per_s"], _GIGA, "GB/s", row["bandwidth_share"]),
        (row["flops_per_s"], _TERA, "TFLOP/s", row["flops_share"]),
    ]
    return ", ".join(
        f"{rate / unit:,.3g} {name}" + (f" ({share(part)} of the peak)" if part else "")
        for rate, unit, name, part in found
        if rate
    )


def _used(row: Row) -> str:
    times = f"user {duration(round(row['user_ns']))}, system {duration(round(row['system_ns']))}"
    if row["peak_rss_bytes"] is None:
        return f"{times}, less memory than the process that starts it"
    return f"{times}, at most {row['peak_rss_bytes'] / _MIB:.1f} MiB of memory"


def _relative(rows: Sequence[Row]) -> Table:
    """Set the commands beside the fastest of them."""
    columns = [
        Column("command", "name"),
        Column("median", "duration"),
        Column("user", "duration"),
        Column("system", "duration"),
        Column("times the fastest", "number"),
    ]
    return Table(columns, [_cells(row) for row in rows])


def _cells(row: Row) -> list[Cell]:
    times = (row[name] for name in ("median_ns", "user_ns", "system_ns"))
    relative = row["relative"] and round(row["relative"], 3)
    return [row["key"], *(time_ns and round(time_ns) for time_ns in times), relative]
