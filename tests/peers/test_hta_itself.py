"""HolisticTraceAnalysis itself, asked about generated programs, answers as we do.

Their times are whole microseconds, since HTA rounds others. Left out of the traces is what HTA
counts as GPU activity and is none: records of synchronisation, and ranges of annotations. Programs
have one device and no graphs, whose activities HTA mixes up. Launches are by the calls of the
runtime that it knows.
"""

from __future__ import annotations

import json
import math
import warnings
from collections import Counter

import polars as pl
import pytest

import hta_answers
from hta_answers import QUESTIONS
from oracles.simulator import FEATURES, simulate

pytestmark = pytest.mark.needs("hta")

PROGRAMS = [f"{program} {seed}" for program in ("training", "random") for seed in range(6)]
OPTIONS = {
    "training": {"steps": 2, "layers": 2},
    "random": {"features": FEATURES - {"devices", "driver", "graphs"}},
}
ASKED = {
    "temporal_breakdown": lambda hta: hta.get_temporal_breakdown(visualize=False),
    "comm_comp_overlap": lambda hta: hta.get_comm_comp_overlap(visualize=False),
    "kernel_type_breakdown": lambda hta: hta.get_gpu_kernel_breakdown(visualize=False)[0],
    "launch_stats": lambda hta: hta.get_cuda_kernel_launch_stats(visualize=False)[0],
    "queue_length": lambda hta: hta.get_queue_length_time_series()[0].reset_index(names="ev_index"),
    "queue_length_summary": lambda hta: hta.get_queue_length_summary().reset_index(),
    "memory_bw": lambda hta: hta.get_memory_bw_time_series()[0],
    "memory_bw_summary": lambda hta: hta.get_memory_bw_summary().reset_index(),
    "idle_time_breakdown": lambda hta: hta.get_idle_time_breakdown(visualize=False)[0],
}
_NO_ACTIVITY = {"cuda_sync", "gpu_user_annotation"}


def generated(name, path):
    """Write a program with times of whole microseconds, and without what is no activity."""
    program, seed = name.split()
    simulate(program, seed=int(seed), **OPTIONS[program]).write(path)
    document = json.loads(path.read_bytes())
    events = [it for it in document["traceEvents"] if it.get("cat") not in _NO_ACTIVITY]
    for event in events:
        event |= {key: round(event[key] * 1000) for key in ("ts", "dur") if key in event}
        if "cuLaunch" in event["name"]:
            event |= {"cat": "cuda_runtime", "name": "cudaLaunchKernel"}
    document["traceEvents"] = events
    path.write_text(json.dumps(document))
    return document


def plain(frame):
    """Return a table of pandas as one of Polars; names of two levels are joined."""
    names = ["|".join(name).rstrip("|") if isinstance(name, tuple) else name for name in frame]
    columns = [frame.iloc[:, place].tolist() for place in range(len(names))]
    return pl.DataFrame(dict(zip(names, columns, strict=True)), strict=False)


@pytest.fixture(scope="module", params=PROGRAMS)
def name(request, tmp_path_factory):
    """Ask HTA about a program; return the name that it has among the answers."""
    from hta.trace_analysis import TraceAnalysis

    path = tmp_path_factory.mktemp("hta") / "trace.json"
    document = generated(request.param, path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        hta = TraceAnalysis(trace_files={0: str(path)}, trace_dir=str(path.parent))
        kept = hta.t.get_trace(0)
        tables = {"loaded": plain(kept[["ts", "dur"]].reset_index(names="index"))}
        tables |= {question: plain(ask(hta)) for question, ask in ASKED.items()}
    hta_answers.GENERATED[request.param] = (document, tables)
    return request.param


def of_streams(idle):
    """Sum the idle time of each stream: HTA tells its causes otherwise."""
    total = Counter()
    for (stream, _), time in idle.items():
        total[stream] += time
    return dict(total)


def is_close(theirs, ours):
    if isinstance(theirs, tuple):
        return all(map(is_close, theirs, ours))
    return math.isclose(theirs, ours, rel_tol=1e-5, abs_tol=0.006)


@pytest.mark.parametrize("question", ASKED)
def test_hta_itself_answers_as_we_do(question, name):
    theirs, ours = QUESTIONS[question](name)
    if question == "idle_time_breakdown":
        theirs, ours = of_streams(theirs), of_streams(ours)
    assert theirs or question == "comm_comp_overlap"
    assert theirs.keys() == ours.keys()
    assert {key: ours[key] for key in ours if not is_close(theirs[key], ours[key])} == {}
