"""The functions of `torch.cuda.tunable`, under the same names, with and without torch.

If torch is loaded and can run them, the switches and limits are passed on to it. Without torch they
are stored here, and passed to the workers that `tune_gemm_in_file` and `mgpu_tune_gemm_in_file`
start. Functions that read or write files work on the files themselves. `docs/tunableop.md` lists
every function.

Examples
--------
>>> from longpole.bench.tunableop import tunable
>>> tunable.set_max_tuning_duration(50)
>>> tunable.get_max_tuning_duration()
50
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from longpole.bench.tunableop.coverage import Tuned
from longpole.bench.tunableop.difference import loaded
from longpole.bench.tunableop.environment import PREFIX, VARIABLES, installed_version
from longpole.bench.tunableop.names import with_ordinal
from longpole.bench.tunableop.records import TunableFile, in_order, read, render_validators
from longpole.bench.tunableop.tune import Tuning, tune
from longpole.errors import ResultsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import ModuleType

    from longpole.bench.tunableop.inputs import Key

__all__ = [
    "decide",
    "dynamic_dims_mask",
    "enable",
    "get_cublaslt_requested_algo_count",
    "get_filename",
    "get_max_tuning_duration",
    "get_max_tuning_iterations",
    "get_results",
    "get_rotating_buffer_size",
    "get_validators",
    "is_enabled",
    "mgpu_tune_gemm_in_file",
    "read_file",
    "record_untuned_enable",
    "record_untuned_is_enabled",
    "reset",
    "set_cublaslt_requested_algo_count",
    "set_filename",
    "set_max_tuning_duration",
    "set_max_tuning_iterations",
    "set_numerical_check_tolerances",
    "set_rotating_buffer_size",
    "tune_gemm_in_file",
    "tuning_enable",
    "tuning_is_enabled",
    "wildcard_fallback_enable",
    "wildcard_fallback_is_enabled",
    "write_file",
    "write_file_on_exit",
]

_DEFAULTS: Final = {variable.name: variable.default for variable in VARIABLES}


class _Settings:
    """Settings made in this process; those of the environment take precedence."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Reset everything."""
        self._environ: Mapping[str, str] | None = None
        self._set: dict[str, str] = {}
        self.file = TunableFile(b"")
        self.inserts_ordinal = False

    @property
    def is_torch_name(self) -> bool:
        """Whether the file name is torch's default or from the environment: an ordinal is added."""
        return "FILENAME" not in self._set or PREFIX + "FILENAME" in (self._environ or {})

    def get(self, name: str) -> str:
        """Return a setting: the environment's, else the one set here, else torch's default."""
        if self._environ is None:
            self._environ = {
                key: value for key, value in os.environ.items() if key.startswith(PREFIX)
            }
        given = self._environ.get(PREFIX + name)
        return given if given is not None else self._set.get(name, _DEFAULTS[name])

    def put(self, name: str, value: object) -> None:
        """Set a value, unless the environment sets it."""
        self._set[name] = str(int(value) if isinstance(value, bool) else value)

    def variables(self) -> dict[str, str]:
        """Return the limits set here, as environment variables of a worker."""
        passed = set(self._set) - {"ENABLED", "TUNING", "RECORD_UNTUNED", "FILENAME"}
        return {PREFIX + name: self.get(name) for name in sorted(passed)}


_settings = _Settings()


def reset() -> None:
    """Reset all settings and results, and what was read from the environment."""
    _settings.clear()


def enable(val: bool = True) -> None:  # noqa: FBT001, FBT002 - as torch has it
    """Switch TunableOp on or off."""
    _switch("enable", "ENABLED", val)


def is_enabled() -> bool:
    """Whether TunableOp is on."""
    return bool(_value("is_enabled", "ENABLED"))


def tuning_enable(val: bool = True) -> None:  # noqa: FBT001, FBT002 - as torch has it
    """Switch tuning of GEMMs without results on or off."""
    _switch("tuning_enable", "TUNING", val)


def tuning_is_enabled() -> bool:
    """Whether GEMMs without results are tuned."""
    return bool(_value("tuning_is_enabled", "TUNING"))


def record_untuned_enable(val: bool = True) -> None:  # noqa: FBT001, FBT002 - as torch has it
    """Switch recording of untuned GEMMs on or off."""
    _switch("record_untuned_enable", "RECORD_UNTUNED", val)


def record_untuned_is_enabled() -> bool:
    """Whether untuned GEMMs are recorded."""
    return bool(_value("record_untuned_is_enabled", "RECORD_UNTUNED"))


def wildcard_fallback_enable(val: bool = True) -> None:  # noqa: FBT001, FBT002 - as torch has it
    """Switch wildcard rows on or off (torch 2.15)."""
    _switch("wildcard_fallback_enable", "WILDCARD_FALLBACK", val)


