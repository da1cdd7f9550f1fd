"""Below a table stands what its figures are of."""

from __future__ import annotations

import pytest

from longpole.report.blocks import Sentence
from longpole.tables.table_blocks import answer_blocks
from longpole.testing import TraceBuilder


def told(name, builder):
    table, _, by = name.partition(" ")
    blocks = answer_blocks(table, builder.read(), by=by or None)
    return " ".join(block.text for block in blocks if isinstance(block, Sentence))


def launched():
    builder = TraceBuilder().operator("aten::mm", (0, 90))
    return builder.launch("gemm", call=(10, 20), work=(15, 60))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("breakdown", "A row without a stream is about the device as a whole."),
        ("idle", "A row without a stream is about the device as a whole."),
        ("launches", "A delay below zero"),
        ("queue", "mean to max are of the queue's length"),
        ("kernels annotation", "Rows without an annotation were launched outside all annotations"),
    ],
)
def test_figures_that_do_not_explain_themselves_are_explained(name, text):
    assert text in told(name, launched())


def test_counts_of_launches_are_explained_where_there_are_some():
    text = "n_short: calls that took longer than what they launched"
    assert text not in told("launches call", launched())
    short = TraceBuilder().launch("gemm", call=(10, 20), work=(21, 25))
    assert text in told("launches call", short)


def test_what_is_not_there_is_not_explained():
    later = TraceBuilder().annotation("forward", (0, 50))
    later.launch("gemm", call=(10, 20), work=(25, 60))
    assert "below zero" not in told("launches", later)
    assert "without an annotation" not in told("kernels annotation", later)
