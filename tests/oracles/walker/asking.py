"""What each input is asked, and how a question is asked in this process."""

from __future__ import annotations

import contextlib
import io
import json
import traceback
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from longpole.bench.tune import read_t1, read_task
from longpole.cli import program
from longpole.cli.answer import exit_codes
from longpole.cli.mcp import tools
from longpole.cli.mcp.bounds import MOST_BYTES, bounded, size_of, visible
from longpole.errors import InternalError, LongpoleError
from longpole.formats.read import read_trace
from longpole.tables.catalogue import views_of
from longpole.tables.questions import questions
from longpole.trace.allocations import read_memory

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator, Mapping, Sequence

Question = tuple[str, ...]
"""The words of a command line; of a tool, `mcp`, its name and its arguments as JSON; of a
function, `function` and its name. `{}` stands for the input, `{out}` for a folder to write to."""

_VIEWS: Final = tuple((name, by) for name in sorted(questions()) for by in views_of(name))
_TABLES: Final = tuple(("table", "{}", name, *(("--by", by) if by else ())) for name, by in _VIEWS)
_WHERE: Final = (
    *("duration_ns > 5", "name LIKE '%a%' AND stream = 7", "name REGEXP 'a+' OR start_ns < 0"),
    *("event IN (0, 1, 2)", "kind IS NOT NULL", "duration_ns * 1e300 > 1", "count / 0 = 1"),
)
_OPTIONS: Final = (
    *(("--window=all",), ("--step", "1"), ("--end", "gpu"), ("--window", "+0..+1ms")),
    *(("--step-name", "Step"), ("--window", "data loading")),
)
_FORMATS: Final = ("json", "jsonl", "csv", "md", "html", "text")
_FORMATTED: Final = frozenset({"table", "summary", "check", "path", "whatif", "diff", "ranks"})
_WINDOWED: Final = frozenset({"table", "summary", "path", "whatif"})
_TOOL_OPTIONS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {},
    {"window": "all"},
    {"step": 1},
    {"top": 3},
)


def _tool(name: str, **arguments: Any) -> Question:
    return ("mcp", name, json.dumps(arguments))


