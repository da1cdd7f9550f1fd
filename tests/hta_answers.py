"""What HolisticTraceAnalysis and longpole answer to the same questions, as figures by key.

Both are asked about the same events: those that HTA kept when it loaded the trace. Times are in
microseconds, as HTA gives them.

One file: a pair of answers for each question.
"""

from __future__ import annotations

import gzip
import json
from functools import cache

import polars as pl

import longpole
from longpole.rows.frames import frame_of
from longpole.trace import sweeps
from real_traces import SHARED

ANSWERS = SHARED / "hta_results"
US = 1_000

# The trace, the folder of the answers, the rank in their names.
CASES = {
    "alexnet_a100_sync": ("alexnet_a100_sync", 0),
    "event_sync_a100": ("event_sync_a100", 0),
    "cupti_counters": ("cupti_counters", 0),
    "two_ranks/sampled_rank-0": ("two_ranks", 0),
    "two_ranks/sampled_rank-1": ("two_ranks", 1),
    "ns_resolution": ("ns_resolution", 0),
    "amd_mi250": ("amd_mi250", 0),
    "triton_example": ("triton_example", 0),
    "cpu_only_rank34": ("cpu_only_rank34", 34),
}


GENERATED = {}
"""Traces about which HTA itself was asked: by name the document, and its tables by question."""


def case(name):
    """Return the folder of the answers about a trace, and the rank in their names."""
    return (name, 0) if name in GENERATED else CASES[name.removesuffix(" (rounded)")]


def status(name):
    """Return the outcome of each question in HTA: the steps of its run."""
    folder, _ = case(name)
    return json.loads((ANSWERS / folder / "status.json").read_text())["steps"]


def table(name, question):
    """Return the table that HTA answers for the rank of a trace, or None."""
    if name in GENERATED:
        return GENERATED[name][1].get(question)
    folder, rank = case(name)
    path = ANSWERS / folder / f"{question}_rank{rank}.parquet"
    if path.exists():
        return pl.read_parquet(path)
    path = ANSWERS / folder / f"{question}.parquet"
    if not path.exists():
        return None
    found = pl.read_parquet(path)
    return found.filter(pl.col("rank") == rank) if "rank" in found.columns else found


def rounded(name):
    """Return the name of a trace with the times that HTA rounds to: starts up, ends down."""
    return f"{name} (rounded)"


def document_of(name):
    if name in GENERATED:
        return GENERATED[name][0]
    return json.loads(gzip.decompress((SHARED / f"traces/{name}.json.gz").read_bytes()))


@cache
def loaded(name):
    """Read the events that HTA kept, and the window from their first to their last activity."""
    is_rounded, name = name.endswith(" (rounded)"), name.removesuffix(" (rounded)")
    document = document_of(name)
    kept = {row["index"]: row for row in table(name, "loaded").iter_rows(named=True)}
    events = document["traceEvents"]
    positions = [place for place in range(len(events)) if place in kept]
    document["traceEvents"] = [events[place] for place in positions]
    if is_rounded:
        for place in positions:
            times = {"ts": kept[place]["ts"], "dur": max(kept[place]["dur"], 0)}
            events[place] |= times
    trace = longpole.read_trace(json.dumps(document).encode())
    work = sweeps.activities(trace)
    end_ns = work["start_ns"] + work["duration_ns"]
    span = (work["start_ns"].min(), end_ns.max()) if work.height else (0, 0)
    return trace, longpole.choose_window(trace, between=span), positions


def together(name, folder):
    """Return the names of the traces that HTA analysed together."""
    if name in GENERATED:
        return [name]
    ranks = [each for each, (of, _) in CASES.items() if of == folder]
    return [rounded(each) for each in ranks] if "(rounded)" in name else ranks


def activities(name):
    """Return the activities with their place in the file."""
    trace, window, positions = loaded(name)
    place = dict(zip(trace.events["event"], trace.events["position"], strict=True))
    found = longpole.activities(trace, window)
    return found.with_columns(
        position=pl.Series([positions[place[event]] for event in found["event"]], dtype=pl.Int64)
    )


