"""Lengths of sequences, from the annotations of servers; and bounds of what sums of them allow.

An annotation such as `execute_2_context_0(sq0sk0sqsq0sqsk0)_generation_2(sq2sk86sqsq2sqsk86)`
contains, for the requests in prefill and in decode, the sums of the query lengths (`sq`), of the
key lengths (`sk`), of the squares of the query lengths (`sqsq`) and of the products of both
(`sqsk`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.flops.tensors import Lengths

if TYPE_CHECKING:
    from collections.abc import Callable

_PART: Final = r"_{}_\d+\(sq(\d+)sk(\d+)sqsq(\d+)sqsk(\d+)\)"
LENGTHS: Final = _PART.format("context") + _PART.format("generation")
"""Regular expression of annotations with lengths."""
_COUNT: Final = 4


class _Sums(NamedTuple):
    """Sums over requests."""

    queries: int
    keys: int
    squares: int
    products: int

    @property
    def lengths(self) -> Lengths:
        """The keys, and the pairs that a causal mask keeps: query i of a request sees all before.

        A request with `q` queries and `k` keys has `q k - q (q - 1) / 2` pairs.
        """
        return Lengths(self.products - (self.squares - self.queries) // 2, self.keys)


def lengths_in(name: str, queries: int) -> Lengths | None:
    """Return the lengths that an annotation contains for an attention call with some queries.

    A call that has as many queries as the requests in prefill, or in decode, is of these alone. A
    graph may pad the queries of all.

    Examples
    --------
    >>> name = "execute_3_context_1(sq4sk6sqsq16sqsk24)_generation_2(sq2sk9sqsq2sqsk9)"
    >>> lengths_in(name, 6), lengths_in(name, 2), lengths_in(name, 5)
    (Lengths(pairs=27, keys=15), Lengths(pairs=9, keys=9), None)
    >>> lengths_in("step[DECODE bs=8]", 8)
    """
    found = re.search(LENGTHS, name)
    if found is None:
        return None
    numbers = [int(text) for text in found.groups()]
    prefill, decode = _Sums(*numbers[:_COUNT]), _Sums(*numbers[_COUNT:])
    both = _Sums(*(one + other for one, other in zip(prefill, decode, strict=True)))
    if queries >= both.queries > 0:
        return both.lengths
    alone = [part for part in (prefill, decode) if part.queries == queries > 0]
    return alone[0].lengths if len(alone) == 1 else None


def ragged_pairs(
    total: int, count: int, longest: int, pairs: Callable[[int], int]
) -> tuple[int, int]:
    """Return the least and most pairs of sequences whose total, number and longest are known.

    `pairs` of a length is convex: even lengths have least, and lengths as uneven as possible most.

    Examples
    --------
    >>> ragged_pairs(10, 3, 8, lambda n: n * n), ragged_pairs(8, 2, 4, lambda n: n * n)
    ((34, 68), (32, 32))
    """
    short, n_long = divmod(total, count)
    least = n_long * pairs(short + 1) + (count - n_long) * pairs(short)
    n_full, rest = divmod(total, max(longest, 1))
    n_full = min(n_full, count)
    most = n_full * pairs(longest) + (pairs(rest) if n_full < count else 0)
    return least, max(least, most)
