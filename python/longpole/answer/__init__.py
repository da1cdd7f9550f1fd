"""What limits a program, and what to do about it.

A verdict compares gains: how much shorter the program would be if something took no time,
recomputed with the graph of the critical path. `docs/verdict.md` has every rule.
"""

from longpole.answer.findings import Remedy as Remedy
from longpole.answer.findings import Span as Span
from longpole.answer.findings import Uncertainty as Uncertainty
from longpole.answer.values import Verdict as Verdict
