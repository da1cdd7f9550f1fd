"""Launches that find the queue full: the trace, the gain and the sentence."""

from __future__ import annotations

from steps import remedy_of

from longpole.testing import TraceBuilder


def queued(n_kernels: int) -> TraceBuilder:
    """Build a step of kernels of 30 us in one stream, and one of 60 ms in another at the end."""
    builder, now = TraceBuilder(), 0
    for place in range(n_kernels):
        done_us = 30 * (place - 1_000)
        start = now
        now = max(now + 3, done_us)
        builder.launch("gemm", call=(start, now), work=(10 + 30 * place, 40 + 30 * place))
        now += 1
    builder.launch("long", call=(now, now + 5), work=(now + 10, now + 60_010), stream=8)
    builder.call("cudaDeviceSynchronize", (now + 6, now + 60_015))
    return builder.step(0, (0, now + 60_020))


def test_what_is_launched_after_a_full_queue_could_begin_earlier(said):
    found = remedy_of("queue_full", queued(1_400))
    assert found.gain.high > 0.02, found
    said(found.advice)
    assert found.evidence.endswith("wait for a place in the full queue of a stream")


def test_a_queue_with_room_is_left_alone():
    assert remedy_of("queue_full", queued(500)) is None
