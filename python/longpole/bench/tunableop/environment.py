"""The environment variables of TunableOp, problems with their values, and the installed torch.

torch reads each variable once, at the first GEMM or earlier; later changes have no effect.
`os.putenv` changes the process but not `os.environ`, so Python code does not see it; set variables
in the shell, or in `os.environ` before torch is imported.
"""

from __future__ import annotations

import difflib
import os
import re
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

PREFIX: Final = "PYTORCH_TUNABLEOP_"

Phase: TypeAlias = Literal["collect", "tune", "use"]
"""Record the GEMMs of a program, tune them, or use the results."""

Version: TypeAlias = tuple[int, int]

_FLAG: Final = re.compile(r"[01]")
_INTEGER: Final = re.compile(r"-?\d+")
_VERBOSE: Final = re.compile(r"[0-3]")
_TOLERANCES: Final = re.compile(r"0|[\d.eE+-]+_[\d.eE+-]+")
_ANY: Final = re.compile(r".+", re.DOTALL)

_NUMERICAL_TOLERANCES_SINCE: Final = (2, 10)


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable without its prefix: torch's default and its meaning.

    `since` is the first version of torch with it, if later than 2.3.
    """

    name: str
    default: str
    meaning: str
    form: re.Pattern[str]
    since: Version = (2, 3)

    @property
    def full_name(self) -> str:
        """The name in the environment."""
        return PREFIX + self.name


VARIABLES: Final = (
    Variable("ENABLED", "0", "1 looks every GEMM up in the results", _FLAG),
    Variable("TUNING", "1", "1 tunes GEMMs that have no result", _FLAG),
    Variable(
        "RECORD_UNTUNED",
        "0",
        "1 writes GEMMs without result to a file; needs TUNING=0",
        _FLAG,
        (2, 6),
    ),
    Variable("VERBOSE", "0", "0 silent, 1 basic, 2 tuning status, 3 full trace", _VERBOSE),
    Variable("VERBOSE_FILENAME", "err", "`err`, `out`, or a file for messages", _ANY),
    Variable("FILENAME", "tunableop_results.csv", "the results; gets the device ordinal", _ANY),
    Variable(
        "UNTUNED_FILENAME",
        "tunableop_untuned.csv",
        "the recorded GEMMs; gets the device ordinal",
        _ANY,
        (2, 6),
    ),
    Variable(
        "NUMERICAL_CHECK",
        "0",
        "compare each solution with the default: 0 or 1 up to torch 2.9, then 0 or `atol_rtol`",
        _ANY,
    ),
    Variable("ROCBLAS_ENABLED", "1", "0 leaves rocBLAS out (ROCm)", _FLAG),
    Variable("HIPBLASLT_ENABLED", "1", "0 leaves hipBLASLt out (ROCm)", _FLAG),
    Variable(
        "CUBLASLT_REQUESTED_ALGO_COUNT",
        "8",
        "how many solutions to ask cuBLASLt for (CUDA)",
        _INTEGER,
        (2, 14),
    ),
    Variable("MAX_TUNING_DURATION_MS", "30", "time for a solution; 0 for no limit", _INTEGER),
    Variable("MAX_TUNING_ITERATIONS", "100", "calls of a solution; 0 for no limit", _INTEGER),
    Variable("MAX_WARMUP_DURATION_MS", "0", "warm-up time of a solution; 0 for none", _INTEGER),
    Variable("MAX_WARMUP_ITERATIONS", "0", "warm-up calls of a solution; 0 for none", _INTEGER),
    Variable("ICACHE_FLUSH_ENABLED", "1", "1 flushes the instruction cache before a call", _FLAG),
    Variable(
        "ROTATING_BUFFER_SIZE",
        "-1",
        "MiB of copies of the inputs; -1 is the L2 cache, 0 none",
        _INTEGER,
    ),
    Variable("WILDCARD_FALLBACK", "0", "1 also looks for rows with wildcards", _FLAG, (2, 15)),
    Variable("BLAS_LOG", "0", "1 appends the call of BLAS to each row", _FLAG),
)

_BY_NAME: Final = {variable.full_name: variable for variable in VARIABLES}

_PHASES: Final[dict[str, dict[str, str]]] = {
    "collect": {"ENABLED": "1", "TUNING": "0", "RECORD_UNTUNED": "1"},
    "tune": {"ENABLED": "1", "TUNING": "1", "RECORD_UNTUNED": "0"},
    "use": {"ENABLED": "1", "TUNING": "0", "RECORD_UNTUNED": "0"},
}


def environment(
    phase: Phase, *, filename: str | None = None, untuned_filename: str | None = None
) -> dict[str, str]:
    """Return the variables for a phase.

    Parameters
    ----------
    phase
        `collect`, `tune` or `use`.
    filename, untuned_filename
        The files, if not torch's defaults.

    Raises
    ------
    ValueError
        The phase does not exist.

    Examples
    --------
    >>> for name, value in environment("collect").items():
    ...     print(f"{name}={value}")
    PYTORCH_TUNABLEOP_ENABLED=1
    PYTORCH_TUNABLEOP_TUNING=0
    PYTORCH_TUNABLEOP_RECORD_UNTUNED=1
    """
    if phase not in _PHASES:
        message = f"phase is one of {', '.join(_PHASES)}, not {phase!r}"
        raise ValueError(message)
    names = {"FILENAME": filename, "UNTUNED_FILENAME": untuned_filename}
    given = {name: value for name, value in names.items() if value}
    return {PREFIX + name: value for name, value in {**_PHASES[phase], **given}.items()}


def environment_warnings(
    environ: Mapping[str, str] | None = None, version: str | None = None
) -> list[str]:
    """Return the problems with the variables in an environment.

    Parameters
    ----------
    environ
        The environment; this process's by default.
    version
        Version of torch, by default the installed one. If unknown, checks that depend on it are
        skipped.

    Examples
    --------
    >>> environ = {"PYTORCH_TUNABLEOP_ENABLED": "1", "PYTORCH_TUNABLEOP_VEROBSE": "1"}
    >>> environment_warnings(environ, "2.9.1")
    ['PYTORCH_TUNABLEOP_VEROBSE is unknown to torch; did you mean PYTORCH_TUNABLEOP_VERBOSE?']
    """
    environ = os.environ if environ is None else environ
    given = {name: value for name, value in environ.items() if name.startswith(PREFIX)}
    known = release_of(version or installed_version() or "")
    return [
        *(warning for name, value in given.items() for warning in _of_one(name, value, known)),
        *_of_all({name.removeprefix(PREFIX): value for name, value in given.items()}),
    ]


def installed_version() -> str | None:
    """Return the version of torch as in validators; None if it is not installed.

    torch itself is not imported.
    """
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as version_of

    try:
        found = re.match(r"\d+\.\d+\.\d+", version_of("torch"))
    except PackageNotFoundError:
        return None
    return found[0] if found else None


def _of_one(name: str, value: str, version: Version | None) -> Iterator[str]:
    variable = _BY_NAME.get(name)
    if variable is None:
        near = difflib.get_close_matches(name, _BY_NAME, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        yield f"{name} is unknown to torch{hint}"
        return
    if version and version < variable.since:
        since = ".".join(map(str, variable.since))
        yield f"{name} does nothing before torch {since}"
    form = variable.form
    if variable.name == "NUMERICAL_CHECK":
        form = _numerical_check(value, version)
    if not form.fullmatch(value):
        yield f"{name}={value!r} is invalid; expected: {variable.meaning}"


def _numerical_check(value: str, version: Version | None) -> re.Pattern[str]:
    """Return the form that a version of torch expects; of an unknown one, either."""
    if version is None:
        return _TOLERANCES if _TOLERANCES.fullmatch(value) else _FLAG
    return _TOLERANCES if version >= _NUMERICAL_TOLERANCES_SINCE else _FLAG


def _of_all(given: Mapping[str, str]) -> Iterator[str]:
    """Check for combinations of variables that have no effect; names are without the prefix."""

    def value(name: str) -> str:
        return given.get(name, _BY_NAME[PREFIX + name].default)

    if given and value("ENABLED") != "1":
        yield f"{PREFIX}ENABLED is not 1: the other variables do nothing"
        return
    yield from _of_tuning(given, value)
    tuning_only = [name for name in given if name.startswith(("MAX_", "ROTATING", "ICACHE", "NUM"))]
    if tuning_only and value("TUNING") != "1":
        yield f"{PREFIX}{tuning_only[0]} does nothing while {PREFIX}TUNING is 0"
    if value("MAX_TUNING_DURATION_MS") == "0" == value("MAX_TUNING_ITERATIONS"):
        yield "tuning has no limit of time and none of iterations: every solution is run once"
    if value("ROCBLAS_ENABLED") == "0" == value("HIPBLASLT_ENABLED"):
        yield "rocBLAS and hipBLASLt are both left out: only the default remains on ROCm"
    if "VERBOSE_FILENAME" in given and value("VERBOSE") == "0":
        yield f"{PREFIX}VERBOSE_FILENAME does nothing while {PREFIX}VERBOSE is 0"
    folder = Path(value("FILENAME")).parent
    if "FILENAME" in given and not folder.is_dir():
        yield f"{PREFIX}FILENAME names a folder that is not there: {folder}"


def _of_tuning(given: Mapping[str, str], value: Callable[[str], str]) -> Iterator[str]:
    """Check the variables that need TUNING=0, which is not the default."""
    if value("RECORD_UNTUNED") == "1" and value("TUNING") == "1":
        yield (
            f"{PREFIX}RECORD_UNTUNED=1 records nothing while {PREFIX}TUNING is 1, its default: "
            "GEMMs are tuned instead; set it to 0"
        )
    if "UNTUNED_FILENAME" in given and value("RECORD_UNTUNED") != "1":
        yield f"{PREFIX}UNTUNED_FILENAME does nothing without {PREFIX}RECORD_UNTUNED=1"
    if "%d" in given.get("UNTUNED_FILENAME", ""):
        yield f"{PREFIX}UNTUNED_FILENAME keeps its %d: torch puts the ordinal before the last dot"
    if value("WILDCARD_FALLBACK") == "1" and value("TUNING") == "1":
        yield (
            f"{PREFIX}WILDCARD_FALLBACK=1 does nothing while {PREFIX}TUNING is 1, its default: a "
            "GEMM without a row is tuned; set it to 0"
        )


def release_of(text: str) -> Version | None:
    """Parse the major and minor number of a version; None without them."""
    found = re.match(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None


class Installed(NamedTuple):
    """Known validators, and whether these are all."""

    validators: dict[str, str]
    is_complete: bool


def installed_validators() -> Installed:
    """Return the validators of the installed torch.

    If torch sees no GPU, only its version is known. Empty if torch is not installed.
    """
    version = installed_version()
    if version is None:
        return Installed({}, is_complete=False)
    try:
        torch = import_module("torch")
        if torch.cuda.is_available():
            found = dict(import_module("torch.cuda.tunable").get_validators())
            return Installed(found, is_complete=bool(found))
    except (ImportError, OSError, RuntimeError, AttributeError):
        pass  # a build without TunableOp, or with missing libraries
    return Installed({"PT_VERSION": version}, is_complete=False)
