"""Formats the measurements of a server as sentences, and explains slow iterations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import polars as pl

from longpole.words.wording import count, duration, share, short_name

if TYPE_CHECKING:
    from collections.abc import Mapping


class Measured(NamedTuple):
    """The measurements that the sentence is about."""

    servers: tuple[str, ...]
    kinds: pl.DataFrame
    kernels: pl.DataFrame
    iterations: pl.DataFrame
    between: pl.DataFrame
    """What the host does between iterations, longest first."""
    before_launch: pl.DataFrame
    """What it does in them before the launch."""


# If waits for the host take this share of the time, the advice is to shorten them.
_MUCH: Final = 0.1

# If the device is busy for this share of the time, it limits the iterations.
_MOSTLY: Final = 0.8

# A call is named if it blocks for at least this share of the host's time.
_MOSTLY_BLOCKED: Final = 0.5

# Where the host is gets named if it is there for this share of the time.
_MOSTLY_IN: Final = 0.5

# Differences below this share of the median iteration are not reported.
_LEAST_DIFFERENCE: Final = 0.02

_NOUNS: Final = {"decode": "decode step", "prefill": "prefill step", "mixed": "mixed batch"}

# Options with which a server prepares the next batch while the device runs this one.
_OVERLAP: Final = {
    "vLLM": "--async-scheduling",
    "SGLang": "the overlap schedule (no --disable-overlap-schedule)",
    "TensorRT-LLM": "the overlap scheduler (disable_overlap_scheduler=False)",
}

_PARTS: Final = {
    "device_ns": "the device is busy {} longer",
    "scheduler_wait_ns": "the device waits {} longer between iterations",
    "launch_wait_ns": "the device waits {} longer for launches inside the iteration",
}
_DETAILS: Final = {
    "blocked_ns": "the host is blocked {} longer",
    "sampling_ns": "sampling takes {} longer",
    "detokenizing_ns": "detokenizing takes {} longer",
}
_BATCH: Final = {
    "requests": "requests",
    "prefill_tokens": "prompt tokens",
    "decode_tokens": "decoded tokens",
    "n_graph_launches": "graph launches",
}


def why_slow(row: Mapping[str, Any], median: Mapping[str, Any]) -> str:
    """List the differences of a slow iteration, largest first.

    Examples
    --------
    >>> median = dict.fromkeys([*_PARTS, *_DETAILS, *_BATCH], 10_000) | {"length_ns": 30_000}
    >>> why_slow(median | {"device_ns": 25_000, "requests": 12_000, "length_ns": 45_000}, median)
    'the device is busy 15.0 µs longer; 12,000 requests instead of 10,000'
    """
    least_ns = _LEAST_DIFFERENCE * median["length_ns"]
    told = [text for words in (_PARTS, _DETAILS) for text in _longer(row, median, words, least_ns)]
    batch = [
        f"{row[name]:,} {noun} instead of {median[name]:,}"
        for name, noun in _BATCH.items()
        if None not in (row[name], median[name]) and row[name] != median[name]
    ]
    return "; ".join([*told, *batch]) or "no part that is recorded took longer"


def _longer(
    row: Mapping[str, Any], median: Mapping[str, Any], words: Mapping[str, str], least_ns: float
) -> list[str]:
    more = {name: (row[name] or 0) - (median[name] or 0) for name in words}
    chosen = sorted((name for name in more if more[name] >= max(least_ns, 1)), key=more.__getitem__)
    return [words[name].format(duration(more[name])) for name in reversed(chosen)]


def sentence_of(found: Measured, record: str | None = None) -> str:
    """Return how long iterations take, what they wait for, and what to do about it.

    Parameters
    ----------
    found
        The measurements.
    record
        The option that records GPU activities, if the trace has none.
    """
    if not found.kinds.height:
        return (
            "The trace marks no iterations of an inference server, and launches no graphs that "
            "repeat: record whole iterations of the server."
        )
    main = found.kinds.row(0, named=True)
    if record is not None:
        told = "No GPU activity is recorded, so the trace does not show what they wait for"
        return f"{_lengths(main)} {told}: record the process that uses the GPU, with {record}."
    return " ".join([_lengths(main), *_holds_up(found, main)])


def sentence_without_times(found: Measured) -> str:
    """Describe the iterations of a trace whose device times are wrong."""
    told = (
        "The recorded times of GPU activities cannot be right (see `longpole check`), so lengths, "
        "waits and rates are not given."
    )
    return f"{_lengths(found.kinds.row(0, named=True))} {told}" if found.kinds.height else told


def _lengths(main: Mapping[str, Any]) -> str:
    """Return the number of iterations, their lengths, and the resulting token rate."""
    noun = _NOUNS.get(main["kind"], "iteration")
    n_rows, requests = main["count"], main["requests"]
    of_batch = "" if requests is None else f" of {count(round(requests), 'request')}"
    if main["length_ns"] is None:
        only = "The only" if n_rows == 1 else f"The {n_rows}"
        plural = noun if n_rows == 1 else _plural(noun)
        return f"{only} {plural}{of_batch} in the trace: {_parts(main)}."
    takes = f"{_plural(noun).capitalize()}{of_batch} take {duration(round(main['length_ns']))} each"
    rate = main["decode_tokens_per_second"] or main["prefill_tokens_per_second"]
    tokens = "" if not rate else f": {round(rate):,} tokens/s"
    return f"{takes} ({n_rows} in the trace){tokens}."


def _plural(noun: str) -> str:
    return f"{noun}es" if noun.endswith("ch") else f"{noun}s"


def _parts(main: Mapping[str, Any]) -> str:
    """Describe iterations without a predecessor."""
    parts = {
        "replaying graphs takes {}": main["replay_ns"],
        "the device is busy for {}": main["device_ns"],
        "the host takes {}": main["host_ns"],
        "{} of that before the launch": main["before_launch_ns"],
    }
    return ", ".join(text.format(duration(round(ns))) for text, ns in parts.items() if ns)


def _holds_up(found: Measured, main: Mapping[str, Any]) -> list[str]:
    if main["length_ns"] is None:
        return _of_few(found, main)
    scheduler, launch = main["scheduler_share"] or 0.0, main["launch_share"] or 0.0
    told = []
    if scheduler >= max(_MUCH, launch):
        told.append(
            f"The device waits {_percent(scheduler)} of the time between iterations, for the "
            f"scheduler or for requests{_in(found.between)}: under load, {_overlap(found)}."
        )
    elif launch >= _MUCH:
        told.append(_launches(found, main, launch))
    device = main["device_share"]
    if not told and device is not None and device >= _MOSTLY:
        told.append(_device(found, device))
    if not told and _is_blocked(main, device):
        told.append(_blocked(found, main, device))
    if not told:
        rest = f"{_percent(device)} busy" if device is not None else "busy for an unknown part"
        told.append(
            f"The device is {rest} and waits {_percent(scheduler + launch)} for launches; "
            "`longpole summary` shows what else limits them."
        )
    return told


def _is_blocked(main: Mapping[str, Any], device: float | None) -> bool:
    """Whether the host is blocked most of the time although the device is not busy."""
    is_idle = device is not None and device < 1 - _MOSTLY_BLOCKED
    return is_idle and (main["blocked_ns"] or 0) >= _MOSTLY_BLOCKED * main["length_ns"]


def _blocked(found: Measured, main: Mapping[str, Any], device: float | None) -> str:
    call = _blocking_call(found) or "calls that wait for the GPU"
    blocked = duration(round(main["blocked_ns"]))
    busy = _percent(device or 0.0)
    return (
        f"The host is blocked for {blocked} of each in {call}, while the device is busy {busy} of "
        "the time: `longpole path` shows what the call waits for."
    )


def _in(work: pl.DataFrame) -> str:
    """Return where the host is for most of some time: in the innermost event that has as much."""
    most = work.filter(pl.col("share") >= _MOSTLY_IN).drop_nulls("name")
    if most.is_empty():
        return ""
    name, part = most.select("name", "share").row(-1)
    return f", {_percent(part)} of it in {short_name(name)}"


def _percent(part: float) -> str:
    return share(part) if part < _MUCH else f"{100 * part:.0f} %"


def _overlap(found: Measured) -> str:
    known = [_OVERLAP[server] for server in found.servers if server in _OVERLAP]
    prepare = "prepare the next batch while the device works"
    return f"{prepare}, with {known[0]}" if len(known) == 1 else prepare


def _launches(found: Measured, main: Mapping[str, Any], part: float) -> str:
    """Return the advice if the device waits for launches."""
    waits = f"The device waits {_percent(part)} of the time for launches"
    if main["host_ns"] is not None:
        waits += " while the host is inside an iteration"
    if not main["n_graph_launches"]:
        return f"{waits}: no graph is launched, so capture one for this batch size."
    if main["before_launch_ns"] is None:
        return f"{waits}: shorten what the host does between two launches of graphs."
    before = duration(round(main["before_launch_ns"]))
    if (main["blocked_ns"] or 0) >= _MOSTLY_BLOCKED * main["before_launch_ns"] > 0:
        blocked = duration(round(main["blocked_ns"]))
        call = _blocking_call(found) or "calls that wait for the GPU"
        return f"{waits}: the host is blocked for {blocked} of each in {call}."
    where = _in(found.before_launch)
    return f"{waits}: shorten what the host does before the launch ({before} of each{where})."


def _blocking_call(found: Measured) -> str | None:
    """Return the call that blocks the host in most iterations of the kind that takes most time."""
    kind = pl.col("kind").eq_missing(found.kinds["kind"][0])
    named = found.iterations.filter(kind)["blocking_call"].drop_nulls()
    return named.mode().sort()[0] if len(named) else None


def _device(found: Measured, device: float) -> str:
    busy = f"The device is busy {_percent(device)} of the time"
    held = f"{busy}, so only shorter kernels can shorten them"
    if not found.kernels.height:
        return f"{held}."
    first = found.kernels.row(0, named=True)
    of = f" of {first['operator']}" if first["operator"] else ""
    return f"{held}: {short_name(first['name'])}{of} has {_percent(first['share'])}."


def _of_few(found: Measured, main: Mapping[str, Any]) -> list[str]:
    """Report what a single iteration shows, and that more iterations would show the rest."""
    blocked, host = main["blocked_ns"] or 0, main["host_ns"] or 0
    if host and blocked >= _MOSTLY_BLOCKED * host:
        where = f"in {call} " if (call := _blocking_call(found)) else ""
        told = f"The host is blocked {where}for {duration(round(blocked))} of its time"
        return [f"{told}: record more iterations to see whether that is usual."]
    delay = main["launch_delay_ns"]
    if delay is None or not host:
        return ["Record several iterations to see what they wait for."]
    if delay > host - (main["before_launch_ns"] or 0):
        told = f"The graph starts {duration(round(delay))} after its launch"
        return [f"{told}: record more iterations to see what the device did until then."]
    return ["The device starts at the launch: record several iterations to see what it waits for."]
