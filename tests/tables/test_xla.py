"""The work and the memory of XLA programs, from the HLO and the allocations in `xplane.pb`."""

from __future__ import annotations

import json
import shutil

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import longpole
from longpole.formats.xplane.hlo import hlo_modules
from longpole.report.blocks import Sentence
from oracles.simulator.perfetto import message, number, text
from real_traces import SHARED

JAX = SHARED / "gpu/other/jax.xplane.pb"
F32, BF16, S8, TUPLE = 11, 16, 2, 13
US = 1_000_000  # picoseconds
COPIED = -1


def array(*dimensions, dtype=F32):
    return b"".join([number(2, dtype), *(number(3, size) for size in dimensions)])


def instruction(row, name, opcode, shape, *more, operands=()):
    places = [number(36, place) for place in operands]
    return message(
        2, text(1, name), text(2, opcode), message(3, shape), number(35, row), *places, *more
    )


def computation(row, *instructions):
    return message(3, text(1, f"computation.{row}"), *instructions, number(5, row))


def module(name, *computations, schedule=()):
    order = message(2, *(number(1, place) for place in schedule))
    entry = message(7, message(1, number(1, 1), order)) if schedule else b""
    return message(1, text(1, name), *computations, entry)


def dot(row, name, left, right, out):
    """Contract the last dimension of left with the first of right."""
    numbers = message(30, number(1, 1), number(2, 0))
    return instruction(row, name, "dot", out, numbers, operands=(left, right))


def gemm(row, name, left, right, out):
    """Call cuBLAS, with a workspace."""
    settings_ = {
        "gemm_backend_config": {"dot_dimension_numbers": {"lhs_contracting_dimensions": ["1"]}}
    }
    shape = number(2, TUPLE) + message(4, out) + message(4, array(4096, dtype=S8))
    more = text(28, "__cublas$lt$matmul"), text(43, json.dumps(settings_))
    return instruction(row, name, "custom-call", shape, *more, operands=(left, right))


def plane(name, events, *, line="line", stats=(), types=()):
    """Write a plane with events: (name, start and duration in us, values)."""
    names, keys = {}, {}
    written = [
        message(
            4,
            number(1, names.setdefault(what, len(names) + 1)),
            number(2, start * US),
            number(3, took * US),
            *(
                message(
                    4,
                    number(1, keys.setdefault(key, len(keys) + 1)),
                    text(5, value) if isinstance(value, str) else number(4, value),
                )
                for key, value in values.items()
            ),
        )
        for what, start, took, values in events
    ]
    lines = message(3, number(1, 1), text(2, line), *written) if events else b""
    types = [
        *types,
        *(
            message(4, number(1, row), message(2, number(1, row), text(2, it)))
            for it, row in names.items()
        ),
    ]
    stats = [
        *stats,
        *(
            message(5, number(1, row), message(2, number(1, row), text(2, it)))
            for it, row in keys.items()
        ),
    ]
    return message(1, text(2, name), lines, *types, *stats)


def metadata(*modules):
    types = []
    for row, content in enumerate(modules, 1):
        stat = message(5, number(1, 9), message(6, content))
        types.append(
            message(4, number(1, row), message(2, number(1, row), text(2, f"m({row})"), stat))
        )
    stats = [message(5, number(1, 9), message(2, number(1, 9), text(2, "Hlo Proto")))]
    return plane("/host:metadata", [], stats=stats, types=types)


def profile(*modules, kernels=(), memory=()):
    """Write a profile with kernels: (name, instruction, module, launch), 10 us each."""
    on_device, on_host = [], []
    for place, (name, op, of_module, launch) in enumerate(kernels):
        values = {"hlo_op": op, "hlo_module": of_module, "correlation_id": launch}
        on_device.append((name, 1000 + 10 * place, 10, values))
    launches = sorted({launch for *_, launch in kernels})
    on_host += [("cuGraphLaunch", 10 * it, 5, {"correlation_id": it}) for it in launches]
    on_host += memory
    return b"".join(
        [
            metadata(*modules),
            plane("/device:GPU:0", on_device, line="Stream #1(Compute)"),
            plane("/host:CPU", on_host, line="python"),
        ]
    )


