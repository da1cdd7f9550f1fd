"""Routing of tokens to experts: the best experts of each token, and the sum of their results.

Positions are those of `csrc/moe/torch_bindings.cpp` of vLLM (00cf1a8b), of
`sgl-kernel/csrc/common_extension.cc` of SGLang (0063ef14), and of `aiter/ops/moe_op.py` (003fc63f).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.flops.served.moves import Moves, named

if TYPE_CHECKING:
    from collections.abc import Mapping

ROUTING: Final[Mapping[str, Moves]] = {
    # (weights, experts, order of the tokens, logits); a softmax costs five operations an element
    **named("_moe_C", "topk_softmax", Moves((3,), (0, 1, 2), 5, of=3)),
    **named("sgl_kernel", "topk_softmax", Moves((2,), (0, 1), 5, of=2)),
    **named("aiter", "topk_softmax", Moves((3,), (0, 1, 2), 5, of=3)),
    # (input [t, experts of a token, d], output [t, d])
    **named("_moe_C aiter", "moe_sum", Moves((0,), (1,), 1, of=0)),
}
"""Formula of each routing operator, of vLLM (`_moe_C`), SGLang and aiter."""
