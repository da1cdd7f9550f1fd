"""No answer rests on what damage may have taken: it is said first, and nothing else is advised."""

from __future__ import annotations

import gzip
import json

import pytest

import longpole
from longpole.answer.damaged import damaged
from longpole.answer.values import with_trace
from longpole.cli import program
from longpole.cli.answer import exit_codes
from longpole.files.damage import Damage
from longpole.remedies.gains import gains_of_sides
from longpole.remedies.limits import (
    Both,
    DependsOnCost,
    NoDevice,
    NoneAlone,
    NotShown,
    Sides,
    Waits,
)
from longpole.report.text import text
from longpole.testing import TraceBuilder
from real_traces import SHARED

PLACES = range(1, 11)
ADVICE = ("record", "activities=", "schedule(", "with_stack", "synchronize")


def training(n_steps: int = 30) -> TraceBuilder:
    """Steps whose GPU activities follow all host events in the file, as Kineto's do."""
    builder = TraceBuilder()
    for number in range(n_steps):
        start = 100 * number
        builder.step(number, (start, start + 99)).operator("aten::mm", (start, start + 16))
        builder.call("cudaLaunchKernel", (start + 10, start + 15), correlation=number + 1)
        builder.call("cudaDeviceSynchronize", (start + 18, start + 98))
    for number in range(n_steps):
        start = 100 * number
        builder.kernel("gemm", (start + 16, start + 96), correlation=number + 1)
    return builder


def cut(text: bytes, place: int) -> bytes:
    return text[: len(text) * place // 11]


def overwritten(text: bytes, place: int) -> bytes:
    at = len(text) * place // 11
    return text[:at] + b"\x00\xff}{]["[: len(text) - at] + text[at + 6 :]


def is_said_first(text: bytes) -> longpole.Verdict | None:
    """Check what is said of a damaged file, and give the verdict; None where nothing is read."""
    try:
        trace = longpole.read_trace(text)
        verdict = trace.verdict()
    except longpole.LongpoleError:
        return None
    shown = verdict.sentence
    assert shown.startswith("The trace is damaged (")
    assert verdict.record is None
    assert not [word for word in ADVICE if word in shown.partition("). ")[2]]
    assert all(
        finding.hint is None or not set(finding.hint.split()) & {"record", "initialise"}
        for finding in longpole.check(trace)
        if finding.severity in {"warning", "info"}
    )
    return verdict


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("compress", [False, True])
def test_a_cut_trace_tells_nothing_and_advises_nothing(place, compress):
    verdict = is_said_first(cut(training().to_bytes(compress=compress), place))
    assert verdict is None or (verdict.status, verdict.sides) == ("inconclusive", ())


@pytest.mark.parametrize("place", PLACES)
def test_a_lost_event_leaves_the_answer_with_the_damage_said_first(place):
    sound = training(300)
    verdict = is_said_first(overwritten(sound.to_bytes(), place))
    assert verdict is not None
    assert verdict.sides == sound.read().verdict().sides == ("kernels",)
    assert "shorter without kernels" in verdict.sentence


@pytest.mark.parametrize("place", PLACES)
def test_of_a_corrupt_archive_nothing_is_concluded(place):
    verdict = is_said_first(overwritten(training().to_bytes(compress=True), place))
    assert verdict is None or verdict.status == "inconclusive"


@pytest.mark.parametrize(
    "limit",
    [
        *(Sides(("host",)), Waits(), Both(), DependsOnCost(("host", "kernels")), NoneAlone()),
        *(NotShown("unlinked"), NoDevice()),
    ],
)
def test_every_verdict_says_the_damage_first(limit):
    trace = training().read()
    parts, core = trace.core.verdict(("usual",), data_load=None, step_name=None, every_window=False)
    parts = with_trace(parts, gains_of_sides(core)) | {"limit": limit}
    found = damaged(trace.verdict(), parts, Damage(is_grave=False, sentence="It is damaged."))
    assert found.sentence.startswith("It is damaged. The median step takes 100 µs")


def test_a_cut_between_two_events_is_a_cut():
    text = training().to_bytes()
    verdict = is_said_first(text[: text.rindex(b', {"ph"')])
    assert verdict is not None
    assert verdict.status == "inconclusive"


def test_a_byte_behind_the_end_takes_nothing():
    verdict = is_said_first(training().to_bytes() + b"x")
    assert verdict is not None
    assert verdict.sides == ("kernels",)


def test_many_bytes_behind_the_end_may_be_the_rest_of_the_trace():
    verdict = is_said_first(training().to_bytes() + b"x" * 1000)
    assert verdict is not None
    assert verdict.status == "inconclusive"


def test_a_trace_that_was_not_read_whole_is_incomplete():
    verdict = training().read(max_events=20).verdict()
    assert verdict.sentence.startswith(
        "The trace is incomplete (reading stopped at the requested limit"
    )
    assert (verdict.status, verdict.record) == ("inconclusive", None)


def test_many_events_without_a_time_are_much_lost():
    builder = training()
    for _ in range(20):
        builder.event(ph="X", cat="kernel", name="gemm", pid=0, tid=7, dur=1)
    verdict = is_said_first(builder.to_bytes())
    assert verdict is not None
    assert verdict.status == "inconclusive"


def test_a_comma_too_many_is_no_damage():
    text = training().to_bytes()
    trace = longpole.read_trace(text[:-2] + b",]}")
    assert (trace.status, trace.damage) == ("recovered", None)
    assert str(trace.verdict()) == str(training().read().verdict())


@pytest.mark.parametrize(
    "command",
    ["summary", "path", "whatif", "whatif --drop operator"],
)
def test_the_exit_code_tells_damage(said, command, tmp_path, capsys):
    path = tmp_path / "cut.json"
    path.write_bytes(cut(training().to_bytes(), 5))
    name, *options = command.split()
    assert program.run([name, str(path), *options]) == exit_codes.INCONCLUSIVE
    sentence = capsys.readouterr()
    said.within(" ".join(sentence.out.split()))
    program.run([name, str(path), *options, "--json"])
    document = json.loads(capsys.readouterr().out)
    assert (document["status"], document["warnings"][0]["code"]) == ("partial", "truncated")


SMALL = [
    path
    for path in sorted(SHARED.glob("*/**/*.json.gz"))
    if path.parents[0].name in {"traces", "open_answers", "diff", "two_ranks", "before_after"}
]


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(
            path,
            id=path.name,
            marks=[pytest.mark.slow] if path.stat().st_size > 20_000 else [],
        )
        for path in SMALL
    ]
    or [pytest.param(None, marks=pytest.mark.skip("no real traces beside the project"))],
)
def test_no_damaged_real_trace_gets_advice(path):
    packed = path.read_bytes()
    plain = gzip.decompress(packed)
    for place in PLACES:
        for whole in (packed, plain):
            verdict = is_said_first(cut(whole, place))
            assert verdict is None or verdict.status == "inconclusive"
            is_said_first(overwritten(whole, place))


