"""A verdict without an answer, because its values would be based on wrong or missing records."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from longpole.answer.findings import Plan
from longpole.answer.missing import window
from longpole.remedies.limits import NotShown
from longpole.words.wording import whole_percent

if TYPE_CHECKING:
    from longpole.answer.values import Verdict
    from longpole.remedies.parts import VerdictParts
    from longpole.remedies.sides import Cause

MOST_IMPOSSIBLE: Final = 0.1
"""If GPU activities with impossible times fill more of the steps, there is no verdict."""


def withheld(verdict: Verdict, cause: Cause, reason: str, sentence: str) -> Verdict:
    """Remove the answer, and give the reason instead."""
    return replace(
        verdict,
        limit=NotShown(cause),
        remedies=(),
        plan=Plan(),
        gains={},
        reason=reason,
        record=None,
        sentence=sentence,
        actions=(),
        caveat=None,
        limited_by=None,
    )


def with_impossible_times(verdict: Verdict, parts: VerdictParts) -> Verdict:
    """Remove the answer because GPU activities have impossible times."""
    share = whole_percent(parts["recorded"]["impossible"])
    why = f"for {share} of the time, GPU activities have impossible times"
    told = f"{window(parts)}; the trace does not show what limits it: {why} (see `longpole check`)."
    return withheld(verdict, "impossible_times", f"{why} ({parts['reason']})", told)
