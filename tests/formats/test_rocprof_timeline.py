"""`results.json` of rocprof 1 and 2: a timeline whose processes say what its events are."""

import json

import polars as pl
import pytest

from longpole import read_trace

HIP, COPY, GPU1, HOST = 2, 1, 7, "2385"


def section(number, name):
    return {"args": {"name": name}, "ph": "M", "pid": number, "name": "process_name"}


def record(section, thread, name, begin_ns, end_ns, *, start_ns=0, **arguments):
    """Return an event as rocprof writes it: texts, and whole microseconds."""
    times = {"ts": (begin_ns - start_ns) // 1_000, "dur": (end_ns - begin_ns) // 1_000}
    shown = {"BeginNs": begin_ns, "EndNs": end_ns, "Name": name} | arguments
    event = {"ph": "X", "name": name, "pid": section, "tid": thread}
    texts = {key: str(value) for key, value in times.items()}
    return event | texts | {"args": {key: str(value) for key, value in shown.items()}}


def program(*, start_ns=0, first_ns=5_000_000_123, index=7):
    """Return a copy and a kernel, each with its call."""

    def at(section, thread, name, begin_ns, end_ns, **arguments):
        times = (first_ns + begin_ns, first_ns + end_ns)
        return record(section, thread, name, *times, start_ns=start_ns, **arguments)

    return [
        {},
        *(section(HIP, "0 CPU HIP API"), section(COPY, "1 COPY"), section(GPU1, "2 GPU1")),
        at(HIP, 2385, "hipMemcpyAsync", 0, 2_400, pid=HOST, Index=6),
        at(HIP, 2385, "hipLaunchKernel", 3_000, 4_250, pid=HOST, Index=index),
        at(COPY, 3, "CopyHostToDevice", 1_500, 2_750, **{"dev-id": 1, "Index": 6}),
        at(GPU1, 3, "gemm", 5_001, 9_999, **{"dev-id": 1, "Index": 7}),
        at(GPU1, 3, "<barrier packet>", 10_000, 10_001, **{"dev-id": 1, "Index": 8}),
    ]


def read(tmp_path, events):
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"traceEvents": events, "otherData": {"rocm_version": "5.4"}}))
    return read_trace(path)


def told(trace):
    rows = trace.events.with_columns(pl.col(pl.Categorical).cast(pl.String))
    return rows.select("kind", "name", "start_ns", "duration_ns", "process", "device", "stream")


@pytest.mark.parametrize("start_ns", [0, 4_999_000_456])
def test_sections_give_kinds_places_and_exact_times(tmp_path, start_ns):
    trace = read(tmp_path, program(start_ns=start_ns))
    assert trace.format == "rocprof-json"
    rows = told(trace)
    first_ns = rows["start_ns"][0]
    rows = rows.with_columns(pl.col("start_ns") - first_ns)
    assert rows.rows() == [
        ("runtime", "hipMemcpyAsync", 0, 2_400, HOST, None, None),
        ("runtime", "hipLaunchKernel", 3_000, 1_250, HOST, None, None),
        ("copy", "Memcpy HtoD", 1_500, 1_250, str(COPY), 1, 3),
        ("kernel", "gemm", 5_001, 4_998, str(GPU1), 1, 3),
        ("device_task", "<barrier packet>", 10_000, 1, str(GPU1), 1, 3),
    ]
    if start_ns == 0:
        assert first_ns == 5_000_000_123


def launched(trace):
    names = trace.events.select("event", pl.col("name").cast(pl.String))
    pairs = trace.launches.drop_nulls("call").select("event", "call").join(names, on="event")
    pairs = pairs.join(names, left_on="call", right_on="event", suffix="_of_call")
    return sorted(pairs.select("name", "name_of_call").iter_rows())


def test_an_activity_finds_the_call_with_its_index(tmp_path):
    assert launched(read(tmp_path, program())) == [
        ("Memcpy HtoD", "hipMemcpyAsync"),
        ("gemm", "hipLaunchKernel"),
    ]


def test_numbers_that_cannot_be_those_of_launches_link_nothing(tmp_path):
    assert launched(read(tmp_path, program(index=6))) == []
    events = program()
    late = record(HIP, 2385, "hipFree", 5_000_090_000, 5_000_091_000, pid=HOST, Index=8)
    assert launched(read(tmp_path, [*events, late])) == []


def test_another_timeline_with_such_a_gpu_stays_as_it_is(tmp_path):
    events = [section(GPU1, "GPU1"), record(GPU1, 3, "gemm", 0, 2_500)]
    trace = read(tmp_path, events)
    assert trace.format == "chrome-json"
    assert told(trace)["kind"].to_list() == ["other"]


def arrow(number, phase, section, thread, at_ns):
    """Return an end of an arrow from a call to what it launched."""
    place = {"pid": section, "tid": thread, "ts": at_ns // 1_000}
    return {"ph": phase, "cat": "DataFlow", "name": "dep", "id": number} | place


def test_arrows_link_activities_where_numbers_do_not(tmp_path):
    events = program(index=6)
    first_ns = 5_000_000_123
    arrows = [
        *(arrow(0, "s", HIP, 2385, first_ns + 1_000), arrow(0, "t", COPY, 3, first_ns + 1_500)),
        *(arrow(1, "s", HIP, 2385, first_ns + 4_000), arrow(1, "t", GPU1, 3, first_ns + 5_001)),
    ]
    assert launched(read(tmp_path, events)) == []
    assert launched(read(tmp_path, [*events, *arrows])) == [
        ("Memcpy HtoD", "hipMemcpyAsync"),
        ("gemm", "hipLaunchKernel"),
    ]


def test_an_arrow_to_work_before_its_call_links_nothing(tmp_path):
    events = program(index=6)
    first_ns = 5_000_000_123
    back = [
        arrow(1, "s", HIP, 2385, first_ns + 4_000),
        arrow(1, "t", COPY, 3, first_ns + 1_500),
    ]
    assert launched(read(tmp_path, [*events, *back])) == []
