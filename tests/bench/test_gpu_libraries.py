"""The clocks of cupy, cuda-python and torch's profiler, on modules that stand in for these."""

import sys
from types import ModuleType, SimpleNamespace

import pytest
from fake_gpu import FakeGpu

from longpole.bench.time import instructions
from longpole.bench.time.cuda_clock import CudaClock
from longpole.bench.time.cupti_clock import CuptiClock
from longpole.bench.time.cupy_clock import CupyClock
from longpole.bench.time.gpu_clock import GpuClock, GpuLibrary
from longpole.bench.time.measure import measure
from longpole.bench.time.worker import make_clock
from longpole.errors import DeviceError, MissingDependencyError

CYCLES_PER_NS = 1.98


@pytest.fixture
def gpu():
    return FakeGpu(launch_ns=20_000)


def module(monkeypatch, name, **members):
    made = ModuleType(name)
    made.__dict__.update(members)
    monkeypatch.setitem(sys.modules, name, made)
    return made


class CupyEvent:
    def __init__(self, gpu):
        self.gpu = gpu
        self.event = gpu.event()

    def record(self):
        self.gpu.record(self.event)

    @property
    def done(self):
        return self.gpu.is_done(self.event)


class CupyStream:
    """Captures what is launched inside it, as `cupy.cuda.Stream` does."""

    def __init__(self, gpu):
        self.gpu = gpu

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def begin_capture(self):
        self.gpu.capturing = []

    def end_capture(self):
        kernels, self.gpu.capturing = self.gpu.capturing, None
        return SimpleNamespace(launch=self.gpu.replay_of(kernels))


@pytest.fixture
def cupy(monkeypatch, gpu):
    def raw_kernel(_source, _name):
        return lambda _grid, _block, arguments: gpu.spin(arguments[0] / CYCLES_PER_NS)

    runtime = SimpleNamespace(
        is_hip=False,
        getDeviceCount=lambda: 1,
        getDeviceProperties=lambda _: {"name": b"NVIDIA H100 80GB HBM3", "l2CacheSize": 50 << 20},
    )
    cuda = SimpleNamespace(
        runtime=runtime,
        Device=lambda: SimpleNamespace(id=0, synchronize=gpu.synchronize),
        Event=lambda: CupyEvent(gpu),
        Stream=lambda non_blocking: CupyStream(gpu),  # noqa: ARG005
        get_elapsed_time=lambda start, stop: gpu.elapsed_ns(start.event, stop.event) / 1e6,
    )
    monkeypatch.setattr(GpuLibrary, "now_ns", lambda _: gpu.now_ns())
    empty = lambda _n, dtype: SimpleNamespace(fill=lambda _: gpu.flush())  # noqa: ARG005, E731
    return module(monkeypatch, "cupy", cuda=cuda, RawKernel=raw_kernel, empty=empty)


class Status(int):
    name = "cudaErrorIllegalAddress"


OK, NOT_READY, ILLEGAL = Status(0), Status(600), Status(700)


@pytest.fixture
def cuda_python(monkeypatch, gpu):
    def told(call):
        def answer(*arguments):
            try:
                value = call(*arguments)
            except RuntimeError:
                return (ILLEGAL,)
            return (OK,) if value is None else (OK, value)

        return answer

    properties = SimpleNamespace(
        name=b"NVIDIA H100 80GB HBM3\0\0", l2CacheSize=50 << 20, major=9, minor=0
    )
    runtime = module(
        monkeypatch,
        "cuda.bindings.runtime",
        cudaError_t=SimpleNamespace(cudaErrorNotReady=NOT_READY),
        cudaGetDevice=lambda: (OK, 0),
        cudaGetDeviceProperties=lambda _: (OK, properties),
        cudaMalloc=lambda _: (OK, 4096),
        cudaMemsetAsync=told(lambda *_: gpu.flush()),
        cudaDeviceSynchronize=told(gpu.synchronize),
        cudaEventCreate=lambda: (OK, gpu.event()),
        cudaEventRecord=told(lambda event, _stream: gpu.record(event)),
        cudaEventQuery=lambda event: (OK if gpu.is_done(event) else NOT_READY,),
        cudaEventElapsedTime=lambda start, stop: (OK, gpu.elapsed_ns(start, stop) / 1e6),
    )
    driver = module(
        monkeypatch,
        "cuda.bindings.driver",
        cuModuleLoadData=lambda ptx: (OK, ptx),
        cuModuleGetFunction=lambda _module, name: (OK, name),
        cuLaunchKernel=told(lambda *given: gpu.spin(given[9][0][0] / CYCLES_PER_NS)),
    )
    nvrtc = module(
        monkeypatch,
        "cuda.bindings.nvrtc",
        nvrtcCreateProgram=lambda *_: (OK, "program"),
        nvrtcCompileProgram=lambda *_: (OK,),
        nvrtcGetPTXSize=lambda _: (OK, 8),
        nvrtcGetPTX=lambda *_: (OK,),
    )
    bindings = module(monkeypatch, "cuda.bindings", runtime=runtime, driver=driver, nvrtc=nvrtc)
    module(monkeypatch, "cuda", bindings=bindings)
    monkeypatch.setattr(GpuLibrary, "now_ns", lambda _: gpu.now_ns())


