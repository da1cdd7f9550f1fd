"""What changed from one run to another, and whether it matters.

`sides` choose steps, `stacks` and `sequences` say what was done in them, `matching` which of it
is the same, `changes` how long it took, `noise` and `judgement` whether that is more than
chance, `effects` what one change does to the step, by the what-if of the critical path.
"""

from longpole.analyses.diff.answer import Diff
from longpole.analyses.diff.comparison import diff, diff_steps
from longpole.analyses.diff.values import Change, DiffSide

__all__ = ["Change", "Diff", "DiffSide", "diff", "diff_steps"]
