"""What HolisticTraceAnalysis answers, on every trace: the same here, or the reason why not.

`pytest -s` prints the table: how many figures are equal, how many are once both have the times
that HTA rounds to, and how many differ for another reason.
"""

from __future__ import annotations

from functools import partial

import polars as pl
import pytest

import hta_answers
import longpole
from hta_answers import ANSWERS, CASES, QUESTIONS, loaded, rounded, status

pytestmark = pytest.mark.skipif(not ANSWERS.is_dir(), reason=f"no answers of HTA in {ANSWERS}")

REASONS = {
    "W1": "HTA sums up once more for the row `others`: extremes and mean become the sum",
    "W2": "HTA counts records of synchronisation, ranges and an operator with an argument `stream`",
    "W10": "HTA rounds times: short activities take 0 or -1 us, and bandwidth lasts 1 us at least",
    "W11": "HTA gives only the last stream of a rank",
    "W12": "HTA takes the operator of any thread, and adds up the ranks",
    "waits": "HTA counts a gap as a wait for the host also after the launch, however long",
    "N2": "HTA orders events of one time by an unstable sort",
    "launches": "HTA knows launches by a list of names, without those of HIP and the driver",
    "unknown": "HTA shows 0 where the trace gives no bandwidth",
}
DIFFERENT = {
    ("alexnet_a100_sync", "temporal_breakdown"): ("W2", 3),
    ("alexnet_a100_sync", "kernel_breakdown"): ("W1", 11),
    ("alexnet_a100_sync", "frequent_sequences"): ("W2", 4),
    ("alexnet_a100_sync", "idle_time_breakdown"): ("waits", 2),
    ("alexnet_a100_sync", "idle_time_interval_stats"): ("waits", 2),
    ("event_sync_a100", "temporal_breakdown"): ("W2", 2),
    ("two_ranks/sampled_rank-0", "kernel_breakdown"): ("W1", 6),
    ("two_ranks/sampled_rank-0", "blocked_on_full_queue_4"): ("W11", 2),
    ("two_ranks/sampled_rank-0", "aten_op_kernels_and_delay"): ("W12", 14),
    ("two_ranks/sampled_rank-0", "idle_time_breakdown"): ("waits", 4),
    ("two_ranks/sampled_rank-0", "idle_time_interval_stats"): ("waits", 4),
    ("two_ranks/sampled_rank-1", "kernel_breakdown"): ("W1", 7),
    ("two_ranks/sampled_rank-1", "blocked_on_full_queue_4"): ("W11", 1),
    ("two_ranks/sampled_rank-1", "aten_op_kernels_and_delay"): ("W12", 181),
    ("two_ranks/sampled_rank-1", "idle_time_breakdown"): ("waits", 4),
    ("two_ranks/sampled_rank-1", "idle_time_interval_stats"): ("waits", 4),
    ("ns_resolution", "kernel_breakdown"): ("W1", 11),
    ("ns_resolution", "idle_time_breakdown"): ("W10", 3),
    ("ns_resolution", "idle_time_interval_stats"): ("W10", 3),
    ("ns_resolution", "queue_length"): ("N2", 136),
    ("ns_resolution", "queue_length_summary"): ("N2", 1),
    ("ns_resolution", "memory_bw"): ("W10", 840),
    ("ns_resolution", "memory_bw_summary"): ("W10", 2),
    ("amd_mi250", "kernel_breakdown"): ("W1", 2),
    ("amd_mi250", "launch_stats"): ("launches", 16),
    ("amd_mi250", "memory_bw"): ("unknown", 4),
    ("amd_mi250", "memory_bw_summary"): ("unknown", 1),
    ("triton_example", "temporal_breakdown"): ("W2", 2),
    ("triton_example", "kernel_type_breakdown"): ("W2", 1),
    ("triton_example", "kernel_breakdown"): ("W2", 1),
    ("triton_example", "kernel_breakdown_all"): ("W2", 1),
    ("triton_example", "launch_stats"): ("launches", 1),
}
IN_NANOSECONDS = {"ns_resolution", "amd_mi250", "triton_example", "cpu_only_rank34"}

