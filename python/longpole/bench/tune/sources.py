"""What a measurement depends on: the program, the files that it names, and the environment."""

from __future__ import annotations

import ast
import hashlib
import os
import re
import shutil
from typing import TYPE_CHECKING, Final

from longpole.bench.records.environment import RECORDED_VARIABLES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

_MOST_BYTES: Final = 10_000_000
"""Maximum size of a file whose contents count; of a larger one, size and time of change do."""
_MOST_FILES: Final = 1_000
_THAT_MATTER: Final = re.compile(
    r".*_NUM_THREADS|(CUDA|HIP|HSA|ROCR|GPU|ASCEND|ZE|ONEAPI|OMP|GOMP|KMP|MKL|OPENBLAS|BLIS|NUMEXPR"
    r"|TORCH|TORCHINDUCTOR|PYTORCH|TRITON|XLA|JAX|NCCL|RCCL|CUBLAS|CUDNN|NVIDIA|MALLOC)_.*"
    r"|LD_PRELOAD|LD_LIBRARY_PATH|PYTHONPATH|PYTHONOPTIMIZE"
)
"""Variables that change what is measured: threads, visible devices, libraries."""


def environment_digest(environ: Mapping[str, str] | None = None, also: Collection[str] = ()) -> str:
    """Return a digest of the variables that change measured times.

    Parameters
    ----------
    environ
        The environment; this process's by default.
    also
        More names that count, such as those that the user records.
    """
    environ = os.environ if environ is None else environ
    known = {*RECORDED_VARIABLES, *also}
    found = sorted(
        (name, value)
        for name, value in environ.items()
        if name in known or _THAT_MATTER.fullmatch(name)
    )
    return _hashed(repr(each).encode() for each in found)


def program_files(argv: Sequence[str], folder: Path, without: Path | None = None) -> list[Path]:
    """List the program of a command, the files that its words name, and what these import.

    Parameters
    ----------
    argv
        The words of the command.
    folder
        Its working directory.
    without
        A folder whose files do not count, because longpole makes them.
    """
    program = argv[0] if os.sep in argv[0] else shutil.which(argv[0])
    named = [program, *argv[1:], *(word.partition("=")[2] for word in argv[1:])]
    paths = [(folder / word).resolve() for word in named if word and "\0" not in word]
    files = [path for path in dict.fromkeys(paths) if _is_file(path)]
    if without is not None:
        files = [path for path in files if without not in path.parents]
    return [*files, *imported_files(files, folder)]


def imported_files(files: Iterable[Path], folder: Path) -> list[Path]:
    """List the Python files in a folder, or next to a file, that some files import.

    Imports are read from the sources, also those inside functions. Installed packages do not count:
    records have the versions of those that matter.
    """
    found: dict[Path, None] = {}
    waiting = [path for path in files if path.suffix == ".py"]
    while waiting and len(found) < _MOST_FILES:
        path = waiting.pop()
        for module in _imports(path):
            for place in _places(module, path, folder):
                if place not in found and _is_file(place):
                    found[place] = None
                    waiting.append(place)
    return list(found)


def digest_of(files: Iterable[Path]) -> str:
    """Return a digest of the contents of files."""
    return _hashed(_state(path) for path in files)


def _hashed(parts: Iterable[bytes]) -> str:
    contents = hashlib.sha256()
    for part in parts:
        contents.update(hashlib.sha256(part).digest())
    return contents.hexdigest()[:16]


def _state(path: Path) -> bytes:
    try:
        state = path.stat()
        if state.st_size > _MOST_BYTES:
            return repr((path.name, state.st_size, state.st_mtime_ns)).encode()
        return path.name.encode() + b"\0" + path.read_bytes()
    except OSError as error:
        return f"{path.name}: {error.strerror}".encode()


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _imports(path: Path) -> Iterator[tuple[str, int]]:
    """Yield the names of imported modules, and the number of leading dots."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, 0) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            yield module, node.level
            names = (f"{module}.{alias.name}".lstrip(".") for alias in node.names)
            yield from ((name, node.level) for name in names)


def _places(module: tuple[str, int], importer: Path, folder: Path) -> Iterator[Path]:
    """Yield where a module may be: next to its importer, or in the folder of the task."""
    name, level = module
    parts = [part for part in name.split(".") if part]
    bases = [importer.parents[level - 1]] if 0 < level <= len(importer.parents) else []
    if level == 0:
        bases = [importer.parent, folder.resolve()]
    for base in bases:
        for n_parts in range(1, len(parts) + 1):
            place = base.joinpath(*parts[:n_parts])
            yield place.with_suffix(".py")
            yield place / "__init__.py"
