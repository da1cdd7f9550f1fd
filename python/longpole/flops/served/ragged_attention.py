"""Attention over sequences of different lengths, which stand one after the other in one tensor.

Queries are `[tokens, heads, d]`. Keys and values are `[tokens, heads, d]`, or `[pages, page size,
heads, d]` with a table of pages. The recorded inputs contain the number of sequences and often the
longest, but not the lengths. They bound the work, and determine it if there is one sequence, or if
all are as long as the longest.

Positions are those of `flash_attn/flash_attn_interface.py` (00530025), of
`csrc/flash_attn/flash_api_torch_lib.cpp` (1ed425aa) and `hopper/flash_api_torch_lib.cpp` (19e0e749)
of vLLM's flash-attention, of `sgl-kernel/csrc/flash_extension.cc` of SGLang (150ab2c0), of
xFormers 0.0.28 and later, of `aiter/ops/mha.py`, and of torch. Versions with other positions have
no flag at the position of the causal one, and stay unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.flops.served.lengths import ragged_pairs
from longpole.flops.tensors import Lengths, Ragged

if TYPE_CHECKING:
    from collections.abc import Mapping

    from longpole.flops.tensors import Bounds, Call, Tensor

_TOKENS: Final = 3
_PAGED: Final = 4
_MASK: Final = 9
_FROM_START: Final = 1
# Versions differ in one argument before these.
_CUTLASS_USED: Final = (11, 12)
_CUTLASS_WINDOW: Final = (12, 13)


@dataclass(frozen=True, slots=True)
class _Places:
    """Positions of arguments; queries, keys and values begin at `first`.

    `starts` are the cumulated lengths of the sequences of queries, and `longest` the positions of
    the longest sequence of queries and of keys.
    """

    starts: int
    causal: tuple[int, ...]
    """The flag of causal attention is the first of these positions that has a flag."""
    longest: tuple[int, int]
    first: int = 0
    pages: int | None = None
    """Table of pages; without it the keys are as ragged as the queries."""
    window: int = 1
    """Places from the flag to the sliding window to the left; without one, it is negative."""
    absent: int | None = None
    """Position without a number: other versions have one there."""
    has_mask_number: bool = False
    """Whether the arguments are those of CUTLASS, with the number of a mask instead of a flag."""
    batched: bool = False
    """Whether tensors have a first dimension of 1."""

    def __call__(self, call: Call) -> Bounds | None:
        """Return bounds of the work; None if the shapes do not fit."""
        tensors = [call.tensor(self.first + place) for place in range(3)]
        starts, is_causal = call.tensor(self.starts), self._is_causal(call)
        known = [self._unbatched(tensor) for tensor in tensors if tensor is not None]
        if len(known) < len(tensors) or starts is None or is_causal is None or starts.numel <= 1:
            return None
        query, key, value = known
        pages = None if self.pages is None else call.tensor(self.pages)
        rank = _TOKENS if pages is None else _PAGED
        if len(query.shape) != _TOKENS or len(key.shape) != rank or len(value.shape) != rank:
            return None
        ragged = _ragged(query, key, value, is_backward=self.first > 0)
        least, most = self._lengths(call, query, key, pages, is_causal)
        return ragged.bounds(least, most, query.dtype)

    def _is_causal(self, call: Call) -> bool | None:
        """Whether a causal mask is used; None for another version."""
        if self.absent is not None and call.value(self.absent) is not None:
            return None
        if self.has_mask_number:
            return _has_causal_number(call)
        place = self._flag(call)
        return None if place is None else call.value(place)

    def _flag(self, call: Call) -> int | None:
        return next((it for it in self.causal if isinstance(call.value(it), bool)), None)

    def _has_window(self, call: Call) -> bool:
        place = self._flag(call)
        window = None if place is None else call.value(place + self.window)
        return type(window) is int and window >= 0

    def _unbatched(self, tensor: Tensor) -> Tensor:
        if not self.batched or tensor.shape[:1] != (1,):
            return tensor
        return type(tensor)(tensor.shape[1:], None, tensor.dtype)

    def _lengths(
        self,
        call: Call,
        query: Tensor,
        key: Tensor,
        pages: Tensor | None,
        is_causal: bool,  # noqa: FBT001
    ) -> tuple[Lengths, Lengths | None]:
        """Return the least and the most pairs and keys."""
        starts = call.tensor(self.starts)
        count = 1 if starts is None else max(starts.numel - 1, 1)
        longest, longest_keys = (call.value(place) for place in self.longest)
        tokens = query.shape[0]
        if not isinstance(longest, int) or not 0 < longest <= tokens:
            longest = tokens
        has_window = self._has_window(call)
        if pages is None and key.shape[0] == tokens:
            least, most = ragged_pairs(tokens, count, longest, _growing if is_causal else _square)
            return Lengths(tokens if has_window else least, tokens), Lengths(most, tokens)
        n_keys = key.shape[0]
        if pages is not None:
            room = pages.shape[-1] * key.shape[1]
            known = isinstance(longest_keys, int) and 0 < longest_keys <= room
            n_keys = count * (longest_keys if known else room)
        most_pairs = min(longest * n_keys, tokens * n_keys)
        least_keys = n_keys if pages is None else min(tokens, n_keys)
        if count == 1 and pages is None and not has_window:
            gone = tokens * (tokens - 1) // 2 if is_causal and n_keys >= tokens else 0
            exact = Lengths(tokens * n_keys - gone, n_keys)
            is_known = not is_causal or n_keys >= tokens
            return (exact, exact) if is_known else (Lengths(tokens, n_keys), exact)
        return Lengths(min(tokens, most_pairs), least_keys), Lengths(most_pairs, n_keys)


def _has_causal_number(call: Call) -> bool | None:
    """Whether the mask of CUTLASS is causal; None if it counts from the end of longer keys.

    Numbers are 0 for no mask, 1 for a causal mask from the start of the keys, 2 from their end.
    None as well with used lengths of the keys, or with a window.
    """
    number, query, key = call.value(_MASK), call.tensor(0), call.tensor(1)
    windows = [call.value(place) for place in _CUTLASS_WINDOW]
    is_used = any(call.tensor(place) is not None for place in _CUTLASS_USED)
    if is_used or any(type(it) is int and it > 0 for it in windows) or type(number) is not int:
        return None
    if query is None or key is None:
        return None
    return None if number == _FROM_START and query.shape[:2] != key.shape[:2] else number > 0


def _growing(length: int) -> int:
    """Pairs of one sequence with a causal mask."""
    return length * (length + 1) // 2


def _square(length: int) -> int:
    return length * length


def _ragged(query: Tensor, key: Tensor, value: Tensor, *, is_backward: bool) -> Ragged:
    """Two products forward, five backward; gradients are as large as their tensors."""
    inner, outer = (3, 2) if is_backward else (1, 1)
    tokens, heads, width = query.shape
    size, of_key = query.item_bytes, key.item_bytes
    times = 2 if is_backward else 1
    other = tokens * heads * (width + value.shape[-1]) * times
    of_keys = key.shape[-2] * (key.shape[-1] + value.shape[-1]) * times
    return Ragged(
        tokens,
        2 * heads * (inner * width + outer * value.shape[-1]),
        None if of_key is None else of_keys * of_key,
        None if size is None else other * size,
    )


_FLASH_3: Final = _Places(7, (24, 25), (12, 13), pages=14)
_CUTLASS: Final = _Places(4, (), (6, 7), batched=True, has_mask_number=True)
RAGGED_ATTENTION: Final[Mapping[str, _Places]] = {
    "flash_attn::_flash_attn_varlen_forward": _Places(3, (9,), (5, 6), pages=15),
    "flash_attn::_flash_attn_varlen_backward": _Places(9, (15,), (11, 12), first=1),
    "aten::_flash_attention_forward": _Places(3, (8,), (5, 6), window=3),
    "aten::_efficient_attention_forward": _CUTLASS,
    "_vllm_fa2_C::varlen_fwd": _Places(4, (15,), (10, 11), pages=8),
    "_vllm_fa3_C::fwd": _FLASH_3,
    "flash_attn_3::fwd": _FLASH_3,
    "sgl_kernel::fwd": _FLASH_3,
    "xformers_flash::flash_fwd": _Places(3, (10,), (6, 7), pages=14, absent=5),
    "xformers::efficient_attention_forward_cutlass": _CUTLASS,
    "aiter::mha_varlen_fwd": _Places(3, (12,), (5, 6)),
}
"""Formula of each ragged attention: flash-attn 2 and 3, torch, vLLM, SGLang, xFormers, aiter."""
