"""Watches which files a program opens, and to whom it connects.

`strace` sees every system call of all threads and processes. Where it is not installed or may not
trace, an audit hook sees what Python code opens, which leaves out the core.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT: Final = Path(__file__).parents[2]
_CALLS: Final = "open,openat,openat2,creat,connect"
_OPENED: Final = re.compile(r"open(?:at2?)?\((?:(?:AT_FDCWD|\d+)(?:<([^>]*)>)?, )?\"([^\"]*)\"")
_CONNECTED: Final = re.compile(r"connect\(.*")
_SYSTEM: Final = (
    *("/usr/", "/lib/", "/lib64/", "/etc/ld.so.", "/etc/locale", "/etc/ssl/", "/etc/alternatives/"),
    *("/proc/", "/sys/", "/dev/null", "/dev/urandom", "/dev/shm"),  # noqa: S108
)
"""Shared libraries, locales, and what they ask about the machine."""

_OF_LIBRARIES: Final = re.compile(r"/openssl\.cnf$|/polars-[^/]+/spill$|/__pycache__/[^/]+\.pyc$")
"""The configuration of OpenSSL, and the folder to which polars would write large frames."""

_AUDITED = """
import json, os, runpy, sys
log = open(sys.argv[1], "a")
def hook(event, arguments):
    if event == "open" and isinstance(arguments[0], (str, bytes, os.PathLike)):
        log.write(json.dumps(["open", os.path.abspath(os.fsdecode(arguments[0]))]) + "\\n")
    if event.startswith("socket.connect"):
        log.write(json.dumps(["connect", repr(arguments)]) + "\\n")
    log.flush()
sys.addaudithook(hook)
sys.argv = sys.argv[2:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


@dataclass(frozen=True)
class Watched:
    """What a program did."""

    returncode: int
    stdout: str
    stderr: str
    opened: frozenset[str]
    """Real paths, without modules of Python, shared libraries and the package itself."""
    connected: tuple[str, ...]


def run_module(*words: str, cwd: Path, stdin: str = "") -> Watched:
    """Run `python -m` with some words and watch it."""
    log = cwd.parent / f"{cwd.name}.watched"
    log.unlink(missing_ok=True)
    if has_strace():
        tracing = ["strace", "-f", "-y", "-s", "4096", "-e", f"trace={_CALLS}", "-o", str(log)]
        command = [*tracing, sys.executable, "-B", "-m", *words]
    else:
        command = [sys.executable, "-B", "-c", _AUDITED, str(log), *words]
    done = subprocess.run(
        command,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        input=stdin,
        timeout=300,
        env=os.environ | {"PYTHONPATH": str(ROOT / "tests")},
    )
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    log.unlink()
    opened, connected = _of_strace(lines, cwd) if has_strace() else _of_hook(lines)
    foreign = frozenset(path for path in map(os.path.realpath, opened) if not _is_own(path))
    return Watched(done.returncode, done.stdout, done.stderr, foreign, tuple(connected))


@cache
def has_strace() -> bool:
    """Whether strace is installed and may trace."""
    found = shutil.which("strace")
    if found is None:
        return False
    tried = subprocess.run([found, "-f", "true"], capture_output=True, check=False)
    return tried.returncode == 0


def _of_strace(lines: Sequence[str], cwd: Path) -> tuple[list[str], list[str]]:
    opened = [
        str(cwd / (found[1] or "") / found[2]) for line in lines if (found := _OPENED.search(line))
    ]
    return opened, [found[0] for line in lines if (found := _CONNECTED.search(line))]


def _of_hook(lines: Sequence[str]) -> tuple[list[str], list[str]]:
    seen = [json.loads(line) for line in lines]
    of_kind = {kind: [what for it, what in seen if it == kind] for kind in ("open", "connect")}
    return of_kind["open"], of_kind["connect"]


def _is_own(path: str) -> bool:
    """Whether a path is of Python, of the package, or of the system."""
    python = {sys.prefix, sys.base_prefix, sys.exec_prefix, *filter(None, sys.path)}
    own = [*(os.path.realpath(each) for each in python), str(ROOT / "python")]
    folders = {str(ROOT), str(ROOT / "tests")}  # the tests are on the path, not what is watched
    is_of_python = any(
        path == each or path.startswith(f"{each}{os.sep}") for each in own if each not in folders
    )
    return is_of_python or path.startswith(_SYSTEM) or _OF_LIBRARIES.search(path) is not None
