"""Ways to multiply matrices, checked against a reference and timed as torch times them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from longpole.bench.reference import as_array
from longpole.bench.time import CpuClock
from longpole.bench.time.targets import rotating
from longpole.bench.tunableop.edit import DEFAULT
from longpole.bench.tunableop.merge import render_results
from longpole.bench.tunableop.records import FAMILIES, TunableFile, in_order
from longpole.bench.tunableop.signature import Gemm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import polars as pl

    from longpole.bench.time.clocks import Clock

    Multiply: TypeAlias = Callable[..., Any]

__all__ = ["Attempt", "GemmTuning", "Limits", "tune_gemm"]

Shape: TypeAlias = "Gemm | tuple[int, int, int]"
"""A GEMM, or M, N and K of `A[M, K] @ B[K, N]` in float32."""

_NUMPY_DTYPES: Final = {
    "float": "float32",
    "tf32": "float32",
    "double": "float64",
    "Half": "float16",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
}

# How far apart two sums of k products may lie, relative to the largest result.
_TOLERANCES: Final = {"bfloat16": 2e-2, "float16": 2e-2, "float32": 1e-4, "complex64": 1e-4}
_TIGHT: Final = 1e-10


@dataclass(frozen=True, slots=True)
class Limits:
    """How long to time a candidate, as the limits of torch.

    Parameters
    ----------
    duration_ms, iterations
        The smaller of the two counts; 0 is no limit. One call is always timed.
    warm_up_ms, warm_up_iterations
        Before that; 0 is none. torch has none by default.
    rotating_bytes
        The inputs are copied until they fill so much, and calls take turns over the copies,
        so that they do not find them in the cache. 0 is no copies.

    Examples
    --------
    >>> Limits().calls(1e6), Limits(duration_ms=0).calls(1e6), Limits(iterations=0).calls(1e9)
    (30, 100, 1)
    """

    duration_ms: float = 30.0
    iterations: int = 100
    warm_up_ms: float = 0.0
    warm_up_iterations: int = 1
    rotating_bytes: int = 32 << 20

    def calls(self, call_ns: float) -> int:
        """Say how often to time a call that takes so long."""
        return max(1, _fewer(self.duration_ms, self.iterations, call_ns))

    def warm_up_calls(self, call_ns: float) -> int:
        """Say how often to run it before."""
        return _fewer(self.warm_up_ms, self.warm_up_iterations, call_ns)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A candidate on one GEMM.

    `outcome` is `ok`, `raised`, `wrong` (the result is not the reference's) or `no_time` (the
    clock saw none pass); only `ok` has a time. `error` is the largest difference from the
    reference, as a share of the reference's largest value.
    """

    shape: Shape
    candidate: str
    outcome: str
    message: str = ""
    time_ns: float | None = None
    n_calls: int = 0
    error: float | None = None


@dataclass(frozen=True, slots=True)
class GemmTuning:
    """All attempts, in the order of the shapes and candidates; the reference is `Default`."""

    attempts: list[Attempt]

    @property
    def winners(self) -> dict[Shape, Attempt]:
        """The fastest sound attempt on each shape; equal times are decided by the name."""
        best: dict[Shape, Attempt] = {}
        for attempt in self.attempts:
            if attempt.time_ns is not None:
                rival = best.get(attempt.shape, attempt)
                best[attempt.shape] = min(rival, attempt, key=_rank)
        return best

    @property
    def rows(self) -> pl.DataFrame:
        """A row for each attempt: `shape`, `candidate`, `outcome`, `message`, `time_ns`, ..."""
        import polars as pl

        columns = ("candidate", "outcome", "message", "time_ns", "n_calls", "error")
        rows = [
            (_name(each.shape), *(getattr(each, column) for column in columns))
            for each in self.attempts
        ]
        kinds = (pl.String, pl.String, pl.String, pl.Float64, pl.Int64, pl.Float64)
        schema = {"shape": pl.String, **dict(zip(columns, kinds, strict=True))}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def to_tunable(self, validators: Mapping[str, str]) -> TunableFile:
        """Give the winners as a results file, where their names are names of solutions.

        Parameters
        ----------
        validators
            Those of the torch that shall read it.

        Notes
        -----
        A shape that is no `Gemm`, and a candidate whose name belongs to none of the libraries
        of torch, have no row: torch would stop with an error.
        """
        rows = {
            shape.key: _row(shape, winner)
            for shape, winner in self.winners.items()
            if isinstance(shape, Gemm) and _is_solution(winner.candidate)
        }
        return TunableFile(render_results(in_order(validators), rows))