def wildcard_fallback_is_enabled() -> bool:
    """Whether wildcard rows are used (torch 2.15)."""
    return bool(_value("wildcard_fallback_is_enabled", "WILDCARD_FALLBACK"))


def set_max_tuning_duration(duration: int) -> None:
    """Set the time limit per solution, in ms; 0 or less for no limit."""
    _switch("set_max_tuning_duration", "MAX_TUNING_DURATION_MS", max(duration, 0))


def get_max_tuning_duration() -> int:
    """Return the time limit per solution, in ms; 0 for no limit."""
    return max(_value("get_max_tuning_duration", "MAX_TUNING_DURATION_MS"), 0)


def set_max_tuning_iterations(iterations: int) -> None:
    """Set the maximum number of calls per solution; 0 or less for no limit."""
    _switch("set_max_tuning_iterations", "MAX_TUNING_ITERATIONS", max(iterations, 0))


def get_max_tuning_iterations() -> int:
    """Return the maximum number of calls per solution; 0 for no limit."""
    return max(_value("get_max_tuning_iterations", "MAX_TUNING_ITERATIONS"), 0)


def set_rotating_buffer_size(buffer_size: int) -> None:
    """Set the memory for rotating copies of the inputs, in MiB; -1 is the size of the L2 cache."""
    _switch("set_rotating_buffer_size", "ROTATING_BUFFER_SIZE", buffer_size)


def get_rotating_buffer_size() -> int:
    """Return the memory for rotating copies of the inputs: in MiB here, in KiB from torch."""
    return _value("get_rotating_buffer_size", "ROTATING_BUFFER_SIZE")


def set_cublaslt_requested_algo_count(count: int) -> None:
    """Set the number of solutions requested from cuBLASLt, at least 1 (torch 2.14, CUDA)."""
    _switch("set_cublaslt_requested_algo_count", "CUBLASLT_REQUESTED_ALGO_COUNT", max(count, 1))


def get_cublaslt_requested_algo_count() -> int:
    """Return the number of solutions requested from cuBLASLt (torch 2.14, CUDA)."""
    return _value("get_cublaslt_requested_algo_count", "CUBLASLT_REQUESTED_ALGO_COUNT")


def set_numerical_check_tolerances(
    enable: bool,  # noqa: FBT001 - as torch has it
    atol: float = 1e-5,
    rtol: float = 1e-5,
) -> None:
    """Switch the comparison with the default solution on or off (torch 2.10).

    Raises
    ------
    ValueError
        A tolerance is not positive.
    """
    if not (atol > 0 and rtol > 0):
        message = f"tolerances must be positive, not atol={atol:g} and rtol={rtol:g}"
        raise ValueError(message)
    if passed_on := _of_torch("set_numerical_check_tolerances"):
        passed_on(enable, atol, rtol)
        return
    _settings.put("NUMERICAL_CHECK", f"{atol:g}_{rtol:g}" if enable else "0")


@contextmanager
def dynamic_dims_mask(
    M: bool = False,  # noqa: FBT001, FBT002, N803 - as torch has it
    N: bool = False,  # noqa: FBT001, FBT002, N803 - as torch has it
    K: bool = False,  # noqa: FBT001, FBT002, N803 - as torch has it
    BATCH: bool = False,  # noqa: FBT001, FBT002, N803 - as torch has it
) -> Iterator[None]:
    """Tune calls inside the block with wildcards (torch 2.15, in its own process)."""
    masked = _of_torch("dynamic_dims_mask")
    if masked is None:
        message = "dynamic_dims_mask changes calls of torch itself and needs torch 2.15 or later"
        raise NotImplementedError(message)
    with masked(M=M, N=N, K=K, BATCH=BATCH):
        yield


def set_filename(
    filename: str,
    insert_device_ordinal: bool = False,  # noqa: FBT001, FBT002 - as torch has it
) -> None:
    """Set the name of the results file; without torch the ordinal is 0."""
    if passed_on := _of_torch("set_filename"):
        passed_on(filename, insert_device_ordinal)
    _settings.put("FILENAME", filename)
    _settings.inserts_ordinal = insert_device_ordinal


def get_filename() -> str:
    """Return the name of the results file; torch's default contains the ordinal 0."""
    if (asked := _of_torch("get_filename")) and (known := asked()):
        return str(known)
    name = _settings.get("FILENAME")
    inserts = _settings.is_torch_name or _settings.inserts_ordinal
    return with_ordinal(name, 0) if inserts else name


def read_file(filename: str | None = None) -> bool:
    """Read a results file, the one of `get_filename` by default, in addition to earlier ones.

    As in torch, all of its rows count or none: none if it cannot be opened, has no `PT_VERSION`,
    or has other validators than torch or than a file that was read before. Of several rows for a
    GEMM the first counts, that of an earlier file before that of a later one.

    Returns
    -------
    bool
        Whether its rows count; also true for a file that has only validators.
    """
    name = filename or get_filename()
    if (passed_on := _of_torch("read_file")) and not passed_on(name):
        return False
    if not Path(name).exists():
        return False
    file, known = read(name), _settings.file
    if not _is_accepted(file, known):
        return False
    if known.text:
        rows = b"".join(line.text + b"\n" for line in [*known.lines, *file.lines])
        header = render_validators(in_order(known.validators))
        file = TunableFile(header + rows, known.path)
    _settings.file = file
    return True


