"""Attention of a decode step, or of mixed batches, over keys and values in a cache of pages.

Each query of a decode step attends to all keys of its request. The lengths of the requests are
values of a tensor, which profilers do not record: the table of pages and the longest sequence
bound them, and annotations of the server contain their sums (see `lengths.py`). Keys with fewer
heads than queries are read once for the queries that share them.

Positions are those of `csrc/torch_bindings.cpp` (00256d59) and `csrc/rocm/torch_bindings.cpp`
(001cd451) of vLLM, of `sgl-kernel/csrc/common_extension.cc` of SGLang (0063ef14), and of
`aiter/ops/attention.py` (0056982d), as in a recording of SGLang.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.flops.tensors import Lengths, Ragged

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from longpole.flops.tensors import Bounds, Call, Tensor

_QUERY: Final = 3
_PAGES: Final = 4
_LATENT_CACHE: Final = 3
_STARTS: Final = 11


@dataclass(frozen=True, slots=True)
class _Decode:
    """Positions of `query [requests, heads, d]`, of the caches, and of what bounds the lengths."""

    query: int
    cache: int
    heads: int | None = None
    """Number of heads of the keys; by default the dimension before last of the cache."""
    table: int | None = None
    """Table of pages `[requests, pages]`."""
    page: int | None = None
    """Number of tokens in a page."""
    longest: int | None = None

    def __call__(self, call: Call) -> Bounds | None:
        """Return bounds of the work; None if the shapes do not fit."""
        query, cache = call.tensor(self.query), call.tensor(self.cache)
        if query is None or cache is None:
            return None
        if len(query.shape) != _QUERY or len(cache.shape) < _PAGES:
            return None
        heads = cache.shape[-2] if self.heads is None else call.value(self.heads)
        if type(heads) is not int or not 0 < heads <= query.shape[1] or query.shape[1] % heads:
            return None
        least = Lengths(query.shape[0], query.shape[0])
        return _of_cache(query, cache, heads).bounds(least, self._most(call, query), query.dtype)

    def _most(self, call: Call, query: Tensor) -> Lengths | None:
        longest = None if self.longest is None else call.value(self.longest)
        if type(longest) is int and longest > 0:
            return Lengths(query.shape[0] * longest, query.shape[0] * longest)
        table = None if self.table is None else call.tensor(self.table)
        page = None if self.page is None else call.value(self.page)
        if table is None or type(page) is not int or not table.shape:
            return None
        most = query.shape[0] * table.shape[-1] * page
        return Lengths(most, most)


def _of_cache(query: Tensor, cache: Tensor, heads: int, *, may_have_window: bool = False) -> Ragged:
    tokens, n_heads, width = query.shape
    size, of_cache = query.item_bytes, cache.item_bytes
    return Ragged(
        tokens,
        4 * n_heads * width,
        None if of_cache is None else 2 * heads * width * of_cache,
        None if size is None else 2 * query.numel * size,
        may_have_window,
    )


def _unified(call: Call) -> Bounds | None:
    """Count vLLM's `unified_attention(query, key, value, ...)`, whose layer may have a window.

    The keys are those of the new tokens; the cache is not among the arguments. It is assumed to
    have their type, or a smaller one: the least bytes are then unknown.
    """
    query, key = call.tensor(0), call.tensor(1)
    if query is None or key is None or len(query.shape) != _QUERY or len(key.shape) != _QUERY:
        return None
    ragged = _of_cache(query, key, key.shape[1], may_have_window=True)
    tokens = query.shape[0]
    return ragged.bounds(Lengths(tokens, tokens), None, query.dtype)


def _rocm(call: Call) -> Bounds | None:
    """Count vLLM's attention for ROCm.

    Its arguments are `(out, sums, maxima, partial out, query, key cache, value cache, heads, scale,
    table, lengths, starts of the queries, page size, longest, ..)`, in older versions without the
    starts.
    """
    page = _STARTS if type(call.value(_STARTS)) is int else _STARTS + 1
    return _Decode(4, 5, heads=7, table=9, page=page, longest=page + 1)(call)


@dataclass(frozen=True, slots=True)
class _Latent:
    """Decode of multi-head latent attention: keys and values are one compressed row per token.

    `q_nope [requests, heads, latent]`, `q_pe [requests, heads, rotary]`, `cache [pages, page size,
    latent + rotary]`, `seq_lens`, `page_table [requests, pages]`.
    """

    query: int

    def __call__(self, call: Call) -> Bounds | None:
        """Return bounds of the work; None if the shapes do not fit."""
        query, rotary, cache, _, table = (call.tensor(self.query + place) for place in range(5))
        if query is None or rotary is None or cache is None or table is None:
            return None
        if len(query.shape) != _QUERY or len(rotary.shape) != _QUERY:
            return None
        if len(cache.shape) != _LATENT_CACHE or len(table.shape) != 2:  # noqa: PLR2004
            return None
        requests, heads, latent = query.shape
        row = latent + rotary.shape[2]
        if cache.shape[2] != row:
            return None
        size, of_cache = query.item_bytes, cache.item_bytes
        ragged = Ragged(
            requests,
            2 * heads * (row + latent),
            None if of_cache is None else row * of_cache,
            None if size is None else requests * heads * (row + latent) * size,
        )
        most = requests * table.shape[1] * cache.shape[1]
        return ragged.bounds(Lengths(requests, requests), Lengths(most, most), query.dtype)


PAGED_ATTENTION: Final[Mapping[str, Callable[[Call], Bounds | None]]] = {
    # (out, query, key cache, value cache, heads, scale, table, lengths, page size, longest)
    "_C::paged_attention_v1": _Decode(1, 2, heads=4, table=6, page=8, longest=9),
    # (out, sums, maxima, partial out, query, key cache, value cache, heads, scale, table, ...)
    "_C::paged_attention_v2": _Decode(4, 5, heads=7, table=9, page=11, longest=12),
    "_rocm_C::paged_attention": _rocm,
    # (out, workspace, query, key cache [pages, page size, heads, d], value cache, ...)
    "aiter::paged_attention_ragged": _Decode(2, 3),
    "vllm::unified_attention": _unified,
    "vllm::unified_attention_with_output": _unified,
    "sgl_kernel::cutlass_mla_decode": _Latent(1),
    "_C::sm100_cutlass_mla_decode": _Latent(2),
}
"""Formula of each paged attention: vLLM, SGLang and aiter."""

_WRAPPED: Final = re.compile(r"sglang_profiler::attention_(paged_attention_ragged)_\d+$")


def paged_name(name: str) -> str:
    """Return the operator that a wrapper of SGLang's profiler calls, else the name itself.

    Examples
    --------
    >>> paged_name("sglang_profiler::attention_paged_attention_ragged_100")
    'aiter::paged_attention_ragged'
    """
    found = _WRAPPED.match(name)
    return name if found is None else f"aiter::{found[1]}"
