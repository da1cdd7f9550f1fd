"""Ways to multiply matrices, checked against a reference and timed as in torch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from longpole.bench.reference import as_array
from longpole.bench.time.clocks import CpuClock
from longpole.bench.time.targets import rotating
from longpole.bench.tunableop.edit import DEFAULT
from longpole.bench.tunableop.inputs import Gemm
from longpole.bench.tunableop.merge import render_results
from longpole.bench.tunableop.records import FAMILIES, TunableFile, in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import polars as pl

    from longpole.bench.time.clocks import Clock

    Multiply: TypeAlias = Callable[..., Any]

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

# Maximum difference between two sums of k products, relative to the largest result.
_TOLERANCES: Final = {"bfloat16": 2e-2, "float16": 2e-2, "float32": 1e-4, "complex64": 1e-4}
_TIGHT: Final = 1e-10


@dataclass(frozen=True, slots=True)
class Limits:
    """How long to time a candidate, as in torch's limits.

    Parameters
    ----------
    duration_ms, iterations
        The smaller of the two applies; 0 for no limit. At least one call is timed.
    warm_up_ms, warm_up_iterations
        The same for the warm-up; 0 for none. torch has none by default.
    rotating_bytes
        Size to fill with copies of the inputs, over which the calls rotate so that inputs are not
        in the cache. 0 for no copies.

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
        """Return how often to time a call of a given length."""
        return max(1, _fewer(self.duration_ms, self.iterations, call_ns))

    def warm_up_calls(self, call_ns: float) -> int:
        """Return the number of warm-up calls."""
        return _fewer(self.warm_up_ms, self.warm_up_iterations, call_ns)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A candidate for one GEMM.

    `outcome` is `ok`, `raised`, `wrong` (the result differs from the reference) or `no_time` (no
    time passed on the clock); only `ok` has a time. `error` is the largest difference from the
    reference, as a fraction of the reference's largest value.
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
    """All attempts, in the order of shapes and candidates; the reference is `Default`."""

    attempts: list[Attempt]

    @property
    def winners(self) -> dict[Shape, Attempt]:
        """The fastest correct attempt for each shape; ties are decided by name."""
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
        """Return the winners as a results file, if their names are those of solutions.

        Parameters
        ----------
        validators
            Validators of the torch that will read it.

        Notes
        -----
        Shapes other than `Gemm`, and candidates without a library of torch in their name, have no
        row, on which torch would stop with an error.
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
    """Find the fastest candidate with correct results.

    Parameters
    ----------
    shapes
        The shapes to multiply.
    candidates
        Functions of A and B that return the product, by name.
    reference
        The reference function. It is timed too, as `Default`.
    inputs
        Creates A and B; by default random numpy arrays, the same in every run.
    limits
        Limits of timing; by default torch's, after one warm-up call.
    clock
        The clock, by default wall time on the CPU; `TorchClock` for a GPU.
    flush
        Function called before each timed call, outside the timing. torch clears the instruction
        cache there, which longpole does not do by itself.
    tolerance
        Maximum difference from the reference, as a fraction of its largest value; by default 2 %
        for 16-bit floats, 1e-4 for 32-bit ones, 1e-10 otherwise.

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
                text = f"differs from the reference by {error:.2g} of its largest value"
                return Attempt(shape, name, "wrong", text, error=error)
            time_ns, n_calls = self._time(function, arguments)
        except Exception as raised:  # noqa: BLE001 - any exception of a candidate is its outcome
            return Attempt(shape, name, "raised", f"{type(raised).__name__}: {raised}")
        if not 0 < time_ns < math.inf:
            return Attempt(shape, name, "no_time", "the clock saw no time pass", error=error)
        return Attempt(shape, name, "ok", "", time_ns, n_calls, error)

    def _time(self, function: Multiply, arguments: list[Any]) -> tuple[float, int]:
        """Return the mean time of as many calls as the limits allow."""
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
    """Return the smaller of the two limits in calls; 0 for no limit."""
    by_time = int(duration_ms * 1e6 / max(call_ns, 1))
    if duration_ms and iterations:
        return min(by_time, iterations)
    return by_time if duration_ms else iterations


def _copies(arguments: list[Any], n_bytes: int) -> list[list[Any]]:
    """Copy the inputs until all copies together have `n_bytes` bytes."""
    if not n_bytes:
        return [arguments]
    size = sum(getattr(each, "nbytes", 0) for each in arguments)
    n_copies = n_bytes // size if size else 0
    return [arguments, *([_copy(each) for each in arguments] for _ in range(n_copies))]


def _copy(argument: Any) -> Any:
    """Copy a numpy array or a tensor, keeping its memory order."""
    if hasattr(argument, "clone"):
        return argument.clone()
    return argument.copy(order="K") if hasattr(argument, "nbytes") else argument


def _difference(result: Any, expected: Any) -> tuple[float, float]:
    """Return the largest difference as a fraction of the largest expected value, and its limit."""
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
    """Format a row, with its time in ms with six digits, as torch does."""
    return ",".join([*shape.key, winner.candidate, f"{(winner.time_ns or 0) / 1e6:g}"]).encode()


def _is_solution(name: str) -> bool:
    families = TunableFile(f"GemmTunableOp_float_NN,nn_1_1_1,{name}".encode()).results["family"]
    return families.len() == 1 and families[0] in FAMILIES
