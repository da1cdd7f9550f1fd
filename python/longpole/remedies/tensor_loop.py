"""A loop that updates many tensors one by one, outside an optimizer.

Averages of weights, gradients that are clipped or divided, and copies of weights in another type
are often such loops. The `_foreach_` form of an operator updates about thirty tensors in a launch.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

from longpole.engine.critical_path.changes import Scale
from longpole.remedies.model import Found, Remedy
from longpole.words.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.remedies.facts import Facts
    from longpole.remedies.recorded import Activity

# Operators that exist for many tensors at once. Those that return a new tensor also do, but are
# usually steps of one computation.
_FOREACH: Final = {
    "aten::add_": "_foreach_add_",
    "aten::addcdiv_": "_foreach_addcdiv_",
    "aten::addcmul_": "_foreach_addcmul_",
    "aten::copy_": "_foreach_copy_",
    "aten::div_": "_foreach_div_",
    "aten::lerp_": "_foreach_lerp_",
    "aten::linalg_vector_norm": "_foreach_norm",
    "aten::mul_": "_foreach_mul_",
    "aten::sub_": "_foreach_sub_",
}

# The annotations of torch around `step` and `zero_grad`, which have remedies of their own.
_OPTIMIZER: Final = "Optimizer."

# With fewer launches in a row there is no loop to save, and tensors of one shape may be one tensor
# that is changed several times.
_LEAST_LAUNCHES: Final = 40
_LEAST_SHAPES: Final = 2

# Number of tensors that a launch of `_foreach_` changes.
_TENSORS_OF_LAUNCH: Final = 30

# Kernels shorter than this are limited by the fixed cost of starting and ending.
_SHORT_NS: Final = 5_000

# Fraction of the host time that remains, because an operator for many tensors still checks each of
# them.
_REST_OF_HOST: Final = 0.1


def _find(facts: Facts) -> Iterator[Found]:
    loops: dict[tuple[str, ...], list[list[Activity]]] = defaultdict(list)
    for run in _runs(facts):
        if len(run) >= _LEAST_LAUNCHES and _n_shapes(facts, run) >= _LEAST_SHAPES:
            names = tuple(sorted({facts.name(work.outermost) for work in run}))
            loops[names].append(run)
    for names, runs in sorted(loops.items()):
        is_usual = 2 * len({run[0].window for run in runs}) >= facts.n_windows
        if is_usual:
            yield _found(facts, names, runs)


def _runs(facts: Facts) -> Iterator[list[Activity]]:
    """Yield launches of one thread in a row, all by operators with a form for many tensors."""
    for works in facts.in_launch_order([*facts.kernels, *facts.copies]):
        run: list[Activity] = []
        for work in works:
            if _is_member(facts, work):
                run.append(work)
            else:
                yield run
                run = []
        yield run


def _is_member(facts: Facts, work: Activity) -> bool:
    if work.kind != "kernel" or work.call is None or facts.name(work.outermost) not in _FOREACH:
        return False
    return not any(
        kind == "annotation" and name.startswith(_OPTIMIZER)
        for _, kind, name in facts.around(work.call)
    )


def _n_shapes(facts: Facts, run: list[Activity]) -> int:
    """Return how many shapes the changed tensors have; 0 if not recorded."""
    calls = [facts.called(work.outermost) for work in run]
    tensors = [None if call is None else call.tensor(0) for call in calls]
    return len({tensor.shape for tensor in tensors if tensor is not None})


def _found(facts: Facts, names: tuple[str, ...], runs: list[list[Activity]]) -> Found:
    works = [work for run in runs for work in run]
    kept = sum(_n_kept(facts, run) for run in runs) / len(works)
    kernels = [work.event for work in works]
    short = [work.event for work in works if work.duration_ns < _SHORT_NS]
    operators = sorted({work.outermost for work in works if work.outermost is not None})
    delays = Scale(by=kept, kind="kernel_delay", events=kernels)
    forms = ", ".join(f"`torch.{_FOREACH[name]}`" for name in names)
    n_all = len(facts.kernels) + len(facts.copies)
    return Found(
        careful=[Scale(by=max(_REST_OF_HOST, kept), events=operators), delays],
        hopeful=[
            Scale(by=kept, time_ranges=[_time_range(facts, run) for run in runs]),
            delays,
            Scale(by=kept, kind="kernel", events=short),
        ],
        advice=f"Update all tensors at once instead of one by one ({forms})",
        evidence=(
            f"{facts.per_window(len(works)):,.0f} of {count(round(facts.per_window(n_all)))} "
            f"launches {facts.each} are a loop over tensors"
        ),
        name=", ".join(names),
        events=facts.longest(works),
    )


def _n_kept(facts: Facts, run: list[Activity]) -> int:
    """Return how many launches the operators of a loop need for all tensors."""
    each = Counter(facts.name(work.outermost) for work in run)
    return sum(-(-number // _TENSORS_OF_LAUNCH) for number in each.values())


def _time_range(facts: Facts, run: list[Activity]) -> tuple[int, int, int]:
    """Return the time of the thread from the first operator to the end of the last."""
    places = [facts.place(work.outermost) for work in run if work.outermost is not None]
    return (places[0].lane, places[0].start_ns, places[-1].end_ns)


REMEDY: Final = Remedy(
    id="tensor_loop",
    side="host",
    effort="code",
    needs="operators of torch with their shapes",
    seen_by=(
        "40 launches in a row by `mul_`, `lerp_`, `linalg_vector_norm` and the like over tensors "
        "of several shapes, outside `Optimizer.step#`"
    ),
    change=(
        "a tenth of the operators' host time stays; at most a thirtieth, also of the Python "
        "between them and of kernels shorter than 5 us"
    ),
    not_when="other work is launched between them, or all have one shape, as one tensor has",
    find=_find,
)
