"""A function of JAX outside `jax.jit`: the trace, the gain and the sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steps import remedy_of, steps

if TYPE_CHECKING:
    from longpole.testing import TraceBuilder

STEP_US = 3_000
LOSS = "$train.py:5 loss"
EAGER = ["matmul", "tanh"] * 5


def dispatch(builder: TraceBuilder, name: str, begin: int, n_kernels: int = 1) -> int:
    """Add a call of 100 us, with a launch of 10 us for each kernel; return when it ends."""
    # XLA writes two events of the same call.
    builder.operator(f"PjitFunction({name})", (begin, begin + 100))
    builder.operator(f"PjitFunction({name})", (begin + 1, begin + 99))
    builder.operator("PjRtCApiLoadedExecutable::Execute", (begin + 10, begin + 98))
    for number in range(n_kernels):
        call = begin + 20 + 12 * number
        builder.launch(name, call=(call, call + 10), work=(call + 11, call + 13))
    return begin + 100


def train(
    names: list[str], *, function: str | None = LOSS, n_kernels: int = 1, worker: bool = False
):
    """Return what fills a step: a function that dispatches, then a long kernel and a wait."""

    def fill(builder: TraceBuilder, begin: int) -> None:
        now = begin + 100
        for name in names:
            if name == "read":
                builder.operator("np.asarray(jax.Array)", (now + 1, now + 15))
                now += 15
            else:
                now = dispatch(builder, name, now + 20, n_kernels)
        if function:
            builder.python(function, (begin + 50, now + 10))
        if worker:
            builder.operator("D2H Dispatch", (now + 20, now + 25), thread=2)
        builder.python("$train.py:9 report", (now + 30, begin + STEP_US - 5))
        builder.operator("write", (now + 31, begin + STEP_US - 6))

    return fill


def test_all_calls_but_the_first_go_and_their_launches_may_go(said):
    found = remedy_of("eager_dispatch", steps(STEP_US, train(EAGER)))
    assert abs(found.gain.value - 9 * 90 / STEP_US) < 0.01, found
    assert abs(found.gain.high - 9 * 120 / STEP_US - 0.3 * found.gain.value) < 0.01, found
    assert (found.name, found.advice) == (LOSS, f"Compile {LOSS} with `jax.jit`")
    said(found.evidence)


def test_a_thread_of_xla_that_waits_for_work_does_not_limit_the_gain():
    found = remedy_of("eager_dispatch", steps(STEP_US, train(EAGER, worker=True)))
    assert abs(found.gain.value - 9 * 90 / STEP_US) < 0.01, found


def test_without_stacks_no_function_is_named():
    found = remedy_of("eager_dispatch", steps(STEP_US, train(EAGER, function=None)))
    assert found.advice.startswith("Compile what JAX dispatches one by one as one function")


def test_a_compiled_function_or_a_read_value_ends_a_run():
    few = ["matmul", "tanh", "add"]
    assert remedy_of("eager_dispatch", steps(STEP_US, train(few))) is None
    read = steps(STEP_US, train([*few, "read", *few]))
    assert remedy_of("eager_dispatch", read) is None


def test_calls_that_launch_many_kernels_are_compiled_functions():
    assert remedy_of("eager_dispatch", steps(STEP_US, train(EAGER, n_kernels=5))) is None


def test_what_xla_does_inside_a_call_is_not_the_programs():
    def fill(builder: TraceBuilder, begin: int) -> None:
        now = dispatch(builder, "step", begin + 100, 6)
        builder.operator("PjitFunction(step)", (now, now + 1_000))
        builder.operator("command_buffer::update", (now + 10, now + 700))
        builder.launch("fusion", call=(now + 800, now + 810), work=(now + 820, begin + 2_990))

    found = steps(STEP_US, fill).read().verdict().remedies
    assert "command_buffer::update" not in {row.name for row in found}
