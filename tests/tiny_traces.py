"""Tiny traces, one line an event, and what the core says about them.

Times are microseconds.
"""

import json

import longpole

US = 1_000
BACKWARD = "autograd::engine::evaluate_function: "


def span(category, name, start, end, *, pid=1, tid=1, **args):
    times = {"ts": start, "dur": end - start}
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, **times, "args": args}


def operator(name, start, end, tid=1, **args):
    return span("cpu_op", name, start, end, tid=tid, **args)


def frame(name, start, end, tid=1):
    return span("python_function", name, start, end, tid=tid)


def annotation(name, start, end, tid=1):
    return span("user_annotation", name, start, end, tid=tid)


def call(name, start, end, number=0, tid=1):
    return span("cuda_runtime", name, start, end, tid=tid, correlation=number)


def launch(start, end, number, tid=1):
    return call("cudaLaunchKernel", start, end, number, tid)


def kernel(name, start, end, number=0, *, stream=7, device=0, category="kernel"):
    ids = {"device": device, "stream": stream, "correlation": number}
    return span(category, name, start, end, pid=device, tid=stream, **ids)


def copy(name, start, end, number, *, device=0):
    return kernel(name, start, end, number, device=device, category="gpu_memcpy")


def sync_record(kind, start, number, stream=7, **args):
    ids = {"device": 0, "stream": stream, "correlation": number, "cuda_sync_kind": kind}
    return span("cuda_sync", kind, start, start + 1, pid=0, tid=stream, **ids, **args)


def arrow(start, end, number, *, from_thread, to_thread):
    """Draw an arrow from a forward to a backward operator."""
    both = {"cat": "fwdbwd", "name": "fwdbwd", "pid": 1, "id": number}
    return [
        {**both, "ph": "s", "tid": from_thread, "ts": start},
        {**both, "ph": "f", "tid": to_thread, "ts": end, "bp": "e"},
    ]


def read(events):
    """Read events as the file that holds them would be."""
    return longpole.read_trace(json.dumps({"traceEvents": list(events)}).encode())


def positions(trace):
    """Return the place in the file of every event, and of none."""
    return dict(trace.events.select("event", "position").iter_rows()) | {None: None}


def segments(trace, path):
    """List the path as (start ns, end ns, kind, place in the file, evidence)."""
    place = positions(trace)
    columns = ["start_ns", "duration_ns", "kind", "event", "evidence"]
    return [
        (start_ns, start_ns + duration_ns, kind, place[event], evidence)
        for start_ns, duration_ns, kind, event, evidence in path.segments.select(
            columns
        ).iter_rows()
    ]


def named(path):
    """List the path as (start us, end us, kind, name)."""
    columns = ["start_ns", "duration_ns", "kind", "name"]
    return [
        (start_ns / US, (start_ns + duration_ns) / US, kind, name)
        for start_ns, duration_ns, kind, name in path.segments.select(columns).iter_rows()
    ]


def path_of(events, **window):
    return named(read(events).critical_path(**(window or {"whole": True})))
