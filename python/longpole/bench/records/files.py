"""Files written whole or not at all, readable by their owner only."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

__all__ = ["written_whole"]


@contextmanager
def written_whole(target: Path, *, replace: bool) -> Iterator[IO[bytes]]:
    """Give a file to write; when all is written and on disk it gets its name.

    Parameters
    ----------
    target
        The name.
    replace
        Take the place of a file of that name.

    Raises
    ------
    FileExistsError
        There is a file of that name, and it is not to be replaced, or it is no plain file. It is
        left as it is.
    """
    if target.exists() and not target.is_file():
        message = f"{target} is no plain file, and is never replaced"
        raise FileExistsError(message)
    with tempfile.NamedTemporaryFile(
        dir=target.parent, prefix=f".{target.name}.", delete=False
    ) as file:
        written = Path(file.name)
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if replace:
                written.replace(target)
            else:
                target.hardlink_to(written)  # fails where there is a target, as a rename would not
        finally:
            written.unlink(missing_ok=True)
