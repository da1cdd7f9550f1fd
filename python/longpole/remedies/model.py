"""The interface of a remedy, and of its matches in a trace."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from longpole.engine.critical_path.changes import Change, TimeRange, WorkKind
    from longpole.remedies.facts import Facts
    from longpole.remedies.sides import Side

Effort = Literal["one_line", "configuration", "code", "kernel"]
"""Effort of a remedy: one line, a setting, a part of the program, a custom kernel."""

EFFORTS: Final[tuple[Effort, ...]] = get_args(Effort)


How = Literal[
    "tf32",
    "channels_last",
    "fused_attention",
    "fused_attention_training",
    "fused_optimizer",
    "compiled",
]
"""Kind of change that a script makes to operators to time them in both forms."""


Signature = Literal["fused_kernels", "graph_launches", "attention_kernels"]
"""Kernels or launches that show that a remedy was applied: named after several operators, launches
of graphs, or attention kernels that replaced a softmax."""


@dataclass(frozen=True, kw_only=True)
class Form:
    """Operators of one shape that a script can time before and after a change."""

    how: How
    operators: Sequence[int]
    """The operators of one occurrence: rows of `Trace.events`."""
    events: Sequence[int]
    """The kernels of all occurrences: what is measured scales their time."""
    time_ranges: Sequence[TimeRange] = ()
    """Time ranges of threads whose time is scaled as well."""
    detail: str = ""
    """Further data that the script needs: the name of an optimizer."""
    source: int = 0
    """The trace with the operators: 0 for this one, else the number of a trace of a capture."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """A place in the program to which a remedy applies, with the changes that model it."""

    careful: Sequence[Change]
    """Changes that are certain to be possible, for the lower bound of the gain."""
    hopeful: Sequence[Change] = ()
    """All changes for the upper bound, which replace `careful`; empty if they are the same."""
    advice: str
    """What to change, in the imperative, without a full stop: "Let AdamW update all tensors at
    once (`fused=True`)"."""
    evidence: str = ""
    """What the trace shows, as a clause after a colon."""
    name: str | None = None
    """The place, function or kernel it applies to."""
    events: Sequence[int] = ()
    """Rows of `Trace.events` that show it best, the best first."""
    forms: Sequence[Form] = ()
    """What `longpole whatif --measure` can time."""
    effort: Effort | None = None
    """Effort at this place, if it is not that of the remedy."""
    is_upper_bound: bool | None = None
    """As for the remedy, if this place differs."""
    takes: float | None = None
    """Share of the time that this takes, if it is start-up: it is the only line of the plan then,
    which tells that share and no saving."""


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """A possible change of a program: its detection, model and advice."""

    id: str
    """Its name in data and on the command line."""
    side: Side
    """The part of the program that it shortens."""
    effort: Effort
    needs: str
    """What must be recorded to detect it."""
    seen_by: str
    """How the trace shows it, for the documentation."""
    change: str
    """The change of the graph, and the cost of the new mechanism."""
    not_when: str
    """When it does not apply."""
    is_upper_bound: bool = False
    """Whether even its lower bound is an upper bound, because it may not be possible."""
    replaces_launches: bool = False
    """Whether it replaces many launches by one, so that their number shows if it was applied."""
    signature: Signature | None = None
    """What a program has of which this remedy was applied, and no other."""
    shortens: tuple[WorkKind, ...] = ()
    """Kinds of work that remain, but take less time once it was applied."""
    leaves: float | None = None
    """The most that remains of this work, if that alone shows that it was applied."""
    hides: WorkKind | None = None
    """Kind of work that runs concurrently with kernels once it was applied."""
    replaces_name: tuple[str, str] | None = None
    """Parts of names of functions that a program has before and after it was applied."""
    depends_on_ranks: bool = False
    """Whether it also stops to apply if other ranks become faster."""
    slows_all_operators: bool = False
    """Whether what it removes slows down all operators, as a slower machine does."""
    is_worse_recorded: bool = False
    """Whether recording makes what it removes longer by more than the range of its cost shows."""
    removes_code: bool = False
    """Whether it removes or moves code, so that the waits and the Python of a place go together."""
    has_obstacles: bool = False
    """Whether waits, allocations or copies can prevent it, so that removing these may open it."""
    is_computed: bool = True
    """Whether its changes model the gain; otherwise it has none and is only reported."""
    is_measured: bool = True
    """Whether programs were measured before and after it; otherwise its gain is less certain."""
    is_refuted: bool = False
    """Whether measured programs saved less than its lower bound: it is never the first line."""
    find: Callable[[Facts], Iterable[Found]] = field(repr=False)
    """Return the places to which it applies; empty if none."""

    @property
    def may_exceed(self) -> bool:
        """Whether it may save more than its upper bound, as measured programs did."""
        return self.is_measured and not self.is_upper_bound

    def at(self, place: Found) -> Remedy:
        """Return the remedy with what is different at a place."""
        is_upper_bound = place.is_upper_bound
        return replace(
            self,
            effort=place.effort or self.effort,
            is_upper_bound=self.is_upper_bound if is_upper_bound is None else is_upper_bound,
        )
