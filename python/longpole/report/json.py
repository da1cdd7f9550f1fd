"""Answers as JSON: an envelope each, whose keys and order are stable."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.report.document import Document

__all__ = ["json_lines", "json_text"]


def json_text(documents: Sequence[Document]) -> str:
    """Write one answer as an object, several as an array of objects."""
    envelopes = [document.envelope() for document in documents]
    whole = envelopes[0] if len(envelopes) == 1 else envelopes
    return json.dumps(whole, indent=2, allow_nan=False) + "\n"


def json_lines(document: Document) -> str:
    """Write an answer as one line."""
    return json.dumps(document.envelope(), separators=(",", ":"), allow_nan=False) + "\n"
