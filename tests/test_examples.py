"""The files of `examples/` do what they say."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "python/longpole/examples"
BASH = shutil.which("bash") or "bash"
STEP = re.compile(r"- name: (?P<name>.+)\n +run: \|\n(?P<script>(?: {10}.*\n)+)")


@pytest.fixture
def step(tmp_path):
    """Run a step of the workflow as the runner does; give its exit code and its summary."""
    text = (ROOT / "examples/gate.yml").read_text(encoding="utf-8")
    scripts = {found["name"]: textwrap.dedent(found["script"]) for found in STEP.finditer(text)}
    summary = tmp_path / "summary.md"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

    def run(name):
        done = subprocess.run(
            [BASH, "-e", "-c", scripts[name]],
            cwd=tmp_path,
            env={**os.environ, "PATH": path, "GITHUB_STEP_SUMMARY": str(summary)},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, summary.read_text(encoding="utf-8")

    return run


def put(folder, *names):
    """Put example traces into a folder as the runs of one side."""
    folder.mkdir(parents=True)
    for number, name in enumerate(names):
        shutil.copy(EXAMPLES / f"{name}.json.gz", folder / f"run{number}.json.gz")


@pytest.mark.parametrize(
    ("base", "new", "told"),
    [("after", "trace", (1, "Regression")), ("trace", "after", (0, "Improvement"))],
)
def test_the_gate_fails_where_the_traces_became_slower(step, tmp_path, base, new, told):
    # As many runs of each side as the workflow records: one of each decides nothing.
    put(tmp_path / "base/traces", *[base] * 5)
    put(tmp_path / "new/traces", *[new] * 5)
    code, summary = step("Compare the traces")
    assert (code, re.findall(r"^(\w+): the mean step", summary, re.MULTILINE)) == (
        told[0],
        [told[1]],
    )


NOTEBOOKS = sorted((ROOT / "examples/notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_cells_of_a_notebook_run(notebook, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    names: dict[str, object] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            *before, last = ast.parse("".join(cell["source"])).body
            exec(compile(ast.Module(before, []), notebook.name, "exec"), names)  # noqa: S102
            if isinstance(last, ast.Expr):
                shown = eval(compile(ast.Expression(last.value), notebook.name, "eval"), names)  # noqa: S307
                assert shown is not None
            else:
                exec(compile(ast.Module([last], []), notebook.name, "exec"), names)  # noqa: S102


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_in_jupyter(notebook, tmp_path):
    pytest.importorskip("ipykernel", reason="needs nbclient and ipykernel")
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient and ipykernel")
    nbformat = pytest.importorskip("nbformat")
    found = nbformat.read(notebook, as_version=4)
    kernel = {"kernel_name": "python3", "resources": {"metadata": {"path": str(tmp_path)}}}
    nbclient.NotebookClient(found, timeout=120, **kernel).execute()
    shown = [output for cell in found.cells for output in cell.get("outputs", ())]
    assert any("text/html" in output.get("data", {}) for output in shown)


def test_the_notebooks_hold_no_output():
    for notebook in NOTEBOOKS:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        assert [cell.get("outputs", []) for cell in cells] == [[]] * len(cells)
