"""The corpus of damaged and odd traces outside the repository, if it exists."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from adapters.corpus_adapter import answer

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
MANIFEST = CORPUS / "manifest.json"
CASES = json.loads(MANIFEST.read_bytes())["entries"] if MANIFEST.exists() else []

pytestmark = pytest.mark.skipif(not CASES, reason="no corpus of damaged traces at ../shared/corpus")


# The checker leaves files to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["file"])
def test_a_case_of_the_corpus_is_answered_as_it_asks(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = [str(CORPUS / name) for name in case.get("files", [case["file"]])]
    answered = json.loads(json.dumps(answer(case["stage"], files)))
    assert checker().check(case, answered, str(tmp_path)) == []


def checker():
    spec = importlib.util.spec_from_file_location("check_corpus", CORPUS / "check_corpus.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
