"""The script of one operator, written to a file, as an answer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from longpole.cli.answer import exit_codes
from longpole.cli.answer.inputs import name_of
from longpole.cli.answer.usage import usage_errors
from longpole.convert.operator_script import operator_script
from longpole.data import Data
from longpole.files import new_file
from longpole.report.blocks import Headline, Notes, Sentence
from longpole.report.document import Document

if TYPE_CHECKING:
    from longpole.cli.answer.emit import Answer
    from longpole.trace import Trace

__all__ = ["REPRO", "Repro", "repro_answer"]

REPRO: Final = "longpole.repro/1"


@dataclass(frozen=True, slots=True)
class Repro(Data):
    """The written script."""

    output: str
    """Path of the script."""
    operator: str
    event: int
    """Event of the operator."""
    inputs: tuple[str, ...]
    """Inputs as declared in the script."""
    not_recorded: tuple[str, ...]
    """What the script had to assume or draw at random."""


def repro_answer(
    name: str, trace: Trace, event: int, *, output: Path, force: bool, execution: str | None
) -> Answer:
    """Write the script of an operator, and list its assumptions."""
    with usage_errors():
        script = operator_script(trace, event, source=name_of(name), execution=execution)
    inputs = [Path(path) for path in (name, execution) if path]
    with new_file(output, force=force, inputs=inputs) as unfinished:
        unfinished.write_text(script.text, encoding="utf-8")
    written = Repro(str(output), script.operator, script.event, script.inputs, script.not_recorded)
    document = Document(
        schema=REPRO,
        input={"path": name},
        data=written,
        blocks=lambda: [
            Headline(f"{name_of(name)}: {script.operator} (event {script.event})"),
            Sentence(f"Wrote {output}. Run it with python; it needs torch and longpole."),
            Notes([f"input {place}: {each}" for place, each in enumerate(script.inputs)]),
            Sentence("Not recorded:"),
            Notes(list(script.not_recorded)),
        ],
        records=lambda: [
            {"path": name, "output": str(output), "operator": script.operator, "event": event}
        ],
    )
    return document, exit_codes.OK
