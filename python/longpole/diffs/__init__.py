"""What changed between two runs, and whether it matters.

`sides` chooses steps; `stacks` and `sequences` list what ran in them; `matching` pairs the work of
both sides; `changes` measures how long it took; `noise` and `judgement` decide whether a change is
more than chance; `effects` computes the effect of one change on the step with the what-if of the
critical path.
"""

from longpole.diffs.answer import Diff as Diff
from longpole.diffs.comparison import diff as diff
from longpole.diffs.comparison import diff_steps as diff_steps
from longpole.diffs.values import Change as Change
from longpole.diffs.values import DiffSide as DiffSide