def _is_accepted(file: TunableFile, known: TunableFile) -> bool:
    """Whether torch would accept the rows of a file, as far as that is known."""
    version = installed_version()
    given = file.validators.get("PT_VERSION")
    if given is None or (version is not None and given != version):
        return False
    return not known.text or file.validators == known.validators


def write_file(filename: str | None = None) -> bool:
    """Write the results that were read, one row per GEMM; never replaces another file.

    Raises
    ------
    FileExistsError
        The file exists and is not the one that was read.
    """
    name = filename or get_filename()
    if passed_on := _of_torch("write_file"):
        return bool(passed_on(name))
    file = _settings.file
    rows = b"".join(line.text + b"\n" for line in loaded(file).values())
    is_ours = file.path is not None and file.path == Path(name)
    header = render_validators(tuple(file.validators.items()))
    TunableFile(header + rows).write(name, force=is_ours)
    return True


def write_file_on_exit(val: bool) -> None:  # noqa: FBT001 - as torch has it
    """Do nothing without torch up to 2.9: later versions write each result at once."""
    if passed_on := _of_torch("write_file_on_exit"):
        passed_on(val)


def get_results() -> tuple[tuple[str, str, str, float], ...]:
    """Return the operator, parameters, solution and time in ms of each GEMM.

    A row without a usable time has the time 0, as in torch.
    """
    if asked := _of_torch("get_results"):
        return tuple(asked())
    return tuple(
        (*key, line.solution or "", (line.time_ns or 0.0) / 1e6)
        for key, line in loaded(_settings.file).items()
    )


def get_validators() -> tuple[tuple[str, str], ...]:
    """Return the validators of torch; without torch those of the file that was read."""
    if asked := _of_torch("get_validators"):
        return tuple(asked())
    return tuple(_settings.file.validators.items())


def tune_gemm_in_file(filename: str) -> Tuning:
    """Tune the recorded GEMMs of a file on the first device, in a separate process.

    The results are written to the file of `set_filename`, with `_full0` in its name.
    """
    return _tuned([filename], 1)


def mgpu_tune_gemm_in_file(filename_pattern: str, num_gpus: int) -> Tuning:
    """Tune the recorded GEMMs of several files on several devices; see `tune`.

    The pattern must contain `?` or `*`. A guard for `__main__` is not needed: the workers are
    separate processes that do not import the program.
    """
    return _tuned(filename_pattern, num_gpus)


def decide(key: Key) -> str:
    """Return what torch would do at a call of a GEMM, with the current settings and file.

    Parameters
    ----------
    key
        The operator signature and the parameter signature.

    Returns
    -------
    str
        `use` with a result, `tune` without one if tuning is on, `record` if tuning is off and
        recording is on, `default` otherwise. `off` if TunableOp is off.
    """
    if not is_enabled():
        return "off"
    kind = Tuned(_settings.file).row_for(key).kind
    if kind == "tuned":
        return "use"
    if tuning_is_enabled():
        return "tune"
    if kind == "wildcard" and wildcard_fallback_is_enabled():
        return "use"
    return "record" if record_untuned_is_enabled() else "default"


def _tuned(recorded: str | list[str], n_gpus: int) -> Tuning:
    """Tune as `tune` does, if the switches allow it, with the current limits."""
    if not (is_enabled() and tuning_is_enabled()):
        message = "tuning needs TunableOp and tuning to be on: call enable() and tuning_enable()"
        raise ResultsError(message)
    filename = _settings.get("FILENAME")
    return tune(recorded, gpus=n_gpus, filename=filename, variables=_settings.variables())


def _switch(function: str, name: str, value: int) -> None:
    """Pass a setting on to torch, and store it for workers."""
    if passed_on := _of_torch(function):
        passed_on(value)
    _settings.put(name, value)


def _value(function: str, name: str) -> int:
    """Return a setting of torch, or the stored one; 0 if it is not a number."""
    if asked := _of_torch(function):
        return int(asked())
    text = _settings.get(name)
    return int(text) if text.lstrip("-").isdecimal() else 0


def _of_torch(function: str) -> Callable[..., Any] | None:
    """Return a function of `torch.cuda.tunable`, if torch is loaded and has it."""
    torch: ModuleType | None = sys.modules.get("torch")
    if torch is None or not hasattr(torch._C, "_cuda_tunableop_enable"):  # noqa: SLF001
        return None
    found: Callable[..., Any] | None = getattr(torch.cuda.tunable, function, None)
    return found