_TRACE_TOOLS: Final = (
    *(_tool(name, trace="{}") for name in ("summary", "path", "check")),
    _tool("whatif", trace="{}"),
    _tool("whatif", trace="{}", scale=["kernel=0.5"], drop=["data_loading"]),
    _tool("diff", base="{}", new="{}"),
    _tool("ranks", traces="{}"),
    _tool("traces"),
    *(_tool("table", trace="{}", table=name, **({"by": by} if by else {})) for name, by in _VIEWS),
)
_CONVERTED: Final = (
    *("out.longpole", "out.json", "out.csv", "out.jsonl", "out.parquet", "out.folded", "out.zip"),
    *("out.pftrace", "out.perfetto-trace", "out.speedscope.json"),
)
_TRACE: Final[Mapping[Question, float]] = {
    ("function", "read_trace"): 80.0,
    **dict.fromkeys(_TABLES, 1.0),
    **dict.fromkeys(_TRACE_TOOLS, 0.2),
    **{("convert", "{}", "-o", f"{{out}}/{name}", "-f"): 0.3 for name in _CONVERTED},
    ("summary", "{}"): 4.0,
    ("check", "{}"): 4.0,
    ("path", "{}"): 4.0,
    ("whatif", "{}"): 2.0,
    ("whatif", "{}", "--scale", "kernel=0.5", "--drop", "communication"): 2.0,
    ("diff", "{}", "{}"): 0.3,
    ("ranks", "{}", "{}"): 0.3,
    ("report", "{}", "-o", "{out}/out.html", "-f"): 0.1,
    ("convert", "{}", "{}", "-o", "{out}/out.perfetto-trace", "-f"): 0.3,
    ("repro", "{}", "1", "-o", "{out}/out.py", "-f"): 1.0,
    ("table", "{}"): 0.2,
}
_RANKS: Final[Mapping[Question, float]] = {
    ("ranks", "{}"): 4.0,
    ("convert", "{}", "-o", "{out}/out.perfetto-trace", "-f"): 1.0,
    ("convert", "{}", "-o", "{out}/out.perfetto-trace.gz", "-f"): 0.3,
    ("diff", "{}", "{}"): 0.3,
    ("check", "{}"): 1.0,
    ("report", "{}", "-o", "{out}/out.html", "-f"): 0.1,
    _tool("ranks", traces="{}"): 1.0,
    _tool("traces"): 0.3,
    _tool("diff", base="{}", new="{}"): 0.2,
}
_TUNABLE: Final = "{}/tunableop_results0.csv"
_HALF: Final = ("--where", "operator REGEXP 'Half' OR solution = 'Default'")
_UNTUNED: Final = "{}/tunableop_untuned0.csv"
_ET, _KINETO = "{}/et.json", "{}/kineto.json"
ABOUT: Final[Mapping[str, Mapping[Question, float]]] = {
    "trace": _TRACE,
    "ranks": _RANKS,
    "dumps": {("ranks", "{}"): 5.0, ("check", "{}"): 1.0, _tool("ranks", traces="{}"): 1.0},
    "memory": {
        **{("table", "{}", "memory", "--by", by): 2.0 for by in views_of("memory")},
        **{_tool("table", trace="{}", table="memory", by=by): 0.5 for by in ("peak", "operator")},
        ("function", "read_memory"): 2.0,
        ("check", "{}"): 1.0,
        ("summary", "{}"): 0.5,
        ("diff", "{}", "{}"): 0.2,
    },
    "vocabulary": {
        ("summary", "{trace}", "--vocabulary", "{}"): 1.0,
        ("table", "{trace}", "kernels", "--vocabulary", "{}"): 2.0,
        ("path", "{trace}", "--vocabulary", "{}"): 1.0,
    },
    "pair": {
        ("check", "--et", _ET, _KINETO): 3.0,
        ("convert", "--et", _ET, _KINETO, "-o", "{out}/plus.json", "-f"): 1.0,
        ("convert", "--et", _ET, _KINETO, "-o", "{out}/plus.json", "-f", "--no-gaps"): 1.0,
        ("convert", "--et", _ET, _KINETO, "-o", "{out}/nodes.csv", "-f"): 0.3,
        ("convert", "--et", _ET, _KINETO, "-o", "{out}/a.et", "-f"): 2.0,
        ("repro", _KINETO, "1", "--et", _ET, "-o", "{out}/out.py", "-f"): 1.0,
        ("function", "read_execution_trace"): 3.0,
    },
    "chakra": {("chakra", word, "{}"): 1.0 for word in ("check", "show", "replay")},
    "task": {("function", "read_task"): 5.0, ("function", "read_parameters"): 2.0},
    "tunableop": {
        ("tunableop", "show", _TUNABLE): 2.0,
        ("tunableop", "show", _UNTUNED): 2.0,
        ("tunableop", "show", _TUNABLE, "--format", "csv"): 1.0,
        ("tunableop", "check", _TUNABLE): 3.0,
        ("tunableop", "check", _TUNABLE, _UNTUNED): 1.0,
        ("tunableop", "show", _UNTUNED, _TUNABLE): 2.0,
        ("tunableop", "show", "{trace}", _TUNABLE): 0.2,
        ("tunableop", "show", _TUNABLE, _UNTUNED): 1.0,
        ("tunableop", "show", _TUNABLE, _TUNABLE): 1.0,
        ("tunableop", "edit", _TUNABLE, _TUNABLE, "-o", "{out}/m0.csv", "-f"): 2.0,
        ("tunableop", "edit", _UNTUNED, "--parts", "2", "-o", "{out}/p.csv", "-f"): 1.0,
        ("tunableop", "show", "--untuned", _UNTUNED, _TUNABLE, "-o", "{out}/u.csv", "-f"): 1.0,
        ("tunableop", "edit", _TUNABLE, *_HALF, "--to", "Default", "-o", "{out}/q.csv", "-f"): 1.0,
        ("tunableop", "edit", _TUNABLE, *_HALF, "--to", "none", "-o", "{out}/q.csv", "-f"): 1.0,
    },
    "results": {
        ("bench", "compare", "{}/base.results.jsonl", "--by", "job"): 2.0,
        ("bench", "compare", "{}/base.results.jsonl", "--json", "--by", "attempt"): 2.0,
        ("bench", "compare", "{}/base.results.jsonl"): 2.0,
        ("bench", "compare", "{}/base.results.jsonl", "--by", "tag=m", "--json"): 2.0,
        ("bench", "compare", "{}/base.results.jsonl", "{}/new.results.jsonl"): 1.0,
        ("bench", "compare", "{}/new.results.jsonl", "{}/base.results.jsonl", "--json"): 1.0,
    },
    "printed": {
        ("bench", "extract", "{}"): 3.0,
        ("bench", "extract", "{}", "--format", "json"): 2.0,
        ("bench", "extract", "{}", "--died", "--top", "2"): 1.0,
        ("bench", "compare", "{}", "{}"): 1.0,
    },
    "mindspore": {
        ("summary", "{}"): 3.0,
        ("summary", "{}", "--step", "1"): 1.0,
        ("check", "{}"): 1.0,
    },
}
"""How often each question is asked, by the kind of input."""


def questions_about(kind: str, chance: random.Random, n: int | None = None) -> Iterator[Question]:
    """Return some questions about a kind of input, or all of them without options."""
    about = ABOUT[kind]
    if n is None:
        yield from about
        return
    for question in chance.choices(list(about), list(about.values()), k=n):
        yield _with_options(question, chance)


