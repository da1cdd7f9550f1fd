"""As much of torch as the clock asks for, over a modelled device; its kernels take 10 us.

Captures fail as those of torch 2.11: the random generator stays in capture mode, and the stream of
the capture stays the current one.
"""

from types import SimpleNamespace

from fake_gpu import FakeGpu


class StrawTorch:
    __file__ = "/straw/torch/__init__.py"

    def __init__(self, *, hip=None, n_devices=1):
        self.gpu = FakeGpu()
        self.version = SimpleNamespace(hip=hip)
        self.int8 = "int8"
        self.stream = "the stream of the caller"
        self.sync_mode = 0
        self.is_generator_capturing = False
        self.is_capture_broken = False
        self.cuda = SimpleNamespace(
            is_available=lambda: n_devices > 0,
            current_device=lambda: 0,
            get_device_properties=lambda _: SimpleNamespace(name="Straw", L2_cache_size=512 << 20),
            synchronize=self.synchronize,
            Event=lambda enable_timing: StrawEvent(self.gpu, enable_timing),
            _sleep=lambda cycles: self.gpu.spin(cycles / 1.5),
            CUDAGraph=SimpleNamespace,
            graph=lambda graph: Capture(self, graph),
            current_stream=lambda: self.stream,
            set_stream=lambda stream: setattr(self, "stream", stream),
            get_sync_debug_mode=lambda: self.sync_mode,
            set_sync_debug_mode=lambda mode: setattr(self, "sync_mode", mode),
        )

    def empty(self, n_bytes, *, dtype, device):
        assert (n_bytes, dtype, device) == (640 << 20, "int8", "cuda")
        return SimpleNamespace(zero_=self.gpu.flush)

    def kernel(self):
        self.gpu.kernel(10_000, 12_000)

    def item(self):
        """Wait for the device in a call that torch's check for synchronizing calls covers."""
        if self.sync_mode == "error":
            message = "called a synchronizing CUDA operation"
            raise RuntimeError(message)
        self.synchronize()

    def synchronize(self):
        if self.gpu.capturing is not None:
            self.is_capture_broken = True
            message = "CUDA error: operation not permitted when stream is capturing\nCompile with"
            raise RuntimeError(message)
        self.gpu.synchronize()

    def randn(self):
        if self.is_generator_capturing and self.gpu.capturing is None:
            message = "Offset increment outside graph capture encountered unexpectedly."
            raise RuntimeError(message)
        self.kernel()


class Capture:
    def __init__(self, torch, graph):
        self.torch, self.graph = torch, graph

    def __enter__(self):
        self.torch.synchronize()
        self.before = self.torch.stream
        self.torch.stream = "the stream of the capture"
        self.torch.gpu.capturing = []
        self.torch.is_generator_capturing = True

    def __exit__(self, *_):
        kernels, self.torch.gpu.capturing = self.torch.gpu.capturing, None
        if self.torch.is_capture_broken:
            self.torch.is_capture_broken = False
            message = "CUDA error: operation failed due to a previous error during capture"
            raise RuntimeError(message)
        self.torch.is_generator_capturing = False
        self.torch.stream = self.before
        self.graph.replay = self.torch.gpu.replay_of(kernels)


class StrawEvent:
    def __init__(self, gpu, enable_timing):
        assert enable_timing
        self.gpu, self.event = gpu, gpu.event()

    def record(self):
        self.gpu.record(self.event)

    def query(self):
        return self.gpu.is_done(self.event)

    def elapsed_time(self, end):
        return self.gpu.elapsed_ns(self.event, end.event) / 1e6
