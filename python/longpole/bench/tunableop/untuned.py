"""GEMMs to be tuned: deduplicated, with their costs, and divided among devices."""

from __future__ import annotations

import heapq
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from longpole.bench.tunableop.parts import outline_of, spans
from longpole.bench.tunableop.records import (
    Source,
    TunableFile,
    blocks_of,
    in_order,
    read,
    read_all,
    render_validators,
    validators_of,
)
from longpole.errors import ResultsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import polars as pl

    from longpole.bench.tunableop.inputs import Key

K = TypeVar("K")


class Share(NamedTuple):
    """The part of a file for one device, and its cost in floating-point operations."""

    file: TunableFile
    flops: int
    n_rows: int
    """Number of results and untuned GEMMs in the file."""


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
    import polars as pl

    files, known = read_all(sources), read_all(without)
    texts = [file.text for file in (*files, *known)]
    rows = outline_of(texts, place=True).drop_nulls("gemm")
    is_known = pl.col("file") >= len(files)
    tuned = rows.filter(is_known & (pl.col("kind") == "result"))
    wanted = rows.filter(~is_known).join(tuned, on="gemm", how="anti").sort("place")
    chosen = wanted.unique("gemm", keep="first", maintain_order=True)
    return _untuned(line.split(b",", 2)[:2] for line in spans(texts, chosen))


def costs(file: TunableFile) -> dict[Key, int]:
    """Return the floating-point operations of each GEMM of a file.

    The cost is 0 with wildcards, or if it is beyond 63 bits.
    """
    rows = file.outline.drop_nulls("gemm").unique("gemm", keep="first", maintain_order=True)
    keys = (line.decode().split(",", 2)[:2] for line in spans([file.text], rows))
    flops = rows["flops"].fill_null(0)
    return {
        (operator, parameters): cost
        for (operator, parameters), cost in zip(keys, flops, strict=True)
    }


def share_out(costs: Mapping[K, int], n_shares: int) -> list[list[K]]:
    """Divide GEMMs so that all shares have about the same cost.

    The most expensive GEMM comes first, always to the share with the smallest cost so far: no share
    costs more than four thirds of that of the best possible division.

    Parameters
    ----------
    costs
        Cost of each GEMM, by its key or number.
    n_shares
        Number of shares; with fewer GEMMs, some stay empty.
    """
    if n_shares < 1:
        message = f"n_shares must be at least 1, not {n_shares}"
        raise ValueError(message)
    shares: list[list[K]] = [[] for _ in range(n_shares)]
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
    import polars as pl

    file = read(source)
    outline = outline_of([file.text], place=True)
    if len({validators for validators, _ in blocks_of(file.text, outline)}) > 1:
        message = f"{file.name} holds results of different validators and cannot be split as one"
        raise ResultsError(message)
    header = render_validators(in_order(dict(validators_of(file.text, outline))))
    rows = outline.filter(pl.col("gemm").is_not_null() | (pl.col("kind") == "unknown"))
    rows = rows.select("file", "offset", "length", "gemm", "place", "flops")
    gemms = rows.drop_nulls("gemm").group_by("gemm").agg(pl.col("place", "flops").min(), pl.len())
    price = dict(gemms.select("place", pl.col("flops").fill_null(0)).iter_rows())
    shares = share_out(price, n_shares)
    share_of = {place: number for number, places in enumerate(shares) for place in places}
    numbers = pl.Series("share", [share_of[place] for place in gemms["place"]], dtype=pl.UInt32)
    gemms = gemms.with_columns(numbers)
    n_rows = dict(gemms.group_by("share").agg(pl.col("len").sum()).iter_rows())
    shared = rows.join(
        gemms.select("gemm", "share"), on="gemm", how="left", maintain_order="left"
    ).with_columns(pl.col("share").fill_null(0))
    return [
        Share(
            TunableFile(b"".join(chain([header], _lines(file, shared, number)))),
            sum(price[place] for place in places),
            n_rows.get(number, 0),
        )
        for number, places in enumerate(shares)
    ]


def _lines(file: TunableFile, rows: pl.DataFrame, share: int) -> Iterator[bytes]:
    lines = spans([file.text], rows.filter(rows["share"] == share))
    return (line + b"\n" for line in lines)


def untuned_file(keys: Sequence[Key]) -> TunableFile:
    """Create a file of untuned GEMMs, in the given order."""
    return _untuned((operator.encode(), parameters.encode()) for operator, parameters in keys)


def _untuned(keys: Iterable[Sequence[bytes]]) -> TunableFile:
    return TunableFile(b"".join(b",".join(key) + b"\n" for key in keys))
