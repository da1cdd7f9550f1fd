"""FLOPs and bytes of operators, from the shapes and types of their inputs."""

from typing import TYPE_CHECKING

from longpole.words.public_names import imported_on_use

if TYPE_CHECKING:
    from longpole.flops.elementwise import is_pointwise as is_pointwise
    from longpole.flops.tensors import Bounds as Bounds
    from longpole.flops.tensors import Call as Call
    from longpole.flops.tensors import Lengths as Lengths
    from longpole.flops.tensors import Tensor as Tensor
    from longpole.flops.tensors import Work as Work
    from longpole.flops.tensors import call_of as call_of
    from longpole.flops.work import MATRIX_OPERATORS as MATRIX_OPERATORS
    from longpole.flops.work import bounds_of as bounds_of
    from longpole.flops.work import work_of as work_of

# Rules of operators are imported only for traces with shapes.
_MODULES = {
    "is_pointwise": "elementwise",
    **dict.fromkeys(("Bounds", "Call", "Lengths", "Tensor", "Work", "call_of"), "tensors"),
    **dict.fromkeys(("MATRIX_OPERATORS", "bounds_of", "work_of"), "work"),
}

__getattr__, __dir__ = imported_on_use(__name__, _MODULES)
