"""`longpole whatif --remedy ID`: how a remedy is recognised and computed, and what was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from longpole.cli.answer import exit_codes
from longpole.cli.ask.suggestions import closest
from longpole.remedies.catalogue import RemedyId, remedies
from longpole.remedies.evidence import Measurement, in_words, measured
from longpole.remedies.model import Effort
from longpole.remedies.sides import Side
from longpole.report.blocks import Column, Headline, Notes, Sentence, Value, tabulated
from longpole.report.document import Document
from longpole.words.data import Row, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from click.shell_completion import CompletionItem

    from longpole.cli.answer.emit import Answer
    from longpole.remedies.model import Remedy
    from longpole.report.blocks import Block

SCHEMA: Final = "longpole.whatif/1"
_COLUMNS: Final[dict[Column, Value]] = {
    Column("remedy"): "remedy",
    Column("side"): "side",
    Column("effort"): lambda row: row["effort"].replace("_", " "),
    Column("recognised by", "name"): "seen_by",
}
_IN_CSV: Final = ("remedy", "side", "effort", "seen_by")


class RemedyType(click.ParamType[str]):
    """The id of a remedy, completed by the shell."""

    name = "remedy"

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """Complete the ids of the catalogue."""
        from click.shell_completion import CompletionItem

        from longpole.remedies.catalogue import CATALOGUE

        return [CompletionItem(name) for name in CATALOGUE if name.startswith(incomplete)]


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
    """The requested remedies, or all."""

    explained: list[ExplainedRemedy]


def explained(ids: Sequence[str]) -> Answer:
    """Explain some remedies without a trace, or list all."""
    chosen = chosen_remedies(ids) if ids else list(remedies())
    rows = explanations(chosen)
    document = Document(
        schema=SCHEMA,
        input={},
        data=Explained(explained=rows),
        blocks=lambda: (
            [block for one in chosen for block in explanation(one)]
            if ids
            else [tabulated(rows, _COLUMNS)]
        ),
        records=lambda: [
            {key: value for key, value in plain(row).items() if key in _IN_CSV} for row in rows
        ],
    )
    return document, exit_codes.OK


def chosen_remedies(ids: Sequence[str]) -> list[Remedy]:
    """Return remedies by their ids.

    Raises
    ------
    click.UsageError
        A remedy does not exist.
    """
    from longpole.tables.program_notes import RULES

    known = {one.id: one for one in remedies()}
    for name in ids:
        if name in known:
            continue
        for rule in RULES:
            if rule.code == name:
                message = f"{name} is a note of `longpole check`: {rule.seen_by}; {rule.advice}"
                raise click.UsageError(message)
        advice = closest(name, known, "`longpole whatif` lists the remedies")
        message = f"no remedy {name!r}; {advice}"
        raise click.UsageError(message)
    return [known[name] for name in ids]


def explanations(chosen: Sequence[Remedy]) -> list[ExplainedRemedy]:
    """Return the explanations of some remedies as data."""
    return [
        ExplainedRemedy(
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
        for one in chosen
    ]


def explanation(one: Remedy) -> list[Block]:
    """Explain a remedy: how it is recognised and computed, and what it was measured to save."""
    told = [
        f"Recognised by: {one.seen_by}.",
        f"Computed as: {one.change}.",
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
