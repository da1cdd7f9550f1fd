"""What a page consists of: sections of blocks, swim lanes and further sections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Union

from longpole.report.lanes import Lanes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.report.blocks import Block

__all__ = ["Page", "Part", "Section"]


@dataclass(frozen=True, slots=True)
class Section:
    """One question and its answer."""

    key: str
    """Names the section in links; letters, digits and dashes."""
    title: str
    """Empty where the parts bring their own."""
    parts: Sequence[Part]
    is_folded: bool = False
    """Whether it is shown by its title until it is opened."""
    note: str = ""
    """Beside the title of a folded section."""


Part = Union["Block", Lanes, Section]
"""What a section consists of."""


@dataclass(frozen=True, slots=True)
class Page:
    """A whole report; the navigation links to its sections, not to those within them."""

    title: str
    facts: Sequence[str]
    sections: Sequence[Section]
    links: Sequence[tuple[str, str]] = ()
    """Words and addresses, below the facts."""
