"""Keys and values of new tokens, written into the pages of the KV cache.

Positions are those of `csrc/torch_bindings.cpp` of vLLM (00256d59), of
`sgl-kernel/csrc/common_extension.cc` of SGLang (0063ef14), of `aiter/ops/cache.py` (0590d9a9), and,
for `sglang::store_cache`, of a recording of SGLang.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.flops.tensors import Work

if TYPE_CHECKING:
    from collections.abc import Mapping

    from longpole.flops.tensors import Call


@dataclass(frozen=True, slots=True)
class _Writes:
    """Positions of keys and values, of a cache, and of the slots to write."""

    new: tuple[int, ...]
    cache: int
    slots: int

    def __call__(self, call: Call) -> Work | None:
        """Count reading and writing the rows that have a slot; rows beyond them are padding."""
        new = [call.tensor(place) for place in self.new]
        rows = [tensor for tensor in new if tensor is not None and tensor.shape]
        cache, slots = call.tensor(self.cache), call.tensor(self.slots)
        if len(rows) < len(new) or cache is None or slots is None:
            return None
        size, of_cache, of_slot = rows[0].item_bytes, cache.item_bytes, slots.item_bytes
        if size is None or of_cache is None or of_slot is None:
            return None
        n_rows = min(slots.numel, rows[0].shape[0])
        moved = sum(row.numel // max(row.shape[0], 1) for row in rows) * n_rows
        n_bytes = moved * (size + of_cache) + n_rows * of_slot
        return Work(0, n_bytes, rows[0].dtype, is_matrix=False)


_KEY_VALUE: Final = _Writes((0, 1), cache=2, slots=4)
CACHE_WRITES: Final[Mapping[str, _Writes]] = {
    "_C_cache_ops::reshape_and_cache": _KEY_VALUE,
    "_C_cache_ops::reshape_and_cache_flash": _KEY_VALUE,
    "aiter::reshape_and_cache": _KEY_VALUE,
    "aiter::reshape_and_cache_flash": _KEY_VALUE,
    "sglang::store_cache": _KEY_VALUE,
    # (keys, values, slots, new keys, new values)
    "sgl_kernel::store_kv_cache": _Writes((3, 4), cache=0, slots=2),
    # (compressed keys, rotary keys, cache, slots) of multi-head latent attention
    "_C_cache_ops::concat_and_cache_mla": _Writes((0, 1), cache=2, slots=3),
    "aiter::concat_and_cache_mla": _Writes((0, 1), cache=2, slots=3),
}
"""Formula of each write into a cache, of vLLM, SGLang and aiter."""
