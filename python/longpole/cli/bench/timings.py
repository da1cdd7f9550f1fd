"""Formats the times of functions and commands as an answer."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from longpole.bench.comparison.differences import Difference, Verdict, comparison_blocks
from longpole.bench.records.samples import gather
from longpole.bench.time.timing import Work
from longpole.cli.answer import exit_codes
from longpole.report.blocks import Column, Headline, Notes, Table
from longpole.report.document import Abstention, Document, Warned
from longpole.rows.statistics import rounded_ns
from longpole.words.data import Row
from longpole.words.wording import count, duration, duration_range, share

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longpole.bench import Comparison, Record
    from longpole.bench.records.samples import Runs
    from longpole.bench.time.processes import Campaign
    from longpole.cli.answer.emit import Answer
    from longpole.report.blocks import Block, Cell

_SCHEMA: Final = "longpole.bench.time/1"
_MIB: Final = 1 << 20
_GIGA: Final = 1e9
_TERA: Final = 1e12
_MOST_APART: Final = 4
"""Maximum number of functions with separate tables; more are shown in one."""
_MANY: Final = (
    Column("function", "name"),
    Column("median", "duration"),
    Column("spread of runs", "share"),
    Column("host", "duration"),
    Column("verdict"),
    Column("change", "change"),
)
_STEADY_SHARE: Final = 0.03
"""A clock that moves by less than this share of its maximum counts as steady."""
_NOT_THROTTLED: Final = frozenset(
    {"idle", "application_clocks", "sync_boost", "display_clock"},
)
_REASONS: Final = {
    "sw_power_cap": "the power limit",
    "hw_power_brake": "the external power brake",
    "hw_slowdown": "the hardware slowdown",
    "sw_thermal_slowdown": "the temperature",
    "hw_thermal_slowdown": "the temperature",
}
_CHOICES: Final = {
    "graph": "the calls were captured in a CUDA graph because they are short",
    "hot": "the calls were launched one after the other, with warm caches, because they are "
    "longer than 100 us or cannot be captured",
}


@dataclass(frozen=True, slots=True)
class Timed:
    """Time of a function or a command over all of its runs.

    The resources that a command used are None for a function, and rates are None if the work is
    unknown.
    """

    key: str
    median_ns: float | None = None
    """Median of the runs; None if all failed."""
    min_ns: float | None = None
    """Shortest sample of all runs."""
    max_ns: float | None = None
    """Longest sample of all runs."""
    spread: float | None = None
    """Spread of the runs, as a share."""
    n_runs: int = 0
    n_samples: int = 0
    n_failed: int = 0
    """Number of runs that failed."""
    n_dropped: int = 0
    """Number of samples dropped because of their conditions."""
    message: str = ""
    cache: str | None = None
    """Cache state before each call, if the clock controls it."""
    host_ns: float | None = None
    """Time that the host takes to launch a call on a device, if the clock measures it."""
    clock_mhz: float | None = None
    """Median clock of the device during the runs."""
    clock_min_mhz: float | None = None
    clock_max_mhz: float | None = None
    throttle_reasons: list[str] = field(default_factory=list)
    """Reasons why the device did not run at a higher clock."""
    user_ns: float | None = None
    """CPU time in the program."""
    system_ns: float | None = None
    """CPU time in the kernel of the operating system."""
    peak_rss_bytes: int | None = None
    n_outliers: int | None = None
    """Number of executions that took much longer or shorter than the others."""
    bytes_per_s: float | None = None
    flops_per_s: float | None = None
    bandwidth_share: float | None = None
    """Fraction of the device's peak."""
    flops_share: float | None = None
    """Fraction of the device's peak."""


class Timings(Row):
    """Times of functions or commands, and their comparison."""

    functions: list[Timed]
    differences: list[Difference]
    """Comparison of each with the first."""


