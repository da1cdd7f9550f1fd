"""`longpole repro`: write a script that runs one operator alone with its recorded inputs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from longpole.cli.answer import exit_codes
from longpole.cli.answer.inputs import name_of, record_of
from longpole.cli.answer.problems import usage_errors
from longpole.cli.ask.options import Options, answers, output_options, shared_options
from longpole.cli.ask.pairs import et_option
from longpole.cli.ask.traces import answer_each, trace_argument
from longpole.files.writing import new_file
from longpole.formats.convert.operator_script import operator_script
from longpole.report.blocks import Headline, Notes, Sentence
from longpole.report.document import Document
from longpole.words.data import Data

if TYPE_CHECKING:
    from longpole.cli.answer.emit import Answer
    from longpole.formats.convert.operator_script import OperatorScript
    from longpole.trace.trace import Trace

_SCHEMA: Final = "longpole.repro/1"
_OF_TORCH: Final = frozenset({"aten", "prim", "prims", "quantized", "c10d", "c10d_functional"})


@click.command()
@answers("longpole.cli.repro:Repro")
@trace_argument
@click.argument("event", metavar="[EVENT]", required=False)
@output_options()
@et_option
@shared_options
def repro(
    *,
    trace: str,
    event: str | None,
    output: Path,
    force: bool,
    execution: str | None,
    options: Options,
) -> int:
    """Write a script that runs one operator alone, with its recorded inputs.

    EVENT is the number of an operator, or of a kernel that an operator launched, or the name
    of an operator, which stands for the longest of that name. Without EVENT it is the operator
    of the longest kernel in the first step. The script makes tensors of the recorded shapes,
    strides and types, times the operator with torch, and names what was not recorded.

    \b
    Examples:
      longpole table trace.json.gz kernels --sort gain
      longpole repro trace.json.gz 4711 -o op.py && python op.py
      longpole repro trace.json.gz aten::addmm -o op.py
    """

    def answer(name: str, read: Trace) -> Answer:
        return _answer(name, read, event, output=output, force=force, execution=execution)

    return answer_each([trace], options, _SCHEMA, answer, arguments="default")


@dataclass(frozen=True, slots=True)
class Repro(Data):
    """The written script."""

    output: str
    """Path of the script."""
    operator: str
    event: int
    """Event of the operator."""
    inputs: tuple[str, ...]
    """Inputs as written in the script."""
    not_recorded: tuple[str, ...]
    """Inputs that the script had to assume or create with random values."""


def _event(trace: Trace, text: str) -> int:
    """Return the number in a text, or the longest operator of that name.

    Raises
    ------
    ValueError
        The text is neither a number nor the name of an operator.
    """
    if text.isdecimal():
        return int(text)
    events = trace.events
    named = events.filter((events["kind"] == "operator") & (events["name"] == text))
    if named.is_empty():
        message = f"no operator {text!r}; `longpole table TRACE operators` lists them"
        raise ValueError(message)
    return int(named.sort("duration_ns", descending=True)["event"][0])


def _default(trace: Trace) -> int:
    """Return the operator that launched the longest kernel of the first step.

    Raises
    ------
    ValueError
        No operator launched a kernel.
    """
    import polars as pl

    from longpole.trace import sweeps

    kernels = sweeps.activities(trace).filter(pl.col("kind") == "kernel").drop_nulls("operator")
    for start_ns, end_ns in trace.steps.head(1).select("window_start_ns", "window_end_ns").rows():
        first = kernels.filter(pl.col("start_ns").is_between(start_ns, end_ns, closed="left"))
        kernels = kernels if first.is_empty() else first
    if kernels.is_empty():
        message = "no operator launched a kernel: name one of `longpole table TRACE operators`"
        raise ValueError(message)
    longest = kernels.sort("duration_ns", descending=True, maintain_order=True)
    return int(longest["operator"][0])


def _packages(script: OperatorScript) -> str:
    """Return the package of an operator that torch does not have, and the end of the sentence."""
    namespace = script.operator.partition("::")[0]
    if namespace in _OF_TORCH:
        return "."
    return f", and the package that has the operators `{namespace}::`: import it in the script."


def _answer(
    name: str, trace: Trace, event: str | None, *, output: Path, force: bool, execution: str | None
) -> Answer:
    """Write the script of an operator, and list its assumptions."""
    with usage_errors():
        script = operator_script(
            trace,
            _default(trace) if event is None else _event(trace, event),
            source=name_of(name),
            execution=execution,
        )
    inputs = [Path(path) for path in (name, execution) if path]
    with new_file(output, force=force, inputs=inputs) as unfinished:
        unfinished.write_text(script.text, encoding="utf-8")
    written = Repro(str(output), script.operator, script.event, script.inputs, script.not_recorded)
    document = Document(
        schema=_SCHEMA,
        input={"path": name},
        data=written,
        blocks=lambda: [
            Headline(f"{name_of(name)}: {script.operator} (event {script.event})"),
            Sentence(
                f"Wrote {output}. Run it with python; it needs torch and longpole"
                + _packages(script)
            ),
            Notes([f"input {place}: {each}" for place, each in enumerate(script.inputs)]),
            Sentence("Not recorded:"),
            Notes(list(script.not_recorded)),
        ],
        records=lambda: [record_of(written, name)],
    )
    return document, exit_codes.OK
