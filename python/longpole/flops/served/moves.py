"""An operator that reads and writes whole tensors once."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from longpole.flops.tensors import Tensor, moved

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from longpole.flops.tensors import Call, Work


@dataclass(frozen=True, slots=True)
class Moves:
    """Positions of the tensors that an operator reads and writes.

    `flops` are the operations for each element of the tensor at `of`. `returned` are the positions
    of tensors that a result resembles, for results that are not among the arguments. A tensor in
    `optional` is also read, and with `updates` written, if it was given.
    """

    read: tuple[int, ...]
    written: tuple[int, ...]
    flops: int
    of: int
    returned: tuple[int, ...] = ()
    optional: tuple[int, ...] = ()
    updates: bool = False
    fits: Callable[[Call], bool] | None = None
    """Whether the shapes are those that the operator expects."""

    def __call__(self, call: Call) -> Work | None:
        """Count the work; None if a tensor is missing or has an unexpected shape."""
        read, written = self._all(call, self.read), self._all(call, self.written)
        alike, counted = self._all(call, self.returned), call.tensor(self.of)
        if read is None or written is None or alike is None or counted is None:
            return None
        if self.fits is not None and not self.fits(call):
            return None
        given = [tensor for place in self.optional if (tensor := call.tensor(place)) is not None]
        results = [Tensor(tensor.shape, None, tensor.dtype) for tensor in alike]
        outputs = [*written, *results, *(given if self.updates else [])]
        return moved(self.flops * counted.numel, [*read, *given], outputs, counted.dtype)

    @staticmethod
    def _all(call: Call, places: Iterable[int]) -> list[Tensor] | None:
        found = [call.tensor(place) for place in places]
        known = [tensor for tensor in found if tensor is not None]
        return known if len(known) == len(found) else None


def named(libraries: str, names: str, formula: Moves) -> dict[str, Moves]:
    """Return a formula under the names that it has in several libraries.

    Examples
    --------
    >>> sorted(named("_C sgl_kernel", "silu_and_mul", Moves((1,), (0,), 5, of=0)))
    ['_C::silu_and_mul', 'sgl_kernel::silu_and_mul']
    """
    both = product(libraries.split(), names.split())
    return {f"{library}::{name}": formula for library, name in both}