def rows_of(folder, content):
    path = folder / "host.xplane.pb"
    path.write_bytes(content)
    found = longpole.roofline(longpole.read_trace(path)).rows
    return {row["name"]: row for row in found.to_dicts() if row["flops"] is not None}


sizes = st.integers(1, 4096)


@given(sizes, sizes, sizes, st.booleans())
@settings(deadline=None, max_examples=20)
def test_a_product_costs_two_m_n_k_alone_and_inside_a_fusion(tmp_path_factory, m, n, k, is_fused):
    inputs = [
        instruction(1, "a", "parameter", array(m, k)),
        instruction(2, "b", "parameter", array(k, n)),
    ]
    product = dot(3, "dot.1", 1, 2, array(m, n))
    if is_fused:
        added = instruction(4, "add.1", "add", array(m, n), operands=(3, 3))
        inner = computation(7, *inputs, product, added)
        fusion = instruction(
            3, "gemm_fusion.1", "fusion", array(m, n), number(38, 7), operands=(1, 2)
        )
        program = module("jit_f", inner, computation(1, *inputs, fusion))
        kernel = ("gemm_fusion_1", "gemm_fusion.1", "jit_f", 1)
    else:
        program = module("jit_f", computation(1, *inputs, product))
        kernel = ("gemm", "dot.1", "jit_f", 1)
    content = profile(program, kernels=[kernel])
    [row] = rows_of(tmp_path_factory.mktemp("xla"), content).values()
    assert row["flops"] == 2 * m * n * k + (m * n if is_fused else 0)
    assert row["n_bytes"] == 4 * (m * k + k * n + m * n)
    assert row["precision"] == "fp32"


def buffered(*kernels):
    """Two products of cuBLAS around equal fusions, scheduled in another order than written."""
    inner = computation(
        7,
        instruction(1, "p", "parameter", array(8, 4)),
        instruction(2, "t", "tanh", array(8, 4), operands=(1,)),
    )
    entry = computation(
        1,
        instruction(1, "a", "parameter", array(8, 4)),
        instruction(2, "b", "parameter", array(4, 4)),
        instruction(3, "c", "parameter", array(4, 2)),
        gemm(6, "custom-call.2", 5, 3, array(8, 2)),
        gemm(4, "custom-call.1", 1, 2, array(8, 4)),
        instruction(5, "wrapped_tanh", "fusion", array(8, 4), number(38, 7), operands=(4,)),
    )
    program = module("jit_step", inner, entry, schedule=(1, 2, 3, 4, 5, 6))
    launched = [(name, "command_buffer", "jit_step", launch) for name, launch in kernels]
    return profile(program, kernels=launched)


def test_kernels_of_a_command_buffer_are_told_apart_by_their_names_and_the_schedule(tmp_path):
    once = ["cublas_nn", "wrapped_tanh", "cublas_nt"]
    content = buffered(*((name, launch) for launch in (1, 2) for name in once))
    rows = rows_of(tmp_path, content)
    flops = {name: (row["flops"], row["calls"]) for name, row in rows.items()}
    assert flops == {
        "custom-call.1": (2 * 2 * 8 * 4 * 4, 2),
        "custom-call.2": (2 * 2 * 8 * 4 * 2, 2),
        "wrapped_tanh": (2 * 8 * 4, 2),
    }


def test_a_product_of_several_kernels_leaves_those_of_a_command_buffer_unknown(tmp_path):
    content = buffered(("split_k", 1), ("reduce", 1), ("wrapped_tanh", 1), ("cublas_nt", 1))
    assert list(rows_of(tmp_path, content)) == ["wrapped_tanh"]


