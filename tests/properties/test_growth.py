"""Commands take time in proportion to a trace, whatever grows in it.

Each pattern is written in two sizes. Four times as much may take ten times as long: machines
differ, but what compares all pairs takes 16 times as long.
"""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import replace
from time import process_time

import pytest

from longpole.answer import answer
from longpole.cli import program
from tiny_traces import annotation, arrow, call, frame, kernel, launch, operator, span, sync_record

SMALL = 2_000
TIMES = 4
MOST_TIMES_AS_LONG = 10


def work(n, **places):
    """Launch n kernels; a place is a number or a function of the number of the kernel."""

    def at(name, number):
        value = places.get(name, 0)
        return value(number) if callable(value) else value

    for number in range(n):
        start = 10 * number
        yield launch(start, start + 4, number + 1, at("tid", number))
        yield kernel(
            f"gemm{at('name', number)}",
            start + 5,
            start + 5 + at("duration", number) + 4,
            number + 1,
            stream=at("stream", number),
            device=at("device", number),
        )


def each(number):
    return number


PATTERNS = {
    "kernels": work,
    "devices": lambda n: work(n, device=each),
    "streams": lambda n: work(n, stream=each),
    "threads": lambda n: work(n, tid=each),
    "names": lambda n: work(n, name=each),
    "concurrent kernels": lambda n: work(n, stream=each, duration=10 * n),
    "one correlation": lambda n: (
        it
        for k in range(n)
        for it in (launch(9 * k, 9 * k + 2, 1), kernel("k", 9 * k, 9 * k + 5, 1))
    ),
    "kernels without a launch": lambda n: (kernel("k", 9 * k, 9 * k + 5, k) for k in range(n)),
    "nested operators": lambda n: (operator("op", k, 3 * n - k) for k in range(n)),
    "crossing operators": lambda n: (operator("op", k, k + n) for k in range(n)),
    "Python frames": lambda n: (frame(f"f.py({k}): f", 9 * k, 9 * k + 8) for k in range(n)),
    "steps": lambda n: [
        *(annotation(f"ProfilerStep#{k}", 10 * k, 10 * k + 10) for k in range(n)),
        *work(n),
    ],
    "synchronizations": lambda n: [
        *work(n),
        *(call("cudaDeviceSynchronize", 10 * k + 4, 10 * k + 9, n + k + 1) for k in range(n)),
        *(sync_record("Context Sync", 10 * k + 8, n + k + 1) for k in range(n)),
    ],
    "arrows": lambda n: [
        *(operator("op", 9 * k, 9 * k + 5, tid=1 + k % 2) for k in range(n)),
        *(
            end
            for k in range(n // 2)
            for end in arrow(9 * k, 9 * k + 9, k, from_thread=1, to_thread=2)
        ),
    ],
    "allocations": lambda n: (
        {
            **span("cpu_instant_event", "[memory]", k, k, Bytes=8, Addr=k, **TOTALS),
            "ph": "i",
        }
        for k in range(n)
    ),
    "collectives": lambda n: (
        it
        for k in range(n)
        for it in (
            launch(9 * k, 9 * k + 2, k + 1),
            kernel("ncclDevKernel_AllReduce", 9 * k + 3, 9 * k + 8, k + 1, device=k % 8),
        )
    ),
}
TOTALS = {"Total Allocated": 8, "Total Reserved": 64, "Device Type": 1, "Device Id": 0}


def seconds(path, command):
    """Return the CPU time of a command, the shorter of two runs."""

    def once():
        start_s = process_time()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            program.run([command, str(path)])
        return process_time() - start_s

    return min(once(), once())


@pytest.mark.slow
@pytest.mark.parametrize("command", ["check", "summary"])
@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
def test_time_grows_with_what_grows_in_a_trace(tmp_path, pattern, command):
    took_s = []
    for n in (SMALL, SMALL * TIMES):
        path = tmp_path / f"{n}.json"
        path.write_text(json.dumps({"traceEvents": list(PATTERNS[pattern](n))}))
        took_s.append(seconds(path, command))
    small_s, large_s = took_s
    assert large_s <= MOST_TIMES_AS_LONG * max(small_s, 0.05)


class Compared(int):
    """A number that counts how often it is compared."""

    n = 0

    def __eq__(self, other):
        Compared.n += 1
        return int(self) == other

    __hash__ = int.__hash__


def test_summary_compares_the_number_of_a_step_a_few_times(tmp_path, monkeypatch):
    path = tmp_path / "steps.json"
    path.write_text(json.dumps({"traceEvents": list(PATTERNS["steps"](300))}))
    verdict_of = answer.verdict_of

    def counted(parts, facts):
        verdict = verdict_of(parts, facts)
        return replace(verdict, steps=tuple(map(Compared, verdict.steps)))

    monkeypatch.setattr(answer, "verdict_of", counted)
    seconds(path, "summary")
    assert 0 < Compared.n <= 10 * 300
