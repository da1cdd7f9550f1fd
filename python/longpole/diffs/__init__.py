"""What changed between two runs, and whether it matters.

`sides` chooses steps; `stacks` and `sequences` list what ran in them; `matching` pairs the work of
both sides; `changes` measures how long it took; `noise` and `judgement` decide whether a change is
more than chance; `effects` computes the effect of one change on the step with the what-if of the
critical path.
"""

from longpole.diffs.answer import Diff
from longpole.diffs.comparison import diff, diff_steps
from longpole.diffs.values import Change, DiffSide

__all__ = ["Change", "Diff", "DiffSide", "diff", "diff_steps"]
