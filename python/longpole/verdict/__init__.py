"""What holds a program up, and what somebody can do about it.

A verdict compares gains: how much shorter the program would be if something took no time,
by the graph of the critical path timed anew. `docs/verdict.md` gives every rule.
"""

from longpole.verdict.findings import Doubt, Remedy, Span
from longpole.verdict.values import Verdict

__all__ = ["Doubt", "Remedy", "Span", "Verdict"]