@pytest.mark.parametrize("question", ["functions", "modules", "roofline", "memory"])
def test_what_a_damaged_trace_lacks_is_no_reason_to_record_it(said, question):
    trace = longpole.read_trace(cut(training().to_bytes(), 10))
    shown = text(getattr(longpole, question)(trace).blocks())
    said.within(shown)
    assert "record" not in shown


@pytest.mark.parametrize("window", [{"step": 29}, {"annotation": "missing"}])
def test_a_window_that_damage_may_have_taken_is_missed_with_the_damage(window, tmp_path, capsys):
    path = tmp_path / "cut.json"
    path.write_bytes(cut(training().to_bytes(), 3))
    trace = longpole.read_trace(path)
    scope = lambda **chosen: trace.scope(longpole.Question(**chosen))  # noqa: E731
    for ask in (trace.critical_path, trace.verdict, scope):
        with pytest.raises(longpole.WindowError, match="\nhint: the trace is damaged \\("):
            ask(**window)
    [(name, value)] = window.items()
    option = "--step" if name == "step" else "--window"
    assert program.run(["path", str(path), option, str(value)]) == exit_codes.USAGE
    error, hint = capsys.readouterr().err.splitlines()[:2]
    assert error.startswith("error: ")
    assert error.endswith("[no_such_window]")
    assert hint.startswith("hint: the trace is damaged (")


def test_a_sound_trace_that_lacks_a_step_says_which_it_has():
    with pytest.raises(longpole.WindowError, match=r"its steps go from 0 to 29$"):
        training().read().critical_path(step=77)


def graph_of_joint_ends() -> TraceBuilder:
    """One launch of a graph in which two streams end together before a third goes on."""
    builder = TraceBuilder().call("cudaGraphLaunch", (0, 10), correlation=1)
    for stream in (7, 8):
        builder.kernel("a", (20, 50), correlation=1, stream=stream)
    return builder.kernel("b", (52, 90), correlation=1, stream=9)


def test_of_a_damaged_trace_no_more_launches_of_a_graph_are_asked_for(said):
    sound = graph_of_joint_ends().to_bytes()
    sentence = " ".join(longpole.read_trace(sound).critical_path(whole=True).explain().split())
    said.within(sentence)
    lossy = sound[:-2] + b', {"ph": "X", "cat": "cpu_op", "na'
    sentence = longpole.read_trace(lossy).critical_path(whole=True).explain()
    assert "Undecided: " in sentence
    assert "Record" not in sentence
