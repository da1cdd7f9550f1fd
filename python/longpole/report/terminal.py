"""The terminal an answer is shown on: its width, its colours, what it can write."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self, TextIO

if TYPE_CHECKING:
    from longpole.report.blocks import Style

__all__ = ["Terminal"]

_ASCII: Final = str.maketrans({"µ": "u", "…": "~", "·": "-", "█": "#", "×": "x"})  # noqa: RUF001
_STYLES: Final = {"bold": "1", "dim": "2", "good": "32", "warn": "33", "bad": "31"}
_WIDTH_OF_PIPES: Final = 100


@dataclass(frozen=True, slots=True)
class Terminal:
    """What stdout can show."""

    width: int = _WIDTH_OF_PIPES
    has_color: bool = False
    encoding: str = "utf-8"

    @classmethod
    def of(cls, stream: TextIO, color: str = "auto") -> Self:
        """Look at a stream and the environment; `color` is `auto`, `always` or `never`."""
        is_terminal = stream.isatty()
        width = shutil.get_terminal_size((_WIDTH_OF_PIPES, 24)).columns
        encoding = stream.encoding or "ascii"
        return cls(width, _wants_color(color, is_terminal=is_terminal), encoding)

    def styled(self, text: str, style: Style) -> str:
        """Apply a style to a text if there are colours."""
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self.has_color else text

    def encodable(self, text: str) -> str:
        """Replace what the encoding of stdout cannot write."""
        try:
            text.encode(self.encoding)
        except UnicodeEncodeError:
            plain = text.translate(_ASCII)
            return plain.encode(self.encoding, "backslashreplace").decode(self.encoding)
        return text


def _wants_color(color: str, *, is_terminal: bool) -> bool:
    if color != "auto":
        return color == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("CLICOLOR_FORCE", "0") != "0" or os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal and os.environ.get("TERM") != "dumb"
