"""What a remedy is, and what it finds in a trace."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from longpole.critical_path.changes import Change, Stretch
    from longpole.remedies.facts import Facts
    from longpole.remedies.parts import Side

__all__ = ["EFFORTS", "Effort", "Form", "Found", "How", "Remedy"]

Effort = Literal["one_line", "configuration", "code", "kernel"]
"""What a remedy costs: a line, a setting, a part of the program, a kernel of one's own."""

EFFORTS: Final[tuple[Effort, ...]] = get_args(Effort)


How = Literal["tf32", "channels_last", "fused_attention", "fused_optimizer"]
"""How a script makes the mended form of operators."""


@dataclass(frozen=True, kw_only=True)
class Form:
    """Operators of one shape that a script can time in both forms: as recorded, and mended."""

    how: How
    operators: Sequence[int]
    """The operators of one occurrence: rows of `Trace.events`."""
    events: Sequence[int]
    """The kernels of all occurrences: what is measured scales their time."""
    stretches: Sequence[Stretch] = ()
    """The time of threads that it scales, too."""
    detail: str = ""
    """What else the script needs: the name of an optimizer."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """A place in the program that a remedy fits, with the changes that stand for it."""

    careful: Sequence[Change]
    """What surely goes: they give the least that it saves."""
    hopeful: Sequence[Change] = ()
    """What may go: they give the most that it saves; empty where that is the same."""
    advice: str
    """What to change, in the imperative, without a full stop: "Let AdamW update all tensors at
    once (`fused=True`)"."""
    evidence: str = ""
    """What the trace shows, as a clause after a colon."""
    name: str | None = None
    """The place, function or kernel that it is about."""
    events: Sequence[int] = ()
    """Rows of `Trace.events` that show it best, the best first."""
    forms: Sequence[Form] = ()
    """What `longpole whatif --measure` can time."""


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """Something that can be changed in a program: how it is seen, computed and said."""

    id: str
    """Its name in data and on the command line."""
    side: Side
    """The part of the program that it shortens."""
    effort: Effort
    needs: str
    """What must be recorded to see it."""
    seen_by: str
    """What the trace shows, for the documentation."""
    change: str
    """What is changed in the graph, and what the new mechanism costs."""
    not_when: str
    """When it does not apply."""
    is_upper_bound: bool = False
    """Whether even its least gain is an upper bound: whether it can be done is not known."""
    is_computed: bool = True
    """Whether the changes stand for what it saves; otherwise it has none and is only said."""
    find: Callable[[Facts], Iterable[Found]] = field(repr=False)
    """Returns the places that it fits; nothing where it does not apply."""
