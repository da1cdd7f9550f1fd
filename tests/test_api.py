"""What the package promises: its names, its stub, its rooms."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import longpole
from longpole import _core, errors, mindspore, testing
from longpole.engine.question import QuestionParts
from longpole.tables import gate
from longpole.testing import TraceBuilder

PACKAGE = Path(longpole.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))


def names_in(tree):
    parts = [node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    constants = [node.target for node in tree.body if isinstance(node, ast.AnnAssign)]
    names = {node.name for node in parts} | {ast.unparse(target) for target in constants}
    return {name for name in names if not name.startswith("_") or name == "__all__"}


def members(tree, name):
    [found] = [node for node in tree.body if getattr(node, "name", None) == name]
    return {node.name for node in found.body if isinstance(node, ast.FunctionDef)}


@pytest.fixture(scope="module")
def stub():
    return ast.parse((PACKAGE / "_core.pyi").read_text(encoding="utf-8"))


def test_the_stub_names_what_the_core_has(stub):
    assert names_in(stub) == set(_core.__all__)
    for name in ("Cut", "Extraction", "Extractor", "Table", "Trace"):
        public = {member for member in vars(getattr(_core, name)) if not member.startswith("__")}
        stubbed = {member for member in members(stub, name) if not member.startswith("__")}
        assert stubbed == public, name


def test_everything_a_core_trace_can_do_is_used_by_the_wrapper(stub):
    used = set()
    for file in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        used |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert members(stub, "Trace") - used == set()


def test_every_exception_of_the_core_is_ours_too():
    raised = [name for name in _core.__all__ if name.endswith("Error")]
    assert raised
    for name in raised:
        assert getattr(errors, name) is getattr(_core, name)
        assert getattr(longpole, name) is getattr(_core, name)


def test_every_module_says_what_it_is_and_only_public_ones_what_they_offer():
    public = {path for path in MODULES if path.parent == PACKAGE} - {PACKAGE / "__main__.py"}
    public |= {
        PACKAGE / room / "__init__.py"
        for room in ("bench", "bench/tunableop", "bench/tune", "plot", "remedies")
    }
    # Used in place of `torch.cuda.tunable` and of the runner of AITemplate.
    public |= {PACKAGE / "bench/tunableop/tunable.py", PACKAGE / "bench/compatible/aitemplate.py"}
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}
    offering = {
        path
        for path, tree in trees.items()
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and "__all__" in ast.unparse(node)
    }
    assert [path for path, tree in trees.items() if not ast.get_docstring(tree)] == []
    assert offering == public


@pytest.mark.parametrize("module", [longpole, errors, testing])
def test_what_is_offered_is_there_once(module):
    assert [name for name in module.__all__ if not hasattr(module, name)] == []
    assert len(set(module.__all__)) == len(module.__all__)


@pytest.mark.parametrize("package", [longpole, mindspore])
def test_what_is_offered_is_what_types_see(package):
    stub = Path(package.__file__).with_suffix(".pyi")
    tree = ast.parse(stub.read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    seen = {alias.asname: node.module for node in imports for alias in node.names}
    offered = {name: inspect.unwrap(getattr(package, name)) for name in package.__all__}
    assert {name: getattr(sys.modules[module], name) for name, module in seen.items()} == offered
    assert dir(longpole) == sorted(longpole.__all__)


def test_no_room_has_the_name_of_a_public_function():
    # The import of a room would bind its module over the function: `longpole.diff`.
    rooms = {path.stem for path in PACKAGE.iterdir()} - {"__init__", "__main__"}
    assert not rooms & set(longpole.__all__)


def test_few_modules_know_the_core():
    knowing = {
        path.relative_to(PACKAGE).as_posix()
        for path in MODULES
        if "longpole import _core" in (text := path.read_text(encoding="utf-8"))
        or "longpole._core" in text
    }
    assert knowing == {
        "diffs/matching.py",
        "formats/ascend/rows.py",
        "bench/extraction.py",
        "bench/reference.py",
        "bench/run/guard.py",
        "bench/tunableop/parts.py",
        "bench/tune/objective.py",
        "cli/mcp/worker.py",
        "trace/contexts.py",
        "formats/convert/chakra.py",
        "formats/convert/cut.py",
        "formats/convert/execution_trace.py",
        "formats/convert/repaired.py",
        "engine/critical_path/path.py",
        "errors.py",
        "rows/frames.py",
        "words/kernel_names.py",
        "files/opening.py",
        "formats/profiles.py",
        "formats/read.py",
        "remedies/facts.py",
        "remedies/gains.py",
        "remedies/recorded.py",
        "trace/removed_cost.py",
        "rows/selection/evaluation.py",
        "trace/enclosing.py",
        "trace/sweeps.py",
        "trace/tables.py",
        "trace/trace.py",
        "jobs/dump_set.py",
        "jobs/flight_recorder.py",
        "jobs/late_ranks.py",
        "jobs/merge.py",
        "jobs/path.py",
        "jobs/reading.py",
        "jobs/trace_set.py",
    }


def test_errors_are_caught_as_one():
    with pytest.raises(longpole.LongpoleError) as caught:
        longpole.read_trace(b"<html>")
    assert caught.value.code == "other_kind_of_file"
    assert caught.value.offset == 0
    assert caught.value.hint


def test_a_built_trace_says_what_was_built(tmp_path):
    builder = (
        testing.TraceBuilder()
        .header(distributedInfo={"rank": 2, "world_size": 4})
        .operator("aten::mm", (0, 20))
        .launch("gemm", call=(5, 10), work=(12.5, 60), stream=9)
    )
    trace = builder.read()
    assert (trace.rank, trace.world_size, trace.status) == (2, 4, "ok")
    rows = trace.events.select("kind", "name", "stream", "start_ns", "duration_ns").rows()
    assert rows == [
        ("operator", "aten::mm", None, 0, 20_000),
        ("runtime", "cudaLaunchKernel", None, 5_000, 5_000),
        ("kernel", "gemm", 9, 12_500, 47_500),
    ]
    for name in ("plain.json", "packed.json.gz"):
        written = longpole.read_trace(builder.write(tmp_path / name))
        assert written.events.equals(trace.events)


def test_words_that_the_core_does_not_know_are_refused_with_those_it_knows():
    core = testing.TraceBuilder().operator("A", (0, 10)).read()._core
    with pytest.raises(ValueError, match='"usual", "whole", "step", "annotation" or "between"'):
        core.critical_path(("stepp", 1, "period"), longest=False, data_load=None, step_name=None)
    with pytest.raises(ValueError, match='end is "period", "last", "cpu" or "gpu"'):
        core.critical_path(("step", 1, "never"), longest=False, data_load=None, step_name=None)
    path = core.critical_path(("whole",), longest=False, data_load=None, step_name=None)
    with pytest.raises(ValueError, match='"insert" or "remove_wait", not "halve"'):
        path.what_if([("halve", None, None, 1, 2, None, None)])
    with pytest.raises(ValueError, match="the kinds are "):
        path.what_if([("scale", "gemm", None, 1, 2, None, None)])


FUNCTIONS = [name for name in longpole.__all__ if inspect.isroutine(getattr(longpole, name))]
TABLES = longpole._GROUPS["Tables"]


def test_the_help_of_a_table_describes_each_parameter_once():
    problems = []
    for name in TABLES:
        table = getattr(longpole, name)
        described = ", ".join(inspect.getdoc(table).splitlines()).split(", ")
        parameters = inspect.signature(table).parameters
        problems += [f"{name}: {each}" for each in parameters if described.count(each) != 1]
    assert problems == []


ALLOWED = (longpole.LongpoleError, TypeError, ValueError, FileNotFoundError)
UNCLEAR = (
    "has no attribute",
    "weak reference",
    "unhashable",
    "not iterable",
    "subscriptable",
    "not supported between",
)


def misused(name, *arguments, **options):
    """Ask an invalid question; return the message of the error, or None."""
    try:
        getattr(longpole, name)(*arguments, **options)
    except ALLOWED as error:
        text = str(error)
        assert text
        assert not [words for words in UNCLEAR if words in text], text
        return text
    return None


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_wrong_argument_is_refused_in_one_sentence(name):
    for wrong in (None, 3, "missing.json", Path("missing.json"), pl.DataFrame({"a": [1]}), [3]):
        more = ["missing.json"] if name in {"merge", "diff", "link_execution_trace"} else []
        more += [1] if name == "diff_steps" else []
        if name == "record" and isinstance(wrong, str | Path):
            continue  # a file to write
        assert misused(name, wrong, *more)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_wrong_window_is_refused_in_one_sentence(name):
    trace = testing.TraceBuilder().step(1, (0, 50)).read()
    if "window" not in inspect.signature(getattr(longpole, name)).parameters:
        pytest.skip("it takes no window")
    for wrong in (3, "step", (0, 10), pl.DataFrame({"a": [1]}), trace):
        shown = misused(name, trace, wrong)
        assert shown == f"window is what longpole.choose_window gives, not {type(wrong).__name__}"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_wrong_option_is_refused_in_one_sentence(name):
    trace = testing.TraceBuilder().step(1, (0, 50)).launch("gemm", call=(5, 9), work=(9, 40)).read()
    first, *others = inspect.signature(getattr(longpole, name)).parameters.values()
    if first.name not in {"trace", "recording"}:
        pytest.skip("it is not about one trace")
    options = [option.name for option in others if option.kind is option.KEYWORD_ONLY]
    more = [1] if name == "diff_steps" else []
    for option in options:
        for wrong in (3, -1.5, "x(", [1], object()):
            misused(name, trace, *more, **{option: wrong})


@pytest.mark.parametrize("between", [3, "ab", (1,), (1.5, 2), (2, 1), None, pl.DataFrame()])
def test_two_times_are_two_times(between):
    trace = testing.TraceBuilder().operator("aten::mm", (0, 50)).read()
    for name in ("choose_window", "summary"):
        assert (misused(name, trace, between=between) is None) == (between is None)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_question_takes_the_path_of_a_trace(name, tmp_path):
    found = getattr(longpole, name)
    if next(iter(inspect.signature(found).parameters)) not in {"trace", "recording"}:
        pytest.skip("it is not about one trace")
    if name == "link_execution_trace":
        pytest.skip("it also needs an execution trace")
    builder = testing.TraceBuilder()
    for step in range(3):
        start = 50 * step
        builder.step(step, (start, start + 50))
        builder.launch("gemm", call=(start + 5, start + 10), work=(start + 12, start + 40))
    path = builder.write(tmp_path / "trace.json.gz")
    more = [2] if name == "diff_steps" else []
    of_path, of_trace = found(path, *more), found(longpole.read_trace(path), *more)
    assert type(of_path) is type(of_trace)
    assert str(of_path) == str(of_trace)


def test_every_check_of_an_argument_is_of_a_public_function():
    asked = [getattr(getattr(longpole, name), "__wrapped__", None) for name in longpole.__all__]
    asked = [function for function in asked if function is not None]
    taken = {name for function in asked for name in inspect.signature(function).parameters}
    taken |= QuestionParts.__annotations__.keys()
    own = {f"{it.__name__}.{name}" for it in asked for name in inspect.signature(it).parameters}
    assert set(gate._CHECKS) <= taken | own


def test_a_public_function_with_an_unknown_parameter_is_refused():
    def question(colour):
        return colour

    with pytest.raises(KeyError, match="colour"):
        gate.gated(question)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"whole": "no"}, "whole is True or False, not str"),
        ({"whole": 1}, "whole is True or False, not int"),
        ({"step": 2.5}, "step is the number of a step, or ProfilerStep#N, not float"),
        ({"between": 7}, "between is two times in whole ns, not 7"),
        ({"between": "12"}, "between is two times in whole ns, not '12'"),
    ],
)
def test_what_an_argument_is_not_is_said_with_its_name(options, told):
    trace = TraceBuilder().launch("gemm", call=(0, 1), work=(2, 8)).read()
    with pytest.raises(TypeError, match=re.escape(told)):
        longpole.choose_window(trace, **options)
    assert longpole.choose_window(trace, whole=np.bool_(1)).kind == "trace"


def test_a_callback_that_cannot_be_called_is_refused(tmp_path):
    with pytest.raises(TypeError, match="progress is a function, not int"):
        longpole.read_traces(tmp_path, progress=3)
    with pytest.raises(TypeError, match="ranks is a list of integers, not str"):
        longpole.get_counter_data_with_operators(tmp_path, ranks="01")
