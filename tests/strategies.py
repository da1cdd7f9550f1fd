"""Small traces of every shape: nested, crossing, linked twice, not linked at all."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from styles import Number

Raw = dict[str, Any]

# A nanosecond finer than a double can tell apart, and one that JavaScript would write.
BASES_NS = [1_000, 1_712_195_495_506_752_812]
# One thread more often than the others, so that its events meet.
THREADS = [*[(1, 1)] * 4, (1, 2), (2, 1), ("python", "main")]
NAMES = ["aten::mm", "aten::add", "gemm", "ncclDevKernel_AllReduce", "Grüße \U0001f600", 'a"\\/\n']
EVERY_ARGUMENT = {"bytes": 64, "grid": [1, 2, 3], "Input Dims": [[2, 3], []], "Rank": "0"}

numbers = st.sampled_from([1, 1, 2, 3, 0, None])
sizes = st.integers(0, 8) | st.integers(10, 40)
offsets_ns = st.integers(0, 48).map(lambda quarter: quarter * 250) | st.integers(0, 12_000)
spans_ns = st.tuples(offsets_ns, offsets_ns | st.integers(0, 3))


def microseconds(ns: int) -> Number:
    """Write nanoseconds as the microseconds of a trace."""
    return Number(f"{'-' * (ns < 0)}{abs(ns) // 1000}.{abs(ns) % 1000:03}")


@st.composite
def traces(draw: st.DrawFn, *, brackets: bool = True) -> list[Raw]:
    """Draw the events of one trace, each kind of them in any number and order."""
    base_ns = draw(st.sampled_from(BASES_NS))
    kinds = [operators(), calls(), calls(), works(), works(), steps(), points(), other_phases()]
    size = draw(sizes)
    kind = st.one_of(*kinds, *([pairs()] if brackets else []))
    groups = draw(st.lists(kind, min_size=size, max_size=size))
    return [_at(base_ns, event) for group in groups for event in group]


@st.composite
def operators(draw: st.DrawFn) -> list[Raw]:
    """Draw an event that takes part in the nesting of a thread, or an independent one."""
    category = draw(st.sampled_from(["cpu_op", "python_function", "user_annotation", "my own"]))
    args = _known({"External id": draw(numbers), "Input Dims": [[2], []]})
    return [_span(category, draw(_names()), draw(_threads()), draw(spans_ns), args)]


@st.composite
def calls(draw: st.DrawFn) -> list[Raw]:
    category = draw(st.sampled_from(["cuda_runtime", "cuda_driver"]))
    args = _known({"correlation": draw(numbers), "External id": draw(numbers)})
    return [_span(category, "cudaLaunchKernel", draw(_threads()), draw(spans_ns), args)]


@st.composite
def works(draw: st.DrawFn) -> list[Raw]:
    """Draw what stands on a stream, with or without a number that links it."""
    categories = ["kernel", "gpu_memcpy", "gpu_memset", "cuda_sync", "gpu_user_annotation"]
    device, stream = draw(st.sampled_from([(0, 7), (0, 9), (1, 7), (1, 0)]))
    ids = {"correlation": draw(numbers), "External id": draw(numbers)}
    args = _known({"device": device, "stream": stream, **ids, **EVERY_ARGUMENT})
    category = draw(st.sampled_from(categories))
    return [_span(category, draw(_names()), (device, stream), draw(spans_ns), args)]


@st.composite
def steps(draw: st.DrawFn) -> list[Raw]:
    """Draw a step of the loop; the same number may be drawn again."""
    name = f"ProfilerStep#{draw(st.integers(1, 3))}"
    return [_span("user_annotation", name, draw(_threads()), draw(spans_ns), {})]


@st.composite
def pairs(draw: st.DrawFn) -> list[Raw]:
    """Draw a begin and its end, either of which may be missing."""
    thread, (start_ns, duration_ns) = draw(_threads()), draw(spans_ns)
    begin = _event("B", thread, start_ns, cat="cpu_op", name=draw(_names()))
    end = _event("E", thread, start_ns + duration_ns, cat="cpu_op")
    return draw(st.sampled_from([[begin, end], [begin, end], [begin], [end]]))


@st.composite
def points(draw: st.DrawFn) -> list[Raw]:
    """Draw what has a time and no duration: instants and samples of counters."""
    thread, at_ns, name = draw(_threads()), draw(offsets_ns), draw(_names())
    instant = _event("i", thread, at_ns, cat="cpu_instant_event", name=name, s="t")
    values = {"used": draw(st.integers(-5, 5)), "free": Number("0.5")}
    counter = _event("C", thread, at_ns, name=name, args=values)
    return [draw(st.sampled_from([instant, counter]))]


@st.composite
def other_phases(draw: st.DrawFn) -> list[Raw]:
    """Draw the end of an arrow, a part of an asynchronous event, or a statement."""
    thread, name = draw(_threads()), draw(_names())
    if draw(st.booleans()):
        pid, tid = thread
        args = {"name": f"thread {tid} of {pid}"}
        return [{"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": args}]
    phase = draw(st.sampled_from("stfbne"))
    number = draw(st.integers(0, 3) | st.just("0x1f"))
    return [_event(phase, thread, draw(offsets_ns), cat="ac2g", name=name, id=number)]


def _names() -> st.SearchStrategy[str]:
    return st.sampled_from(NAMES)


def _threads() -> st.SearchStrategy[tuple[Any, Any]]:
    return st.sampled_from(THREADS)


def _span(category: str, name: str, track: tuple[Any, Any], span_ns: Any, args: Raw) -> Raw:
    start_ns, duration_ns = span_ns
    duration = microseconds(duration_ns)
    return _event("X", track, start_ns, cat=category, name=name, dur=duration, args=args)


def _event(phase: str, track: tuple[Any, Any], start_ns: int, **rest: Any) -> Raw:
    pid, tid = track
    return {"ph": phase, "pid": pid, "tid": tid, "ts": start_ns, **rest}


def _at(base_ns: int, event: Raw) -> Raw:
    return {**event, "ts": microseconds(base_ns + event["ts"])} if "ts" in event else event


def _known(args: Raw) -> Raw:
    return {key: value for key, value in args.items() if value is not None}
