"""What an event ran in, what it did, and what it was called with."""

from __future__ import annotations

import pytest

from longpole.testing import TraceBuilder


def trained():
    number = {"Sequence number": 7}
    return (
        TraceBuilder()
        .python("model.py(3): forward", (0, 60))
        .operator("aten::mm", (5, 30), **number, **{"Fwd thread id": 0})
        .launch("gemm", call=(10, 12), work=(20, 60))
        .operator("MmBackward0", (100, 140), thread=2, **number, **{"Fwd thread id": 1})
        .launch("gemm_nt", call=(110, 112), work=(120, 170), thread=2)
        .read()
    )


def test_the_stack_of_a_kernel_is_that_of_its_call():
    stack = trained().stack_of(3)
    assert stack.select("relation", "name").rows() == [
        ("enclosing", "model.py(3): forward"),
        ("enclosing", "aten::mm"),
        ("enclosing", "cudaLaunchKernel"),
        ("launched", "gemm"),
    ]


def test_the_stack_in_a_backward_pass_begins_with_the_forward_operator():
    assert trained().stack_of(6).select("relation", "name").rows() == [
        ("forward", "model.py(3): forward"),
        ("forward", "aten::mm"),
        ("enclosing", "MmBackward0"),
        ("enclosing", "cudaLaunchKernel"),
        ("launched", "gemm_nt"),
    ]


def test_a_kernel_without_a_call_stands_alone():
    trace = TraceBuilder().kernel("orphan", (0, 1)).read()
    assert trace.stack_of(0).select("relation", "name").rows() == [("launched", "orphan")]


def test_a_subtree_holds_what_is_nested_and_what_that_launched():
    assert trained().subtree(0).select("level", "parent", "name").rows() == [
        (0, None, "model.py(3): forward"),
        (1, 0, "aten::mm"),
        (2, 1, "cudaLaunchKernel"),
        (3, 2, "gemm"),
    ]


@pytest.mark.parametrize("event", [-1, 7])
def test_an_event_that_is_none_is_refused(event):
    trace = trained()
    for ask in (trace.stack_of, trace.subtree):
        with pytest.raises(ValueError, match="events are 0 to 6"):
            ask(event)


def test_inputs_are_typed_and_the_tensors_of_a_list_share_a_position():
    arguments = {
        "Input Dims": [[[2, 3], [4, 3]], [], []],
        "Input type": [["float", "float"], "Scalar", "float"],
        "Input Strides": [[[3, 1], [3, 1]], [], []],
        "Concrete Inputs": ["", "1", ""],
    }
    trace = TraceBuilder().operator("aten::cat", (0, 5), **arguments).read()
    assert trace.inputs.row(0, named=True) == {
        "event": 0,
        "inputs": [0, 0, 1, 2],
        "shapes": [[2, 3], [4, 3], None, []],
        "strides": [[3, 1], [3, 1], None, []],
        "dtypes": ["float", "float", "Scalar", "float"],
        "values": ["", "", "1", ""],
    }


@pytest.mark.parametrize("dims", ["not a list", '{"a": 1}', "[[1.5]]", "[null]"])
def test_inputs_that_are_no_lists_of_sizes_have_no_shape(dims):
    trace = TraceBuilder().operator("aten::mm", (0, 5), **{"Input Dims": dims}).read()
    assert all(shape is None for shape in trace.inputs["shapes"][0])


def test_a_trace_without_shapes_has_no_inputs():
    assert TraceBuilder().operator("aten::mm", (0, 5)).read().inputs.height == 0