def timings_answer(
    campaign: Campaign,
    records: Sequence[Record],
    comparisons: Sequence[Comparison],
    *,
    is_gated: bool = False,
    trouble: str = "",
) -> Answer:
    """Report the time of each; exit code 1 if one failed or is slower than the gate allows.

    `trouble` says what went wrong after the last run.
    """
    timed = _timed(records)
    differences = [each for comparison in comparisons for each in comparison.differences]
    has_failed = any(each.median_ns is None for each in timed)
    beyond = {each.is_beyond(campaign.gate) for each in differences} if is_gated else set()
    is_open = None in beyond and not (has_failed or True in beyond)
    document = Document(
        schema=_SCHEMA,
        input={"functions": list(campaign.names)},
        status="abstained" if has_failed or is_open else "ok",
        abstains_because=[
            *(Abstention("job_failed", each.key) for each in timed if each.median_ns is None),
            *([Abstention("noise")] if is_open else []),
        ],
        scope={"gate": campaign.gate, "confidence": campaign.confidence},
        data=Timings(functions=timed, differences=differences),
        warnings=[Warned("cleanup_failed", 1, trouble, "the times are not affected")]
        if trouble
        else [],
        blocks=lambda: [
            *_blocks(timed, comparisons, campaign),
            *([Notes([trouble])] if trouble else []),
        ],
        records=lambda: list(map(asdict, timed)),
    )
    if has_failed or trouble or True in beyond:
        return document, exit_codes.FINDINGS
    return document, exit_codes.INCONCLUSIVE if is_open else exit_codes.OK


def _chooses_cache(campaign: Campaign) -> bool:
    return campaign.clock == "torch" and campaign.cache is None


def _timed(records: Sequence[Record]) -> list[Timed]:
    """Summarise the runs of each key."""
    measurements = gather(record.to_dict() for record in records)
    messages = {record.key: record.message for record in records if record.message}
    timed = []
    for key, runs in measurements.runs.items():
        own = [record for record in records if record.key == key]
        each = Timed(key, n_failed=runs.n_failed, message=messages.get(key, ""))
        found = {**_times(runs, own), **_resources(own), **_launched_and_clocked(own)}
        timed.append(replace(each, **found))
    return timed


def _times(runs: Runs, records: Sequence[Record]) -> dict[str, Any]:
    """Return times and rates; nothing if no run succeeded."""
    from longpole.bench.comparison.evidence import side_of

    side = side_of(runs)
    if side is None:
        return {}
    names = ("median_ns", "spread", "n_runs", "n_samples", "n_dropped")
    times = {name: getattr(side, name) for name in names}
    samples_ns = [sample_ns for record in records for sample_ns in record.samples_ns]
    if samples_ns:
        times |= {"min_ns": rounded_ns(min(samples_ns)), "max_ns": rounded_ns(max(samples_ns))}
    if not records:
        return times
    record = records[0]
    told = record.environment.get("device")
    memory_bytes = told.get("memory_bytes") if isinstance(told, dict) else None
    rates = Work.of(record.sampling).rates(side.median_ns, record.device, memory_bytes)
    return {**times, **rates}


def _launched_and_clocked(records: Sequence[Record]) -> dict[str, Any]:
    """Return the cache state, the host time of a call, and the clock of the device."""
    found = [record.sampling for record in records if record.samples_ns]
    host_ns = [each["host_ns"] for each in found if each.get("host_ns") is not None]
    during = [each.get("during") or {} for each in found]
    clocks = {
        name: [each[name] for each in during if name in each]
        for name in ("clock_mhz", "clock_min_mhz", "clock_max_mhz")
    }
    return {
        "cache": next((each["cache"] for each in found if each.get("cache")), None),
        "host_ns": rounded_ns(median(host_ns)) if host_ns else None,
        "clock_mhz": median(clocks["clock_mhz"]) if clocks["clock_mhz"] else None,
        "clock_min_mhz": min(clocks["clock_min_mhz"], default=None),
        "clock_max_mhz": max(clocks["clock_max_mhz"], default=None),
        "throttle_reasons": sorted(
            {reason for each in during for reason in each.get("throttle_reasons", ())}
            - _NOT_THROTTLED
        ),
    }


def _resources(records: Sequence[Record]) -> dict[str, Any]:
    """Summarise what executions of a command used; all None for a function."""
    from longpole.rows.statistics.samples import outliers

    found = [record.sampling for record in records if record.sampling.get("user_ns") is not None]
    times = {
        name: rounded_ns(median(each[name] for each in found)) if found else None
        for name in ("user_ns", "system_ns")
    }
    peaks = [each["peak_rss_bytes"] for each in found if each["peak_rss_bytes"]]
    samples = [sample for record in records for sample in record.samples_ns] if found else []
    return {
        **times,
        "peak_rss_bytes": max(peaks, default=None),
        "n_outliers": int(outliers(samples).sum()) if samples else None,
    }


