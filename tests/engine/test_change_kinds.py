"""Which time a change is about: by the kinds of the path, and by the kinds of events."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longpole.engine.critical_path import Drop, RemoveWait, Scale
from longpole.engine.critical_path.changes import EventKind, WorkKind, kind_named, name_pattern
from longpole.testing import TraceBuilder


@pytest.fixture(scope="module")
def path():
    """100 µs of Python; inside it a range of 30 µs with an operator, and two driver calls."""
    builder = (
        TraceBuilder()
        .python("step.py(1): step", (0, 100))
        .annotation("load", (10, 40))
        .operator("aten::to", (20, 30))
        .call("cuLaunchKernel", (50, 60), correlation=7)
        .event(ph="X", cat="cuda_driver", name="cuMemAlloc_v2", pid=100, tid=1, ts=65, dur=10)
        .fill("Memset (Device)", (60, 90), correlation=7)
    )
    return builder.read().critical_path(whole=True)


def saved_us(path, change):
    return path.what_if(change).gain_ns / 1_000


def test_a_kind_of_the_path_goes_before_a_kind_of_events(path):
    assert saved_us(path, Drop(kind="runtime")) == saved_us(
        path, Drop(kind="runtime", matching="cu")
    )
    assert saved_us(path, Drop(kind="driver")) == 10


def test_a_function_is_meant_without_what_is_nested_in_it(path):
    # Its first and last stretch, 10 µs each, and what follows the range before the memset.
    assert saved_us(path, Drop(kind="python")) == 30


def test_an_annotation_is_all_the_time_inside_it(path):
    assert saved_us(path, Drop(kind="annotation", matching="load")) == 30
    assert saved_us(path, Scale(kind="annotation", matching="load", by=0.5)) == 15
    assert saved_us(path, Drop(kind="annotation", matching="absent")) == 0


def test_every_kind_of_events_and_of_the_path_can_be_asked_for(path):
    for kind in (*get_args(EventKind), *get_args(WorkKind)):
        assert saved_us(path, Drop(kind=kind)) >= 0


def test_what_is_chosen_is_counted(path):
    changes = [Drop(kind="annotation", matching="absent"), Drop(kind="span"), Drop(), RemoveWait()]
    absent, span, work, waits = path.n_chosen(changes)
    assert (absent, span, waits) == (0, 0, 0)
    assert work > 0


def test_an_unknown_kind_is_refused_with_those_that_are_known():
    with pytest.raises(
        ValueError, match=r"no kind .warps.; write .:warps. .*, kernel,.*after_last_event"
    ):
        Drop(kind="warps")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("copies", "copy"),
        ("Kernels", "kernel"),
        ("memcpy", "copy"),
        ("sync", "sync_return"),
        ("gemm", "kernel:gemm"),
        ("data loading", "data_loading"),
    ],
)
def test_an_unknown_kind_is_refused_with_the_one_that_is_meant(written, meant):
    with pytest.raises(ValueError, match=f"no kind {written!r}; did you mean {meant!r}, or "):
        Scale(by=2, kind=written)


@pytest.mark.parametrize("name", ["memcpy", "Memset", "copy"])
def test_memcpy_and_memset_mean_the_kind_of_both(name, path):
    assert path.n_chosen([Drop(kind=kind_named(name))]) == [1]


@given(st.text(st.characters(codec="utf-8"), min_size=1))
def test_a_name_selects_its_events_alone(name):
    builder = TraceBuilder().launch(name, call=(0, 1), work=(1, 5))
    builder = builder.launch(f"{name}x", call=(2, 3), work=(5, 9))
    path = builder.launch(f"x{name}", call=(4, 5), work=(9, 12)).read().critical_path(whole=True)
    assert path.n_chosen([Drop(kind="kernel", matching=f"^(?:{name_pattern(name)})$")]) == [1]
