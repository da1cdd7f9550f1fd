"""How often predicted gains held, as an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.analyses.ledger import ledger
from longpole.cli.answer import exit_codes
from longpole.cli.answer.inputs import name_of
from longpole.report.blocks import Column, Headline, Notes, Sentence, Value, tabulated
from longpole.report.document import Abstention, Document
from longpole.wording import count, share

if TYPE_CHECKING:
    from longpole.analyses.ledger import Ledger
    from longpole.cli.answer.emit import Answer
    from longpole.report.blocks import Block

__all__ = ["LEDGER", "ledger_answer"]

LEDGER: Final = "longpole.ledger/1"
_REMEDIES: Final[dict[Column, Value]] = {
    Column("remedy"): "remedy",
    Column("applied", "count"): "count",
    Column("held", "count"): "held",
    Column("outside of the interval, mean", "share"): "mean_error",
    Column("width of the interval, mean", "share"): "mean_width",
}
_MISSED: Final[dict[Column, Value]] = {
    Column("did not hold"): "remedy",
    Column("at least", "share"): "gain_low",
    Column("at most", "share"): "gain_high",
    Column("measured", "share"): "measured",
    Column("base", "name"): "base",
    Column("new", "name"): "new",
}


def ledger_answer(path: str) -> Answer:
    """Say how often the predictions of a file held."""
    found = ledger(path)
    document = Document(
        schema=LEDGER,
        input={"path": path},
        status="ok" if found.n_pairs else "abstained",
        abstains_because=[] if found.n_pairs else [Abstention("no_predictions")],
        data=found,
        blocks=lambda: _blocks(path, found),
        records=found.pairs.to_dicts,
    )
    return document, exit_codes.OK if found.n_pairs else exit_codes.INCONCLUSIVE


def _blocks(path: str, found: Ledger) -> list[Block]:
    pairs = count(found.n_pairs, "prediction")
    held = f" ({share(found.n_held / found.n_pairs)})" if found.n_pairs else ""
    missed = [row for row in found.pairs.to_dicts() if not row["held"]]
    left_out = count(found.n_unreadable, "line")
    tables = [
        tabulated(found.remedies.to_dicts(), _REMEDIES),
        tabulated(missed, _MISSED),
    ]
    return [
        Headline(f"{name_of(path)}: {pairs} of gains"),
        Sentence(
            f"{found.n_held} of {found.n_pairs} predictions held{held}, with 2 points of slack."
        ),
        *(table for table in tables if table.rows),
        *([Notes([f"Left out: {left_out} without a prediction."])] if found.n_unreadable else []),
    ]