def tune_gemm(
    shapes: Iterable[Shape],
    candidates: Mapping[str, Multiply],
    reference: Multiply,
    *,
    inputs: Callable[[Shape], Sequence[Any]] | None = None,
    limits: Limits | None = None,
    clock: Clock | None = None,
    flush: Callable[[], object] | None = None,
    tolerance: float | None = None,
) -> GemmTuning:
    """Find the fastest way to multiply, of those that multiply right.

    Parameters
    ----------
    shapes
        What to multiply.
    candidates
        Functions of A and B that give the product, by name.
    reference
        The function that is right. It is timed as well, as `Default`.
    inputs
        Makes A and B; by default random numpy arrays, the same in every run.
    limits
        How long to time; as torch by default, after one call to warm up.
    clock
        Wall time on the processor by default; `TorchClock` for a GPU.
    flush
        Function called before each timed call, outside the timing. torch clears the instruction
        cache there, which longpole does not do by itself.
    tolerance
        How far a result may lie from the reference's, as a share of the reference's largest
        value; by default 2 % for 16-bit floats, 1e-4 for 32-bit ones, 1e-10 otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> found = tune_gemm(
    ...     [(8, 4, 16)],
    ...     {"einsum": lambda a, b: np.einsum("mk,kn->mn", a, b), "wrong": lambda a, b: a @ b * 2},
    ...     np.matmul,
    ...     limits=Limits(iterations=3),
    ... )
    >>> {attempt.candidate: attempt.outcome for attempt in found.attempts}
    {'Default': 'ok', 'einsum': 'ok', 'wrong': 'wrong'}
    """
    clock = clock or CpuClock()
    bench = _Bench(limits or Limits(), clock, flush, tolerance)
    functions = {DEFAULT: reference, **candidates}
    attempts = []
    for shape in shapes:
        arguments = list((inputs or _random_inputs)(shape))
        expected = reference(*arguments)
        attempts += [
            bench.attempt(shape, name, function, arguments, expected)
            for name, function in functions.items()
        ]
    return GemmTuning(attempts)


@dataclass(frozen=True, slots=True)
class _Bench:
    limits: Limits
    clock: Clock
    flush: Callable[[], object] | None
    tolerance: float | None

    def attempt(
        self, shape: Shape, name: str, function: Multiply, arguments: list[Any], expected: Any
    ) -> Attempt:
        """Check a candidate, then time it."""
        try:
            error, allowed = _difference(function(*arguments), expected)
            if not error <= (allowed if self.tolerance is None else self.tolerance):
                told = f"differs from the reference by {error:.2g} of its largest value"
                return Attempt(shape, name, "wrong", told, error=error)
            time_ns, n_calls = self._time(function, arguments)
        except Exception as raised:  # noqa: BLE001 - whatever a candidate raises is its outcome
            return Attempt(shape, name, "raised", f"{type(raised).__name__}: {raised}")
        if not 0 < time_ns < math.inf:
            return Attempt(shape, name, "no_time", "the clock saw no time pass", error=error)
        return Attempt(shape, name, "ok", "", time_ns, n_calls, error)

    def _time(self, function: Multiply, arguments: list[Any]) -> tuple[float, int]:
        """Give the mean of as many calls as the limits allow."""
        copies = _copies(arguments, self.limits.rotating_bytes)
        call = rotating([partial(function, *each) for each in copies])
        call_ns = self.clock.time_ns(call, 1)
        for _ in range(self.limits.warm_up_calls(call_ns)):
            call()
        n_calls = self.limits.calls(call_ns)
        if self.flush is None:
            return self.clock.time_ns(call, n_calls) / n_calls, n_calls
        return sum(self._flushed(call, n_calls)) / n_calls, n_calls

    def _flushed(self, call: Callable[[], object], n_calls: int) -> Iterator[float]:
        for _ in range(n_calls):
            if self.flush is not None:
                self.flush()
            yield self.clock.time_ns(call, 1)


