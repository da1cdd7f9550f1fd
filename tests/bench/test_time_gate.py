"""`longpole bench time --gate`: the exit code tells CI whether something became slower."""

import json
import sys

import pytest

from longpole.cli.answer import exit_codes
from longpole.cli.program import run

pytestmark = pytest.mark.real_time

FAST, SLOW = (f'{sys.executable} -S -c "import time; time.sleep({ms}e-3)"' for ms in (5, 60))
_MOST_TRIES = 4
ONCE = ("--runs", "7", "--budget", "1")


def timed(*commands, gate=None):
    words = [word for command in commands for word in ("-c", command)]
    asked = () if gate is None else ("--gate", gate)
    return run(["bench", "time", *words, *ONCE, *asked, "--json"])


@pytest.mark.parametrize(
    ("commands", "gate", "code"),
    [
        ((FAST, SLOW), "10%", exit_codes.FINDINGS),
        ((FAST, SLOW), None, exit_codes.OK),
        ((SLOW, FAST), "10%", exit_codes.OK),
        ((FAST, f"{FAST} "), "90%", exit_codes.OK),
    ],
    ids=["slower", "slower without a gate", "faster", "within the gate"],
)
def test_a_gate_fails_if_and_only_if_one_is_slower_than_the_first(commands, gate, code, capsys):
    for _ in range(_MOST_TRIES):
        found = timed(*commands, gate=gate)
        answer = json.loads(capsys.readouterr().out)
        if found != exit_codes.INCONCLUSIVE:
            break  # a busy machine may make it too noisy, but never turns the answer round
    assert (found, answer["status"]) == (code, "ok")


def test_one_run_does_not_pass_a_gate(capsys):
    words = ["bench", "time", "-c", FAST, "-c", SLOW, "--runs", "1", "--budget", "1", "--json"]
    assert run([*words, "--gate", "3%"]) == exit_codes.INCONCLUSIVE
    answer = json.loads(capsys.readouterr().out)
    assert (answer["status"], answer["abstains_because"][0]["code"]) == ("abstained", "noise")
    assert run(words) == exit_codes.OK


def test_a_failure_fails_a_gate_whatever_the_times(capsys):
    assert timed(FAST, "false", gate="3%") == exit_codes.FINDINGS
    assert json.loads(capsys.readouterr().out)["abstains_because"][0]["code"] == "job_failed"


def test_a_gate_needs_something_to_compare(capsys):
    assert timed(FAST, gate="3%") == exit_codes.USAGE
    assert "--gate needs two" in capsys.readouterr().err
