"""One trace: read once, queried many times."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from longpole.engine.question import Question
from longpole.errors import WindowError
from longpole.files.damage import blaming
from longpole.files.writing import new_file
from longpole.rows.frames import frame_of
from longpole.trace.tables import TraceTables

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Unpack

    import polars as pl

    from longpole._core import Facts as CoreFacts
    from longpole._core import Trace as CoreTrace
    from longpole.answer.after import AfterRemedies
    from longpole.answer.answer import Answer
    from longpole.answer.values import Verdict
    from longpole.engine.critical_path.changes import Change
    from longpole.engine.critical_path.path import CriticalPath
    from longpole.engine.question import End, QuestionParts
    from longpole.engine.recording_cost import RecordingCost
    from longpole.remedies.captured import CapturedKernels
    from longpole.remedies.facts import Facts
    from longpole.remedies.gains import Gain
    from longpole.remedies.parts import CoreParts, ServedSteps, VerdictParts
    from longpole.report.blocks import Block
    from longpole.words.recording import Options

# Timed steps that differ from their median by less do not change an answer.
_LEAST_SPREAD: Final = 0.01

_LAST_NS: Final = 2**63 - 1

# How the reason for a window ends whose steps are iterations of a server.
_OF_SERVER: Final = ", marked by the server"

_BEGINS_CAPTURE: Final = "BeginCapture"

# Number of answers that are kept with a trace, so that many windows do not fill the memory.
_MOST_KEPT: Final = 4


class Trace(TraceTables):
    """The events of one trace, and the tables derived from them.

    All its answers use its times, by default as recorded. The commands answer for
    `without_profiler()`, the same trace without the time that the profiler added to the host.

    Frames are computed on first use and cached. Every frame refers to events by their row in
    `events`, the column `event`.
    """

    def __init__(
        self,
        core: CoreTrace,
        path: str | os.PathLike[str] | None = None,
        named_rank: int | None = None,
        captures: Callable[[Trace], tuple[Trace, ...]] = lambda _: (),
    ) -> None:
        super().__init__(core, named_rank)
        self._path = None if path is None else Path(path).absolute()
        self._captures = captures
        self._without: dict[tuple[int | None, str | None, str | None], Trace] = {}
        self._cost: RecordingCost | None = None
        self._as_recorded: Trace | None = None
        self._at_ends: Callable[[], Iterable[Trace]] = tuple
        self._answers: dict[Question, Answer] = {}

    @property
    def path(self) -> Path | None:
        """Path of the trace; None for bytes and open files."""
        return self._path

    @cached_property
    def capture_traces(self) -> tuple[Trace, ...]:
        """Traces of the captures of its CUDA graphs: given to `read_trace`, or next to the file."""
        return self._captures(self)

    @cached_property
    def graph_nodes(self) -> pl.DataFrame:
        """Each GPU activity (`event`) of a CUDA graph launch, and the call that captured it.

        The call is searched in the trace itself and in `capture_traces`. Columns: `event`, `launch`
        (the call that launched the graph), `graph` and `graph_node` (their numbers, if recorded),
        `annotation` (of `torch.cuda.graph_annotations`, if written into the trace), `capture` (0
        for this trace, else the number of the trace of the capture), `captured_call` (its event
        there), `operator_name` (the innermost operator around that call), `operators` (all of them,
        outermost first), `joined_by` (`node_id` if call and activity have the same number, else
        `order`). Unknown values are null.
        """
        from longpole.trace.captures import graph_nodes

        if self._as_recorded is not None:
            return self._as_recorded.graph_nodes
        return graph_nodes(self, self.capture_traces)

    @cached_property
    def captured_kernels(self) -> CapturedKernels | None:
        """The operators that captured the kernels of its CUDA graphs, for remedies."""
        from longpole.trace.captured_kernels import captured_kernels

        if self._as_recorded is not None:
            return self._as_recorded.captured_kernels
        return captured_kernels(self)

    @cached_property
    def launches(self) -> pl.DataFrame:
        """Each GPU activity (`event`) and its launch.

        Columns: `event`, `work_class` (`compute`, `communication`, or `copy`, also for memsets),
        `call` (runtime or driver call), `operator` (the innermost around the call, or around the
        event that enqueued it for another thread), `linked_by` (`correlation`; the weaker
        `external_id`, which yields only the operator; or `holder`: the only graph launch during
        which the activity ran, for profiles without correlation ids), `delay_ns` (from the return
        of the call to the start of the activity; negative if it began inside the call).
        """
        return frame_of(self._core.launches())

    @cached_property
    def collectives(self) -> pl.DataFrame:
        """Each collective of this rank, in the order of the calls.

        Columns: `event` (the kernel, or the range of a library on the CPU), `call`, `operation`,
        `named_by` (source of the operation: `record`, `annotation`, `operator`, `kernel`), `group`,
        `group_size`, `group_ranks` (ascending, separated by spaces), `sequence`, `call_id`, `peer`
        (the rank it sends to or receives from), `in_elements`, `out_elements`, `data_type`, `bytes`
        (of the larger buffer), `coalesced`. Values that the trace does not contain are null.
        """
        return frame_of(self._core.collectives())

    @cached_property
    def collective_waits(self) -> pl.DataFrame:
        """Split each collective into waiting and transfer, if the profile shows its tasks.

        Profiles of Ascend devices do. Columns: `event`, `waiting_ns` (waiting for the notification
        of a peer without transferring data), `moving_ns` (copying or reducing data), `awaited_peer`
        (the peer of the longest wait, by its index in the group), `awaited_ns` (length of that
        wait), `group_size` (minimum number of participating ranks: the largest peer index plus
        one).
        """
        return frame_of(self._core.collective_waits())

    @cached_property
    def api_roles(self) -> pl.DataFrame:
        """Role of each runtime API call (`event`), by its name: `role`.

        Roles: `launch`, `graph_launch`, `copy`, `blocking_copy`, `stream_synchronize`,
        `event_synchronize`, `device_synchronize`, `event_record`, `stream_wait`, `query`,
        `allocate`, `stream_ordered_allocate`, `free`, `load_module`, `unload_module`, `other`.
        """
        return frame_of(self._core.api_roles())

    @cached_property
    def blocking_calls(self) -> pl.DataFrame:
        """The runtime API calls (`event`) that waited for a device, and the `reason`.

        Reasons: `role` (such calls always wait), `copy_ended` (its memcpy had ended when it
        returned), `waited` (the dependency graph found the activity it waited for).
        """
        return frame_of(self._core.blocking_calls())

    @cached_property
    def self_times(self) -> pl.DataFrame:
        """Self time of each `event` on a thread: `self_ns`."""
        return frame_of(self._core.self_times())

    @cached_property
    def crossings(self) -> pl.DataFrame:
        """Each `event` that begins inside another event of its thread and ends after it."""
        return frame_of(self._core.crossings())

    @cached_property
    def steps(self) -> pl.DataFrame:
        """The `ProfilerStep#N` annotations, in time order.

        Columns: `step` (the N), `name`, `start_ns`, `duration_ns`, `event`, and the window of its
        work, `window_start_ns` to `window_end_ns`: from the completion of the previous step (or its
        own start, if that is not in the trace) to the end of the last activity launched in it.
        """
        return frame_of(self._core.steps(None))

    @cached_property
    def window(self) -> tuple[int, int] | None:
        """Time of the first and last event of a main thread or device, in ns; None without any."""
        return self._core.whole_window()

    @cached_property
    def warning_counts(self) -> dict[str, int]:
        """Number of ambiguities found in linking and nesting, by kind, resolved or not."""
        return self._core.warning_counts()

    @cached_property
    def inputs(self) -> pl.DataFrame:
        """Inputs of each operator (`event`), if shapes were recorded.

        Columns, each a list with a value for every tensor and every other input: `inputs` (its
        position; the tensors of a list share one), `shapes` and `strides` (null for inputs that are
        not tensors or were not recorded), `dtypes` (in torch's names) and `values` (numbers and
        lists as strings). They are parsed from the strings of the trace on first use.
        """
        import polars as pl

        from longpole.flops.inputs import INPUT_ARGUMENTS, typed_inputs

        categories = ("cpu_op", "Operator")
        found = [typed_inputs(self.args(name, INPUT_ARGUMENTS)) for name in categories]
        return pl.concat(found).sort("event")

    @cached_property
    def backward_links(self) -> pl.DataFrame:
        """Each operator of a backward pass, and the `forward` operator that it differentiates.

        Columns: `backward` and `forward` (events), by their sequence numbers.
        """
        return frame_of(self._core.backward_links())

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write all tables to a file that `read_trace` opens again without parsing.

        Every answer on the reopened trace is the same. The file is a zip archive of NumPy arrays,
        which `numpy.load` opens too, without pickle. It lacks arguments of events that were not
        kept in reading: read the trace with `args="default"` to save what all tables need.

        Parameters
        ----------
        path
            The file to write; `.longpole` is the usual ending.
        force
            Replace the file if it exists.

        Raises
        ------
        FileExistsError
            The file exists and `force` is not given, or it is the trace itself.
        OSError
            The file cannot be written.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> from longpole import read_trace
        >>> from longpole.testing import TraceBuilder
        >>> trace = TraceBuilder().operator("aten::mm", (0, 20)).read()
        >>> with TemporaryDirectory() as folder:
        ...     trace.save(Path(folder, "trace.longpole"))
        ...     read_trace(Path(folder, "trace.longpole")).n_events
        1
        """
        inputs = [] if self._path is None else [self._path]
        with new_file(Path(path), force=force, inputs=inputs) as unfinished:
            self._core.save(unfinished)

    def stack_of(self, event: int) -> pl.DataFrame:
        """List the events around an event, outermost first, and the event itself.

        Columns: `event`, `relation`, `kind`, `name`, `start_ns`, `duration_ns`. For a GPU activity
        (`launched`) it is the stack of the call that launched it (`enclosing`); in a backward pass,
        the stack of the forward operator comes before it (`forward`).

        Raises
        ------
        ValueError
            The event does not exist.

        Examples
        --------
        >>> from longpole.testing import TraceBuilder
        >>> builder = TraceBuilder().python("model.py(3): forward", (0, 30))
        >>> builder = builder.operator("aten::mm", (0, 20))
        >>> trace = builder.launch("gemm", call=(5, 9), work=(9, 50)).read()
        >>> trace.stack_of(3)["name"].to_list()
        ['model.py(3): forward', 'aten::mm', 'cudaLaunchKernel', 'gemm']
        """
        from longpole.trace.stacks import stack_of

        return stack_of(self, event)

    def subtree(self, event: int) -> pl.DataFrame:
        """List an event, everything nested in it, and the GPU activities they launched.

        Columns: `event`, `parent` (of an activity: the call), `level` (0 for the event), `kind`,
        `name`, `start_ns`, `duration_ns`. Parents come before their children, and these in time
        order.

        Raises
        ------
        ValueError
            The event does not exist.
        """
        from longpole.trace.stacks import subtree

        return subtree(self, event)

    def busy(self, start_ns: int, end_ns: int) -> pl.DataFrame:
        """Return how long each device, and each of its streams, was busy within a window.

        Columns: `device`, `stream` (null for the device as a whole), `count`, `busy_ns`, then
        `compute_ns`, `communication_ns`, `copy_ns` and `idle_ns`, which sum to the window
        (concurrent time counts for the first of them), and `communication_total_ns` and
        `copy_total_ns`, which count concurrent time too.
        """
        return frame_of(self._core.busy((start_ns, end_ns)))

    def times_within(self, spans: pl.DataFrame) -> pl.DataFrame:
        """Measure what threads did in the given spans of time, outermost events first.

        Parameters
        ----------
        spans
            `lane`, `start_ns` and `end_ns`; overlapping spans of a lane count once.

        Returns
        -------
        DataFrame
            The events that ran then: `event`, `self_ns` (nothing inside it ran) and
            `total_ns` (with all that is nested in it).
        """
        rows = spans.select("lane", "start_ns", "end_ns").rows()
        return frame_of(self._core.times_within(rows))

    def gaps(self, start_ns: int, end_ns: int) -> pl.DataFrame:
        """List the spans within a window in which nothing ran on a device.

        Columns: `device`, `start_ns`, `duration_ns`, `next` (the activity that ended it), `call`
        (its launch), `host_ns` (the part before that call returned, in which the device waited for
        the host; null if the call is not known).
        """
        return frame_of(self._core.gaps((start_ns, end_ns)))

    def answer(self, question: Question | None = None) -> Answer:
        """Return the answer to a question, computed once and kept.

        It is about the program without the profiler, as those of the commands are, unless the
        question is `as_recorded`. `between` are times as recorded.

        Parameters
        ----------
        question
            By default, what limits the program.

        Examples
        --------
        >>> from longpole.testing import TraceBuilder
        >>> trace = TraceBuilder().launch("gemm", call=(0, 10), work=(10, 100)).read()
        >>> trace.answer(Question(whole=True)) is trace.answer(Question(whole=True))
        True
        """
        asked = Question() if question is None else question
        about = self
        if not asked.as_recorded:
            times = {"step_name": asked.step_name, "data_load": asked.data_load}
            about = self.without_profiler(asked.step_time_ns, **times)
        return about.answer_as_timed(asked)

    def answer_as_timed(self, question: Question) -> Answer:
        """Return the answer to a question at the times of this trace."""
        from longpole.answer.answer import Answer

        asked = replace(question, step_time_ns=None, as_recorded=False)
        if asked not in self._answers:
            for oldest in [*self._answers][: 1 - _MOST_KEPT]:
                del self._answers[oldest]
            self._answers[asked] = Answer(asked, self)
        return self._answers[asked]

    def critical_path(
        self,
        step: int | str | None = None,
        *,
        end: End = "period",
        method: Literal["binding", "longest"] = "binding",
        **question: Unpack[QuestionParts],
    ) -> CriticalPath:
        """Find the chain of work and waits that determines when a window ends.

        The times are those of this trace, by default as recorded; `longpole path` answers for
        `trace.without_profiler()`.

        Parameters
        ----------
        step, **question
            The window and what loads data, as for `longpole.Question`.
        end
            For steps, `"period"` is the time from the completion of the previous step to that of
            this one, if both are in the trace. `"last"` begins at the annotation and ends when both
            the annotation and the GPU activities launched in it have ended; `"cpu"` and `"gpu"`
            consider only one of these.
        method
            `"binding"` follows the path back along what finished last; `"longest"` returns the
            chain with most work, for comparison.

        Raises
        ------
        WindowError
            The step or annotation does not exist, or nothing has a duration.
        ValueError
            Arguments exclude each other or are invalid, such as a pattern that is not a
            regular expression.
        TypeError
            A number or a time is not an integer.

        Examples
        --------
        >>> path = trace.critical_path(step=6)  # doctest: +SKIP
        >>> print(path.explain())  # doctest: +SKIP
        """
        return self.path_of(Question(step=step, **question), end, method)

    def path_of(
        self, question: Question, end: End, method: str, now: tuple[int, int] | None = None
    ) -> CriticalPath:
        """Compute the critical path of a window; see `critical_path`.

        `now` are two times of this trace, where those of a question are times as recorded.
        """
        from longpole.engine.critical_path.path import CriticalPath

        if method not in {"binding", "longest"}:
            message = f'method is "binding" or "longest", not {method!r}'
            raise ValueError(message)
        window = question.core_window(end) if now is None else ("now", *now)
        with blaming(self.damage):
            core = self._core.critical_path(
                window,
                longest=method == "longest",
                data_load=question.data_load,
                step_name=question.step_name,
            )
        return CriticalPath(
            core,
            self._path,
            self.damage,
            self.core.operators_of,
            times=self._times,
            recorded=lambda: self.recorded_hint(question),
        )

    def verdict(self, step: int | str | None = None, **question: Unpack[QuestionParts]) -> Verdict:
        """Find what limits the program, and what to do about it.

        The times are those of this trace, by default as recorded; `longpole summary` answers for
        `trace.without_profiler()`. Without `step`, `annotation`, `between` or `whole` the gains
        cover all complete steps that follow another step.

        Parameters
        ----------
        step, **question
            The window and what loads data, as for `longpole.Question`. Between two times, the gains
            cover the steps completed between them, or the time itself if there are none.

        Raises
        ------
        WindowError
            The step or annotation does not exist, or nothing has a duration.
        ValueError
            Arguments exclude each other, or a pattern is not a regular expression.

        Examples
        --------
        >>> from longpole.testing import TraceBuilder
        >>> trace = TraceBuilder().launch("gemm", call=(0, 10), work=(10, 100)).read()
        >>> trace.verdict().sides
        ('kernels',)
        """
        return self.answer_as_timed(Question(step=step, **question)).verdict

    def after_remedies(
        self,
        remedies: Sequence[str],
        *,
        step: int | str | None = None,
        **question: Unpack[QuestionParts],
    ) -> AfterRemedies:
        """Compute what several remedies save together, and what limits the program then.

        Parameters
        ----------
        remedies
            Ids of `Verdict.remedies`. All their changes are made in one dependency graph.
        step, **question
            As for `verdict`.

        Raises
        ------
        WindowError, ValueError
            As for `verdict`.

        Examples
        --------
        >>> after = trace.after_remedies(["loader_workers", "cuda_graph"])  # doctest: +SKIP
        >>> after.gain.low, after.gain.high  # doctest: +SKIP
        """
        return self.answer_as_timed(Question(step=step, **question)).after_remedies(remedies)

    def gain(
        self,
        changes: Sequence[Change],
        *,
        step: int | str | None = None,
        **question: Unpack[QuestionParts],
    ) -> Gain:
        """Compute how much shorter changes make the mean step that a verdict is about.

        Parameters
        ----------
        changes
            As for `CriticalPath.what_if`, which answers for a single step.
        step, **question
            As for `verdict`.

        Returns
        -------
        Gain
            The gain as a fraction, with its bounds; negative if the changes cost time.

        Raises
        ------
        WindowError, ValueError
            As for `verdict`.

        Examples
        --------
        >>> from longpole import Drop
        >>> from longpole.testing import TraceBuilder
        >>> trace = TraceBuilder().launch("gemm", call=(0, 10), work=(10, 100)).read()
        >>> trace.gain([Drop(kind="kernel")]).value
        0.9
        """
        return self.answer_as_timed(Question(step=step, **question)).gain(changes)

    def judged(self, question: Question) -> tuple[VerdictParts, Callable[[Options], Facts]]:
        """Return the core's results for a verdict, and what makes the facts for remedies."""
        from longpole.answer.values import with_trace
        from longpole.remedies.facts import Facts
        from longpole.remedies.gains import gains_of_sides, hull
        from longpole.words.recording import in_use

        window, step_name = question.core_window(), question.step_name
        with blaming(self.damage):
            given, facts = self._core.verdict(
                window, data_load=question.data_load, step_name=step_name, every_window=False
            )
        n_earlier = 0
        if given["cause"] == "unlinked":
            _, _, (span, _), _ = self._core.scope(window, step_name=step_name)
            n_earlier, _ = self._core.earlier_work(*span)
        devices = self.device_properties

        def at_ends() -> Iterator[Answer]:
            for trace in self._ends:
                with suppress(WindowError):
                    answer = trace.answer_as_timed(question)
                    if answer.parts:
                        yield answer

        gains = gains_of_sides(facts)
        if given["unit"] != "time_range":  # which would contain something else
            for answer in at_ends():
                gains = hull(gains, answer.parts["gains"])
        parts = with_trace(
            given,
            gains,
            cost=self._cost,
            between=question.between,
            recorded_ns=self._recorded_ns(window, step_name),
            n_earlier=n_earlier,
            served=self._served(given),
            in_use=in_use(self.metadata),
        )

        def captures() -> CapturedKernels | None:
            is_known = self.capture_traces or _contains_capture(self._core, facts)
            return self.captured_kernels if is_known else None

        return parts, lambda options: Facts(
            facts,
            parts,
            options,
            devices,
            lambda: (it.facts(options) for it in at_ends()),
            captures=captures,
        )

    def _served(self, given: CoreParts) -> ServedSteps | None:
        """Return what the steps of a verdict are if a server marks them."""
        from longpole.answer.served import served_steps

        if not given["is_of_server"] or not given["reason"].endswith(_OF_SERVER):
            return None
        found = self._core.server_iterations()
        rows = [] if found is None else found[1].to_dicts()
        return served_steps(rows, given["numbers"], given["shown"])

    @cached_property
    def _ends(self) -> tuple[Trace, ...]:
        """The trace as if its step took the least and the most time that was measured."""
        return tuple(self._at_ends())

    def _recorded_ns(self, window: tuple[Any, ...], step_name: str | None) -> int | None:
        """Return the recorded length of a step, an annotation or the whole trace, if known."""
        if self._as_recorded is None or window[0] in {"usual", "between"}:
            return None
        _, _, ((start_ns, end_ns), _), _ = self._as_recorded.core.scope(window, step_name=step_name)
        return end_ns - start_ns

    def recording_cost(
        self, step_time_ns: int | None = None, *, step_name: str | None = None
    ) -> RecordingCost:
        """Estimate the recording overhead, and the length of the median step without the profiler.

        Parameters
        ----------
        step_time_ns
            The time of a step without a profiler, if known.
        step_name
            As for `critical_path`.

        Returns
        -------
        dict
            The cost of each class of events, with an interval, and the step time. If
            `longpole.record` measured the step without the profiler, that time is used. A given
            time that no cost explains is replaced by the nearest that one does, if that is at most
            10 % away; otherwise the cost is estimated. Both are said.

        Examples
        --------
        >>> from longpole.testing import TraceBuilder
        >>> trace = TraceBuilder().launch("gemm", call=(0, 10), work=(10, 100)).read()
        >>> trace.recording_cost()["status"]
        'unknown'
        """
        from longpole.engine.recording_cost import unknown_cost
        from longpole.trace.removed_cost import cost_of

        if self._as_recorded is None and (step_time_ns, step_name, None) not in self._without:
            return cost_of(self._core, step_time_ns, step_name, None)
        cost = self.without_profiler(step_time_ns, step_name=step_name).removed_cost
        return unknown_cost("not asked") if cost is None else cost

    @property
    def removed_cost(self) -> RecordingCost | None:
        """Recording overhead that was removed from this trace; None if it is as recorded."""
        return self._cost

    @property
    def as_recorded(self) -> Trace:
        """The trace at the times of the recording; itself if no recording overhead was removed."""
        is_shorter = self._cost is not None and self._cost["status"] != "unknown"
        return self._as_recorded if is_shorter and self._as_recorded is not None else self

    def times_on_clock(self, between: tuple[int, int]) -> tuple[int, int]:
        """Return two times as times of the recording, in ns.

        They count from the first event of the file; beyond its length, they are of its clock
        already, as in the table `events`.

        Examples
        --------
        >>> from longpole.testing import TraceBuilder
        >>> trace = TraceBuilder().operator("a", (10, 15)).read()
        >>> trace.times_on_clock((1_000, 3_000)), trace.times_on_clock((11_000, 13_000))
        ((11000, 13000), (11000, 13000))
        """
        begin_ns, last_ns = self.as_recorded.span
        first_ns = 0 if between[0] > last_ns - begin_ns else begin_ns
        start_ns, end_ns = (min(first_ns + time_ns, _LAST_NS) for time_ns in between)
        return start_ns, end_ns

    def without_profiler(
        self,
        step_time_ns: int | None = None,
        *,
        step_name: str | None = None,
        data_load: str | None = None,
    ) -> Trace:
        """Return the same trace at the times that its events would have without the profiler.

        Recording overhead is subtracted where it occurs, and the dependency graph is solved again;
        GPU activities keep their durations. The rows of `events` stay the same. Counters, flows and
        asynchronous events keep their times. If the overhead is unknown, times are unchanged;
        `recording_cost` says why.

        Parameters
        ----------
        step_time_ns
            The time of a step without a profiler, if known.
        step_name, data_load
            As for `critical_path`.
        """
        from longpole.trace.removed_cost import removed

        key = (step_time_ns, step_name, data_load)
        if self._as_recorded is not None:
            return self
        if key not in self._without:
            core, cost = removed(self._core, step_time_ns, step_name, data_load)
            ends = partial(self._at_timings, cost, step_name, data_load)
            self._without[key] = self._retimed(core, cost, ends)
        return self._without[key]

    def _retimed(
        self, core: CoreTrace, cost: RecordingCost, ends: Callable[[], Iterable[Trace]] = tuple
    ) -> Trace:
        """Return this trace at the times of another core, from which a cost was removed."""
        found = Trace(core, self._path, self._named_rank, lambda _: self.capture_traces)
        found._cost, found._as_recorded, found._at_ends = cost, self, ends
        return found

    def _at_timings(
        self, cost: RecordingCost, step_name: str | None, data_load: str | None
    ) -> Iterator[Trace]:
        """Yield the trace as if its step took the least and the most time that was measured."""
        from longpole.trace.removed_cost import removed

        if cost["status"] != "measured":
            return
        step_ns, most_ns = cost["step_ns"] or 0, cost["recorded_step_ns"] or 0
        for end_ns in (min(cost["timed_ns"]), min(max(cost["timed_ns"]), most_ns)):
            if abs(end_ns - step_ns) >= _LEAST_SPREAD * step_ns:
                with suppress(ValueError):  # no cost of recording explains it
                    yield self._retimed(*removed(self._core, end_ns, step_name, data_load))

    def scope(
        self, question: Question | None = None
    ) -> tuple[str, int | None, tuple[tuple[int, int], tuple[int, int]], tuple[str, str]]:
        """Find the window of an answer; see `longpole.choose_window`."""
        asked = Question() if question is None else question
        with blaming(self.damage):
            return self._core.scope(asked.core_window(), step_name=asked.step_name)

    def times_of(self, question: Question) -> tuple[int, int]:
        """Return the two times of a question, at the times of the trace."""
        return self._core.window_times(question.core_window(), step_name=question.step_name)

    def sync_dependencies(
        self, step: int | str | None = None, *, whole: bool = False
    ) -> pl.DataFrame:
        """Return which calls or activities waited for which activity in a window.

        Includes those that may have waited. The window is chosen as by `critical_path`.

        Columns: `source`, `source_name`, `source_external_id` (the awaited activity), `target`,
        `target_name`, `target_external_id` (the waiting call or activity), `kind` (`sync_return`,
        `event_wait`, `queue_full`), `evidence` (`recorded` or `inferred`), `waited` (whether it
        determined when the target continued), `on_path`. An unknown id is null.
        """
        return self.critical_path(step, whole=whole).sync_dependencies

    def counters_by_operator(self) -> pl.DataFrame:
        """Join the performance counters of each kernel with the operators that launched it.

        Counters are recorded with `profiler_metrics` (`examples/record_trace.py --counters`).

        Returns
        -------
        DataFrame
            A row for each counted range, in time order, then one for each kernel without a range.
            Columns: `event` (the range), `kernel_name` (as in the range), `call` (that launched the
            kernel), `matched_by` (`correlation`; `name_and_order`: the n-th range of a name is the
            n-th kernel of that name; `order`: the n-th range is the n-th launch, names being
            unknown; null if ranges and launches do not correspond), a column for each counter,
            `op_stack` (names of operators, outermost first), `top_level_op`, `bottom_level_op`,
            `flops` (floating-point operations, from the counters that count them) and `dram_bytes`
            (read and written).

        Raises
        ------
        ValueError
            The trace has counters and was read without them.
        """
        from longpole.trace.counters import counters_by_operator

        return counters_by_operator(self)

    def __repr__(self) -> str:
        return f"<longpole.Trace: {', '.join(self._facts())}>"

    def _facts(self) -> list[str]:
        return [*super()._facts(), f"times {self._times}"]

    @property
    def _times(self) -> str:
        cost = self._cost
        is_without = cost is not None and cost["status"] != "unknown"
        return "without the profiler" if is_without else "as recorded"

    def recorded_hint(self, question: Question) -> str | None:
        """Return a hint on times without the profiler, if those of this trace are longer."""
        from longpole.engine.recording_cost import recorded_sentence
        from longpole.trace.removed_cost import cost_of

        if self._as_recorded is not None:
            return None
        cost = cost_of(self._core, None, question.step_name, question.data_load)
        return recorded_sentence(cost)

    def blocks(self) -> list[Block]:
        """Return an overview: the file, the verdict, and the number of events by kind."""
        import polars as pl

        from longpole.report.blocks import Column, Sentence, Table

        try:
            shown = self.verdict().blocks()
        except WindowError as error:
            why, _, _ = str(error).partition("\nhint: ")
            shown = [Sentence(f"There is no verdict: {why}.")]
        kind = pl.col("kind").cast(pl.String)
        counts = self.events.group_by(kind).len().sort("len", "kind", descending=[True, False])
        columns = (Column("kind"), Column("events", "count"))
        return [Sentence(", ".join(self._facts())), *shown, Table(columns, counts.rows())]

    def _repr_html_(self) -> str:
        from longpole.report.html import html

        return html(self.blocks())


def _contains_capture(core: CoreTrace, facts: CoreFacts) -> bool:
    """Whether a trace contains the capture of a graph itself."""
    lanes = [row["lane"] for row in core.lanes().to_dicts() if row["device"] is None]
    names = facts.names_in([(lane, -_LAST_NS, _LAST_NS) for lane in lanes])
    return any(_BEGINS_CAPTURE in name for name, *_ in names)
