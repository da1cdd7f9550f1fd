"""The answer to one question about a trace, computed once and kept with the trace."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary

from longpole.answer.advice import options_in
from longpole.answer.damaged import damaged
from longpole.answer.details import details
from longpole.answer.values import verdict_of
from longpole.answer.withheld import MOST_IMPOSSIBLE, with_impossible_times
from longpole.engine.windows import Marked, window_for
from longpole.remedies.gains import gains_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from longpole.answer.after import AfterRemedies
    from longpole.answer.findings import Remedy
    from longpole.answer.values import Verdict
    from longpole.engine.critical_path.changes import Change
    from longpole.engine.critical_path.path import CriticalPath
    from longpole.engine.question import End, Question
    from longpole.engine.recording_cost import RecordingCost
    from longpole.engine.windows import Window
    from longpole.files.damage import Damage
    from longpole.remedies.facts import Facts
    from longpole.remedies.gains import Gain
    from longpole.remedies.limits import Limit
    from longpole.remedies.parts import VerdictParts
    from longpole.remedies.sides import Side
    from longpole.words.recording import Options


class Answering(Marked, Protocol):
    """What a trace computes for an answer, at the times of the trace."""

    @property
    def damage(self) -> Damage | None:
        """The damage of the file; None if it is whole."""
        ...

    @property
    def as_recorded(self) -> Answering:
        """The trace at the times of the recording."""
        ...

    def answer_as_timed(self, question: Question) -> Answer:
        """Return the answer to a question at the times of this trace."""
        ...

    @property
    def removed_cost(self) -> RecordingCost | None:
        """Recording overhead that was removed from the trace."""
        ...

    def judged(self, question: Question) -> tuple[VerdictParts, Callable[[Options], Facts]]:
        """Return the core's results for a verdict, and what makes the facts for remedies."""
        ...

    def path_of(self, question: Question, end: End, method: str) -> CriticalPath:
        """Compute the critical path of a window."""
        ...

    def recorded_hint(self, question: Question) -> str | None:
        """Return a hint on times without the profiler, if those of this trace are longer."""
        ...


# Facts take much memory on a large trace: those of the answer used last are kept.
_FACTS: WeakKeyDictionary[Answer, Facts] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer to a `Question` about a trace; each part is computed once, on first use.

    Commands, pages and tables show these values and decide nothing themselves.

    Examples
    --------
    >>> from longpole import Question
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().launch("gemm", call=(0, 10), work=(10, 100)).read()
    >>> answer = trace.answer(Question(whole=True))
    >>> answer.limit.kind, answer.limit.sides, answer.gains["kernels"].value
    ('sides', ('kernels',), 0.9)
    """

    question: Question
    """What was asked, with times on the clock of `trace`."""
    trace: Answering = field(repr=False)
    """The trace at the times of the answer."""

    @cached_property
    def window(self) -> Window | None:
        """The window; of several steps, the one of median length. None if nothing is timed."""
        return window_for(self.trace, self.question)

    @property
    def as_recorded(self) -> Answer:
        """The answer about the same window as recorded, which is what facts are about.

        Itself if its times are those of the recording.
        """
        recorded = self.trace.as_recorded
        return self if recorded is self.trace else recorded.answer_as_timed(self.question)

    @cached_property
    def verdict(self) -> Verdict:
        """What limits the program and what to do about it, as values and sentences."""
        verdict = verdict_of(self.parts, self._facts)
        verdict = replace(verdict, recorded=self.trace.recorded_hint(self.question))
        if self.trace.damage:
            return damaged(verdict, self.parts, self.trace.damage)
        is_told = verdict.status in ("ok", "balanced")
        if is_told and self._is_impossible:
            return with_impossible_times(verdict, self.parts)
        return verdict

    @property
    def _is_impossible(self) -> bool:
        """Whether too many activities have impossible times for a verdict."""
        return self.parts["recorded"]["impossible"] > MOST_IMPOSSIBLE

    @property
    def limit(self) -> Limit:
        """What limits the program; without remedies, unless the trace is damaged."""
        is_plain = not self.trace.damage and not self._is_impossible
        return self.parts["limit"] if is_plain else self.verdict.limit

    @property
    def gains(self) -> Mapping[Side, Gain]:
        """How much shorter the mean step would be without each side."""
        return self.verdict.gains

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """What can be changed, by certain gain; `then` is the gain after those before it."""
        return self.verdict.remedies

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps that the gains cover together."""
        return self.verdict.steps

    @property
    def recording_cost(self) -> RecordingCost | None:
        """Recording overhead that the times do not contain; None if they are as recorded."""
        return self.trace.removed_cost

    @cached_property
    def details(self) -> tuple[str, ...]:
        """How far kernels are from the limit of the device, and which code owns the time."""
        is_told = self.verdict.status in ("ok", "balanced")
        return details(self._facts, " ".join(self.verdict.actions)) if is_told else ()

    @cached_property
    def path(self) -> CriticalPath:
        """The critical path of the window."""
        return self.path_until("period")

    def path_until(self, end: End, method: str = "binding") -> CriticalPath:
        """Compute the path of the window with another end, as for `Trace.critical_path`."""
        return self.trace.path_of(self.question, end, method)

    def gain(self, changes: Sequence[Change]) -> Gain:
        """Compute how much shorter changes make the mean step."""
        [gain] = gains_of(self._facts.core, [(changes, ())])
        return gain

    def after_remedies(self, remedies: Collection[str]) -> AfterRemedies:
        """Compute what several remedies save together, and what limits the program then."""
        from longpole.answer.after import after_remedies

        return after_remedies(self._facts, remedies)

    @property
    def parts(self) -> VerdictParts:
        """The results of the core."""
        return self._judged[0]

    def facts(self, options: Options) -> Facts:
        """Return the facts for remedies, with the options that advice names."""
        _, facts_of = self._judged
        return facts_of(options)

    @cached_property
    def _judged(self) -> tuple[VerdictParts, Callable[[Options], Facts]]:
        return self.trace.judged(self.question)

    @property
    def _facts(self) -> Facts:
        if self not in _FACTS:
            _FACTS.clear()
            _FACTS[self] = self.facts(options_in(self.parts))
        return _FACTS[self]
