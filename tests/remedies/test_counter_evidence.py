"""Causes that the recording excludes are not named."""

from __future__ import annotations

import pytest
from steps import steps

WAIT = "cudaDeviceSynchronize"


def advice(fill):
    """Return what is advised for steps of a millisecond."""
    return " ".join(steps(1_000, fill).read().verdict().actions)


def relus(builder, begin, n=4):
    for place in range(n):
        start = begin + 510 + 100 * place
        builder.operator("aten::relu", (start, start + 80))
        builder.launch("relu", call=(start + 10, start + 20), work=(start + 25, start + 35))


@pytest.mark.parametrize(
    ("function", "is_named"),
    [
        ("torch/profiler/profiler.py(628): step", False),
        ("torch/autograd/profiler.py(701): __exit__", False),
        ("train.py(12): log", True),
    ],
)
def test_functions_of_the_profiler_are_never_advice(function, is_named):
    def fill(builder, begin):
        builder.python(function, (begin + 1, begin + 500))
        relus(builder, begin)

    assert (f"Shorten {function}" in advice(fill)) == is_named


def test_the_model_itself_is_nothing_to_shorten():
    def fill(builder, begin):
        builder.python("train.py(3): main", (begin + 1, begin + 999))
        builder.python("model.py(5): forward", (begin + 2, begin + 990))
        relus(builder, begin)

    told = advice(fill)
    assert "Shorten model.py(5): forward" not in told
    assert "Compute model.py(5): forward" not in told


@pytest.mark.parametrize(("works_until", "is_named"), [(900, False), (80, True)])
def test_the_gpu_waits_only_while_it_is_idle(works_until, is_named):
    def fill(builder, begin):
        work, after = (begin + 25, begin + works_until), begin + max(works_until + 1, 725)
        builder.operator("aten::relu", (begin + 1, begin + 40))
        builder.launch("relu", call=(begin + 10, begin + 20), work=work)
        builder.operator("aten::add", (begin + 700, begin + 760))
        builder.launch("add", call=(begin + 710, begin + 720), work=(after, begin + 990))
        builder.call(WAIT, (begin + 765, begin + 995))

    assert ("while the GPU waits" in advice(fill)) == is_named
