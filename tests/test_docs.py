"""Every example in the package and in the documents runs."""

from __future__ import annotations

import doctest
import re
from importlib import import_module
from pathlib import Path

import longpole
import pytest
from longpole.cli import exit_codes
from longpole.testing import TraceBuilder

ROOT = Path(__file__).parents[1]
PACKAGE = Path(longpole.__file__).parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)[^)]*\)")


def modules():
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.name != "__main__.py":
            dotted = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
            yield dotted.removesuffix(".__init__")


@pytest.fixture
def traces(tmp_path, monkeypatch):
    """Put the files there that the documents speak of."""
    monkeypatch.chdir(tmp_path)
    builder = (
        TraceBuilder()
        .header(distributedInfo={"rank": 0})
        .step(1, (0, 100))
        .python("data.py(7): load", (0, 60))
        .operator("aten::mm", (60, 80))
        .launch("gemm", call=(65, 70), work=(72, 100))
    )
    for name in ("trace.json.gz", "rank0.json.gz"):
        builder.write(tmp_path / name)


@pytest.mark.parametrize("name", modules())
def test_the_examples_of_a_module_run(name):
    assert doctest.testmod(import_module(name)).failed == 0


@pytest.mark.usefixtures("traces")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_of_a_page_runs(page):
    names: dict[str, object] = {}
    for block in PYTHON.findall(page.read_text(encoding="utf-8")):
        exec(compile(block, page.name, "exec"), names)  # noqa: S102


@pytest.mark.parametrize("page", [*PAGES, ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"])
def test_the_links_of_a_page_lead_somewhere(page):
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_every_exit_code_is_documented():
    page = (ROOT / "docs/exit-codes.md").read_text(encoding="utf-8")
    codes = {value for name, value in vars(exit_codes).items() if name.isupper()}
    assert {int(code) for code in re.findall(r"^\| `(\d+)` \|", page, re.MULTILINE)} == codes
