"""Reading, linking and measuring agree with a twin that does all of it in plain Python."""

import pytest
from hypothesis import example, given, settings

import longpole
from oracles.twin import trace_twin as twin
from real_traces import real_traces
from strategies import traces
from styles import document
from tables import assert_table, plain

EVENT_COLUMNS = [
    *("kind", "category", "name", "process", "thread", "device", "stream"),
    *("start_ns", "duration_ns", "correlation", "external_id", "position"),
]


def unlinked_work(*, call_us, linked_us, unlinked_us):
    """Give a step with a linked GPU activity and one without a launch behind it on its stream."""
    parts = [
        ("user_annotation", "ProfilerStep#3", 1, (2, 10), {}),
        ("cuda_driver", "cudaLaunchKernel", 1, call_us, {"correlation": 1}),
        ("kernel", "gemm", 0, linked_us, {"correlation": 1}),
        ("gpu_memset", "Memset (Device)", 0, unlinked_us, {}),
    ]
    return [
        {
            "ph": "X",
            "pid": 1,
            "tid": thread,
            "cat": category,
            "name": name,
            "ts": start,
            "dur": end - start,
            "args": args,
        }
        for category, name, thread, (start, end), args in parts
    ]


@settings(max_examples=5 * settings.default.max_examples)
@given(traces())
# Work without a launch belongs to the step of the launched work that it follows, ...
@example(unlinked_work(call_us=(3, 4), linked_us=(5, 9), unlinked_us=(12, 15)))
# ... unless it began long after that and after the step, or that was launched after the step.
@example(unlinked_work(call_us=(3, 4), linked_us=(5, 9), unlinked_us=(20, 25)))
@example(unlinked_work(call_us=(11, 12), linked_us=(1, 2), unlinked_us=(9, 15)))
def test_a_generated_trace_gives_the_tables_of_the_twin(events):
    assert_agrees(document(events))


@pytest.mark.parametrize("path", real_traces(slow_bytes=300_000))
def test_a_real_trace_gives_the_tables_of_the_twin(path):
    if not path.is_file():
        pytest.skip(f"no traces in {path}")
    assert_agrees(path.read_bytes())


def assert_agrees(data):
    """Compare every table that follows from the bytes."""
    trace, expected = longpole.read_trace(data), twin.read(data)
    assert_same_events(trace, expected)
    assert_same_other_phases(trace, expected)
    assert_same_arguments(trace, expected)
    assert_same_nesting(trace, expected)
    assert_table(trace.launches, twin.launches(expected))
    # Which steps are complete, and what marks steps in place of `ProfilerStep`, is tested
    # with the windows.
    if steps := twin.steps(expected):
        assert_table(trace.steps.drop("complete"), steps)
    assert_same_device_time(trace, expected)


def assert_same_events(trace, expected):
    rows = [{name: getattr(event, name) for name in EVENT_COLUMNS} for event in expected.events]
    assert_table(trace.events.select(EVENT_COLUMNS), rows)
    assert trace.phases == expected.phases
    assert trace.n_events == expected.phases.total()
    assert trace.metadata == expected.header
    assert trace.rank == expected.header.get("distributedInfo", {}).get("rank")


def assert_same_other_phases(trace, expected):
    assert_table(trace.flows, expected.flows)
    assert_table(trace.asynchronous, expected.asynchronous)
    assert_table(trace.counters, expected.counters)
    statements = [(*statement, count) for statement, count in expected.statements.items()]
    assert plain(trace.metadata_events.drop("last_position")).rows() == statements


def assert_same_arguments(trace, expected):
    for category in trace.categories:
        for row in plain(trace.args(category)).iter_rows(named=True):
            event = expected.events[row.pop("event")]
            assert event.category == category
            kept = {key: value for key, value in row.items() if value is not None}
            assert kept == {key: twin.spelled_like(event.args.get(key), kept[key]) for key in kept}


def assert_same_nesting(trace, expected):
    parent_of = twin.parents(expected)
    depth_of, self_ns = twin.depths(parent_of), twin.self_times(expected)
    rows = range(len(expected.events))
    assert trace.events["parent"].to_list() == [parent_of.get(row) for row in rows]
    assert trace.events["depth"].to_list() == [depth_of.get(row) for row in rows]
    assert trace.self_times["self_ns"].to_list() == [self_ns.get(row) for row in rows]


def assert_same_device_time(trace, expected):
    window = twin.whole_window(expected)
    assert trace.window == window
    if window:
        third = (window[1] - window[0]) // 3
        for start, end in [window, (window[0] + third, window[1] - third)]:
            assert_table(trace.busy(start, end), twin.busy(expected, start, end))
            assert_table(trace.gaps(start, end), twin.gaps(expected, start, end))
