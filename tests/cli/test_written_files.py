"""No command writes over what it was given to read, with -f neither, under no name of it."""

from __future__ import annotations

import ast
import glob
import json
import shlex
import sys
from pathlib import Path

import click
import pytest

from longpole import read_trace
from longpole.cli.ask.files import OutputPath
from longpole.cli.program import longpole, run
from longpole.testing import TraceBuilder

PACKAGE = Path(__file__).parents[2] / "python" / "longpole"
WORKER = Path(__file__).parents[1] / "bench" / "fake_tunable_worker.py"
TUNABLE = "Validator,PT_VERSION,2.9.1\nGemmTunableOp_Half_TN,tn_1_8_8_ld_8_8_1,Gemm_Rocblas_1,0.5\n"
NODES = [
    {"id": 1, "name": "[pytorch|profiler|execution_graph|process]", "parent": 1},
    {"id": 2, "name": "[pytorch|profiler|execution_graph|thread]", "parent": 1, "tid": 1},
    {"id": 3, "name": "aten::mm", "parent": 2, "tid": 1},
]
OPERANDS = {"Input Dims": [[2, 2], [2, 2]], "Input type": ["float", "float"]}
TASK = """[parameters]
x = [1, 2]
[candidate]
command = "sh work.sh {x}"
sources = ["work.sh"]
"""

# What writes each file: the arguments, {} for the file, and how its name has to end: where the
# argument ends otherwise than the file that is written, both endings. A third word tells several
# kinds of files of one option apart.
WRITES = {
    ("repro", "-o"): ("trace.json 0 --et et.json -o {} -f", ".py"),
    ("convert", "-o"): ("trace.json --vocabulary words.toml -o {} -f", ".csv"),
    ("convert", "-o", "ranks"): ("ranks -o {} -f", ".perfetto-trace"),
    ("convert", "-o", "ET+"): ("--et et.json trace.json -o {} -f", ".json"),
    ("convert", "-o", "table of a pair"): ("--et et.json trace.json -o {} -f", ".parquet"),
    ("convert", "-o", "graph"): ("--et et.json trace.json -o {} -f", ".et"),
    ("report", "-o"): ("trace.json -o {} -f", ".html"),
    ("demo", "folder"): ("{} -f", ""),
    ("bench run", "-o"): ("jobs.jsonl -o {} -f --devices cpu", ".jsonl"),
    ("bench time", "-o"): ("-o {} -f --runs 1 --budget 0.1 -- sh work.sh", ".jsonl"),
    ("tune", "-o"): ("task.toml --devices cpu --runs 1 --reuse runs.jsonl -o {} -f", ".jsonl"),
    ("tunableop edit", "-o"): ("a0.csv a1.csv -o {} -f", ".csv"),
    ("tunableop show", "-o"): ("--untuned a0.csv a1.csv -o {} -f", ".csv"),
    ("tunableop tune", "-o"): (
        f"a?.csv --devices fake:1 --worker '{sys.executable} {WORKER} .' -o {{}} -f",
        "_full0.csv .csv",
    ),
}


def commands(group=longpole, words=()):
    """List every command, by the words that call it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))
        else:
            yield " ".join((*words, name)), command


def written():
    """List every parameter that names a file to write, by its command."""
    return {
        (name, parameter.opts[0])
        for name, command in commands()
        for parameter in command.params
        if isinstance(parameter.type, OutputPath)
    }


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Stand in a folder with all that the commands above read."""
    monkeypatch.chdir(tmp_path)
    builder = TraceBuilder().operator("aten::mm", (0, 20), **OPERANDS)
    builder.launch("gemm", call=(5, 10), work=(12, 60))
    Path("ranks").mkdir()
    for name in ("trace.json", "other.json"):
        builder.write(Path(name))
    for rank in range(2):
        header = {"distributedInfo": {"rank": rank, "world_size": 2}}
        TraceBuilder().header(**header).step(1, (0, 90)).write(Path(f"ranks/rank{rank}.json"))
    texts = {
        "et.json": json.dumps({"schema": "1.0.1", "pid": 1, "nodes": NODES}),
        "words.toml": '[kernels]\ncompute = ["my_"]\n',
        "jobs.jsonl": '{"argv": ["true"], "key": "a", "format": "none"}\n',
        "task.toml": TASK,
        "work.sh": "exit 0\n",
        "a0.csv": TUNABLE,
        "a1.csv": TUNABLE.replace("0.5", "0.4"),
    }
    for name, text in texts.items():
        Path(name).write_text(text, encoding="utf-8")
    run(["bench", "run", "-o", "runs.jsonl", "--devices", "cpu", "--", "true"])
    return tmp_path


