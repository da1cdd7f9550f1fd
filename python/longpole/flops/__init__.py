"""FLOPs and bytes of operators, from the shapes and types of their inputs."""

from longpole.flops.elementwise import is_pointwise
from longpole.flops.tensors import Call, Tensor, Work, call_of
from longpole.flops.work import MATRIX_OPERATORS, work_of

__all__ = [
    "MATRIX_OPERATORS",
    "Call",
    "Tensor",
    "Work",
    "call_of",
    "is_pointwise",
    "work_of",
]
