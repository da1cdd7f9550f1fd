"""`longpole explain`: say how a remedy is recognised, what it changes, and how well it predicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from longpole.cli.answer import exit_codes
from longpole.cli.ask.options import Options, answer_options, answers
from longpole.cli.ask.suggestions import closest
from longpole.data import Row, plain
from longpole.remedies.catalogue import RemedyId, remedies
from longpole.remedies.evidence import Measurement, in_words, measured
from longpole.remedies.model import Effort
from longpole.remedies.parts import Side
from longpole.report.blocks import Column, Headline, Notes, Sentence, Value, tabulated
from longpole.report.document import Document

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from longpole.cli.answer.emit import Answer
    from longpole.remedies.model import Remedy
    from longpole.report.blocks import Block

__all__ = ["explain"]

_SCHEMA: Final = "longpole.explain/1"
_COLUMNS: Final[dict[Column, Value]] = {
    Column("remedy"): "remedy",
    Column("side"): "side",
    Column("effort"): lambda row: row["effort"].replace("_", " "),
    Column("seen by", "name"): "seen_by",
}
_IN_CSV: Final = ("remedy", "side", "effort", "seen_by")


class _Remedy(click.ParamType[str]):
    """The id of a remedy, completed by the shell."""

    name = "remedy"

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        from longpole.remedies.catalogue import CATALOGUE

        return [CompletionItem(name) for name in CATALOGUE if name.startswith(incomplete)]


@click.command()
@answers("longpole.cli.explain:Explained")
@click.argument("remedy", required=False, type=_Remedy(), metavar="[REMEDY]")
@answer_options
def explain(*, remedy: str | None, options: Options) -> int:
    """Explain a remedy: how it is recognised, what it changes, how well it predicts.

    REMEDY is an id of `longpole whatif TRACE`, such as cuda_graph. Without it, all
    remedies are listed.

    \b
    Examples:
      longpole explain
      longpole explain cuda_graph
    """
    return options.emit(_answer(remedy))


class ExplainedRemedy(Row):
    """A remedy of the catalogue."""

    remedy: RemedyId
    side: Side
    effort: Effort
    needs: str
    """What must be recorded to find the remedy."""
    seen_by: str
    change: str
    """The change of the dependency graph."""
    not_when: str
    is_upper_bound: bool
    """Whether the change may be impossible, in which case even the lower bound of its gain is only
    an upper bound."""
    is_computed: bool
    """Whether a gain is computed."""
    measured: list[Measurement]
    """Programs that were timed with and without the remedy."""


class Explained(Row):
    """The requested remedy, or all."""

    remedies: list[ExplainedRemedy]


def _answer(name: str | None) -> Answer:
    """Explain one remedy, or list all.

    Raises
    ------
    click.UsageError
        The remedy does not exist.
    """
    known = {one.id: one for one in remedies()}
    if name is not None and name not in known:
        from longpole.analyses.program_notes import RULES

        for rule in RULES:
            if rule.code == name:
                message = f"{name} is a note of `longpole check`: {rule.seen_by}; {rule.advice}"
                raise click.UsageError(message)
        advice = closest(name, known, "`longpole explain` lists the remedies")
        message = f"no remedy {name!r}; {advice}"
        raise click.UsageError(message)
    chosen = [*known.values()] if name is None else [known[name]]
    rows = [_row(one) for one in chosen]
    document = Document(
        schema=_SCHEMA,
        input={},
        data=Explained(remedies=rows),
        blocks=lambda: [tabulated(rows, _COLUMNS)] if name is None else _blocks(chosen[0]),
        records=lambda: [
            {key: value for key, value in plain(row).items() if key in _IN_CSV} for row in rows
        ],
    )
    return document, exit_codes.OK


def _row(one: Remedy) -> ExplainedRemedy:
    return ExplainedRemedy(
        remedy=RemedyId(one.id),
        side=one.side,
        effort=one.effort,
        needs=one.needs,
        seen_by=one.seen_by,
        change=one.change,
        not_when=one.not_when,
        is_upper_bound=one.is_upper_bound,
        is_computed=one.is_computed,
        measured=measured(one.id),
    )


def _blocks(one: Remedy) -> list[Block]:
    told = [
        f"Seen by: {one.seen_by}.",
        f"What is changed: {one.change}.",
        f"Not when: {one.not_when}.",
        f"Must be recorded: {one.needs}.",
    ]
    if one.is_upper_bound:
        told.append("Its gain is an upper bound: whether it is possible is not in the trace.")
    rows = measured(one.id)
    return [
        Headline(f"{one.id} ({one.side}, {one.effort.replace('_', ' ')})"),
        *(Sentence(text) for text in told),
        Sentence("Measured:" if rows else "What it saves was not measured."),
        *([Notes([in_words(row) for row in rows])] if rows else []),
    ]
