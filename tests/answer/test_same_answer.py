"""What does not change a program does not change its answer: order, clocks, numbers, time units."""

from __future__ import annotations

import json
import random
from decimal import Decimal

import pytest

import longpole
from longpole import Question
from longpole.engine.arguments import ARGUMENTS
from oracles.rerun import varied_program

SEEDS = 3
LONG_SEEDS = 100
LATER_US = 86_400_000_000
"""A day, by which a clock is ahead."""
CONSTANTS = 0.02
"""What times that no program changes, such as the return of a call, make of a gain at most."""
STREAMS = ("stream", "wait_on_stream")


def events_of(path):
    return json.loads(path.read_bytes(), parse_float=Decimal)


def read(document, path):
    path.write_text(json.dumps(document, default=float))
    return longpole.read_trace(path, args=ARGUMENTS)


def told(answer):
    """Return what an answer says, without times of a clock."""
    rows = [(row.remedy, row.gain, len(row.changes)) for row in answer.remedies]
    plan = [(line.remedy, line.then, line.gain) for line in answer.verdict.plan.lines]
    return (answer.limit, answer.gains, answer.verdict.sentence, answer.steps, rows, plan)


def shuffled(document, dice):
    events = document["traceEvents"]
    return {**document, "traceEvents": dice.sample(events, len(events))}


def later(document, _dice):
    def moved(event):
        return {**event, "ts": event["ts"] + LATER_US} if "ts" in event else event

    return {**document, "traceEvents": [moved(event) for event in document["traceEvents"]]}


def renumbered(document, dice):
    """Return the trace with other numbers of processes, threads and streams, in another order."""
    numbers = {}

    def other(number):
        if not isinstance(number, int) or isinstance(number, bool):
            return number
        if number not in numbers:
            numbers[number] = 100_000 + dice.randrange(10**6) * 1_000 + len(numbers)
        return numbers[number]

    def changed(event):
        is_device = event.get("cat") in {"kernel", "gpu_memcpy", "gpu_memset", "cuda_sync"}
        found = {**event, "tid": other(event["tid"])} if "tid" in event else dict(event)
        if "pid" in found and not is_device:
            found["pid"] = other(found["pid"])
        args = found.get("args", {})
        streams = {key: other(args[key]) for key in STREAMS if key in args}
        return {**found, "args": {**args, **streams}} if is_device else found

    return {**document, "traceEvents": [changed(event) for event in document["traceEvents"]]}


CHANGES = [shuffled, later, renumbered]


@pytest.mark.parametrize(
    "seeds", [range(SEEDS), pytest.param(range(SEEDS, LONG_SEEDS), marks=pytest.mark.slow)], ids=len
)
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_the_answer_is_the_same(change, seeds, tmp_path):
    path = tmp_path / "trace.json"
    for seed in seeds:
        varied_program(seed).write(path)
        document = events_of(path)
        dice = random.Random(seed)  # noqa: S311 - nothing secret
        as_it_is, changed = read(document, path), read(change(document, dice), path)
        for question in (Question(), Question(whole=True)):
            assert told(changed.answer(question)) == told(as_it_is.answer(question)), seed


def slower(document):
    """Return the trace of a program that takes twice as long for everything."""

    def twice(event):
        return event | {key: 2 * event[key] for key in ("ts", "dur") if key in event}

    return {**document, "traceEvents": [twice(event) for event in document["traceEvents"]]}


@pytest.mark.parametrize(
    "seeds", [range(SEEDS), pytest.param(range(SEEDS, LONG_SEEDS), marks=pytest.mark.slow)], ids=len
)
def test_twice_the_time_of_everything_has_the_same_shares(seeds, tmp_path):
    path = tmp_path / "trace.json"
    for seed in seeds:
        varied_program(seed).write(path)
        document = events_of(path)
        question = Question(whole=True, as_recorded=True)
        once, again = (read(each, path).answer(question) for each in (document, slower(document)))
        assert again.limit == once.limit, seed
        for side, gain in once.gains.items():
            assert again.gains[side].value == pytest.approx(gain.value, abs=CONSTANTS), (seed, side)
