"""How long functions or commands take, and how they compare, as an answer."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from longpole.bench.compare.differences import Difference, comparison_blocks
from longpole.bench.records.samples import gather
from longpole.bench.time.work import Work
from longpole.cli.answer import exit_codes
from longpole.data import Row
from longpole.report.blocks import Column, Headline, Notes, Table
from longpole.report.document import Abstention, Document
from longpole.wording import count, duration, share

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longpole.bench import Comparison, Record
    from longpole.bench.records.samples import Runs
    from longpole.bench.time import Campaign
    from longpole.cli.answer.emit import Answer
    from longpole.report.blocks import Block, Cell

__all__ = ["timings_answer"]

_SCHEMA: Final = "longpole.bench.time/1"
_MIB: Final = 1 << 20
_GIGA: Final = 1e9
_TERA: Final = 1e12


@dataclass(frozen=True, slots=True)
class Timed:
    """How long a function or a command takes, from all of its runs.

    What a command used is None for a function, and rates are where its work was not told.
    """

    key: str
    median_ns: float | None = None
    """The median of the runs; None where all failed."""
    spread: float | None = None
    """How far runs lie from one another, as a share."""
    n_runs: int = 0
    n_samples: int = 0
    n_failed: int = 0
    """How many runs failed."""
    n_dropped: int = 0
    """How many samples were dropped for the conditions they were taken in."""
    message: str = ""
    user_ns: float | None = None
    """The time of processors in the program."""
    system_ns: float | None = None
    """The time of processors in the kernel of the operating system."""
    peak_rss_bytes: int | None = None
    n_outliers: int | None = None
    """How many executions took much longer or shorter than the others."""
    longest_ns: float | None = None
    bytes_per_s: float | None = None
    flops_per_s: float | None = None
    bandwidth_share: float | None = None
    """Of the peak of the device."""
    flops_share: float | None = None
    """Of the peak of the device."""
    relative: float | None = None
    """The median as a multiple of the fastest."""


class Timings(Row):
    """How long functions or commands take, and how they compare."""

    functions: list[Timed]
    differences: list[Difference]
    """Of each one and the first."""


def timings_answer(
    campaign: Campaign, records: Sequence[Record], comparisons: Sequence[Comparison]
) -> Answer:
    """Say how long each took; 1 where one of them failed."""
    timed = _timed(records)
    differences = [each for comparison in comparisons for each in comparison.differences]
    has_failed = any(each.median_ns is None for each in timed)
    document = Document(
        schema=_SCHEMA,
        input={"functions": list(campaign.names)},
        status="abstained" if has_failed else "ok",
        abstains_because=[
            Abstention("job_failed", each.key) for each in timed if each.median_ns is None
        ],
        scope={"gate": campaign.gate, "confidence": campaign.confidence},
        data=Timings(functions=timed, differences=differences),
        blocks=lambda: _blocks(timed, comparisons),
        records=lambda: list(map(asdict, timed)),
    )
    return document, exit_codes.FINDINGS if has_failed else exit_codes.OK


def _timed(records: Sequence[Record]) -> list[Timed]:
    """Sum up the runs of each key."""
    measurements = gather(record.to_dict() for record in records)
    messages = {record.key: record.message for record in records if record.message}
    timed = []
    for key, runs in measurements.runs.items():
        own = [record for record in records if record.key == key]
        each = Timed(key, n_failed=runs.n_failed, message=messages.get(key, ""))
        timed.append(replace(each, **_times(runs, own), **_resources(own)))
    fastest_ns = min((each.median_ns for each in timed if each.median_ns), default=None)
    return [
        replace(each, relative=each.median_ns and fastest_ns and each.median_ns / fastest_ns)
        for each in timed
    ]


def _times(runs: Runs, records: Sequence[Record]) -> dict[str, Any]:
    """Give times and rates; nothing where no run succeeded."""
    from longpole.bench.compare.evidence import side_of

    side = side_of(runs)
    if side is None:
        return {}
    names = ("median_ns", "spread", "n_runs", "n_samples", "n_dropped")
    times = {name: getattr(side, name) for name in names}
    if not records:
        return times
    record = records[0]
    told = record.environment.get("device")
    memory_bytes = told.get("memory_bytes") if isinstance(told, dict) else None
    rates = Work.of(record.sampling).rates(side.median_ns, record.device, memory_bytes)
    return {**times, **rates}


def _resources(records: Sequence[Record]) -> dict[str, Any]:
    """Sum up what executions of a command used; all None for a function."""
    from longpole.statistics.samples import outliers

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


def _blocks(rows: Sequence[Timed], comparisons: Sequence[Comparison]) -> list[Block]:
    blocks: list[Block] = []
    for row in rows:
        blocks.append(Headline(_headline(row)))
        if notes := list(_notes(row)):
            blocks.append(Notes(notes))
    if len(rows) > 1 and rows[0].user_ns is not None:
        blocks.append(_relative(rows))
    return [*blocks, *(block for each in comparisons for block in comparison_blocks(each))]


def _headline(row: Timed) -> str:
    if row.median_ns is None:
        return f"{row.key}: {row.message}"
    said = f"{row.key}: {duration(round(row.median_ns))}, the median of "
    said += f"{count(row.n_runs, 'run')} ({count(row.n_samples, 'sample')})"
    return said if row.spread is None else f"{said}; runs lie {share(row.spread)} apart"


def _notes(row: Timed) -> Iterator[str]:
    if row.median_ns is None:
        return
    if row.n_failed:
        yield f"{count(row.n_failed, 'run')} failed: {row.message}"
    elif row.message:
        yield row.message
    if row.user_ns is not None:
        yield _used(row)
    if row.bytes_per_s or row.flops_per_s:
        yield _said_rates(row)
    if row.n_outliers:
        yield (
            f"{count(row.n_outliers, 'execution')} of {row.n_samples} far from the others, "
            f"the longest {duration(round(row.longest_ns or 0))}: other programs may have "
            "disturbed them, or caches differ; see --warm-up and --prepare"
        )


def _said_rates(row: Timed) -> str:
    """Say rates and shares of the peaks, as far as they are known."""
    found = [
        (row.bytes_per_s, _GIGA, "GB/s", row.bandwidth_share),
        (row.flops_per_s, _TERA, "TFLOP/s", row.flops_share),
    ]
    return ", ".join(
        f"{rate / unit:,.3g} {name}" + (f" ({share(part)} of the peak)" if part else "")
        for rate, unit, name, part in found
        if rate
    )


def _used(row: Timed) -> str:
    times = (
        f"user {duration(round(row.user_ns or 0))}, system {duration(round(row.system_ns or 0))}"
    )
    if row.peak_rss_bytes is None:
        return f"{times}, uses less memory than the process that starts it"
    return f"{times}, at most {row.peak_rss_bytes / _MIB:.1f} MiB of memory"


def _relative(rows: Sequence[Timed]) -> Table:
    """Set the commands beside the fastest of them."""
    columns = [
        Column("command", "name"),
        Column("median", "duration"),
        Column("user", "duration"),
        Column("system", "duration"),
        Column("times the fastest", "number"),
    ]
    return Table(columns, [_cells(row) for row in rows])


def _cells(row: Timed) -> list[Cell]:
    times = (getattr(row, name) for name in ("median_ns", "user_ns", "system_ns"))
    relative = row.relative and round(row.relative, 3)
    return [row.key, *(time_ns and round(time_ns) for time_ns in times), relative]
