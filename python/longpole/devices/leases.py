"""Leases: one job per device at a time, across processes and users.

A lease is a `flock` on a file named by the UUID of the device. The kernel releases it when its last
holder has exited, so a lease is never stale. A second file, the turnstile, is held while waiting
for the first: a program that has just released a device queues after those already waiting, so that
two runners on one machine alternate.

The files are in a folder that all users share. There is no exclusion in a container with a private
folder, and on NFS.

An instance of a partitioned device (MIG) is a device of its own. Its holder shares the lock of the
whole device with the holders of other instances, and excludes jobs that want the whole device.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import stat
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from longpole.errors import DeviceError

if TYPE_CHECKING:
    from collections.abc import Callable

SHARED_FOLDER: Final = Path("/run/lock/longpole")
OPEN_TO_ALL: Final = 0o1777
POLL_S: Final = 0.01
HOLDER_BYTES: Final = 4096


class Lease:
    """The right to use a device, acquired for a job and released after it.

    Parameters
    ----------
    uuid
        The device.
    folder
        Folder of the lock files; `lock_folder()` by default.
    parent
        The device of which this one is an instance.

    Raises
    ------
    DeviceError
        The file is a link or not a regular file: it may have been planted and must not be written
        to.
    """

    def __init__(self, uuid: str, folder: Path | None = None, *, parent: str | None = None) -> None:
        folder = folder or lock_folder()
        self._parent = None if parent is None else Lease(parent, folder)
        name = re.sub(r"[^A-Za-z0-9._-]", "_", uuid)
        self._descriptor = _open_lock(folder / f"{name}.lock")
        try:
            self._turnstile = _open_lock(folder / f"{name}.next.lock")
        except BaseException:
            os.close(self._descriptor)
            raise

    def acquire(self, given_up: Callable[[], bool] = lambda: False) -> bool:
        """Wait for the device. False if `given_up` was set first."""
        if not self.wait_for(fcntl.LOCK_EX, given_up):
            return False
        if self._parent is not None and not self._parent.wait_for(fcntl.LOCK_SH, given_up):
            self.release()
            return False
        self._sign()
        return True

    def release(self) -> None:
        """Release the device, for every process that shares this lease."""
        if self._parent is not None:
            self._parent.release()
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def holder(self) -> str | None:
        """Return the name last written to the file: the holder, while the device is taken."""
        try:
            signed = json.loads(os.pread(self._descriptor, HOLDER_BYTES, 0))
            return f"process {signed['pid']} ({signed['command']})"
        except (ValueError, KeyError, TypeError, RecursionError):
            return None

    def current_holder(self) -> str | None:
        """Return the current holder of the device, or None."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return self.holder() or "an unknown process"
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        return None if self._parent is None else self._parent.current_holder()

    def filenos(self) -> list[int]:
        """Return the file descriptors, for a guard that should hold the lease for its lifetime."""
        return [self._descriptor, *([] if self._parent is None else self._parent.filenos())]

    def close(self) -> None:
        """Release the lease, and close the files."""
        os.close(self._descriptor)
        os.close(self._turnstile)
        if self._parent is not None:
            self._parent.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def wait_for(self, kind: int, given_up: Callable[[], bool]) -> bool:
        """Queue for the lock, as the only holder or one of several."""
        if not _wait(self._turnstile, fcntl.LOCK_EX, given_up):
            return False
        try:
            return _wait(self._descriptor, kind, given_up)
        finally:
            fcntl.flock(self._turnstile, fcntl.LOCK_UN)

    def _sign(self) -> None:
        command = " ".join(sys.argv)[:200]
        text = json.dumps({"pid": os.getpid(), "command": command, "since_unix_s": time.time()})
        # A file of another user may be read-only, and a full disk must not block a device.
        with contextlib.suppress(OSError):
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, text.encode(), 0)


def lock_folder() -> Path:
    """Return the folder for lock files, creating it if needed.

    `LONGPOLE_LOCK_DIR`, else `/run/lock/longpole`, else a folder in the temporary directory.
    """
    chosen = os.environ.get("LONGPOLE_LOCK_DIR")
    if chosen:
        Path(chosen).mkdir(parents=True, exist_ok=True)
        return Path(chosen)
    for folder in (SHARED_FOLDER, Path(tempfile.gettempdir()) / "longpole-locks"):
        if _is_shared_folder(folder):
            return folder
    message = (
        "no folder for lock files\nhint: set LONGPOLE_LOCK_DIR to a folder that you may write to"
    )
    raise DeviceError(message)


def _is_shared_folder(folder: Path) -> bool:
    with contextlib.suppress(OSError):
        folder.mkdir()
        folder.chmod(OPEN_TO_ALL)  # `mkdir` applies the umask, which would exclude other users
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and os.access(folder, os.W_OK | os.X_OK)


def _open_lock(path: Path) -> int:
    """Open a lock file without following a link, creating it if needed.

    An existing file is opened without O_CREAT: in a world-writable folder the kernel refuses
    O_CREAT on files of other users (`fs.protected_regular`).
    """
    flags = os.O_NOFOLLOW | os.O_CLOEXEC
    ways = [(os.O_RDWR, 0), (os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666), (os.O_RDWR, 0)]
    for way, mode in [*ways, (os.O_RDONLY, 0)]:
        try:
            descriptor = os.open(path, way | flags, mode)
        except OSError as error:
            if error.errno in {errno.ENOENT, errno.EEXIST, errno.EACCES}:
                continue
            raise _refused(path, error.strerror) from error
        if mode:
            os.fchmod(descriptor, mode)
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            os.close(descriptor)
            raise _refused(path, "it is a link or no plain file")
        return descriptor
    raise _refused(path, "it can neither be opened nor made")


def _refused(path: Path, reason: str | None) -> DeviceError:
    return DeviceError(
        f"the lock file {path} is not used: {reason}\n"
        "hint: remove it, or set LONGPOLE_LOCK_DIR to another folder"
    )


def _wait(descriptor: int, kind: int, given_up: Callable[[], bool]) -> bool:
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if given_up():
                return False
            time.sleep(POLL_S)
        else:
            return True
