"""Which launches were fused into which kernel, by the names of fused kernels.

Inductor names a kernel after the operators in it: `triton_poi_fused_add_relu_0`. Where several
fused kernels replaced a longer sequence, the sequence is divided in order so that each fused kernel
gets the operators it is named after.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["shared_out"]

_FUSED: Final = "fused"

# A gap that takes more steps of the search is reported as a whole.
_MOST_STEPS: Final = 200_000


def shared_out(
    operators: Sequence[Sequence[str]], fused: Sequence[str]
) -> list[tuple[int, int]] | None:
    """Assign launches to the fused kernels that replaced them, in order.

    Parameters
    ----------
    operators
        The operators around each launch.
    fused
        The names of the kernels that replaced them, fewer than the launches.

    Returns
    -------
    list or None
        For each fused kernel, its range of launches (end excluded); None if the names do not show
        it.

    Examples
    --------
    >>> launches = [["aten::add"], ["aten::relu"], ["aten::mul"], ["aten::relu"]]
    >>> shared_out(launches, ["triton_poi_fused_add_relu_0", "triton_poi_fused_mul_relu_1"])
    [(0, 2), (2, 4)]
    """
    if not all(_FUSED in name for name in fused):
        return None
    if len(operators) ** 2 * len(fused) > _MOST_STEPS:
        return None
    words = [{_word(name) for name in names} - {""} for names in operators]
    matched = [[{word for word in each if word in name} for each in words] for name in fused]
    return _best(matched, len(operators))


def _word(operator: str) -> str:
    """Return the name of an operator in the form used in names of fused kernels."""
    return operator.rpartition("::")[2].strip("_").lower()


def _best(matched: list[list[set[str]]], n_launches: int) -> list[tuple[int, int]] | None:
    """Find the boundaries that assign the most launches and words."""
    # scores[end]: the best score if the kernels so far cover the launches before `end`.
    scores: dict[int, tuple[int, list[tuple[int, int]]]] = {0: (0, [])}
    for nth, words in enumerate(matched):
        last = n_launches - (len(matched) - nth - 1)
        found: dict[int, tuple[int, list[tuple[int, int]]]] = {}
        for start, (score, borders) in scores.items():
            n_named, named = 0, set[str]()
            for end in range(start + 1, last + 1):
                n_named += bool(words[end - 1])
                named |= words[end - 1]
                total = score + n_named + len(named)
                if end not in found or total > found[end][0]:
                    found[end] = (total, [*borders, (start, end)])
        scores = found
    total, borders = scores.get(n_launches, (0, []))
    # Each kernel has to cover something, or the names say nothing about the gap.
    return borders if total >= 2 * len(matched) else None