def recorded(name):
    """Return a trace, and the window from the first start to the last end of all its events."""
    trace, _, _ = loaded(name)
    times = trace.events.filter(pl.col("duration_ns") >= 0)
    span = times["start_ns"].min(), (times["start_ns"] + times["duration_ns"]).max()
    return trace, longpole.choose_window(trace, between=span)


def by_key(frame, key, figures, unit=1):
    """Return some columns of a table by another."""
    return {
        row[key]: tuple((row[figure] or 0) / unit for figure in figures)
        for row in frame.fill_nan(0).iter_rows(named=True)
    }


# How both call the times of a name, and the figures of a distribution.
THEIR_TIMES = ("sum (us)", "max (us)", "min (us)", "stddev", "mean (us)")
OUR_TIMES = ("duration_ns", "max_ns", "min_ns", "std_ns", "mean_ns")
THEIR_SUMMARY = ("mean", "std", "min", "25%", "50%", "75%", "max")
OUR_SUMMARY = ("mean", "std", "min", "p25", "median", "p75", "max")


# A function a question: their figures and ours, by key.


def temporal_breakdown(name):
    theirs = {
        part: row[f"{part}_time(us)"]
        for row in table(name, "temporal_breakdown").iter_rows(named=True)
        for part in ("idle", "compute", "non_compute", "kernel")
    }
    [row] = whole(name, longpole.breakdown)
    return theirs, {
        "idle": row["idle_ns"] / US,
        "compute": row["compute_ns"] / US,
        "non_compute": (row["communication_ns"] + row["copy_ns"]) / US,
        "kernel": row["window_ns"] / US,
    }


def whole(name, question):
    trace, window, _ = loaded(name)
    found = question(trace, window)
    return found.filter(pl.col("stream").is_null()).to_dicts()


def comm_comp_overlap(name):
    [theirs] = table(name, "comm_comp_overlap")["comp_comm_overlap_pctg"].to_list()
    trace, window, _ = loaded(name)
    hidden = [
        row["communication_hidden_share"]
        for row in longpole.breakdown(trace, window).iter_rows(named=True)
        if row["stream"] is None
    ]
    ours = {"overlap": round(100 * hidden[0], 2)} if hidden and hidden[0] is not None else {}
    return ({} if theirs is None or theirs != theirs else {"overlap": theirs}), ours  # noqa: PLR0124


def kernel_type_breakdown(name):
    words = {"compute": "COMPUTATION", "communication": "COMMUNICATION", "copy": "MEMORY"}
    found = table(name, "kernel_type_breakdown")
    theirs = {(row["kernel_type"]): row["sum"] for row in found.iter_rows(named=True)}
    ours = {}
    folder, _ = case(name)
    for each in together(name, folder):
        trace, window, _ = loaded(each)
        for row in longpole.breakdown(trace, window, by="types").iter_rows(named=True):
            if row["types"] != "idle":
                types = " overlapping ".join(words[part] for part in row["types"].split(" + "))
                ours[types] = ours.get(types, 0) + row["duration_ns"] / US
    return {key: value for key, value in theirs.items() if value}, ours


def kernel_breakdown(name, question="kernel_breakdown"):
    theirs = by_key(table(name, question), "name", THEIR_TIMES)
    trace, window, _ = loaded(name)
    ours = by_key(longpole.kernels(trace, window), "name", OUR_TIMES, US)
    return theirs, {key: value for key, value in ours.items() if key in theirs or "all" in question}


def kernel_breakdown_all(name):
    return kernel_breakdown(name, "kernel_breakdown_all")


CAUSES = {
    "waiting_for_launch": "host_wait",
    "between_activities": "kernel_wait",
    "other_wait": "other",
    "unlinked": "other",
}


