"""`longpole demo`: write example traces, explain one, and show what to ask next."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from importlib.resources import files as packaged
from typing import TYPE_CHECKING, Any, Final

import click

from longpole.cli.answer import exit_codes
from longpole.cli.ask.files import OutputPath
from longpole.cli.ask.options import Options, answer_options, answers, force_option
from longpole.files.writing import new_file
from longpole.report.blocks import Column, Headline, Sentence, tabulated
from longpole.report.document import Document
from longpole.words.data import Data, plain
from longpole.words.wording import escape

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from longpole.cli.answer.emit import Answer
    from longpole.report.blocks import Block

_STEPS: Final = (
    "Six training steps of a simulated program, rank 0 of 8; `after.json.gz` is the same program "
    "with a faster data loader."
)
_RANKS: Final = "Three training steps of a simulated program on four ranks."


@click.command()
@answers("longpole.cli.demo:Demo")
@click.argument(
    "folder",
    type=OutputPath(is_folder=True, is_path=True),
    default="longpole-demo",
)
@click.option("--ranks", is_flag=True, help="Explain four ranks, not one trace.")
@force_option
@answer_options
def demo(*, folder: Path, ranks: bool, force: bool, options: Options) -> int:
    """Write example traces, explain one, and show what to ask next.

    The traces come from a simulated training program. They are written to FOLDER, by default
    `longpole-demo`: `trace.json.gz` and `after.json.gz` before and after a change, and four
    ranks of one run in `ranks`.

    \b
    Examples:
      longpole demo
      longpole demo --ranks
      longpole demo /tmp/traces --json
    """
    return options.emit(_answer(folder, ranks=ranks, force=force))


@dataclass(frozen=True, slots=True)
class Next:
    """A command to run next."""

    command: str
    shows: str
    """Description of what it shows."""


@dataclass(frozen=True, slots=True)
class Demo(Data):
    """The written example traces, and the verdict on one of them."""

    files: tuple[str, ...]
    """The files."""
    verdict: str
    """Sentence on what the program waits for."""
    next: tuple[Next, ...]
    """Commands to run next."""


def _answer(folder: Path, *, ranks: bool, force: bool) -> Answer:
    """Write the examples, and explain one trace or the set of ranks."""
    written = _write(folder, force=force)
    subject = folder / "ranks" if ranks else folder / "trace.json.gz"
    verdict, blocks = _explain_ranks(subject) if ranks else _explain_trace(subject)
    commands = _after_ranks(folder) if ranks else _after_trace(folder)
    found = Demo(tuple(map(str, written)), verdict, tuple(commands))
    columns = {Column("next command"): "command", Column("what it shows"): "shows"}
    document = Document(
        schema="longpole.demo/1",
        input={},
        data=found,
        blocks=lambda: [
            Headline(escape(str(subject))),
            Sentence(_RANKS if ranks else _STEPS),
            *blocks,
            tabulated(commands, columns),
        ],
        records=lambda: plain(commands),
    )
    return document, exit_codes.OK


def _write(folder: Path, *, force: bool) -> list[Path]:
    """Write the packaged traces; existing ones are kept."""
    (folder / "ranks").mkdir(parents=True, exist_ok=True)
    written = []
    for example in sorted(packaged("longpole").joinpath("examples").iterdir(), key=str):
        name, content = example.name, example.read_bytes()
        path = folder / "ranks" / name if name.startswith("rank") else folder / name
        if not (path.is_file() and path.read_bytes() == content):
            with new_file(path, force=force) as unfinished:
                unfinished.write_bytes(content)
        written.append(path)
    return written


def _explain_trace(path: Path) -> tuple[str, Sequence[Block]]:
    from longpole.engine.arguments import ARGUMENTS
    from longpole.formats.read import read_trace

    verdict = read_trace(path, args=ARGUMENTS).answer().verdict
    return verdict.sentence, verdict.blocks()


def _explain_ranks(folder: Path) -> tuple[str, Sequence[Block]]:
    from longpole.jobs.joining import read_traces
    from longpole.jobs.ranks import ranks

    found: Any = ranks(read_traces(folder))
    blocks = found.blocks()
    sentence = next(block for block in blocks if isinstance(block, Sentence))
    return sentence.text, blocks


def _after_trace(folder: Path) -> list[Next]:
    trace, after = _quoted(folder / "trace.json.gz"), _quoted(folder / "after.json.gz")
    return [
        Next(f"longpole {trace}", "where the time of the step went"),
        Next(f"longpole path {trace}", "the critical path"),
        Next(f"longpole whatif {trace}", "what each change would save"),
        Next(f"longpole diff {trace} {after}", "whether the change helped"),
        Next(f"longpole report {trace} -o report.html", "everything on one page"),
        Next(f"longpole demo {_quoted(folder)} --ranks", "four ranks of one run"),
    ]


def _after_ranks(folder: Path) -> list[Next]:
    ranks, first = _quoted(folder / "ranks"), _quoted(folder / "ranks/rank0.json.gz")
    return [
        Next(f"longpole ranks {ranks} --step 1", "one step"),
        Next(f"longpole report {ranks} -o ranks.html", "everything on one page"),
        Next(
            f"longpole convert {ranks} -o ranks.perfetto-trace", "one timeline for ui.perfetto.dev"
        ),
        Next(f"longpole {first}", "one rank alone"),
    ]


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
