"""What would be if something were different, as an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from longpole.cli.answer import exit_codes
from longpole.cli.answer.frames import records_of
from longpole.cli.answer.inputs import name_of
from longpole.cli.answer.matching import matched
from longpole.cli.answer.windows import exit_code_of, known_of
from longpole.critical_path import Drop, RemoveWait, Scale
from longpole.critical_path.explain import path_blocks
from longpole.report.blocks import Column, Headline, Notes, Table
from longpole.report.document import Document, Warned
from longpole.wording import count, duration, share

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from longpole.cli.answer.emit import Answer
    from longpole.cli.answer.windows import Found
    from longpole.critical_path import Change, CriticalPath, WhatIf
    from longpole.report.blocks import Block
    from longpole.trace import Trace

__all__ = ["WHATIF", "changed_answer", "ideal_answer"]

WHATIF: Final = "longpole.whatif/1"
_MOST_NAMES: Final = 5
_MOST_NAMES_IN_DATA: Final = 10
_LEAST_GAIN: Final = 0.001
_NOUNS: Final = {"sync_return": "call", "runtime": "call", "data_loading": "data loading"}
_GAINS: Final = (
    Column("gain", "duration"),
    Column("share", "share"),
    Column("makespan", "duration"),
    Column("if"),
    Column("name", "name"),
)


def changed_answer(name: str, trace: Trace, found: Found, *, changes: Sequence[Change]) -> Answer:
    """Say how long the window would take after some changes."""
    answer = _asked(found.path, changes)
    known = known_of(name, trace, found)
    unmatched = [_unmatched(change) for change in changes if not matched(change, found.path, trace)]
    if unmatched:
        known |= {"warnings": [*known["warnings"], *unmatched], "status": "partial"}
    gains = _gain(found.path, answer)
    words = ", ".join(map(_words, changes))
    document = Document(
        schema=WHATIF,
        **known,
        data={
            "changes": [_change(change) for change in changes],
            **gains,
            "inferred_ns": answer.critical_path.inferred_ns,
            "kinds": answer.critical_path.by_kind.to_dicts(),
            "names": answer.critical_path.by_name.head(_MOST_NAMES_IN_DATA).to_dicts(),
        },
        blocks=lambda: [
            Headline(_headline(name, found, answer, words)),
            *path_blocks(answer.critical_path, _MOST_NAMES),
        ],
        records=lambda: [{"path": name, "window": found.name, "changes": words, **gains}],
    )
    return document, exit_codes.INCONCLUSIVE if unmatched else exit_code_of(found)


def ideal_answer(name: str, trace: Trace, found: Found) -> Answer:
    """Rank the answers to the usual questions."""
    answers = found.path.ideal()
    headline = f"{name_of(name)}: {found.title}: {duration(found.path.length_ns)}; if ..."
    document = Document(
        schema=WHATIF,
        **known_of(name, trace, found),
        data={"length_ns": found.path.length_ns, "ideal": answers.to_dicts()},
        blocks=lambda: [Headline(headline), *_gains(answers)],
        records=lambda: records_of(name, answers),
    )
    return document, exit_code_of(found)


def _asked(path: CriticalPath, changes: Sequence[Change]) -> WhatIf:
    try:
        return path.what_if(changes)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _gain(path: CriticalPath, answer: WhatIf) -> dict[str, int | float]:
    return {
        "length_ns": path.length_ns,
        "makespan_ns": answer.makespan_ns,
        "gain_ns": answer.gain_ns,
        "share": answer.gain_ns / path.length_ns,
    }


def _change(change: Change) -> dict[str, Any]:
    """Give a change as data: what is done, and to what."""
    done = {Scale: "scale", Drop: "drop", RemoveWait: "remove_wait"}[type(change)]
    by = float(change.by) if isinstance(change, Scale) else None
    return {"change": done, "kind": change.kind, "matching": change.matching, "by": by}


def _words(change: Change) -> str:
    """Give a change as it was asked for."""
    what = _target(change)
    if isinstance(change, Scale):
        return f"{what} x {change.by}"
    return f"{what} dropped" if isinstance(change, Drop) else f"{what} waits removed"


def _target(change: Change) -> str:
    return ":".join(part for part in (change.kind or "", change.matching) if part is not None)


def _unmatched(change: Change) -> Warned:
    return Warned(
        code="change_without_effect",
        count=1,
        message=f"nothing in the trace matches {_target(change)!r}",
        effect="this change changes nothing",
        hint="`longpole path` lists kinds and names",
    )


def _gains(answers: pl.DataFrame) -> list[Block]:
    """List what would make the window shorter or longer, and count what hardly would."""
    helpful = answers.filter(answers["share"].abs() >= _LEAST_GAIN)
    columns = ("gain_ns", "share", "makespan_ns", "question", "kind", "name")
    rows = [
        (gain_ns, part, makespan_ns, _question(question, kind), name)
        for gain_ns, part, makespan_ns, question, kind, name in helpful.select(columns).iter_rows()
    ]
    blocks: list[Block] = [Table(_GAINS, rows)] if rows else []
    useless = answers.filter(answers["share"].abs() < _LEAST_GAIN)
    if useless.height:
        little = f"less than {share(_LEAST_GAIN)}" if (useless["gain_ns"] != 0).any() else "nothing"
        blocks.append(Notes([f"{count(useless.height, 'more question')} would gain {little}."]))
    return blocks


def _question(question: str, kind: str) -> str:
    """Say what `this` is."""
    noun = _NOUNS.get(kind, kind)
    return (
        question.replace("this ", f"this {noun} ", 1) if question.startswith("this ") else question
    )


def _headline(name: str, found: Found, answer: WhatIf, words: str) -> str:
    before_ns = found.path.length_ns
    part = share(abs(answer.gain_ns) / before_ns)
    than = "less" if answer.gain_ns >= 0 else "more"
    times = f"{duration(before_ns)} -> {duration(answer.makespan_ns)}"
    return f"{name_of(name)}: {found.title}, with {words}: {times}, {part} {than}"
