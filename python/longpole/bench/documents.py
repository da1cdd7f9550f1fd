"""JSON documents of benchmark tools: detects the format and reads the rows.

A document is read whole. Several may follow one another, for example if each run of a program
appends its own; each is a run. Numbers are kept as printed, and non-numbers are passed on unchanged
and rejected with other invalid times.

Of the statistics of one operation, its samples are rows if the document contains them, else its
median, else its mean. The field `run` numbers the processes; `statistic` marks values that are not
samples.
"""

from __future__ import annotations

import json
import re
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

LATENCY: Final = re.compile(r"(mean|median|p\d+(?:\.\d+)?)_([a-z0-9_]+)_ms")
SPREADS: Final = ("mean", "median", "stddev", "min", "max", "user", "system")


class Number(str):
    """A number as printed."""

    __slots__ = ()


class Row(NamedTuple):
    """A time, in the core's format."""

    operation: str
    time: str
    unit: str
    failed: bool
    fields: list[tuple[str, str]]


class Document(NamedTuple):
    """A document in a stream: its format, its bytes, and its rows, which are read on demand."""

    format: str
    offset: int
    end: int
    rows: Iterator[Row]


class Layout(NamedTuple):
    """A format: the tool that writes it, how to detect it, and its rows with their run numbers."""

    summary: str
    is_mine: Callable[[Mapping[str, Any]], bool]
    rows: Callable[[Mapping[str, Any], Iterator[int]], Iterable[Row]]


def documents_in(text: bytes, formats: Iterable[str]) -> Iterator[Document]:
    """Read the documents at the beginning of a text.

    Empty if the first is not in one of the requested formats.
    """
    wanted = [(name, DOCUMENTS[name]) for name in formats]
    decoded = text.decode("utf-8", "surrogateescape")
    runs = count(1)
    place, offset = 0, 0
    while True:
        start = place + len(_blanks(decoded, place))
        offset += _n_bytes(decoded[place:start])
        document, place = _decoded(decoded, start)
        mine = [it for it in wanted if document is not None and it[1].is_mine(document)]
        if document is None or not mine:
            return
        name, layout = mine[0]
        end = offset + _n_bytes(decoded[start:place])
        rows = layout.rows(document, runs)
        yield Document(name, offset, end, map(_without_surrogates, rows))
        offset = end


_BLANKS: Final = re.compile(r"[ \t\r\n\ufeff]+")


def _blanks(text: str, start: int) -> str:
    found = _BLANKS.match(text, start)
    return found[0] if found else ""


def _n_bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def _without_surrogates(row: Row) -> Row:
    """Replace surrogates: JSON can contain unpaired ones, and broken UTF-8 is decoded to them."""
    fields = [(_sound(name), _sound(value)) for name, value in row.fields]
    return row._replace(operation=_sound(row.operation), time=_sound(row.time), fields=fields)