ROWS = [(name, question) for name in CASES for question in QUESTIONS]


def has_answer(name, question):
    return question == "frequent_sequences" or hta_answers.table(name, question) is not None


def is_close(theirs, ours):
    if isinstance(theirs, str) or theirs is None or ours is None:
        return theirs == ours
    if isinstance(theirs, tuple | list):
        pairs = zip(theirs, ours, strict=True)
        return all(is_close(one or 0, other or 0) for one, other in pairs)
    return abs(theirs - ours) <= max(0.006, 1e-5 * abs(theirs))


def compared(name, question):
    """Count the figures that are equal, and those that differ or are on one side only."""
    theirs, ours = QUESTIONS[question](name)
    keys = theirs.keys() | ours.keys()
    equal = [key for key in theirs.keys() & ours.keys() if is_close(theirs[key], ours[key])]
    return len(equal), len(keys) - len(equal)


def outcome(name, question):
    """Return how many figures are equal as they are, when rounded, and not even then."""
    n_equal, n_different = compared(name, question)
    if not n_different or name not in IN_NANOSECONDS:
        return n_equal, 0, n_different
    n_rounded, n_left = compared(rounded(name), question)
    return n_equal, max(n_rounded - n_equal, 0), n_left


@pytest.mark.parametrize("name", CASES)
def test_an_answer_is_that_of_hta_or_differs_for_a_known_reason(name):
    found = {}
    print(f"\n{name}: equal, equal when rounded, different")  # noqa: T201
    for question in QUESTIONS:
        if has_answer(name, question):
            n_equal, n_rounded, n_left = outcome(name, question)
            reason = DIFFERENT.get((name, question), ("",))[0]
            print(f"  {question:30} {n_equal:6} {n_rounded:6} {n_left:6}  {reason}")  # noqa: T201
            if n_left:
                found[name, question] = n_left
    expected = {key: number for key, (_, number) in DIFFERENT.items() if key[0] == name}
    assert found == expected


def test_every_reason_is_explained_and_used():
    assert {reason for reason, _ in DIFFERENT.values()} == set(REASONS)


CRASHES = {
    "temporal_breakdown": longpole.breakdown,
    "idle_time_breakdown": longpole.idle,
    "aten_op_kernels_and_delay": partial(longpole.kernels, by="operator"),
    "frequent_sequences": partial(longpole.kernels, by="sequence"),
}
"""Which function answers what HTA crashed on. Stragglers are a question about all ranks."""


@pytest.mark.parametrize("name", CASES)
def test_what_hta_crashes_on_is_answered(name):
    crashed = [step for step, outcome in status(name).items() if not outcome["ok"]]
    trace, _, _ = loaded(name)
    has_work = trace.launches.height > 0
    for step in crashed:
        if step in CRASHES:
            found = CRASHES[step](trace, longpole.choose_window(trace, whole=True))
            assert isinstance(found, pl.DataFrame)
            assert found.is_empty() or has_work, step
        elif step == "callstack_new":
            assert trace.events["depth"].max() > 5
        elif step.startswith("cp_"):
            path = trace.critical_path(whole=True)
            assert path.segments["duration_ns"].sum() == path.length_ns
        else:
            assert step == "stragglers"
    if name in {"ns_resolution", "amd_mi250"}:
        assert "stragglers" in crashed


def test_a_device_that_waits_is_not_busy():
    """The times that HTA shows more are those of its records of synchronisation."""
    for name, waiting_us in [("alexnet_a100_sync", 186), ("event_sync_a100", 5)]:
        theirs, ours = QUESTIONS["temporal_breakdown"](name)
        assert theirs["non_compute"] - ours["non_compute"] == waiting_us