def contents():
    return {path: path.read_bytes() for path in sorted(Path.cwd().rglob("*")) if path.is_file()}


def ending_of(key):
    return WRITES[key][1].partition(" ")[0]


def call(key, output, *, without=""):
    arguments, endings = WRITES[key]
    written, _, asked = endings.partition(" ")
    text = str(output).removesuffix(written) + asked if asked else str(output)
    words = shlex.split(arguments.format(shlex.quote(text)))
    return run([*key[0].split(), *(word for word in words if word != without)])


def inputs_of(key):
    """List the files that the arguments name, and those in folders and of the task."""
    words = shlex.split(WRITES[key][0])
    named = [Path(name) for word in words for name in glob.glob(word)]  # noqa: PTH207
    found = [
        file
        for path in named
        if not path.is_absolute()
        for file in (path.rglob("*") if path.is_dir() else [path])
    ]
    return [*found, *([Path("work.sh")] if "task.toml" in words else [])]


def names_of(file, key, place):
    """Yield a file other names: as it is, spelled otherwise, and by links with some ending."""
    ending = ending_of(key)
    if " " not in WRITES[key][1] or file.name.endswith(ending):
        yield file
        yield Path("ranks", "..", file)
    for kind, make in {"link": Path.symlink_to, "hard": Path.hardlink_to}.items():
        name = Path(f"{kind}{place}{ending}")
        make(name, file.absolute())
        yield name


def test_every_file_that_a_command_writes_is_tried_here():
    assert written() == {key[:2] for key in WRITES}


def test_every_option_to_write_a_file_says_so():
    words = ("-o", "--output", "--force")
    names = {
        name
        for name, command in commands()
        for parameter in command.params
        if {*words} & {*parameter.opts}
        or any(text.startswith("--write") for text in parameter.opts)
    }
    # A baseline is stored under a name, not under a path.
    assert names - {name for name, _ in written()} == {"bench compare"}


@pytest.mark.parametrize("key", WRITES, ids=" ".join)
def test_an_input_is_never_written_to(key, capsys):
    ending = ending_of(key)
    fresh = f"fresh{ending}"
    assert call(key, fresh) in {0, 1, 4}, capsys.readouterr().err
    if key[0] != "tunableop tune":  # which never writes over anything
        assert call(key, fresh) in {0, 1, 4}, "with -f, an earlier file is replaced"
    capsys.readouterr()
    files = inputs_of(key)
    assert files or key[0] in {"demo", "bench time"}
    for place, file in enumerate(files):
        for name in names_of(file, key, place):
            before = contents()
            code = call(key, name)
            text = capsys.readouterr().err
            after = contents()
            assert {path: after.get(path) for path in before} == before, (name, text)
            assert code in {2, 3}, (name, text)


def test_a_file_in_a_folder_that_is_read_is_never_written_to(folder, capsys):
    Path("elsewhere.perfetto-trace").write_bytes(Path("trace.json").read_bytes())
    Path("ranks", "rank2.json").symlink_to(folder / "elsewhere.perfetto-trace")
    before = contents()
    assert run(["convert", "ranks", "-o", "elsewhere.perfetto-trace", "-f"]) == 2
    assert "never replaced" in capsys.readouterr().err
    assert contents() == before


