"""The tables of a trace, by name. `import longpole` reads this, so it imports nothing."""

TABLES = {
    "Where did the step go": {
        "breakdown": "Compute, communication, copies and idle time of devices and streams",
        "operators": "Time of each operator on its thread and on devices",
        "modules": "Time of each module of the model, forward and backward",
        "functions": "Time of each Python function on its thread and on devices",
        "annotations": "Time of each annotation on threads and streams",
        "phases": "Host and GPU time of data loading, forward, backward and optimizer",
        "segments": "The critical path, segment by segment; the slack of events",
        "steps": "The steps of the program; the iterations of an inference server",
    },
    "Kernels": {
        "kernels": "GPU activities by name, with what twice their speed would save",
        "roofline": "How close kernels come to the limits of their device, and the lost time; MFU",
        "counters": "Performance counters of kernels, with their operators",
        "graph_kernels": "Kernels of CUDA graphs, by the captured operator",
    },
    "Host": {
        "idle": "Idle time of devices by cause, and what the host did meanwhile",
        "gaps": "The idle gaps of devices, longest first: when, why, and what the host did",
        "sync": "Which call or stream waited for which",
        "launches": "Launches with their calls, delays and activities",
        "queue": "Launched activities that have not started, for each stream",
    },
    "Communication": {
        "communication": "Size, bandwidth and hidden share of each collective of a window",
        "collective_waits": "Waiting and transfer time of collectives of an Ascend profile",
        "communication_links": "Data that collectives of an Ascend profile moved between ranks",
        "ascend_overlap": "Computing and communication time of an Ascend profile, recomputed",
    },
    "Memory and copies": {
        "memory": "Peak memory and its contents; memory over time; who allocates",
        "copies": "Bytes, time and bandwidth of memcpys and memsets",
    },
    "The trace itself": {
        "activities": "The GPU activities of a window, each with its launch and operator",
        "events": "All events of the trace that have a start time",
    },
}
"""The tables, grouped by the question that they answer, with a description of each."""


def questions() -> dict[str, str]:
    """Return the name and description of each table, sorted by name."""
    found = {name: text for tables in TABLES.values() for name, text in tables.items()}
    return {name: found[name] for name in sorted(found)}