def idle_by_stream(name):
    """Ask for the idle time of each stream from its first to its last activity."""
    trace, _, _ = loaded(name)
    work = activities(name)
    for stream in work["stream"].unique().sort():
        rows = work.filter(pl.col("stream") == stream)
        span = rows["start_ns"].min(), (rows["start_ns"] + rows["duration_ns"]).max()
        window = longpole.choose_window(trace, between=span)
        found = longpole.idle(trace, window, where=f"stream = {stream}")
        for row in found.filter(pl.col("stream") == stream).iter_rows(named=True):
            yield stream, row


def idle_time_breakdown(name):
    theirs = {
        (row["stream"], row["idle_category"]): row["idle_time"]
        for row in table(name, "idle_time_breakdown").iter_rows(named=True)
    }
    ours = {}
    for stream, row in idle_by_stream(name):
        key = (stream, CAUSES[row["cause"]])
        ours[key] = ours.get(key, 0) + row["duration_ns"] / US
    return {key: value for key, value in theirs.items() if value}, ours


def idle_time_interval_stats(name):
    theirs = {
        (row["stream"], row["idle_category"]): tuple(
            row[figure] or 0 for figure in ("count", *THEIR_SUMMARY)
        )
        for row in table(name, "idle_time_interval_stats").iter_rows(named=True)
        if row["count"]
    }
    ours = {
        (stream, CAUSES[row["cause"]]): (
            row["count"],
            *(round((row[f"{figure}_ns"] or 0) / US, 2) for figure in OUR_SUMMARY),
        )
        for stream, row in idle_by_stream(name)
    }
    return theirs, ours


def user_annotation_breakdown(name, question, side):
    found = longpole.annotations(*recorded(name), where=f"side = '{side}'")
    theirs = by_key(table(name, question), "name", THEIR_TIMES)
    return theirs, by_key(found, "name", OUR_TIMES, US)


def user_annotation_breakdown_cpu(name):
    return user_annotation_breakdown(name, "user_annotation_breakdown_cpu", "host")


def user_annotation_breakdown_gpu(name):
    return user_annotation_breakdown(name, "user_annotation_breakdown_gpu", "device")


def kernels_with_user_annotations(name):
    found = table(name, "kernels_with_user_annotations")
    theirs = dict(found.select("index", "s_user_annotation").iter_rows())
    trace, _, _ = loaded(name)
    names = trace.events["name"].cast(pl.String)
    ranges = dict(frame_of(trace.core.device_ranges()).iter_rows())
    ours = {
        position: names[ranges[event]] if event in ranges else ""
        for event, position in activities(name).select("event", "position").iter_rows()
    }
    return {key: value or "" for key, value in theirs.items()}, ours


def launch_stats(name):
    figures = ("cpu_duration", "gpu_duration", "launch_delay")
    theirs = {
        row["correlation"]: tuple(row[figure] for figure in figures)
        for row in table(name, "launch_stats").iter_rows(named=True)
    }
    trace, window, _ = loaded(name)
    ours = {
        row["correlation"]: (
            row["call_duration_ns"] / US,
            row["duration_ns"] / US,
            max(row["delay_ns"], 0) / US,
        )
        for row in longpole.launches(trace, window).iter_rows(named=True)
    }
    return theirs, ours


def queue_length(name):
    found = table(name, "queue_length")
    theirs = dict(found.select("ev_index", "queue_length").iter_rows())
    _, _, positions = loaded(name)
    trace, window = recorded(name)
    place = dict(zip(trace.events["event"], trace.events["position"], strict=True))
    ours = {
        positions[place[event]]: length
        for event, length in longpole.queue(trace, window, by="time")
        .select("event", "queue_length")
        .iter_rows()
    }
    return theirs, ours


def summaries(name, asked, ours, key, count):
    """Return the statistics of a series by key, theirs and ours."""
    series = asked.removesuffix("_summary").replace("bw", "bw_gbps")
    figures = [f"{series}|{figure}" for figure in ("count", *THEIR_SUMMARY)]
    theirs = by_key(table(name, asked), key, figures)
    return theirs, by_key(ours(*recorded(name)), key, (count, *OUR_SUMMARY))


def queue_length_summary(name):
    return summaries(name, "queue_length_summary", longpole.queue, "stream", "count")


