"""Tunes the GEMMs of a file with torch, on the only device visible to this process.

Started by `tune` as `python -m longpole.bench.tunableop.worker UNTUNED RESULTS`. Every result is in
the file before the next GEMM begins, so a crash loses one GEMM.
"""

from __future__ import annotations

import os
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from longpole.bench.tunableop.environment import release_of
from longpole.bench.tunableop.records import read
from longpole.errors import LongpoleError, MissingDependencyError

REFUSED: Final = 5
"""Exit status of a worker that cannot tune anything here."""

# Earlier builds for CUDA have only one solution, the default.
_CUDA_SINCE: Final = (2, 14)


def main(argv: list[str]) -> int:
    """Tune each GEMM of the first file, and write the second."""
    untuned, results = map(Path, argv)
    # The name in the environment would override the one set below.
    os.environ.pop("PYTORCH_TUNABLEOP_FILENAME", None)
    try:
        tunable = tunable_backend()
    except LongpoleError as error:
        sys.stderr.write(f"error: {error}\n")
        return REFUSED
    tunable.enable()
    tunable.tuning_enable()
    tunable.set_filename(str(results), insert_device_ordinal=False)
    with tempfile.TemporaryDirectory() as folder:
        for line in read(untuned).lines:
            single = Path(folder, "gemm.csv")
            single.write_bytes(line.text + b"\n")
            tunable.tune_gemm_in_file(str(single))
            if hasattr(tunable, "write_file"):  # from 2.10 on results are appended immediately
                _write(tunable, results)
    return 0


def _write(tunable: Any, results: Path) -> None:
    """Replace the results as a whole, since torch empties the file before it writes."""
    unfinished = results.with_name(f"{results.name}.part")
    tunable.write_file(str(unfinished))
    unfinished.replace(results)


def tunable_backend() -> Any:
    """Return `torch.cuda.tunable` if it can tune.

    Raises
    ------
    MissingDependencyError
        torch is not installed, sees no device, or its build has no tunable solutions.
    """
    try:
        torch = import_module("torch")
        tunable = import_module("torch.cuda.tunable")
    except (ImportError, OSError) as error:
        message = f"tuning needs torch with `torch.cuda.tunable`, and importing it failed: {error}"
        raise MissingDependencyError(message) from error
    if not torch.cuda.is_available():
        message = f"torch {torch.__version__} sees no GPU to tune on"
        raise MissingDependencyError(message)
    if torch.version.hip is None and (release_of(torch.__version__) or (0, 0)) < _CUDA_SINCE:
        message = (
            f"torch {torch.__version__} for CUDA has no solutions to choose from; "
            "it takes a build for ROCm, or torch 2.14 or later"
        )
        raise MissingDependencyError(message)
    return tunable


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