@pytest.mark.parametrize("cache", ["hot", "cold", "graph"])
@pytest.mark.parametrize("duration_ns", [5_000, 10_000])
@pytest.mark.usefixtures("cupy")
def test_cupy_times_kernels_and_not_their_launches(gpu, cache, duration_ns):
    clock = CupyClock(cache)
    timing = measure(lambda: gpu.kernel(duration_ns), key="k", clock=clock)
    assert timing.summarise().median_ns == pytest.approx(duration_ns, rel=0.03)
    assert (timing.clock, timing.cache, timing.device) == ("cuda", cache, "NVIDIA H100 80GB HBM3")


@pytest.mark.parametrize("cache", ["hot", "cold"])
@pytest.mark.parametrize("duration_ns", [5_000, 10_000])
@pytest.mark.usefixtures("cuda_python")
def test_cuda_python_times_kernels_and_not_their_launches(gpu, cache, duration_ns):
    clock = CudaClock(cache)
    timing = measure(lambda: gpu.kernel(duration_ns), key="k", clock=clock)
    assert timing.summarise().median_ns == pytest.approx(duration_ns, rel=0.03)
    assert (timing.clock, timing.device) == ("cuda", "NVIDIA H100 80GB HBM3")


@pytest.mark.usefixtures("cuda_python")
def test_cuda_python_has_no_stream_to_capture(gpu):
    timing = measure(lambda: gpu.kernel(5_000), clock=CudaClock("graph"))
    assert timing.outcome == "raised"
    assert "cannot be captured: use --cache hot or cold" in timing.message


@pytest.mark.usefixtures("cuda_python")
def test_an_error_of_cuda_python_is_named(gpu):
    clock = CudaClock("hot")

    def breaks():
        gpu.is_broken = True

    timing = measure(breaks, clock=clock)
    assert timing.outcome == "raised"
    assert "cudaErrorIllegalAddress" in timing.message


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
def test_a_function_without_work_on_the_device_has_no_time():
    timing = measure(lambda: None, clock=CuptiClock("hot"))
    assert (timing.outcome, timing.samples_ns) == ("raised", ())
    assert "launched no GPU activity" in timing.message


def test_a_profiler_that_cannot_record_the_device_is_refused(torch):
    torch.profiler.supported_activities = set
    with pytest.raises(DeviceError, match="cannot record the device: use --clock torch"):
        CuptiClock("hot")


@pytest.mark.parametrize(
    ("name", "blocked", "hint"),
    [
        ("cupy", ["cupy"], "pip install cupy"),
        ("cuda", ["cuda", "cuda.bindings", "cuda.bindings.runtime"], "pip install cuda-python"),
        ("cupti", ["torch"], r"longpole\[torch\]"),
    ],
)
def test_a_library_that_is_missing_is_named_with_what_to_install(monkeypatch, name, blocked, hint):
    for each in blocked:
        monkeypatch.setitem(sys.modules, each, None)
    with pytest.raises(MissingDependencyError, match=hint):
        make_clock(name, "hot")


def test_the_code_that_fills_the_instruction_cache_is_one_chain_that_cannot_be_shortened():
    source = instructions._CUDA.format(body=instructions._STEP * instructions._DEVICE_INSTRUCTIONS)
    assert source.count("asm volatile") == 1
    assert source.count("mad.lo.s32") * 16 > 128 << 10  # 16 bytes each


def test_the_instruction_cache_is_emptied_before_each_cold_call_and_not_timed(gpu):
    flushed = []

    def flush():
        flushed.append(1)
        gpu.put("current", 40_000)

    clock = GpuClock(gpu, "cold", flush_instructions=flush)
    timing = measure(lambda: gpu.kernel(5_000), clock=clock)
    assert timing.summarise().median_ns == pytest.approx(5_000, rel=0.03)
    assert len(flushed) >= len(timing.samples_ns)
