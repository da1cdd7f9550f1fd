"""The names of the files that a torch process reads and writes.

torch puts the ordinal of the device into the file name: in place of `%d`, or else before the last
dot of the whole path. The ordinal counts the devices visible to the process, so processes that see
one device each all call it 0 and share a file.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from longpole.words.data import Data, computed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

RESULTS: Final = "tunableop_results.csv"
UNTUNED: Final = "tunableop_untuned.csv"

# An upper limit on the number of devices that a process sees.
_MOST_DEVICES: Final = 1024


@dataclass(frozen=True, slots=True)
class ProcessFile(Data):
    """The files of one device of one process."""

    process: int
    ordinal: int
    """Number of the device within the process."""
    device: str | None
    """Token in the visibility variable, if set."""
    results: Path
    untuned: Path

    @computed
    def exists(self) -> bool:
        """Whether the results file exists."""
        return self.results.exists()


def with_ordinal(name: str, ordinal: int) -> str:
    """Return the name of a results file with the ordinal at torch's position.

    The ordinal replaces the first `%d`, or comes before the last dot.

    Examples
    --------
    >>> with_ordinal("tunableop_results.csv", 3), with_ordinal("out_%d.csv", 3)
    ('tunableop_results3.csv', 'out_3.csv')
    >>> with_ordinal("runs.v2/results", 3)
    'runs3.v2/results'
    """
    if "%d" in name:
        return name.replace("%d", str(ordinal), 1)
    return untuned_with_ordinal(name, ordinal)


def untuned_with_ordinal(name: str, ordinal: int) -> str:
    """Return the name of an untuned file with the ordinal; torch ignores `%d` in it.

    Examples
    --------
    >>> untuned_with_ordinal("untuned_%d.csv", 3)
    'untuned_%d3.csv'
    """
    stem, dot, suffix = name.rpartition(".")
    return f"{stem}{ordinal}.{suffix}" if dot else f"{name}{ordinal}"


def ordinal_of(path: str | os.PathLike[str]) -> int | None:
    """Return the ordinal in the name of a file; None without one.

    Examples
    --------
    >>> ordinal_of("v2.1/tunableop_results12.csv"), ordinal_of("./results.csv")
    (12, None)
    """
    found = re.search(r"(\d+)$", Path(path).stem)
    return int(found[1]) if found else None


def full_name(name: str | os.PathLike[str], ordinal: int) -> Path:
    """Return the name of a device's file for the merged results.

    Only the file name changes, regardless of digits and dots in the path.

    Examples
    --------
    >>> full_name("mi300_run.v2/results.csv", 10).as_posix()
    'mi300_run.v2/results_full10.csv'
    """
    path = Path(name)
    stem = path.stem.replace("%d", "")
    return path.with_name(f"{stem}_full{ordinal}{path.suffix}")


def all_ordinals(name: str) -> list[Path]:
    """Find the files of all devices, sorted by ordinal.

    Parameters
    ----------
    name
        The name as set in torch: `tunableop_results.csv` finds `tunableop_results0.csv` to
        `tunableop_results12.csv` and beyond; so does `tunableop_results%d.csv`.
    """
    paths = (Path(with_ordinal(name, ordinal)) for ordinal in range(_MOST_DEVICES))
    return [path for path in paths if path.exists()]


def files(
    *,
    results: str | None = None,
    untuned: str | None = None,
    n_devices: int | None = None,
    environ: Mapping[str, str] | None = None,
    process: int = 0,
) -> list[ProcessFile]:
    """List the files that a process reads and writes, for each device it sees.

    Parameters
    ----------
    results, untuned
        File names of the process; by default those of the variables `PYTORCH_TUNABLEOP_FILENAME`
        and `PYTORCH_TUNABLEOP_UNTUNED_FILENAME`, or torch's defaults.
    n_devices
        Number of devices of the machine, listed if no visibility variable is set; by default one.
    environ
        The environment of the process; this process's by default.
    process
        Number of the process.

    Examples
    --------
    >>> for file in files(environ={"CUDA_VISIBLE_DEVICES": "4,5"}):
    ...     print(file.ordinal, file.device, file.results)
    0 4 tunableop_results0.csv
    1 5 tunableop_results1.csv
    """
    environ = os.environ if environ is None else environ
    results = results or environ.get("PYTORCH_TUNABLEOP_FILENAME") or RESULTS
    untuned = untuned or environ.get("PYTORCH_TUNABLEOP_UNTUNED_FILENAME") or UNTUNED
    return [
        ProcessFile(
            process,
            ordinal,
            device,
            Path(with_ordinal(results, ordinal)),
            Path(untuned_with_ordinal(untuned, ordinal)),
        )
        for ordinal, device in enumerate(_visible(environ, n_devices))
    ]


def name_warnings(
    found: Iterable[ProcessFile], results: str = RESULTS, untuned: str = UNTUNED
) -> list[str]:
    """Report names that lead to unwanted files.

    Parameters
    ----------
    found
        The files of all concurrent processes.
    results, untuned
        Their configured file names.
    """
    warnings = [
        f"{name!r} has no dot in the file name: torch puts the ordinal into the name of a folder"
        for name in (results, untuned)
        if "%d" not in name and "/" in name.rpartition(".")[2]
    ]
    users: dict[Path, list[ProcessFile]] = defaultdict(list)
    for each in found:
        users[each.results].append(each)
    for path, sharing in users.items():
        if len({each.process for each in sharing}) > 1:
            numbers = ", ".join(str(each.process) for each in sharing)
            devices = ", ".join(each.device or "unknown" for each in sharing)
            warnings.append(
                f"processes {numbers} (devices {devices}) all use {path}: the ordinal counts "
                "what a process sees; give each process a file name of its own"
            )
    return warnings


def _visible(environ: Mapping[str, str], n_devices: int | None) -> Sequence[str | None]:
    """Return the token of each device visible to a process, reading the variables as drivers do."""
    from longpole.devices.visibility import visible_tokens

    tokens = visible_tokens(environ)
    return [None] * (n_devices or 1) if tokens is None else tokens
