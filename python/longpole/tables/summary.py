"""A one-page summary of where the time of a step went.

A figure that the trace does not contain is None, with the reason next to it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from longpole.answer import Verdict
from longpole.engine.question import Question
from longpole.engine.recording_cost import RecordingCost
from longpole.engine.windows import Window
from longpole.tables.device_times import DeviceTime, device_times
from longpole.tables.memory_peak import memory_peaks
from longpole.tables.runtime_calls import BlockingCall, NameTime, blocking_calls
from longpole.tables.served import Serving
from longpole.words.data import Data, computed

_ALIKE: Final = 0.02
"""Times of a step and of a token that differ by less are the same."""

if TYPE_CHECKING:
    from typing import Unpack

    from longpole.answer.answer import Answer
    from longpole.engine.question import QuestionParts
    from longpole.trace.trace import Trace

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Ranking(Generic[Row]):
    """The first rows of a list, and its full length."""

    rows: tuple[Row, ...]
    n_total: int

    def __data__(self) -> tuple[Row, ...]:
        return self.rows


@dataclass(frozen=True, slots=True)
class OperatorTime:
    """Self time of all operators with the same name within a window."""

    name: str | None
    count: int
    self_ns: int
    longest_self_ns: int
    longest_event: int


@dataclass(frozen=True, slots=True)
class Unlinked:
    """GPU activities within the window whose launch is unknown."""

    n_device_work: int
    n_unlinked: int

    @computed
    def share(self) -> float | None:
        """Unlinked share of all GPU activities; None without any."""
        return self.n_unlinked / self.n_device_work if self.n_device_work else None


@dataclass(frozen=True, slots=True)
class Summary(Data):
    """What limits a window, and how its time was spent.

    The verdict predicts, for the program without the profiler; all other figures are as recorded.
    """

    window: Window
    """The window, on the clock of the file."""
    verdict: Verdict
    """What limits the program without the profiler, and what each change would save."""
    devices: tuple[DeviceTime, ...]
    kernels: Ranking[NameTime]
    operators: Ranking[OperatorTime]
    blocking_calls: tuple[BlockingCall, ...]
    unlinked: Unlinked
    details: tuple[str, ...]
    """How far kernels are from the limit of the device, which code owns the time, and the peak of
    memory in the recording."""
    serving: Serving | None
    """How the inference server spends its iterations in the whole trace; null if the trace marks
    none, or if a part of it was chosen. If the program marks steps, launches of graphs count as
    marks of iterations only with `whole`."""
    recording_cost: RecordingCost | None
    """Recording overhead, which the times of the verdict do not contain; null if they are as
    recorded."""

    def __str__(self) -> str:
        return self.verdict.sentence


def summary(
    trace: Trace,
    *,
    step: int | str | None = None,
    top: int = 10,
    **question: Unpack[QuestionParts],
) -> Summary | None:
    """Show what limits the program, and where the time of a step went.

    Parameters
    ----------
    trace
        The trace.
    step, **question
        The window and what loads data, as for `longpole.Question`.
    top
        Number of kernels and operators to list.

    Returns
    -------
    Summary or None
        None if the trace has no operator, call or GPU activity with a duration.

    Raises
    ------
    WindowError
        The step or annotation does not exist.
    ValueError
        More than one of `step`, `annotation`, `between` and `whole` is given.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().launch("gemm", call=(0, 10), work=(10, 100)).read()
    >>> print(summary(trace))
    The trace takes 100 µs; the kernels limit it (up to 90 %).
    """
    return summary_of(trace, trace.answer_as_timed(Question(step=step, **question)), top)


def summary_of(trace: Trace, answer: Answer, top: int) -> Summary | None:
    """Show an answer about a trace, and where the time of its window went as recorded."""
    window = answer.as_recorded.window
    if window is None or trace.window is None:
        return None
    start_ns, end_ns = window.start_ns, window.end_ns
    kernels, n_kernels = trace.core.kernels_by_name(window.span, window.on_host.span, top)
    operators, n_operators = trace.core.operators_by_name(*window.on_host.span, top)
    whole = answer.question.whole
    has_serving = whole or answer.question.is_default
    return Summary(
        window=window,
        verdict=answer.verdict,
        devices=device_times(trace, window),
        kernels=Ranking(tuple(NameTime(*row) for row in kernels), n_kernels),
        operators=Ranking(tuple(OperatorTime(*row) for row in operators), n_operators),
        blocking_calls=blocking_calls(trace, window),
        unlinked=Unlinked(*trace.core.unlinked(start_ns, end_ns)),
        details=(*answer.details, *memory_peaks(trace)),
        serving=_serving(trace, answer, top, whole=whole) if has_serving else None,
        recording_cost=answer.recording_cost,
    )


def _serving(trace: Trace, answer: Answer, top: int, *, whole: bool) -> Serving | None:
    """Measure the iterations of a server, if the trace marks some.

    Launches of graphs mark iterations only if the program marks no steps, or of the whole trace.
    """
    if trace.core.server_iterations() is None:
        return None
    if not (trace.core.is_of_server or whole) and len(trace.core.steps(None)):
        return None
    from longpole.tables.serving import serving

    found = serving(trace, top=top)
    return replace(found, planned_output_token_ns=_planned_token_ns(answer, found))


def _planned_token_ns(answer: Answer, found: Serving) -> tuple[int, int] | None:
    """Return the time per output token after the plan, if it is about the steps that decode."""
    served, plan = answer.parts["served"], answer.verdict.plan
    token_ns = found.time_per_output_token_ns
    if served is None or not served.has_token_each or token_ns is None or not plan.length_ns:
        return None
    if plan.then_ns is None or abs(token_ns - plan.length_ns) > _ALIKE * plan.length_ns:
        return None
    least_ns, most_ns = plan.then_ns
    return least_ns, most_ns if all(it.is_certain for it in plan.lines) else plan.length_ns
