"""Another Python thread that holds the interpreter lock while the launching thread needs it.

Then even trivial operators take milliseconds, because the lock is handed over every 5 ms.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from longpole.engine.critical_path.changes import Scale
from longpole.remedies.model import Found, Remedy
from longpole.words.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.remedies.facts import Facts
    from longpole.remedies.recorded import OnThread

VIEWS: Final = (
    "aten::view",
    "aten::as_strided",
    "aten::transpose",
    "aten::t",
    "aten::permute",
    "aten::unsqueeze",
    "aten::squeeze",
    "aten::select",
    "aten::slice",
    "aten::detach",
    "aten::expand",
    "aten::reshape",
)
"""Operators that only create a view of a tensor: one or two microseconds of work."""

# The interpreter lets another thread run every 5 ms: a waiting operator takes about that long.
_LEAST_NS: Final = 4_000_000

# Minimum number of waiting cheap operators per window, and their minimum share of it.
_LEAST_WAITING: Final = 3
_LEAST_SHARE: Final = 0.1

# Assumed time of an operator that does not wait: that of the fastest tenth with the same name, and
# at most this long, because all of them may have waited. The lower bound of the gain allows for
# several times as much.
_MOST_WORK_NS: Final = 10_000
_CAREFUL: Final = 5


def _find(facts: Facts) -> Iterator[Found]:
    launching = [row for row in facts.operators(*VIEWS) if row.lane in facts.launch_lanes]
    cheap = [row for row in launching if facts.name(row.event) in VIEWS]
    waiting = [row for row in cheap if row.duration_ns >= _LEAST_NS]
    if len(waiting) < _LEAST_WAITING * facts.n_windows:
        return
    if not facts.is_worth(sum(row.duration_ns for row in waiting), _LEAST_SHARE):
        return
    usual = _usual_ns(facts, cheap) / sum(row.duration_ns for row in cheap)
    start_ns, end_ns = facts.windows[0][0], facts.windows[-1][1]
    time_ranges = [(lane, start_ns, end_ns) for lane in sorted(facts.launch_lanes)]
    n_waiting = round(facts.per_window(len(waiting)))
    yield Found(
        careful=[Scale(by=min(_CAREFUL * usual, 1.0), time_ranges=time_ranges)],
        hopeful=[Scale(by=min(usual, 1.0), time_ranges=time_ranges)],
        advice="Move the other Python thread, which holds the interpreter lock, to its own process",
        evidence=(
            f"{count(n_waiting, 'operator')} {facts.each} that only make a view take "
            "5 ms or a multiple"
        ),
        events=facts.longest(waiting),
    )


def _usual_ns(facts: Facts, cheap: list[OnThread]) -> int:
    """Return the time of these operators at the speed of the fastest tenth with their name."""
    of_name: dict[str, list[int]] = defaultdict(list)
    for row in cheap:
        of_name[facts.name(row.event)].append(row.duration_ns)
    tenth = {name: sorted(times)[len(times) // 10] for name, times in of_name.items()}
    return sum(min(tenth[name], _MOST_WORK_NS) * len(times) for name, times in of_name.items())


REMEDY: Final = Remedy(
    id="interpreter_lock",
    side="host",
    effort="code",
    needs="operators and runtime calls",
    seen_by="operators that only make a view and take 5 ms or a multiple, in every step",
    change="all work of the launching thread at the speed of such operators that did not wait",
    not_when="these operators are fast",
    shortens=("operator", "runtime", "host_gap"),
    slows_all_operators=True,
    is_worse_recorded=True,
    find=_find,
)