def test_programs_of_one_name_that_differ_stay_unknown(tmp_path):
    programs = [
        module(
            "jit_f",
            computation(
                1,
                instruction(1, "a", "parameter", array(size)),
                instruction(2, "tanh.1", "tanh", array(size), operands=(1,)),
            ),
        )
        for size in (4, 8)
    ]
    assert rows_of(tmp_path, profile(*programs, kernels=[("tanh", "tanh.1", "jit_f", 1)])) == {}
    same = profile(programs[0], programs[0], kernels=[("tanh", "tanh.1", "jit_f", 1)])
    [row] = rows_of(tmp_path, same).values()
    assert row["flops"] == 4


def test_a_cut_file_has_the_modules_before_the_cut(tmp_path):
    whole = buffered(("wrapped_tanh", 1))
    path = tmp_path / "cut.xplane.pb"
    for length in range(1, len(whole), 7):
        path.write_bytes(whole[:length])
        assert len(hlo_modules(path)) <= 1


@given(st.binary(min_size=1, max_size=400))
@settings(deadline=None, max_examples=100)
def test_any_bytes_in_the_place_of_hlo_are_read_without_an_error(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("xla") / "x.xplane.pb"
    path.write_bytes(metadata(content))
    assert isinstance(hlo_modules(path), list)


def allocator(at, change, size, total, **more):
    values = {"allocator_name": "GPU_0_bfc", "allocation_bytes": size, "bytes_allocated": total}
    values |= {"bytes_available": 1000 - total, "addr": size, "peak_bytes_in_use": 700}
    return (change, at, 0, values | more)


def test_allocations_have_owners_and_the_allocator_a_capacity(tmp_path, said):
    memory = [
        ("PjitFunction(step)", 10, 80, {}),
        ("Execute", 20, 50, {}),
        allocator(30, "MemoryAllocation", 200, 300),
        allocator(40, "MemoryAllocation", 150, 450),
        allocator(60, "MemoryDeallocation", 200, 250),
    ]
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(profile(kernels=[("k", "op", "m", 1)], memory=memory))
    found = longpole.memory(longpole.read_trace(path))
    [row] = found.devices.to_dicts()
    assert (row["device"], row["peak_bytes"], row["end_bytes"]) == ("GPU_0_bfc", 450, 250)
    assert (row["start_bytes"], row["peak_operator"]) == (100, "PjitFunction(step)")
    owners = found.at_peak.select("operator", "n_bytes", "known").rows()
    assert owners == [("PjitFunction(step)", 350, True), (None, 100, False)]
    told = " ".join(it.text for it in found.blocks() if isinstance(it, Sentence))
    said.within(told)
    said.within(told)


@pytest.mark.parametrize("table", ["memory", "roofline"])
def test_what_a_file_lacks_is_not_said_of_its_profiler(tmp_path, table, said):
    if not JAX.exists():
        pytest.skip("needs ../shared/data")
    timeline = tmp_path / "jax.trace.json.gz"
    shutil.copy(JAX.with_name("jax.trace.json.gz"), timeline)
    blocks = getattr(longpole, table)(longpole.read_trace(timeline)).blocks()
    told = " ".join(it.text for it in blocks if isinstance(it, Sentence))
    said.within(told)
    assert "records none" not in told


def test_the_recording_of_jax_has_the_figures_of_xprof():
    """XProf 2.24: 30 runs of jit(matmul), 4.295 GFLOP each; at most 163,578,624 bytes allocated."""
    if not JAX.exists():
        pytest.skip("needs ../shared/data")
    for path in (JAX, JAX.with_name("jax.trace.json.gz")):
        trace = longpole.read_trace(path)
        whole = longpole.choose_window(trace, whole=True)
        rows = longpole.roofline(trace, whole).rows
        [row] = rows.filter(pl.col("name") == "jit(matmul)/dot_general").to_dicts()
        assert (row["flops"], row["calls"]) == (30 * 2 * 2048 * 1024 * 1024, 30)
        step = longpole.roofline(trace, longpole.choose_window(trace, 1))
        assert step.known_ns == step.kernel_ns
    trace = longpole.read_trace(JAX)
    memory = longpole.memory(trace, longpole.choose_window(trace, whole=True))
    assert memory.devices["peak_bytes"].max() == 163_578_624
