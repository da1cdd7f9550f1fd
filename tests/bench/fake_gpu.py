"""A device library that models what a GPU clock has to see through.

The host and each stream have times of their own. A launch takes the host `launch_ns`; the work
starts when the host has launched it and the stream is free. About a thousand launches may be
outstanding, then the host waits. Events take `event_ns` of the stream. A graph is one launch; its
replay takes `replay_ns` besides its nodes, and `gap_ns` before each of them.
"""

from types import SimpleNamespace

QUEUE_LIMIT = 1020


class FakeGpu:
    name = "fake"
    device = "Fake GPU"

    def __init__(self, *, launch_ns=20_000, event_ns=600, replay_ns=2_500, gap_ns=0):
        self.launch_ns = launch_ns
        self.replay_ns, self.gap_ns = replay_ns, gap_ns
        self.event_ns = event_ns
        self.record_ns = 1_500
        self.host_ns = 0.0
        self.streams = {}
        self.outstanding = []
        self.is_cold = False
        self.is_broken = False
        self.capturing = None

    def check(self):
        if self.is_broken:
            message = "CUDA error: an illegal memory access was encountered"
            raise RuntimeError(message)

    def now_ns(self):
        return round(self.host_ns)

    def event(self):
        return SimpleNamespace(at_ns=None)

    def record(self, event):
        self.check()
        self.host_ns += self.record_ns
        event.at_ns = self.put("current", self.event_ns)

    def is_done(self, event):
        self.host_ns += 500
        return event.at_ns <= self.host_ns

    def elapsed_ns(self, start, stop):
        return stop.at_ns - start.at_ns

    def put(self, stream, duration_ns):
        """Occupy a stream, and return the time at which it is free again."""
        self.outstanding = [at for at in self.outstanding if at > self.host_ns]
        if len(self.outstanding) >= QUEUE_LIMIT:
            self.host_ns = max(self.host_ns, self.outstanding.pop(0))
        begin_ns = max(self.host_ns, self.streams.get(stream, 0.0))
        self.streams[stream] = begin_ns + duration_ns
        self.outstanding.append(self.streams[stream])
        return self.streams[stream]

    def slowdown(self):
        """Return how much longer a kernel takes now; tests replace this."""
        return 1.0

    def kernel(self, hot_ns, cold_ns=None, stream="current"):
        """Launch a kernel, as a function under test does."""
        self.check()
        if self.capturing is not None:
            self.capturing.append(hot_ns)
            return
        self.host_ns += self.launch_ns
        duration_ns = cold_ns if self.is_cold and cold_ns else hot_ns
        self.is_cold = False
        self.put(stream, duration_ns * self.slowdown())

    def spin(self, duration_ns):
        self.check()
        if self.capturing is not None:
            self.capturing.append(duration_ns)
            return
        self.host_ns += self.launch_ns
        self.put("current", duration_ns)

    def flush(self):
        self.host_ns += self.launch_ns
        self.put("current", 100_000)
        self.is_cold = True

    def synchronize(self):
        self.check()
        self.host_ns = max([self.host_ns, *self.streams.values()]) + 4_000

    def capture(self, function, n_calls):
        self.capturing = []
        for _ in range(n_calls):
            function()
        kernels, self.capturing = self.capturing, None
        return self.replay_of(kernels)

    def replay_of(self, kernels):
        def replay():
            self.host_ns += self.launch_ns
            nodes_ns = sum(each * self.slowdown() + self.gap_ns for each in kernels)
            self.put("current", self.replay_ns + nodes_ns)

        return replay