def _fewer(duration_ms: float, iterations: int, call_ns: float) -> int:
    """Take the smaller of the two limits; 0 is none."""
    by_time = int(duration_ms * 1e6 / max(call_ns, 1))
    if duration_ms and iterations:
        return min(by_time, iterations)
    return by_time if duration_ms else iterations


def _copies(arguments: list[Any], n_bytes: int) -> list[list[Any]]:
    """Copy the inputs until all of them together fill so many bytes."""
    if not n_bytes:
        return [arguments]
    size = sum(getattr(each, "nbytes", 0) for each in arguments)
    n_copies = n_bytes // size if size else 0
    return [arguments, *([_copy(each) for each in arguments] for _ in range(n_copies))]


def _copy(argument: Any) -> Any:
    """Copy an array of numpy or a tensor, in its own order of memory."""
    if hasattr(argument, "clone"):
        return argument.clone()
    return argument.copy(order="K") if hasattr(argument, "nbytes") else argument


def _difference(result: Any, expected: Any) -> tuple[float, float]:
    """Give the largest difference by the largest expected value, and how large it may be."""
    import numpy as np

    found, wanted = as_array(result), as_array(expected)
    if found.shape != wanted.shape:
        message = f"the result has shape {found.shape}, the reference {wanted.shape}"
        raise ValueError(message)
    allowed = _TOLERANCES.get(str(expected.dtype).removeprefix("torch."), _TIGHT)
    if not wanted.size:
        return 0.0, allowed
    wide = np.complex128 if np.iscomplexobj(wanted) else np.float64
    difference = np.abs(found.astype(wide) - wanted.astype(wide)).max()
    scale = np.abs(wanted.astype(wide)).max()
    return float(difference / scale if scale else difference), allowed


def _random_inputs(shape: Shape) -> list[Any]:
    import numpy as np

    generator = np.random.default_rng(0)
    gemm = shape if isinstance(shape, Gemm) else None
    sizes: tuple[Any, ...] = shape.matmul_shape if isinstance(shape, Gemm) else shape
    m, n, k = sizes
    dtype = _NUMPY_DTYPES.get(gemm.dtypes[0] if gemm is not None else "float")
    if dtype is None or "*" in {m, n, k}:
        message = f"numpy has no inputs for {_name(shape)}: give a function as `inputs`"
        raise ValueError(message)
    batch = () if gemm is None or gemm.batch is None else (gemm.batch,)
    return [
        generator.standard_normal((*batch, rows, columns)).astype(dtype)
        for rows, columns in ((m, k), (k, n))
    ]


def _rank(attempt: Attempt) -> tuple[float, str]:
    return attempt.time_ns or math.inf, attempt.candidate


def _name(shape: Shape) -> str:
    return ",".join(shape.key) if isinstance(shape, Gemm) else "x".join(map(str, shape))


def _row(shape: Gemm, winner: Attempt) -> bytes:
    """Write a row, its time in ms with six digits, as torch does."""
    return ",".join([*shape.key, winner.candidate, f"{(winner.time_ns or 0) / 1e6:g}"]).encode()


def _is_solution(name: str) -> bool:
    families = TunableFile(f"GemmTunableOp_float_NN,nn_1_1_1,{name}".encode()).results["family"]
    return families.len() == 1 and families[0] in FAMILIES
