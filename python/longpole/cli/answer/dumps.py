"""Flight recorder dumps, as an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.analyses.dumps import dumps
from longpole.cli.answer import exit_codes
from longpole.cli.answer.inputs import warnings_of_ranks
from longpole.report.blocks import Headline
from longpole.report.document import DATA_FORMATS, Abstention, Document
from longpole.traces.wording import listed
from longpole.wording import count, escape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.analyses.dumps import Dumps
    from longpole.cli.answer.emit import Answer
    from longpole.traces.dump_set import DumpSet

__all__ = ["DUMPS", "dumps_answer"]

DUMPS: Final = "longpole.dumps/1"
_LOSSES: Final = ("unreadable rank", "duplicate rank", "damaged rank")


def dumps_answer(sources: Sequence[str], found: DumpSet) -> Answer:
    """Report which call hangs and which ranks it waits for."""
    answer = dumps(found)
    losses = [finding for finding in found.findings if finding.kind in _LOSSES]
    path = ", ".join(sources)
    who = f"{count(len(found), 'dump')} of {listed(found.rank_numbers)}"
    document = Document(
        schema=DUMPS,
        input={"path": path, "format": "flight recorder"},
        warnings=warnings_of_ranks(losses),
        forms_with_warnings=(*DATA_FORMATS, "text"),
        status="abstained" if answer.is_inconclusive else ("partial" if losses else "ok"),
        abstains_because=_abstentions(found, answer),
        data=answer,
        blocks=lambda: [
            Headline(f"{escape(path)}: {who}, {count(found.calls.height, 'call')}"),
            *answer.blocks(),
        ],
        records=lambda: [{"path": path, **record} for record in answer.records()],
    )
    return document, exit_codes.INCONCLUSIVE if answer.is_inconclusive else exit_codes.OK


def _abstentions(found: DumpSet, answer: Dumps) -> list[Abstention]:
    if not answer.is_inconclusive:
        return []
    return [Abstention("missing_ranks" if found.open_calls else "no_calls")]
