"""The answer of an analysis that takes a trace and a window, by the name of both."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Protocol

import click

from longpole.cli.answer.inputs import describe, name_of, warnings_of
from longpole.cli.answer.windows import abstained, code_of
from longpole.cli.ask.traces import answer_each
from longpole.report.blocks import Headline
from longpole.report.document import DATA_FORMATS, Document
from longpole.wording import duration

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.cli.answer.emit import Answer
    from longpole.cli.ask.options import Options
    from longpole.cli.ask.windows import Asked
    from longpole.report.blocks import Block
    from longpole.report.document import Record
    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = ["Result", "answer_analysis"]


class Result(Protocol):
    """What an analysis answers with."""

    def to_dict(self) -> dict[str, Any]:
        """Give the answer for programs."""
        ...

    def blocks(self) -> Sequence[Block]:
        """Give the answer for people."""
        ...

    def records(self) -> Sequence[Record]:
        """Give the answer as one table."""
        ...


def answer_analysis(
    name: str,
    traces: Sequence[str],
    options: Options,
    *,
    window: Asked,
    **choices: object,
) -> int:
    """Answer with `longpole.analyses.NAME` about a window of each trace, with its own choices."""
    analysis: Callable[..., Result]
    module = import_module(f"longpole.analyses.{name}")
    analysis = getattr(module, name)
    schema = f"longpole.{name}/1"

    def answer(path: str, trace: Trace) -> Answer:
        chosen = window.choose(trace)
        if isinstance(chosen, str) or not chosen.duration_ns:
            why = "the trace has no event of a known kind with a duration"
            return abstained(schema, path, trace, why)
        return _answer(schema, path, trace, chosen, _result(analysis, trace, chosen, choices))

    needs_arguments = getattr(module, "NEEDS_ARGUMENTS", False)
    arguments: Literal["ids", "default"] = "default" if needs_arguments else "ids"
    return answer_each(traces, options, schema, answer, arguments=arguments)


def _result(
    analysis: Callable[..., Result], trace: Trace, window: Window, choices: dict[str, object]
) -> Result:
    """Ask; a condition or a pattern that is invalid is an error of usage."""
    try:
        return analysis(trace, window, **choices)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _answer(schema: str, path: str, trace: Trace, window: Window, result: Result) -> Answer:
    blocks = result.blocks()
    length = f"{duration(window.duration_ns)} ({window.reason})"
    document = Document(
        schema=schema,
        input=describe(path, trace),
        warnings=warnings_of(trace),
        forms_with_warnings=DATA_FORMATS,
        status="partial" if trace.status == "recovered" else "ok",
        scope={
            "rank": trace.rank,
            "step": window.step,
            "window_ns": [window.start_ns, window.end_ns],
            "reason": window.reason,
        },
        data=result.to_dict(),
        blocks=lambda: [
            Headline(f"{name_of(path)}: {window.name}, {length}"),
            *blocks,
        ],
        records=lambda: [{"path": path, **record} for record in result.records()],
    )
    return document, code_of(result.records(), blocks)
