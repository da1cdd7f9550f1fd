"""Candidates for a matrix product: only what multiplies right can win."""

from dataclasses import replace

import numpy as np
import pytest

from longpole.bench import FakeClock, tune_gemm
from longpole.bench.tunableop import Gemm, Limits, merge

SMALL = Gemm(operation="Gemm", dtypes=("double",), transa="n", transb="n", m=4, n=3, k=5)
BATCH = Gemm(
    operation="GemmStridedBatched", dtypes=("Half",), transa="n", transb="n", m=4, n=3, k=5, batch=2
)
NO_COPIES = Limits(rotating_bytes=0, iterations=3)
OF_TORCH = Limits(rotating_bytes=0)


def taking(clock, microseconds, multiply=np.matmul):
    """Multiply, and let time pass on a clock."""

    def function(a, b):
        clock.work(microseconds * 1000)
        return multiply(a, b)

    return function


def outcomes(found):
    return {attempt.candidate: attempt.outcome for attempt in found.attempts}


def test_the_fastest_that_is_right_wins():
    clock = FakeClock()
    candidates = {
        "slow": taking(clock, 90),
        "fast": taking(clock, 20),
        "wrong": taking(clock, 1, lambda a, b: a @ b + 1e-3),
        "raises": taking(clock, 1, lambda a, b: a @ b.T),
        "shape": taking(clock, 1, lambda a, b: (a @ b).T),
        "nan": taking(clock, 1, lambda a, b: a @ b * np.nan),
    }
    found = tune_gemm([SMALL], candidates, taking(clock, 50), clock=clock, limits=NO_COPIES)
    assert outcomes(found) == {
        "Default": "ok",
        "slow": "ok",
        "fast": "ok",
        "wrong": "wrong",
        "raises": "raised",
        "shape": "raised",
        "nan": "wrong",
    }
    winner = found.winners[SMALL]
    assert (winner.candidate, winner.time_ns, winner.n_calls) == ("fast", 20_000.0, 3)
    assert found.rows.filter(found.rows["outcome"] != "ok")["time_ns"].null_count() == 4


def test_a_candidate_that_takes_no_time_does_not_win():
    clock = FakeClock()
    found = tune_gemm([SMALL], {"void": np.matmul}, taking(clock, 5), clock=clock, limits=OF_TORCH)
    assert outcomes(found) == {"Default": "ok", "void": "no_time"}


def test_equal_times_are_decided_by_the_name():
    clock = FakeClock()
    candidates = {name: taking(clock, 5) for name in ("b", "a")}
    found = tune_gemm([SMALL], candidates, taking(clock, 5), clock=clock, limits=NO_COPIES)
    assert found.winners[SMALL].candidate == "Default"


@pytest.mark.parametrize(
    ("limits", "microseconds", "calls"),
    [
        ({}, 1, 100),
        ({}, 1000, 30),
        ({}, 100_000, 1),
        ({"duration_ms": 0}, 1000, 100),
        ({"iterations": 0}, 1000, 30),
        ({"duration_ms": 0, "iterations": 0}, 1, 1),
    ],
)
def test_the_limits_are_those_of_torch(limits, microseconds, calls):
    clock = FakeClock()
    found = tune_gemm(
        [(2, 2, 2)],
        {},
        taking(clock, microseconds),
        clock=clock,
        limits=replace(OF_TORCH, **limits),
    )
    assert found.attempts[0].n_calls == calls


def test_inputs_take_turns_over_copies_and_are_never_changed():
    seen = []

    def remember(a, b):
        seen.append((a.__array_interface__["data"][0], b.__array_interface__["data"][0]))
        clock.work(1000)
        return a @ b

    clock = FakeClock()
    limits = Limits(rotating_bytes=3 * (15 + 20) * 8, iterations=8)
    tune_gemm([SMALL], {}, remember, clock=clock, limits=limits)
    assert len(set(seen)) == 4  # the inputs, and three copies
    assert [seen[2:6][n] for n in range(4)] == seen[6:10]


def test_the_caches_are_flushed_before_each_timed_call_and_that_is_not_timed():
    clock, flushed = FakeClock(), []

    def flush():
        flushed.append(1)
        clock.work(1e9)

    found = tune_gemm(
        [SMALL], {}, taking(clock, 7), clock=clock, limits=Limits(iterations=5), flush=flush
    )
    assert found.attempts[0].time_ns == pytest.approx(7000.0)
    assert len(flushed) == 5


def test_halves_and_batches_are_compared_as_loosely_as_they_must_be():
    clock = FakeClock()
    candidates = {
        "single": taking(clock, 2, lambda a, b: (a.astype("f4") @ b.astype("f4")).astype("f2")),
        "off": taking(clock, 1, lambda a, b: (a @ b) * np.float16(1.1)),
    }
    found = tune_gemm([BATCH], candidates, taking(clock, 3), clock=clock, limits=OF_TORCH)
    assert outcomes(found) == {"Default": "ok", "single": "ok", "off": "wrong"}
    assert found.attempts[0].error == 0
    strict = tune_gemm([BATCH], candidates, np.matmul, tolerance=1.0, limits=OF_TORCH)
    assert outcomes(strict)["off"] == "ok"


def test_winners_that_torch_knows_become_a_results_file():
    clock = FakeClock()
    other = Gemm(operation="Gemm", dtypes=("double",), transa="n", transb="n", m=9, n=3, k=5)
    fast = {"Gemm_Rocblas_7": taking(clock, 12.3456789)}
    found = tune_gemm([SMALL, (2, 2, 2)], fast, taking(clock, 50), clock=clock, limits=NO_COPIES)
    file = found.to_tunable({"PT_VERSION": "2.9.1"})
    assert file.text == (
        b"Validator,PT_VERSION,2.9.1\nGemmTunableOp_double_NN,nn_4_3_5,Gemm_Rocblas_7,0.0123457\n"
    )
    assert merge([file]).file.text == file.text
    mine = {"mine": taking(clock, 1)}
    unknown = tune_gemm([other], mine, taking(clock, 2), clock=clock, limits=NO_COPIES)
    assert unknown.to_tunable({"PT_VERSION": "2.9.1"}).results.is_empty()


def test_inputs_that_numpy_does_not_have_must_be_given():
    scaled = Gemm(operation="Gemm", dtypes=("BFloat16",), transa="n", transb="n", m=4, n=3, k=5)
    with pytest.raises(ValueError, match="give a function as `inputs`"):
        tune_gemm([scaled], {}, np.matmul)
    eyes = [np.eye(3), np.eye(3)]
    found = tune_gemm([scaled], {}, np.matmul, inputs=lambda _: eyes, limits=OF_TORCH)
    assert outcomes(found) == {"Default": "ok"}
