"""A file that is generated while it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["PieceFile"]


class PieceFile:
    """A file made of chunks of bytes, each generated when it is read.

    Parameters
    ----------
    pieces
        Contents of the file, in order, cut anywhere.

    Examples
    --------
    >>> file = PieceFile(iter([b"ab", b"cde", b"f"]))
    >>> file.read(3), file.read(1), file.read(), file.read()
    (b'abc', b'd', b'ef', b'')
    """

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes: at least one, except at the end, and at most `size`."""
        pieces = [self._rest]
        length = len(self._rest)
        while length < size or size < 0:
            piece = next(self._pieces, None)
            if piece is None:
                break
            pieces.append(piece)
            length += len(piece)
        whole = b"".join(pieces)
        if size < 0:
            size = len(whole)
        self._rest = whole[size:]
        return whole[:size]
