"""The judge of paths: what it calls right, and what falsely certain."""

import pytest

from oracles.judge import Piece, share_of

TRUTH = [
    Piece(0, 40, "operator", 1),
    Piece(40, 50, "launch", 2),
    Piece(50, 100, "kernel", 2),
]


def test_the_true_path_is_right():
    assert share_of(TRUTH, TRUTH) == (1, 0, 0, False)


def test_another_event_or_another_kind_is_false():
    found = [Piece(0, 50, "operator", 1), Piece(50, 80, "kernel", 3), Piece(80, 100, "copy", 2)]
    assert share_of(found, TRUTH) == (0.4, 0.6, 0, False)


def test_kinds_of_latency_count_as_one():
    found = [*TRUTH[:1], Piece(40, 50, "event_wait", None), *TRUTH[2:]]
    assert share_of(found, TRUTH).right == 1


def test_who_admits_not_to_know_is_wrong_but_not_false():
    found = [Piece(0, 60, "unexplained", None), Piece(60, 100, "kernel", 2)]
    assert share_of(found, TRUTH) == (0.4, 0, 0.6, False)


def test_an_inconclusive_path_is_not_false():
    found = [Piece(0, 100, "kernel", 2)]
    assert share_of(found, TRUTH, inconclusive=True) == (0.5, 0, 0, True)


def test_what_a_path_leaves_out_is_not_right():
    assert share_of(TRUTH[2:], TRUTH) == (0.5, 0, 0, False)


def test_borders_may_lie_as_far_off_as_is_tolerated():
    found = [Piece(-3, 37, "operator", 1), Piece(37, 47, "launch", 2), Piece(47, 100, "kernel", 2)]
    assert share_of(found, TRUTH).right == pytest.approx(0.94)
    assert share_of(found, TRUTH, tolerance_ns=3).right == 1
    assert share_of(found, TRUTH, tolerance_ns=2).right == pytest.approx(0.98)