def _blocks(
    rows: Sequence[Timed], comparisons: Sequence[Comparison], campaign: Campaign
) -> list[Block]:
    if len(rows) > _MOST_APART and campaign.commands is None:
        return _many(rows, comparisons, campaign)
    blocks: list[Block] = []
    for row in rows:
        blocks.append(Headline(_headline(row)))
        if notes := list(_all_notes(row, campaign)):
            blocks.append(Notes(notes))
    return [*blocks, *(comparison_blocks(*comparisons) if comparisons else [])]


def _many(
    rows: Sequence[Timed], comparisons: Sequence[Comparison], campaign: Campaign
) -> list[Block]:
    """Show many functions in one table, and each note once."""
    found = [each for comparison in comparisons for each in comparison.differences]
    differences = {each.new_key or each.key: each for each in found}
    notes: dict[str, list[str]] = {}
    for row in rows:
        for note in [*_failure(row), *_notes(row, campaign)]:
            notes.setdefault(note, []).append(row.key)
    for key, difference in differences.items():
        if difference.verdict is Verdict.INCONCLUSIVE:
            reason = difference.reason
            notes.setdefault(reason, []).append(key)
    told = [f"{_named(keys, len(rows))}: {note}" for note, keys in notes.items()]
    table = Table(_MANY, [_cells_of_many(row, differences.get(row.key)) for row in rows])
    return [table, *([Notes(told)] if told else [])]


def _cells_of_many(row: Timed, difference: Difference | None) -> list[Cell]:
    times_ns = (row.median_ns, row.host_ns)
    median_ns, host_ns = (time_ns and round(time_ns) for time_ns in times_ns)
    verdict = None if difference is None else str(difference.verdict)
    change = None if difference is None else difference.change
    return [row.key, median_ns, row.spread, host_ns, verdict, change]


def _failure(row: Timed) -> list[str]:
    return [_first_line(row.message)] if row.median_ns is None else []


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


def _named(keys: Sequence[str], n_rows: int) -> str:
    if len(keys) == 1:
        return keys[0]
    return "all" if len(keys) == n_rows else count(len(keys), "function")


def _headline(row: Timed) -> str:
    if row.median_ns is None:
        return f"{row.key}: {_first_line(row.message)}"
    said = f"{row.key}: {duration(row.median_ns)}, the median of "
    said += f"{count(row.n_runs, 'run')} ({count(row.n_samples, 'sample')}"
    if row.min_ns is not None and row.max_ns is not None and row.n_samples > 1:
        said += f", {duration_range(row.min_ns, row.max_ns)}"
    said += ")"
    return said if row.spread is None else f"{said}; spread of the runs {share(row.spread)}"


def _all_notes(row: Timed, campaign: Campaign) -> Iterator[str]:
    if row.median_ns is not None and row.host_ns is not None:
        yield f"the host takes {duration(row.host_ns)} to launch a call"
    yield from _notes(row, campaign)


def _notes(row: Timed, campaign: Campaign) -> Iterator[str]:
    if row.median_ns is None:
        yield from row.message.split("\n")[1:]
        return
    if moved := _moved_clock(row):
        yield moved
    if _chooses_cache(campaign) and row.cache in _CHOICES:
        yield f"{_CHOICES[row.cache]}; --cache chooses another state of the caches"
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
            f"{count(row.n_outliers, 'execution')} of {row.n_samples} far from the others: "
            "other programs may have disturbed them, or caches differ; see --warm-up and --prepare"
        )


def _moved_clock(row: Timed) -> str:
    """Return a note if the clock of the device moved, or was held down, during the runs."""
    if row.clock_mhz is None or row.clock_min_mhz is None or row.clock_max_mhz is None:
        return ""
    reasons = [_REASONS.get(reason, reason) for reason in row.throttle_reasons]
    has_moved = row.clock_max_mhz - row.clock_min_mhz > _STEADY_SHARE * row.clock_max_mhz
    if not (reasons or has_moved):
        return ""
    clock = f"device clock {row.clock_min_mhz:,.0f} to {row.clock_max_mhz:,.0f} MHz during the runs"
    clock += f", median {row.clock_mhz:,.0f} MHz"
    if reasons:
        clock += f", limited by {', '.join(reasons)}"
    return f"{clock}: the time depends on it; --lock-clock MHZ holds the clock"


def _said_rates(row: Timed) -> str:
    """Return rates and shares of the peaks, if known."""
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
    times = f"user {duration(row.user_ns or 0)}, system {duration(row.system_ns or 0)}"
    if row.peak_rss_bytes is None:
        return f"{times}, uses less memory than the process that starts it"
    return f"{times}, at most {row.peak_rss_bytes / _MIB:.1f} MiB of memory"
