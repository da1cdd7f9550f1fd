"""The GPU clock, on a device that models launches, streams, events and caches."""

from functools import partial

import pytest
from fake_gpu import FakeGpu

from longpole.bench import Verdict, compare
from longpole.bench.time.gpu_clock import GpuClock, WrongStreamError
from longpole.bench.time.measure import measure, measure_in_turns
from longpole.bench.time.torch_clock import CaptureError

MODES = ["hot", "graph", "cold"]


@pytest.mark.parametrize("launch_ns", [2_000, 20_000, 60_000])
@pytest.mark.parametrize("duration_ns", [2_000, 5_000, 10_000, 200_000])
@pytest.mark.parametrize("cache", MODES)
def test_a_kernel_is_timed_and_not_its_launch(cache, duration_ns, launch_ns):
    gpu = FakeGpu(launch_ns=launch_ns)
    cold_ns = 1.6 * duration_ns
    clock = GpuClock(gpu, cache)
    timing = measure(lambda: gpu.kernel(duration_ns, cold_ns), key="k", clock=clock)
    true_ns = cold_ns if cache == "cold" else duration_ns
    assert timing.outcome == "ok"
    assert timing.summarise().median_ns == pytest.approx(true_ns, rel=0.03)


@pytest.mark.parametrize("cache", MODES)
def test_five_and_ten_microseconds_are_told_apart(cache):
    records = []
    for _ in range(7):
        gpu = FakeGpu(launch_ns=20_000)
        functions = {
            "old": lambda gpu=gpu: gpu.kernel(5_000),
            "new": lambda gpu=gpu: gpu.kernel(10_000),
        }
        timings = measure_in_turns(functions, clock=GpuClock(gpu, cache))
        records += [timing.to_dict() for timing in timings.values()]
    (difference,) = compare(records, records, base_key="old", new_key="new").differences
    assert difference.verdict is Verdict.SLOWER
    assert difference.change == pytest.approx(1.0, rel=0.03)


def test_a_call_of_many_kernels_does_not_fill_the_queue():
    gpu = FakeGpu(launch_ns=3_000)

    def call():
        for _ in range(200):
            gpu.kernel(2_000)

    timing = measure(call, key="k", clock=GpuClock(gpu, "hot"))
    assert timing.summarise().median_ns == pytest.approx(400_000, rel=0.03)


def test_host_bound_work_is_said_and_its_device_time_reported(said):
    gpu = FakeGpu(launch_ns=20_000)
    timing = measure(lambda: gpu.kernel(5_000), key="k", clock=GpuClock(gpu, "hot"))
    host_bound, gaps = timing.notes
    said(host_bound)
    assert gaps.startswith("the time includes the gaps between launches, about 1 us each")
    assert host_bound in timing.record().message
    assert timing.host_ns == timing.record().sampling["host_ns"] == 20_000
    fast = FakeGpu(launch_ns=2_000)
    assert measure(lambda: fast.kernel(50_000), clock=GpuClock(fast, "hot")).notes == ()


def test_the_start_of_a_replay_is_subtracted_and_gaps_between_nodes_are_said():
    gpu = FakeGpu(replay_ns=9_000, gap_ns=100)
    timing = measure(lambda: gpu.kernel(1_000), key="k", clock=GpuClock(gpu, "graph"))
    assert timing.summarise().median_ns == pytest.approx(1_100, rel=0.01)
    (note,) = timing.notes
    assert note.startswith("the time includes the gaps between the nodes of a graph, 0.06 to 0.25")
    long = FakeGpu(gap_ns=100)
    assert measure(lambda: long.kernel(50_000), clock=GpuClock(long, "graph")).notes == ()


def waiting(gpu):
    gpu.kernel(10_000)
    gpu.synchronize()


@pytest.mark.parametrize(
    ("calls", "cache"),
    [
        ([lambda gpu: gpu.kernel(5_000)], "graph"),
        ([lambda gpu: gpu.kernel(5_000), lambda gpu: gpu.kernel(500_000)], "graph"),
        ([lambda gpu: gpu.kernel(500_000)], "hot"),
        ([lambda gpu: gpu.kernel(5_000), waiting], "hot"),
        ([lambda gpu: gpu.kernel(5_000), lambda _: 1 / 0], "graph"),
        ([lambda _: 1 / 0], "hot"),
    ],
)
def test_the_cache_state_suits_the_length_of_the_calls(calls, cache):
    gpu = FakeGpu()
    functions = [partial(call, gpu) for call in calls]
    assert GpuClock(gpu, "hot").suited_to(functions).cache == cache


def test_short_calls_that_cannot_be_captured_are_timed_hot():
    gpu = FakeGpu()

    def refuse(*_):
        raise CaptureError

    gpu.capture = refuse
    assert GpuClock(gpu, "hot").suited_to([lambda: gpu.kernel(5_000)]).cache == "hot"


def test_graphs_of_a_function_do_not_pile_up():
    gpu = FakeGpu()
    clock, function = GpuClock(gpu, "graph"), partial(gpu.kernel, 1_000)
    measure(function, key="k", clock=clock)
    assert len(clock._known[id(function)].graphs) <= 2


def test_work_on_another_stream_is_refused_and_never_a_short_time():
    gpu = FakeGpu()
    function = lambda: gpu.kernel(300_000, stream="other")  # noqa: E731
    timing = measure(function, key="k", clock=GpuClock(gpu, "hot"))
    assert (timing.outcome, timing.samples_ns) == ("raised", ())
    assert timing.message.startswith("WrongStreamError: the device works for 3")
    with pytest.raises(WrongStreamError, match="not on the current stream"):
        GpuClock(gpu, "hot").time_ns(function, 1)


def test_a_function_that_waits_inside_is_timed_by_the_wall_and_said():
    gpu = FakeGpu(launch_ns=5_000)

    def call():
        gpu.kernel(100_000)
        gpu.synchronize()

    timing = measure(call, key="k", clock=GpuClock(gpu, "hot"))
    assert timing.outcome == "ok"
    assert "it synchronizes" in timing.notes[0]
    assert timing.summarise().median_ns == pytest.approx(109_000, rel=0.05)


def test_a_sticky_error_is_the_outcome_of_the_function_and_names_itself():
    gpu = FakeGpu()
    clock = GpuClock(gpu, "hot")
    calls = []

    def breaks():
        calls.append(1)
        gpu.is_broken = len(calls) > 30
        gpu.kernel(5_000)

    timing = measure(breaks, key="k", clock=clock)
    assert (timing.outcome, timing.samples_ns) == ("raised", ())
    assert "illegal memory access" in timing.message