def _sound(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _decoded(text: str, start: int) -> tuple[Mapping[str, Any] | None, int]:
    try:
        document, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None, start
    return (document, end) if isinstance(document, dict) else (None, start)


_DECODER: Final = json.JSONDecoder(parse_float=Number, parse_int=Number, parse_constant=Number)


def _hyperfine(document: Mapping[str, Any], runs: Iterator[int]) -> Iterator[Row]:
    """Yield times, each from a separate process."""
    for result in _objects(document.get("results")):
        name = str(result.get("command"))
        times, codes = _list(result.get("times")), _list(result.get("exit_codes"))
        for at, time in enumerate(times):
            failed = at < len(codes) and codes[at] != "0"
            fields = [*_parameters(result), _run(runs)]
            yield Row(name, _time(time), "s", failed, fields)
        if not times:
            spread = [(each, _text(result[each])) for each in SPREADS if each in result]
            fields = [("statistic", "median"), *_parameters(result), *spread, _run(runs)]
            yield Row(name, _time(result.get("median")), "s", _has_failed(codes), fields)


def _parameters(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(name, _plain(value)) for name, value in _object(result.get("parameters")).items()]


def _has_failed(codes: list[Any]) -> bool:
    return any(code != "0" for code in codes)


def _pyperf(document: Mapping[str, Any], runs: Iterator[int]) -> Iterator[Row]:
    """Yield the values of each process. Calibrations have none, and bytes are not times."""
    common = _object(document.get("metadata"))
    for benchmark in _objects(document.get("benchmarks")):
        metadata = {**common, **_object(benchmark.get("metadata"))}
        if metadata.get("unit", "second") != "second":
            continue
        name = str(metadata.get("name", ""))
        for run in _objects(benchmark.get("runs")):
            began = _object(run.get("metadata")).get("date")
            fields = [_run(runs), *([("started_at", str(began))] if began else [])]
            for value in _list(run.get("values")):
                yield Row(name, _time(value), "s", failed=False, fields=fields)


def _google_benchmark(document: Mapping[str, Any], runs: Iterator[int]) -> Iterator[Row]:
    """Yield the repetitions of one process, or the aggregates if there are only these."""
    run = _run(runs)
    began = _object(document.get("context")).get("date")
    fields = [run, *([("started_at", str(began))] if began else [])]
    benchmarks = _objects(document.get("benchmarks"))
    aggregated = [each for each in benchmarks if each.get("run_type") == "aggregate"]
    measured = [each for each in benchmarks if each.get("run_type") != "aggregate"]
    for each in measured:
        yield _google_row(each, str(each.get("name")), fields)
    sampled = {str(each.get("run_name")) for each in measured}
    for each in aggregated:
        name = str(each.get("run_name"))
        if each.get("aggregate_name") == "median" and name not in sampled:
            yield _google_row(each, name, [("statistic", "median"), *fields])


def _google_row(each: Mapping[str, Any], name: str, fields: list[tuple[str, str]]) -> Row:
    failed = each.get("error_occurred") is True or bool(each.get("skipped"))
    known = {"name", "run_name", "real_time", "time_unit"}
    further = [(key, _plain(value)) for key, value in each.items() if key not in known]
    time = "N/A" if failed else _time(each.get("real_time"))
    return Row(name, time, str(each.get("time_unit", "ns")), failed, [*fields, *further])


def _nvbench(document: Mapping[str, Any], runs: Iterator[int]) -> Iterator[Row]:
    """Yield each point of the axes on each device; its mean summarises the process."""
    run = _run(runs)
    for benchmark in _objects(document.get("benchmarks")):
        for state in _objects(benchmark.get("states")):
            yield _nvbench_row(str(benchmark.get("name")), state, run)


def _nvbench_row(name: str, state: Mapping[str, Any], run: tuple[str, str]) -> Row:
    axes = [(str(axis.get("name")), _plain(axis.get("value"))) for axis in _axes(state)]
    summaries = {str(each.get("tag")): _summary(each) for each in _objects(state.get("summaries"))}
    tag = next((tag for tag in _NVBENCH_TIMES if tag in summaries), "")
    failed = state.get("is_skipped") is True
    point = " ".join(f"{axis}={value}" for axis, value in axes)
    fields = [
        ("statistic", tag.rpartition("/")[2]),
        ("device", _plain(state.get("device"))),
        ("skip_reason", str(state.get("skip_reason", "")) if failed else ""),
        run,
        *axes,
        *((key, value) for key, value in summaries.items() if value and key != tag),
    ]
    time = "N/A" if failed else summaries.get(tag, "N/A")
    return Row(f"{name} [{point}]" if point else name, time, "s", failed, fields)


_NVBENCH_TIMES: Final = (
    "nv/cold/time/gpu/median",
    "nv/cold/time/gpu/mean",
    "nv/cpu_only/time/cpu/median",
    "nv/cpu_only/time/cpu/mean",
)


def _axes(state: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return _objects(state.get("axis_values"))


def _summary(summary: Mapping[str, Any]) -> str:
    """Return the value of a summary, a number written as a string."""
    fields = {str(each.get("name")): each.get("value") for each in _objects(summary.get("data"))}
    return _plain(fields.get("value")) if "value" in fields else ""


def _rocprof(document: Mapping[str, Any], runs: Iterator[int]) -> Iterator[Row]:
    """Yield the dispatches of each process, from `begin` to `end`."""
    for process in _objects(document.get("rocprofiler-sdk-tool")):
        run = _run(runs)
        names = {
            _text(symbol.get("kernel_id")): str(
                symbol.get("formatted_kernel_name") or symbol.get("kernel_name") or ""
            )
            for symbol in _objects(process.get("kernel_symbols"))
        }
        records = _object(process.get("buffer_records"))
        for dispatch in _objects(records.get("kernel_dispatch")):
            kernel_id = _text(_object(dispatch.get("dispatch_info")).get("kernel_id"))
            name = names.get(kernel_id, "")
            stamps = [(each, _text(dispatch.get(each))) for each in _STAMPS]
            fields = [run, *stamps, ("kernel_id", kernel_id)]
            yield Row(name, _between(dispatch), "ns", failed=False, fields=fields)


_STAMPS: Final = ("start_timestamp", "end_timestamp")


def _between(dispatch: Mapping[str, Any]) -> str:
    begin, end = (dispatch.get(each) for each in _STAMPS)
    try:
        return str(int(end) - int(begin))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return f"{_text(begin)} to {_text(end)}"


def _serving(document: Mapping[str, Any], runs: Iterator[int]) -> Iterator[Row]:
    """Yield latencies of vLLM's and SGLang's serving benchmarks, and their durations."""
    run = _run(runs)
    failed = document.get("completed") == "0"
    described = [
        (name, str(value)) for name, value in document.items() if isinstance(value, str) and value
    ]
    fields = [run, *((name, value) for name, value in described if not LATENCY.fullmatch(name))]
    yield Row("Benchmark duration", _time(document.get("duration")), "s", failed, fields)
    for key, value in document.items():
        if match := LATENCY.fullmatch(key):
            statistic, metric = match.groups()
            name = metric.upper().replace("_LATENCY", " Latency")
            operation = f"{statistic.capitalize()} {name}"
            yield Row(operation, _time(value), "ms", failed, [("statistic", statistic), run])


def _latency(document: Mapping[str, Any], runs: Iterator[int]) -> Iterator[Row]:
    run = _run(runs)
    for value in _list(document.get("latencies")):
        yield Row("latency", _time(value), "s", failed=False, fields=[run])


def _throughput(document: Mapping[str, Any], runs: Iterator[int]) -> Iterator[Row]:
    fields = [_run(runs), *((name, str(value)) for name, value in document.items())]
    time = _time(document.get("elapsed_time"))
    yield Row("elapsed time", time, "s", failed=False, fields=fields)


def _run(runs: Iterator[int]) -> tuple[str, str]:
    return "run", str(next(runs))


def _time(value: Any) -> str:
    """Return a number as printed; anything else in a form that is not a number."""
    return "N/A" if value is None else _text(value)


def _text(value: Any) -> str:
    return str(value) if isinstance(value, Number) else json.dumps(value)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else _text(value)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in _list(value) if isinstance(each, dict)]


def _has(*names: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda document: all(name in document for name in names)


def _lists(name: str, within: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda document: any(within in each for each in _objects(document.get(name)))


DOCUMENTS: Final[Mapping[str, Layout]] = {
    "hyperfine": Layout("hyperfine --export-json", _lists("results", "command"), _hyperfine),
    "pyperf": Layout("pyperf, JSON", _lists("benchmarks", "runs"), _pyperf),
    "google-benchmark-json": Layout(
        "Google Benchmark, JSON", _has("context", "benchmarks"), _google_benchmark
    ),
    "nvbench-json": Layout("NVBench, JSON", _lists("benchmarks", "states"), _nvbench),
    "rocprof-json": Layout("rocprofv3, JSON", _has("rocprofiler-sdk-tool"), _rocprof),
    "serving-json": Layout(
        "vLLM's and SGLang's serving benchmarks, JSON",
        _has("duration", "completed", "request_throughput"),
        _serving,
    ),
    "vllm-latency-json": Layout(
        "vllm bench latency, JSON", _has("avg_latency", "latencies"), _latency
    ),
    "vllm-throughput-json": Layout(
        "vllm bench throughput, JSON", _has("elapsed_time", "requests_per_second"), _throughput
    ),
}
"""The formats in the order in which they are listed to users."""