def _with_options(question: Question, chance: random.Random) -> Question:
    """Return a question with random options: a window, a condition, a format."""
    word = question[0]
    if word == "mcp":
        name, arguments = question[1], json.loads(question[2])
        if name in _WINDOWED:
            arguments |= chance.choice(_TOOL_OPTIONS)
        if name == "table" and chance.random() < 0.3:
            arguments["where"] = chance.choice(_WHERE)
        return ("mcp", name, json.dumps(arguments))
    if word in _WINDOWED and chance.random() < 0.4:
        question = (*question, *chance.choice(_OPTIONS))
    if word == "table" and len(question) > 2 and chance.random() < 0.2:
        question = (*question, "--where", chance.choice(_WHERE))
    if word in _FORMATTED and chance.random() < 0.4:
        question = (*question, "--format", chance.choice(_FORMATS))
    return question


def asked(question: Sequence[str], path: Path, out: Path, trace: Path | None = None) -> str | None:
    """Ask a question about an input.

    Returns
    -------
    str or None
        What is wrong with the answer: an exception, an error of longpole's own, an answer that is
        not JSON or is too long, or a control character in text; None if nothing is.
    """
    places = {"{out}": str(out), "{trace}": str(trace), "{}": str(path)}
    word, *rest = question
    ask: Callable[[], str | None]
    if word == "mcp":
        arguments = {
            key: str(path) if value == "{}" else value for key, value in json.loads(rest[1]).items()
        }
        folder = path.parent
        ask = partial(_tool_answers, rest[0], arguments, folder)
    elif word == "function":
        ask = partial(_function_answers, rest[0], path)
    else:
        ask = partial(_command_answers, [_filled(part, places) for part in question])
    try:
        return ask()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - what escapes is what is looked for
        return f"{type(error).__name__}: {error}{_place_of(error)}"[:600]


def _filled(part: str, places: Mapping[str, str]) -> str:
    for mark, text in places.items():
        part = part.replace(mark, text)
    return part


def _place_of(error: BaseException) -> str:
    """Return the last lines of Python that an exception went through."""
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    return " @ " + " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in reversed(frames))


def _command_answers(words: list[str]) -> str | None:
    code, output, err = _run(words)
    if code == exit_codes.INTERNAL:
        return "exit 70: " + " ".join(_run(["--debug", *words])[2].split())[-700:]
    form = _form_of(words)
    if form == "json" and output.strip():
        json.loads(output, parse_constant=_no_constant)
    if form in {"text", "md", "csv"} and (seen := _acting(output + err)):
        return f"the answer holds {seen!r}"
    return None


def _run(words: Sequence[str]) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = program.run(words)
    return code, out.getvalue(), err.getvalue()


def _form_of(words: Sequence[str]) -> str:
    if "--json" in words:
        return "json"
    if words[0] == "bench" and "extract" in words:
        return "json" if "json" in words else "other"
    return words[words.index("--format") + 1] if "--format" in words else "text"


def _no_constant(name: str) -> None:
    message = f"JSON holds {name}"
    raise ValueError(message)


def _acting(text: str) -> str | None:
    """Return a character that acts on a terminal, if the text holds one."""
    return next(
        (each for each in text if (each < " " and each not in "\n\t\r") or each == "\x7f"), None
    )


def _tool_answers(name: str, arguments: Mapping[str, Any], folder: Path) -> str | None:
    answer = bounded(visible(tools.call(name, arguments, [folder.resolve()])), 50)
    json.loads(json.dumps(answer, allow_nan=False))
    if size_of(answer) > MOST_BYTES:
        return f"an answer of {size_of(answer)} bytes"
    error = answer["error"] or {}
    if "please report" in str(error.get("hint")):
        return f"{error['code']}: {error['message']}"
    return None


def _function_answers(name: str, path: Path) -> str | None:
    """Call a function that raises errors of its own only."""
    try:
        _functions()[name](path)
    except InternalError as error:
        return f"InternalError: {error}"
    except (LongpoleError, ValueError, OSError):
        return None
    return None


@cache
def _functions() -> Mapping[str, Callable[[Path], object]]:
    from longpole.formats.convert.execution_trace import read_execution_trace

    def parameters(path: Path) -> None:
        if path.is_dir() and (path / "t1.json").exists():
            read_t1(path / "t1.json")

    def task(path: Path) -> None:
        found = read_task(path / "task.toml" if path.is_dir() else path)
        for _ in islice(found.space, 100):
            pass

    return {
        "read_task": task,
        "read_parameters": parameters,
        "read_memory": read_memory,
        "read_trace": lambda path: read_trace(path).diagnostics,
        "read_execution_trace": lambda path: read_execution_trace(path / "et.json"),
    }
