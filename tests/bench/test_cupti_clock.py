"""The clock of torch's profiler, on a module that stands in for torch."""

import sys
from types import ModuleType, SimpleNamespace

import pytest
from fake_gpu import FakeGpu

from longpole.bench.time.measure import measure
from longpole.bench.time.torch_clock import CuptiClock
from longpole.bench.time.worker import make_clock
from longpole.errors import DeviceError, MissingDependencyError


@pytest.fixture
def gpu():
    return FakeGpu(launch_ns=20_000)


def module(monkeypatch, name, **members):
    made = ModuleType(name)
    made.__dict__.update(members)
    monkeypatch.setitem(sys.modules, name, made)
    return made


@pytest.fixture
def torch(monkeypatch, gpu):
    """Only what the clock asks of torch: its profiler records what the device does."""
    launched = []
    original = gpu.put

    def put(stream, duration_ns):
        end_ns = original(stream, duration_ns)
        launched.append((stream, end_ns - duration_ns, end_ns))
        return end_ns

    gpu.put = put

    class Profile:
        def __init__(self, activities):
            assert activities == ["CUDA"]

        def __enter__(self):
            launched.clear()
            return self

        def __exit__(self, *_):
            self.found = list(launched)

        def events(self):
            for _, begin_ns, end_ns in self.found:
                span = SimpleNamespace(start=begin_ns / 1000, end=end_ns / 1000)
                yield SimpleNamespace(device_type="cuda", time_range=span)
                yield SimpleNamespace(device_type="cpu", time_range=SimpleNamespace(start=0, end=9))

    profiler = SimpleNamespace(
        profile=Profile,
        ProfilerActivity=SimpleNamespace(CUDA="CUDA"),
        supported_activities=lambda: {"CUDA"},
    )
    properties = SimpleNamespace(name="NVIDIA H100 80GB HBM3", L2_cache_size=50 << 20)
    cuda = SimpleNamespace(
        is_available=lambda: True,
        current_device=lambda: 0,
        get_device_properties=lambda _: properties,
        synchronize=gpu.synchronize,
    )
    monkeypatch.setattr(CuptiClock, "now_ns", lambda _: gpu.now_ns())
    return module(
        monkeypatch,
        "torch",
        cuda=cuda,
        profiler=profiler,
        version=SimpleNamespace(hip=None),
        autograd=SimpleNamespace(DeviceType=SimpleNamespace(CUDA="cuda")),
        int8="int8",
        empty=lambda *_, **__: SimpleNamespace(zero_=gpu.flush),
    )


@pytest.mark.parametrize("cache", ["hot", "cold"])
@pytest.mark.usefixtures("torch")
def test_the_profiler_gives_the_time_of_kernels_on_any_stream(gpu, cache):
    clock = CuptiClock(cache)
    timing = measure(lambda: gpu.kernel(5_000, stream="other"), key="k", clock=clock)
    assert timing.summarise().median_ns == pytest.approx(5_000, rel=0.03)
    assert (timing.clock, timing.cache) == ("cupti", cache)


@pytest.mark.usefixtures("torch")
def test_kernels_that_overlap_count_once(gpu):
    def both():
        gpu.kernel(100_000, stream="one")
        gpu.kernel(100_000, stream="two")

    timing = measure(both, clock=CuptiClock("hot"))
    assert timing.summarise().median_ns == pytest.approx(120_000, rel=0.05)


@pytest.mark.usefixtures("torch")
def test_a_function_without_work_on_the_device_has_no_time(said):
    timing = measure(lambda: None, clock=CuptiClock("hot"))
    assert (timing.outcome, timing.samples_ns) == ("raised", ())
    said.within(timing.message)


def test_a_profiler_that_cannot_record_the_device_is_refused(torch):
    torch.profiler.supported_activities = set
    with pytest.raises(DeviceError, match="cannot record the device: use --clock torch"):
        CuptiClock("hot")


def test_a_library_that_is_missing_is_named_with_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError, match=r"longpole\[torch\]"):
        make_clock("cupti", "hot")
