"""What holds for every remedy of the catalogue."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from longpole.remedies import catalogue
from longpole.remedies.catalogue import CATALOGUE, Gained, remedies
from longpole.remedies.gains import _gain
from longpole.remedies.model import EFFORTS, Found, Remedy
from longpole.testing import TraceBuilder

FOLDER = Path(catalogue.__file__).parent
OTHER_FILES = {
    "__init__",
    "modules",
    "recorded",
    "captured",
    "catalogue",
    "evidence",
    "facts",
    "gains",
    "gone",
    "limits",
    "message_bytes",
    "model",
    "parts",
    "plan",
    "profiler_work",
    "rooflines",
    "sides",
    "spans",
    "start_up",
}


def test_every_file_of_the_folder_is_in_the_list():
    assert {path.stem for path in FOLDER.glob("*.py")} == {*CATALOGUE, *OTHER_FILES}


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_remedy_says_all_that_the_documentation_shows(name: str):
    [remedy] = [one for one in remedies() if one.id == name]
    assert all([remedy.needs, remedy.seen_by, remedy.change, remedy.not_when])
    assert remedy.effort in EFFORTS


def test_of_remedies_that_save_about_as_much_the_cheapest_comes_first():
    def gained(effort: str, low: float) -> Gained:
        remedy = replace(remedies()[0], id=effort, effort=effort)
        found = Found(careful=[], advice="")
        return Gained(remedy, found, _gain((0, low, (low, low, "recorded", "recorded"), [])), low)

    rows = [gained("code", 0.26), gained("one_line", 0.22), gained("configuration", 0.1)]
    ordered = [row.remedy.id for row in catalogue._ordered(rows)]
    assert ordered == ["one_line", "code", "configuration"]


def test_a_remedy_that_raises_is_named_and_skipped(said, monkeypatch: pytest.MonkeyPatch):
    def find(_facts: object) -> list[Found]:
        raise ZeroDivisionError

    broken = Remedy(
        id="broken",
        side="host",
        effort="code",
        needs="",
        seen_by="",
        change="",
        not_when="",
        find=find,
    )
    monkeypatch.setattr(catalogue, "remedies", lambda: (broken,))
    trace = TraceBuilder().launch("gemm", call=(0, 10), work=(10, 100)).read()
    verdict = trace.verdict()
    assert verdict.remedies == ()
    said(verdict.caveat)