def blocked_on_full_queue_4(name, length=4):
    found = table(name, f"blocked_on_full_queue_{length}")
    theirs = {row["stream"]: row["duration_at_max_queue_length"] for row in found.to_dicts()}
    found = longpole.queue(*recorded(name), max_length=length, by="full")
    ours = {row["stream"]: row["duration_ns"] / US for row in found.to_dicts()}
    return theirs, {stream: value for stream, value in ours.items() if value or stream in theirs}


def blocked_on_full_queue_1024(name):
    return blocked_on_full_queue_4(name, 1024)


def memory_bw_summary(name):
    return summaries(name, "memory_bw_summary", longpole.copies, "name", "n_changes")


def memory_bw(name):
    """Compare where the bandwidth changed and to what; of changes at one time the last counts."""
    found = table(name, "memory_bw")
    theirs = {
        (row["name"], row["ts"]): round(row["memory_bw_gbps"], 6)
        for row in found.iter_rows(named=True)
    }
    trace, window, _ = loaded(name)
    folder, _ = case(name)
    of_job = [loaded(each)[0].events for each in together(name, folder)]
    starts = [events.filter(pl.col("duration_ns") >= 0)["start_ns"].min() for events in of_job]
    start_ns = min(starts)
    ours = {
        (row["name"], (row["time_ns"] - start_ns) / US): round(row["bandwidth_gb_per_s"], 6)
        for row in longpole.copies(trace, window, by="time").iter_rows(named=True)
    }
    return theirs, ours


def aten_op_kernels_and_delay(name):
    theirs = {
        (row["aten_op_name"], row["kernel_sequence"]): (
            row["occurrence_count"],
            row["avg_aten_op_launch_delay"],
            row["avg_runtime_delay"],
        )
        for row in table(name, "aten_op_kernels_and_delay").iter_rows(named=True)
    }
    trace, window, _ = loaded(name)
    found = longpole.kernels(
        trace,
        window,
        where="operator_name LIKE 'aten::%' AND call_name LIKE '%LaunchKernel%'",
        by="operator",
    )
    ours = {
        (row["operator_name"], " -> ".join(row["kernels"])): (
            row["count"],
            round(row["launch_delay_ns"] / US, 3),
            round(row["start_delay_ns"] / US, 3),
        )
        for row in found.iter_rows(named=True)
    }
    return theirs, ours


def frequent_sequences(name):
    """Compare the operators that HTA was asked about; it lists the five most frequent patterns."""
    folder, rank = case(name)
    theirs, ours = {}, {}
    trace, window, _ = loaded(name)
    for path in sorted((ANSWERS / folder).glob("frequent_sequences_*.parquet")):
        operator = path.stem.removeprefix("frequent_sequences_").replace("_", "::", 1)
        rows = pl.read_parquet(path).rows()
        theirs |= {pattern: figures for pattern, *figures in rows} if rank == 0 else {}
        found = longpole.kernels(
            trace, window, where=f"name LIKE '%{operator}%'", min_length=1, by="sequence"
        )
        ours |= {
            "|".join([row["operator_name"], *row["kernels"]]): [
                row["count"],
                row["duration_ns"] / US,
                row["operator_ns"] / US,
            ]
            for row in found.iter_rows(named=True)
        }
    return theirs, {key: value for key, value in ours.items() if key in theirs}


QUESTIONS = {
    question.__name__: question
    for question in (
        temporal_breakdown,
        comm_comp_overlap,
        kernel_type_breakdown,
        kernel_breakdown,
        kernel_breakdown_all,
        idle_time_breakdown,
        idle_time_interval_stats,
        user_annotation_breakdown_cpu,
        user_annotation_breakdown_gpu,
        kernels_with_user_annotations,
        launch_stats,
        queue_length,
        queue_length_summary,
        blocked_on_full_queue_4,
        blocked_on_full_queue_1024,
        memory_bw,
        memory_bw_summary,
        aten_op_kernels_and_delay,
        frequent_sequences,
    )
}
