"""The formats and commands of one question give one answer, on simulated programs of any kind."""

from __future__ import annotations

import csv
import io
import json

import pytest

from longpole import read_trace
from longpole.cli.program import run
from longpole.remedies.limits import sides_of, status_of
from oracles.rerun import varied_program

SEEDS = 6
LONG_SEEDS = 400


def printed(capsys, *arguments):
    code = run([str(it) for it in arguments])
    return code, capsys.readouterr().out


def disagreements(path, capsys, *window):
    """Return what the surfaces say differently about one window of a trace."""
    trace = read_trace(path).without_profiler()
    _, text = printed(capsys, "summary", path, *window, "--format", "text")
    code, told = printed(capsys, "summary", path, *window, "--format", "json")
    document = json.loads(told)
    verdict = document["data"]["verdict"]
    _, rows = printed(capsys, "summary", path, *window, "--format", "csv")
    _, ranked = printed(capsys, "whatif", path, *window, "--format", "json")
    other = json.loads(ranked)["data"]["verdict"]
    flat = " ".join(text.split())
    shares = [
        (row["section"].removeprefix("remedy: "), float(row["share"]))
        for row in csv.DictReader(io.StringIO(rows))
        if row["section"].startswith("remedy: ")
    ]
    yield "csv", shares == [(it["remedy"], it["gain"]["value"]) for it in verdict["remedies"]]
    yield "whatif", other == verdict
    yield "sentence", " ".join(verdict["sentence"].split()) in flat
    yield "exit code", (code == 4) == (verdict["limit"]["kind"] == "not_shown")
    kind, sides = verdict["limit"]["kind"], verdict["sides"]
    yield "waits", (kind == "waits") == ("waits limit it" in verdict["sentence"])
    yield "two", (kind == "sides" and len(sides) == 2) == ("limit it alike" in verdict["sentence"])
    for gain in (*verdict["gains"].values(), *(it["gain"] for it in verdict["remedies"])):
        yield f"order of {gain}", gain["low"] <= max(gain["value"], 0.0) <= gain["high"] + 1e-12
    for it in verdict["remedies"]:
        touched = [verdict["gains"][side]["high"] for side in it["sides"]]
        delays = any(change["kind"] == "kernel_delay" for change in it["hopeful_changes"])
        if len(touched) == 1 and not delays:
            yield f"part of {it['remedy']}", it["gain"]["high"] <= touched[0] + 0.005
    if not window:
        mine = trace.verdict()
        yield "python", mine.to_dict()["sentence"] == verdict["sentence"]
        yield (
            "status",
            (status_of(mine.limit), [*sides_of(mine.limit)])
            == (
                verdict["status"],
                sides,
            ),
        )


@pytest.mark.parametrize(
    "seeds", [range(SEEDS), pytest.param(range(SEEDS, LONG_SEEDS), marks=pytest.mark.slow)], ids=len
)
def test_every_surface_gives_the_same_answer(seeds, tmp_path, capsys):
    for seed in seeds:
        path = tmp_path / f"{seed}.json"
        varied_program(seed).write(path)
        for window in ((), ("--window", "all"), ("--step", "2"), ("--window", "step:2")):
            try:
                wrong = [what for what, holds in disagreements(path, capsys, *window) if not holds]
            except json.JSONDecodeError:
                continue  # the trace does not have this step
            assert not wrong, (seed, window)
        path.unlink()
