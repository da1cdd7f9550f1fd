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

import longpole
from longpole import chakra
from longpole.cli.answer import exit_codes
from longpole.remedies.catalogue import CATALOGUE

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
    """Write example traces into a folder as the runs of one side."""
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
@pytest.mark.needs("nbclient", "ipykernel")
def test_a_notebook_runs_in_jupyter(notebook, tmp_path):
    import nbclient
    import nbformat

    found = nbformat.read(notebook, as_version=4)
    kernel = {"kernel_name": "python3", "resources": {"metadata": {"path": str(tmp_path)}}}
    nbclient.NotebookClient(found, timeout=120, **kernel).execute()
    shown = [output for cell in found.cells for output in cell.get("outputs", ())]
    assert any("text/html" in output.get("data", {}) for output in shown)


def test_the_notebooks_hold_no_output():
    for notebook in NOTEBOOKS:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        assert [cell.get("outputs", []) for cell in cells] == [[]] * len(cells)


PROGRAMS = sorted(
    path
    for path in (ROOT / "examples/remedies").glob("*.py")
    if path.stem not in {"measure", "models", "ranks"}
)


@pytest.mark.needs("torch")
def test_programs_are_measured_and_one_that_fails_stops_no_other(tmp_path):
    script = ROOT / "examples/remedies/measure.py"
    names = ["unaligned_products", "no_such_program", "decoy_scatter"]
    subprocess.run([sys.executable, script, tmp_path, *names], check=True, capture_output=True)
    rows = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert [row["name"] for row in rows] == names
    assert rows[0]["gain"][1] <= rows[0]["gain"][0] <= rows[0]["gain"][2]
    assert "ModuleNotFoundError" in rows[1]["error"]
    assert rows[2]["slow"]["as_recorded"]["remedies"] == []
    assert {path.name for path in tmp_path.glob("*.gz")} == {
        "unaligned_products.slow.json.gz",
        "unaligned_products.mended.json.gz",
        "decoy_scatter.json.gz",
    }


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_says_what_it_shows(path):
    body = ast.parse(path.read_text(encoding="utf-8")).body
    functions = {node.name for node in body if isinstance(node, ast.FunctionDef)}
    values = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id in {"REMEDY", "NOT"}
    }
    assert list(values) in (["REMEDY"], ["NOT"])
    assert {*([values["REMEDY"]] if "REMEDY" in values else values["NOT"])} <= {*CATALOGUE}
    assert {"slow", "mended"} <= functions if "REMEDY" in values else "program" in functions


RECORD = Path(__file__).parents[1] / "examples/record_trace.py"


def test_without_torch_it_says_so_and_exits_with_5(said):
    blocked = f"import runpy, sys; sys.modules['torch'] = None; runpy.run_path({str(RECORD)!r})"
    done = subprocess.run(
        [sys.executable, "-c", blocked], capture_output=True, text=True, check=False
    )
    assert done.returncode == exit_codes.MISSING
    said(done.stderr)


@pytest.mark.needs("torch")
@pytest.mark.parametrize("name", ["training", "inference"])
def test_what_it_records_has_steps_and_an_answer(name, tmp_path):
    arguments = [name, "--device", "cpu", "--steps", "2", "--execution-trace", "-o", str(tmp_path)]
    subprocess.run([sys.executable, str(RECORD), *arguments], check=True, capture_output=True)
    trace = longpole.read_trace(tmp_path / f"{name}-cpu.json.gz")
    assert trace.steps.height == 2
    assert longpole.summary(trace).verdict.status == "no_device"
    linked = longpole.link_execution_trace(
        tmp_path / f"{name}-cpu.et.json", tmp_path / f"{name}-cpu.json.gz"
    )
    assert linked.method == "record_function_id"
    assert abs(linked.replay().error) < 0.05
    with pytest.raises(longpole.TraceError, match="execution trace"):
        longpole.read_trace(tmp_path / f"{name}-cpu.et.json")


@pytest.mark.needs("torch")
def test_ranks_that_train_together_are_one_run(tmp_path):
    arguments = ["training", "--device", "cpu", "--steps", "2", "--ranks", "2"]
    arguments += ["--execution-trace", "-o", str(tmp_path)]
    subprocess.run([sys.executable, str(RECORD), *arguments], check=True, capture_output=True)
    ranks = chakra.link_ranks(f"{tmp_path}/*.et.json", f"{tmp_path}/*.json.gz")
    assert [(pair.rank, pair.paired_by) for pair in ranks.pairs] == [(0, "process"), (1, "process")]
    matched = ranks.collectives.filter(ranks.collectives["n_missing"] == 0)
    assert matched.height >= 4
    assert "all_reduce" in matched["operation"].cast(str).to_list()
    written = ranks.write_chakra(tmp_path / "graphs")
    assert [path.name for path in written] == ["rank.0.et", "rank.1.et", "rank.groups.json"]