@pytest.mark.parametrize(
    ("given", "beside"),
    [
        ("rank0.json", "rank0.capture.json"),
        ("7_kernel_trace.csv", "7_hip_api_trace.csv"),
        ("trace_view.json", "step_trace_time.csv"),
    ],
)
def test_what_is_read_beside_a_trace_is_never_written_to(given, beside, capsys):
    Path(given).write_bytes(Path("trace.json").read_bytes())
    Path(beside).write_bytes(Path("trace.json").read_bytes())
    Path("other.csv").write_text("mine")
    assert run(["repro", given, "0", "-o", beside, "-f"]) == 2
    assert f"{beside} is an input, which is never replaced" in capsys.readouterr().err
    assert read_trace(beside).n_events
    if not given.startswith("trace"):
        assert run(["repro", given, "0", "-o", "other.csv", "-f"]) == 0


@pytest.mark.parametrize("key", sorted(WRITES), ids=" ".join)
def test_a_foreign_file_is_not_replaced_unasked(key, capsys):
    if not ending_of(key):
        pytest.skip("names a folder")
    name = Path(f"mine{ending_of(key)}")
    name.write_text("mine")
    assert call(key, name, without="-f") in {2, 3}, capsys.readouterr().err
    assert name.read_text() == "mine"


def test_a_link_that_leads_nowhere_is_not_replaced_unasked(capsys):
    Path("nowhere.py").symlink_to("gone")
    assert run(["repro", "trace.json", "0", "-o", "nowhere.py"]) == 2
    assert Path("nowhere.py").readlink() == Path("gone")
    assert "nowhere.py exists" in capsys.readouterr().err


WRITERS = {
    "write_text",
    "write_bytes",
    "touch",
    "write_csv",
    "write_parquet",
    "write_ipc",
}
MOVERS = {"os.replace", "os.rename", "os.link", "shutil.move", "shutil.copy", "shutil.copyfile"}
# Files of their own making: locks, pipes, work folders; and the two doors.
OWN = {
    *(
        "files/writing.py",
        "testing.py",
        "cli/program.py",
        "cli/convert/written.py",
        "devices/leases.py",
    ),
    *("cli/ask/commands.py", "cli/table.py"),  # which write help to the terminal
    *("formats/mindspore/output.py", "bench/records/store.py"),
    *("recording/recorder.py", "cli/mcp/server.py", "cli/mcp/worker.py"),
    *("bench/run/sampler.py", "bench/run/conditions.py", "bench/time/candidates.py"),
    *("bench/tune/commands.py", "bench/tunableop/worker.py", "bench/time/workers.py"),
}


def test_every_file_goes_through_one_door():
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if str(path.relative_to(PACKAGE)) not in OWN
        for line in written_lines(path)
    ]
    assert wrong == []


def written_lines(path):
    """Find the lines that write a file and stand in no `with new_file(...)`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside = {
        id(each)
        for node in ast.walk(tree)
        if isinstance(node, ast.With) and "new_file" in ast.unparse(node.items[0])
        for each in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and id(node) not in inside and writes(node):
            yield node.lineno


def writes(call):
    text = ast.unparse(call.func)
    name = text.rpartition(".")[2]
    if name in {"open", "fdopen"}:
        modes = [each.value for each in call.args if isinstance(each, ast.Constant)]
        makes = "O_CREAT" in ast.unparse(call) or "O_TRUNC" in ast.unparse(call)
        is_mode = any(isinstance(mode, str) and {*"wax+"} & {*mode} for mode in modes)
        return makes or (is_mode and "os.dup(" not in ast.unparse(call))  # stdout is no file
    is_text = name == "write_csv" and not call.args  # without a file, polars returns the text
    return text in MOVERS or (name in WRITERS and not is_text and text != "chakra.write_parquet")
