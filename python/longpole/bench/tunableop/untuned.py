"""GEMMs to be tuned: deduplicated, with their costs, and divided among devices."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, NamedTuple

from longpole.bench.tunableop.records import (
    Source,
    TunableFile,
    in_order,
    key_of,
    read,
    read_all,
    render_validators,
)
from longpole.bench.tunableop.signature import Gemm
from longpole.errors import ResultsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from longpole.bench.tunableop.signature import Key

__all__ = ["Share", "costs", "gather_untuned", "share_out", "split", "untuned_file"]


class Share(NamedTuple):
    """The part of a file for one device, and its cost in floating-point operations."""

    file: TunableFile
    flops: int


def gather_untuned(
    sources: Iterable[Source] | Source, *, without: Iterable[Source] | Source = ()
) -> TunableFile:
    r"""Merge the GEMMs of several files without duplicates, sorted by signature.

    Tuned rows are included, to be tuned again. The order does not depend on the order of the
    sources.

    Parameters
    ----------
    sources
        Files, paths or bytes.
    without
        Results files: GEMMs that have a row in one of them are left out.

    Examples
    --------
    >>> recorded = b"GemmTunableOp_float_NN,nn_4_5_6\nGemmTunableOp_float_NN,nn_1_2_3\n"
    >>> gather_untuned([recorded, recorded]).render()
    b'GemmTunableOp_float_NN,nn_1_2_3\nGemmTunableOp_float_NN,nn_4_5_6\n'
    """
    keys = {line.key for file in read_all(sources) for line in file.lines}
    known = {
        line.key for file in read_all(without) for line in file.lines if line.solution is not None
    }
    return untuned_file(sorted(keys - known))


def costs(file: TunableFile) -> dict[Key, int]:
    """Return the cost of each GEMM of a file in floating-point operations; 0 with wildcards."""
    return {
        key: Gemm.from_row(row).flops or 0
        for row in file.rows()
        if (key := key_of(row)) is not None
    }


def share_out(costs: Mapping[Key, int], n_shares: int) -> list[list[Key]]:
    """Divide GEMMs so that all shares have about the same cost.

    The most expensive GEMM comes first, always to the share with the smallest cost so far: no share
    costs more than four thirds of that of the best possible division.

    Parameters
    ----------
    costs
        Cost of each GEMM.
    n_shares
        Number of shares; with fewer GEMMs, some stay empty.
    """
    if n_shares < 1:
        message = f"there must be one share at least, not {n_shares}"
        raise ValueError(message)
    shares: list[list[Key]] = [[] for _ in range(n_shares)]
    heap = [(0, 0, number) for number in range(n_shares)]
    for key in sorted(costs, key=lambda key: (-costs[key], key)):
        cost, n_gemms, number = heapq.heappop(heap)
        shares[number].append(key)
        heapq.heappush(heap, (cost + costs[key], n_gemms + 1, number))
    return shares


def split(source: Source, n_shares: int) -> list[Share]:
    r"""Split a file of results or untuned GEMMs into parts of about the same cost.

    Every part has the validators of the file. Rows keep their order and their bytes; rows of one
    GEMM stay together. Unparsed lines go to the first part.

    Parameters
    ----------
    source
        A file, a path or bytes.
    n_shares
        Number of parts.

    Raises
    ------
    ValueError
        The number of parts is less than one.
    ResultsError
        The file has results that were tuned under different validators.

    Examples
    --------
    >>> gemms = b"".join(b"GemmTunableOp_float_NN,nn_%d_8_8\n" % m for m in (1, 2, 3, 6))
    >>> [share.flops for share in split(gemms, 2)]
    [768, 768]
    """
    file = read(source)
    if len({block.validators for block in file.blocks}) > 1:
        message = f"{file.name} holds results of different validators and cannot be split as one"
        raise ResultsError(message)
    price = costs(file)
    shares = share_out(price, n_shares)
    share_of = {key: number for number, keys in enumerate(shares) for key in keys}
    header = render_validators(in_order(file.validators))
    texts = [[header] for _ in shares]
    for row in file.rows():
        if (key := key_of(row)) is not None:
            texts[share_of[key]].append(file.bytes_of(row) + b"\n")
        elif row["kind"] == "unknown":
            texts[0].append(file.bytes_of(row) + b"\n")
    return [
        Share(TunableFile(b"".join(text)), sum(price[key] for key in keys))
        for text, keys in zip(texts, shares, strict=True)
    ]


def untuned_file(keys: Sequence[Key]) -> TunableFile:
    """Create a file of untuned GEMMs, in the given order."""
    return TunableFile(b"".join(",".join(key).encode() + b"\n" for key in keys))
