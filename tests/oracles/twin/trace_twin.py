"""What a trace says, found in the plainest way: the other side of the tests of reading.

Everything is done with `json` and `Decimal`, lists and dictionaries, in the words of the
contract and with no regard for speed. Sound traces only: what a damaged one gives is
tested elsewhere.
"""

from .trace_devices import busy, gaps, steps, whole_window
from .trace_events import Event, Trace, read, spelled_like
from .trace_links import launches
from .trace_nesting import depths, parents, self_times

__all__ = [
    "Event",
    "Trace",
    "busy",
    "depths",
    "gaps",
    "launches",
    "parents",
    "read",
    "self_times",
    "spelled_like",
    "steps",
    "whole_window",
]
