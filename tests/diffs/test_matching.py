"""How the work of two runs is matched, and its time counted."""

from __future__ import annotations

import longpole
from longpole.diffs.matching import shared_out
from longpole.diffs.sentences import _cause
from longpole.testing import TraceBuilder


def program(kernels, n_steps=6):
    """Build steps with an operator for each name, which launches kernels of given times in us."""
    builder = TraceBuilder()
    for number in range(n_steps):
        begin = 10_000 * number
        builder.step(number, (begin, begin + 10_000))
        at = begin + 10
        for operator, works in kernels:
            builder.operator(operator, (at, at + 100 * len(works)))
            for name, length in works:
                work = (at + 20, at + 20 + length)
                builder.launch(name, call=(at + 1, at + 5), work=work)
                at += 100
    return builder.read()


def test_kernels_that_replaced_others_are_matched_within_their_operator():
    base = program([("aten::norm", [("norm_nchw", 70)]), ("aten::conv", [("conv_nchw", 50)])])
    new = program(
        [
            ("aten::norm", [("norm_reduce", 20), ("norm_apply", 15)]),
            ("aten::conv", [("conv_nhwc", 30)]),
        ]
    )
    kernels = [row for row in longpole.diff(base, new).changes if row.kind == "kernel"]
    pairs = {(row.base_names, row.new_names) for row in kernels}
    assert pairs == {
        (("norm_nchw",), ("norm_reduce", "norm_apply")),
        (("conv_nchw",), ("conv_nhwc",)),
    }


def test_a_copy_that_its_call_stages_is_counted_once():
    def copying(length):
        builder = TraceBuilder()
        for number in range(6):
            begin = 10_000 * number
            builder.step(number, (begin, begin + 10_000))
            # The driver stages the bytes, and the call returns before the copy ends.
            call = (begin + 10, begin + length - 200)
            work = (begin + 20, begin + 20 + length)
            name = "Memcpy HtoD (Pageable -> Device)"
            builder.launch(name, call=call, work=work, by="cudaMemcpyAsync")
        return builder.read()

    [change] = [
        row for row in longpole.diff(copying(4_000), copying(900)).changes if row.kind == "copy"
    ]
    assert (change.base_ns, change.new_ns) == (4_000_000, 900_000)


def kernels_of(base, new):
    """Return the changes of kernels, by their relation."""
    rows = [row for row in longpole.diff(base, new).changes if row.kind == "kernel"]
    return {(row.relation, row.base_names, row.new_names) for row in rows}


def test_one_kernel_for_several_is_called_fused_only_by_its_name():
    base = program([("aten::norm", [("mean", 20), ("scale", 70)])])
    plain = program([("aten::norm", [("norm", 30)])])
    fused = program([("aten::norm", [("triton_per_fused_norm_0", 30)])])
    # The kernel that takes longest is named first.
    assert kernels_of(base, plain) == {("replaced", ("scale", "mean"), ("norm",))}
    assert kernels_of(base, fused) == {("fused", ("scale", "mean"), ("triton_per_fused_norm_0",))}


def test_kernels_of_other_operators_did_not_replace_each_other():
    alike = [("aten::conv", [("conv", 50)])]
    base = program([("aten::to", [("copy", 20)]), *alike])
    new = program([("aten::topk", [("sort", 30)]), *alike])
    assert kernels_of(base, new) == {
        ("removed", ("copy",), ()),
        ("added", (), ("sort",)),
        ("same", ("conv",), ("conv",)),
    }


def test_work_that_only_became_less_is_not_called_removed():
    base = program([("aten::cat", [("cat", 50), ("cat", 40)]), ("aten::to", [("copy", 20)])])
    new = program([("aten::cat", [("cat", 60)])])
    found = longpole.diff(base, new)
    table = next(block for block in found.blocks() if str(block).find("what changed") > 0)
    counts = {(row[0], row[1]): row[-1] for row in table.rows}
    # The count of the part is not the total of its name.
    assert counts["kernel, fewer", "cat"] == "-1"
    assert counts["kernel, removed", "copy"] == "1 -> 0"
    assert _cause(max(found.changes, key=found.is_part), found).startswith(
        "1 fewer of the kernel cat: 40.0 µs a step"
    )


def test_a_copy_of_the_same_direction_replaces_one_with_other_memory():
    def copying(operator, memory):
        builder = TraceBuilder()
        for number in range(6):
            begin = 10_000 * number
            builder.step(number, (begin, begin + 10_000))
            builder.operator(operator, (begin + 5, begin + 900))
            name = f"Memcpy DtoH (Device -> {memory})"
            builder.launch(
                name, call=(begin + 10, begin + 20), work=(begin + 20, begin + 800), by="cudaMemcpy"
            )
        return builder.read()

    found = longpole.diff(copying("aten::to", "Pageable"), copying("aten::copy_", "Pinned"))
    [change] = [row for row in found.changes if row.kind == "copy"]
    assert change.relation == "replaced"
    assert found.is_one_program is False  # nothing else corresponds


def test_names_that_tell_nothing_share_nothing_out():
    assert shared_out([["aten::add"]] * 4, ["kernel_a", "kernel_b"]) is None
    assert shared_out([["aten::add"]] * 4, ["triton_fused_x", "triton_fused_y"]) is None
