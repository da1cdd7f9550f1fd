"""Explains why a table has no rows: what the trace lacks, or what the program did not do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from longpole.files.damage import record_hint
from longpole.rows.selection.grammar import tokens_of
from longpole.tables.catalogue import view_of
from longpole.trace import sweeps
from longpole.trace.allocations import Allocations
from longpole.words.recording import options_for
from longpole.words.wording import escape, short_name

if TYPE_CHECKING:
    from longpole.trace.trace import Trace

_LONGEST: Final = 120


def why_unmatched(condition: str, recording: Trace | Allocations) -> str:
    """Return why no row matches a condition; names are compared as recorded, not as shown.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().launch("nvjet_tst_64x8_TNT", call=(0, 1), work=(2, 9)).read()
    >>> why_unmatched("name LIKE '%gemm%'", trace)[30:]
    'Names are compared as recorded: gemm 64x8 bf16 (nvjet) is nvjet_tst_64x8_TNT.'
    """
    told = "No row matches the condition."
    if isinstance(recording, Allocations):
        return told
    texts = [str(token.value) for token in tokens_of(condition) if token.kind == "text"]
    asked = [text.strip("%^$.* ").casefold() for text in texts]
    names = sweeps.activities(recording)["name"].cast(pl.String).drop_nulls()
    for name in names.unique(maintain_order=True):
        shown = short_name(name)
        if any(text and text in shown.casefold() and text not in name.casefold() for text in asked):
            recorded = name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…"
            return f"{told} Names are compared as recorded: {shown} is {escape(recorded)}."
    return told


def why_empty(
    name: str, recording: Trace | Allocations, by: str | None = None, *, is_part: bool = False
) -> str:
    """Return a sentence on why a table has no rows; `is_part`: it covers part of a trace.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().operator("aten::mm", (0, 9)).read()
    >>> why_empty("kernels", trace)[:46]
    'The trace has no GPU activities: record with a'
    """
    view = view_of(name, by)
    if isinstance(recording, Allocations):
        return view.empty
    lacking = next((need for need in view.needs if not need.is_recorded(recording)), None)
    if lacking is None:
        is_more = is_part and not view.ignores_window
        return f"{view.empty} `--window all` covers the whole trace." if is_more else view.empty
    if lacking.option is None or not getattr(options_for(recording.core), lacking.option):
        return f"{lacking.missing}."
    return record_hint(recording, lacking.missing, lacking.option, lacking.otherwise)
