"""Below a table stands what its figures are of."""

from __future__ import annotations

import pytest

from longpole.analyses.catalogue import TABLES, answer_blocks
from longpole.analyses.legends import _LEGENDS
from longpole.report.blocks import Sentence
from longpole.testing import TraceBuilder


def told(name, builder):
    blocks = answer_blocks(name, builder.read())
    return " ".join(block.text for block in blocks if isinstance(block, Sentence))


def launched():
    builder = TraceBuilder().operator("aten::mm", (0, 90))
    return builder.launch("gemm", call=(10, 20), work=(15, 60))


def test_legends_are_of_tables():
    assert set(_LEGENDS) <= {name for group in TABLES.values() for name in group}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("breakdown", "A row without a stream is about the device as a whole."),
        ("idle_time", "A row without a stream is about the device as a whole."),
        ("launch_times", "A delay below zero"),
        ("queue_summary", "mean to max are of the queue's length"),
        ("annotated_kernels", "Rows without an annotation were launched outside all annotations"),
    ],
)
def test_figures_that_do_not_explain_themselves_are_explained(name, text):
    assert text in told(name, launched())


def test_counts_of_launches_are_explained_where_there_are_some():
    text = "n_short: calls that took longer than what they launched"
    assert text not in told("launch_summary", launched())
    short = TraceBuilder().launch("gemm", call=(10, 20), work=(21, 25))
    assert text in told("launch_summary", short)


def test_what_is_not_there_is_not_explained():
    later = TraceBuilder().annotation("forward", (0, 50))
    later.launch("gemm", call=(10, 20), work=(25, 60))
    assert "below zero" not in told("launch_times", later)
    assert "without an annotation" not in told("annotated_kernels", later)
