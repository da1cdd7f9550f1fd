"""A saved profile of an Ascend device opens again with the same answers."""

from __future__ import annotations

import pytest
from polars.testing import assert_frame_equal

import longpole
from real_traces import SHARED

FOLDER = SHARED / "mindspore" / "ascend_alexnet_msprof"


@pytest.mark.skipif(not FOLDER.exists(), reason="needs the recorded profile")
def test_a_saved_ascend_folder_opens_with_the_same_answers(tmp_path):
    trace = longpole.read_trace(FOLDER)
    trace.save(tmp_path / "saved.longpole")
    opened = longpole.read_trace(tmp_path / "saved.longpole")
    assert_frame_equal(opened.events, trace.events)
    assert_frame_equal(opened.launches, trace.launches)
    assert_frame_equal(longpole.kernels(opened), longpole.kernels(trace))
    one, two = (each.critical_path(whole=True).segments for each in (opened, trace))
    assert_frame_equal(one, two)
