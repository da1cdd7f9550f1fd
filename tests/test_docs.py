"""Every example in the package and in the documents runs."""

from __future__ import annotations

import doctest
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections import defaultdict
from importlib import import_module
from pathlib import Path

import click
import pytest

import longpole
from longpole.cli import program
from longpole.cli.answer import exit_codes
from longpole.testing import TraceBuilder
from oracles import pages

ROOT = Path(__file__).parents[1]
PACKAGE = Path(longpole.__file__).parent
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs/how-to").glob("*.md")),
]
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# README is shown by package indexes, too, where only whole links lead somewhere.
REPOSITORY = "https://github.com/longpole/longpole/blob/main/"
LINK = re.compile(r"\]\((?!https?:)([^)#]+)[^)]*\)")
WHOLE_LINK = re.compile(
    r"\]\(https://github.com/longpole/longpole/(?:blob|tree)/main/([^)#?]+)[^)]*\)"
)


SERVERS = {"longpole.cli.mcp.server"}
"""What cannot be imported without the extra `mcp`."""


def modules():
    """Return the modules of each room."""
    rooms = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        dotted = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        name = dotted.removesuffix(".__init__")
        if path.stem != "__main__":
            rooms[name if name in SERVERS else ".".join(name.split(".")[:2])].append(name)
    return rooms


MODULES = modules()


@pytest.fixture
def traces(tmp_path, monkeypatch):
    """Create the files that the documents mention."""
    monkeypatch.chdir(tmp_path)
    builder = (
        TraceBuilder()
        .header(distributedInfo={"rank": 0})
        .step(1, (0, 100))
        .python("data.py(7): load", (0, 60))
        .operator("aten::mm", (60, 80))
        .launch("gemm", call=(65, 70), work=(72, 100))
    )
    for name in ("trace.json.gz", "rank0.json.gz", "kineto.json"):
        builder.write(tmp_path / name)
    (tmp_path / "et.json").write_text(
        """{"schema": "1.0.1", "pid": 100, "nodes": [
        {"id": 1, "name": "[pytorch|profiler|execution_graph|process]", "parent": 1},
        {"id": 2, "name": "[pytorch|profiler|execution_graph|thread]", "parent": 1, "tid": 1},
        {"id": 3, "name": "ProfilerStep#1", "parent": 2, "tid": 1},
        {"id": 4, "name": "aten::mm", "parent": 3, "tid": 1}]}"""
    )


@pytest.mark.parametrize(
    "room",
    [pytest.param(room, marks=[pytest.mark.needs("mcp")] * (room in SERVERS)) for room in MODULES],
)
def test_the_examples_of_a_room_run(room):
    failed = [name for name in MODULES[room] if examples_failed(import_module(name))]
    assert failed == []


def examples_failed(module):
    # What a package imports when it is asked for would be added to it while it is searched.
    for lazy in getattr(module, "__all__", ()):
        getattr(module, lazy)
    return doctest.testmod(module).failed


@pytest.mark.usefixtures("traces")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_of_a_page_runs(page):
    names: dict[str, object] = {}
    for block in PYTHON.findall(page.read_text(encoding="utf-8")):
        exec(compile(block, page.name, "exec"), names)  # noqa: S102


@pytest.mark.parametrize("page", pages.SHOWING, ids=lambda page: page.stem)
def test_a_page_shows_what_longpole_prints(page):
    text = page.read_text(encoding="utf-8")
    assert pages.answered(page) == text, "python tests/oracles/pages.py --write"


def commands_of(page):
    """Yield the commands in the blocks of a page, without comments, pipes and redirections."""
    text = page.read_text(encoding="utf-8")
    blocks = [block for language, block in BLOCK.findall(text) if not language]
    for block in blocks if page.suffix == ".md" else [text]:
        prompt = r"\$ " if block.startswith("$ ") else ""  # what a command prints may name others
        for line in re.findall(rf"^ *{prompt}longpole (.+)$", block, re.MULTILINE):
            words = shlex.split(line, comments=True)
            ends = (n for n, word in enumerate(words) if word in {"|", ">", ">>", "&&", "||", ";"})
            yield words[: next(ends, len(words))]


def parse(command, words, parent=None):
    """Parse the arguments of a command without running it."""
    context = command.make_context(command.name, list(words), parent)
    if isinstance(command, click.Group):
        _, found, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        parse(found, rest, context)


