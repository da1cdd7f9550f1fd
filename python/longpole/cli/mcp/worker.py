"""Answers one question in a separate process, which can open only the user's folders.

The server starts it with `python -P -m longpole.cli.mcp.worker`, writes one line to its stdin and
reads one from its stdout.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any, Final

from longpole._core import confine
from longpole.cli.mcp.bounds import bounded, visible
from longpole.cli.mcp.tools import call, refused

_GRACE_S: Final = 5
_MOST_ROWS: Final = 50
_ABOVE: Final = "a question may take at most {:g} GB of memory"
_REPORT: Final = "internal error (please report)"
_REFUSED: Final = (
    *("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork"),
    *("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate"),
    *("os.chmod", "os.chown", "shutil.", "ftplib.", "urllib.", "http.", "smtplib."),
)
"""Audit events that no question may cause."""
_OPENED: Final = ("open", "os.listdir", "os.scandir", "sqlite3.connect")
_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def main() -> None:
    """Answer the question on stdin, on stdout."""
    told = os.dup(1)
    os.dup2(2, 1)  # output of libraries is not part of the answer
    import polars  # noqa: F401, ICN001 - slow to import

    asked: dict[str, Any] | None = json.loads(sys.stdin.buffer.readline() or "null")
    if asked is None:  # the server has ended
        return
    folders = [Path(folder) for folder in asked["folders"]]
    _limit(asked["time_limit_s"], asked["memory_limit_gb"])
    confine(folders)
    watch()
    answer = _answer(asked, folders)
    if (answer["error"] or {}).get("code") == "MemoryError":
        limit = _ABOVE.format(asked["memory_limit_gb"])
        answer["error"] |= {"code": "memory_limit", "message": limit, "hint": None}
    with os.fdopen(told, "w", encoding="utf-8") as out:
        out.write(json.dumps(answer) + "\n")


def _answer(asked: dict[str, Any], folders: list[Path]) -> dict[str, Any]:
    """Return the answer; one with the error if something unexpected was raised."""
    try:
        return bounded(visible(call(asked["name"], asked["arguments"], folders)), _MOST_ROWS)
    except Exception as error:  # noqa: BLE001 - the server waits for an answer
        name = type(error).__name__
        return refused(name, f"the question could not be answered ({name})", _REPORT)


def _limit(time_s: float, memory_gb: float) -> None:
    """Limit the time of this process, in case the server has died, and its memory."""
    if not hasattr(signal, "setitimer"):  # Windows
        return
    import resource

    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, time_s + _GRACE_S)
    # Reserved memory does not count here, as threads reserve much.
    most = int(memory_gb * 1e9)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def watch() -> None:
    """Block, from now on, opening files without `longpole.files.opening`, and all writing.

    Exempt are the folders from which Python imports modules. This cannot be undone.
    """
    own = {sys.prefix, sys.base_prefix, *(path for path in sys.path if Path(path).is_absolute())}
    roots = [os.path.realpath(path) + os.sep for path in own]
    roots += [path + os.sep for path in own]

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if event.startswith(_REFUSED):
            message = f"a question is not allowed to do this: {event}"
            raise PermissionError(message)
        if event not in _OPENED or not isinstance(arguments[0], str | bytes | os.PathLike):
            return
        path = os.fsdecode(arguments[0])
        if event == "sqlite3.connect" and path == ":memory:":
            return
        writes = event == "open" and bool((arguments[2] or 0) & _WRITES)
        is_own = any(os.path.abspath(path).startswith(root) for root in roots)  # noqa: PTH100
        if path != os.devnull and (writes or not is_own):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    sys.addaudithook(refuse)


if __name__ == "__main__":
    main()
