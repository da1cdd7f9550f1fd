"""A critical path as an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.cli.answer.frames import records_of
from longpole.cli.answer.inputs import name_of
from longpole.cli.answer.windows import exit_code_of, known_of
from longpole.critical_path.explain import path_blocks
from longpole.report.blocks import Headline, Sentence
from longpole.report.document import Document

if TYPE_CHECKING:
    from longpole.cli.answer.emit import Answer
    from longpole.cli.answer.windows import Found
    from longpole.trace import Trace

__all__ = ["PATH", "path_answer"]

PATH: Final = "longpole.path/1"


def path_answer(name: str, trace: Trace, found: Found, *, top: int) -> Answer:
    """Show a path: how long each kind and name is on it; in CSV each segment."""
    path = found.path
    shown = path.by_name.head(top)
    verdict = found.verdict()
    document = Document(
        schema=PATH,
        **known_of(name, trace, found),
        data={
            "length_ns": path.length_ns,
            "inferred_ns": path.inferred_ns,
            "unexplained_ns": path.unexplained_ns,
            "kinds": path.by_kind.to_dicts(),
            "names": shown.to_dicts(),
            "counts": dict(sorted(path.counts.items())),
            "verdict": verdict.to_dict(),
        },
        truncated={"names": {"shown": shown.height, "total": path.by_name.height}},
        blocks=lambda: [
            Headline(f"{name_of(name)}: critical path, {found.title}"),
            Sentence(verdict.sentence),
            *path_blocks(path, top),
        ],
        records=lambda: records_of(name, path.segments),
    )
    return document, exit_code_of(found)