def test_the_commands_of_pages_exist_with_these_options():
    wrong = []
    for page in [*PAGES, ROOT / "examples/gate.yml"]:
        for words in commands_of(page):
            try:
                parse(program.longpole, words)
            except click.exceptions.Exit:  # --help
                pass
            except click.ClickException as error:
                if "does not exist" not in error.format_message():
                    wrong.append((page.name, words, error.format_message()))
    assert wrong == []


def test_the_links_of_pages_lead_somewhere():
    made = {ROOT / "docs/generated" / name for name in pages.GENERATED}
    wrong = []
    for page in [*PAGES, ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"]:
        text = page.read_text(encoding="utf-8")
        targets = [page.parent / target for target in LINK.findall(text)]
        targets += [ROOT / target for target in WHOLE_LINK.findall(text)]
        lost = (it for it in targets if not it.exists() and it.resolve() not in made)
        wrong += [(page.name, str(target)) for target in lost]
    assert wrong == []


def test_the_site_lists_every_page_once():
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^([a-z][\w-]*)$", index, re.MULTILINE)
    pages_of_site = {page.stem for page in (ROOT / "docs").glob("*.md")} - {"index"}
    assert sorted(listed) == sorted(pages_of_site)
    assert {f"generated/{Path(name).stem}" for name in pages.GENERATED} == set(
        re.findall(r"^generated/\w+$", index, re.MULTILINE)
    )


@pytest.mark.parametrize("name", pages.GENERATED)
def test_a_page_that_only_the_site_has_is_made(name):
    made = pages.GENERATED[name]()
    assert made.startswith("# ")
    assert made.count("\n") > 20


def test_the_errors_of_the_core_are_listed():
    listed = pages.every_error()
    with pytest.raises(longpole.TraceError) as raised:
        longpole.read_trace(b"{}")
    assert f"| `{raised.value.code}` | `3` |" in listed


def test_the_links_of_the_readme_work_where_a_package_index_shows_it():
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)]+)\)", page)
    assert targets
    assert [target for target in targets if not target.startswith(REPOSITORY)] == []


def test_the_readme_begins_with_the_two_commands_that_set_up_everything():
    first_screen = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## ")[0]
    commands = next(block for kind, block in BLOCK.findall(first_screen) if not kind)
    assert [line.split("#")[0].strip() for line in commands.splitlines()] == [
        "make run",
        "make test",
    ]
    rules = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^run: \$\(BUILT\)", rules, re.MULTILINE)
    assert re.search(r"^test: \$\(READY\)", rules, re.MULTILINE)
    ran = (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()[-2:]
    assert ran == ["make test", "make test-real"]


@pytest.mark.parametrize("name", pages.PAGES)
def test_a_page_that_follows_from_the_code_does(name):
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert page == pages.PAGES[name](), "python tests/oracles/pages.py --write"


def test_every_exit_code_is_documented():
    page = (ROOT / "docs/exit-codes.md").read_text(encoding="utf-8")
    codes = {value for name, value in vars(exit_codes).items() if name.isupper()}
    assert {int(code) for code in re.findall(r"^\| `(\d+)` \|", page, re.MULTILINE)} == codes


def write_the_python_of_the_pages(folder):
    for page in PAGES:
        code = "\n".join(PYTHON.findall(page.read_text(encoding="utf-8")))
        if code:
            (folder / f"{page.stem.replace('-', '_').lower()}.py").write_text(code)


def test_the_python_of_the_pages_is_typed(tmp_path):
    write_the_python_of_the_pages(tmp_path)
    checker = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache")]
    configured = ["--config-file", "", "--allow-redefinition", str(tmp_path)]
    done = subprocess.run([*checker, *configured], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_pyright_agrees(tmp_path):
    checker = shutil.which("pyright") or shutil.which("basedpyright")
    if checker is None:
        pytest.skip("needs pyright or basedpyright")
    write_the_python_of_the_pages(tmp_path)
    paths = {"extraPaths": [str(ROOT / "python")], "typeCheckingMode": "standard"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(paths))
    command = [checker, "--pythonpath", sys.executable, "--outputjson"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    shown = json.loads(done.stdout)["generalDiagnostics"]
    assert [row for row in shown if row["severity"] == "error"] == []
