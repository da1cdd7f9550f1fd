"""One trace: read once, asked many times.

Most of its lines say what a frame holds.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from longpole._core import collective_waits, collectives, gaps
from longpole.damage import blaming
from longpole.errors import WindowError
from longpole.files import new_file
from longpole.frames import frame_of
from longpole.tables import TraceTables
from longpole.windows import step_number

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    import polars as pl

    from longpole._core import Trace as CoreTrace
    from longpole.critical_path.path import CriticalPath
    from longpole.recording_cost import RecordingCost
    from longpole.report.blocks import Block
    from longpole.verdict.values import Verdict

__all__ = ["Trace"]


class Trace(TraceTables):
    """The events of one trace, and the tables derived from them.

    Frames are made on first use and kept. Every frame names events by their row in
    `events`, the column `event`.
    """

    def __init__(
        self,
        core: CoreTrace,
        path: str | os.PathLike[str] | None = None,
        named_rank: int | None = None,
        captures: Callable[[], tuple[Trace, ...]] = tuple,
    ) -> None:
        super().__init__(core, named_rank)
        self._path = None if path is None else Path(path).absolute()
        self._captures = captures
        self._without: dict[tuple[int | None, str | None, str | None], Trace] = {}
        self._cost: RecordingCost | None = None
        self._is_without = False

    @property
    def path(self) -> Path | None:
        """Where the trace was read from; None for bytes and open files."""
        return self._path

    @cached_property
    def capture_traces(self) -> tuple[Trace, ...]:
        """Traces of the captures of its CUDA graphs: given to `read_trace`, or beside the file."""
        return self._captures()

    @cached_property
    def graph_nodes(self) -> pl.DataFrame:
        """Each GPU activity (`event`) of a launch of a CUDA graph, and the call that captured it.

        The call is looked for in the trace itself and in `capture_traces`. Columns: `event`,
        `launch` (the call that launched the graph), `graph` and `graph_node` (their numbers, where
        the profiler gave them), `annotation` (of `torch.cuda.graph_annotations`, where it was
        written into the trace), `capture` (0 for this trace, else the number of the trace of the
        capture), `captured_call` (its event there), `operator_name` (the innermost operator
        around that call), `operators` (all of them, the outermost first), `joined_by` (`node_id`
        where call and activity have the same number, else `order`). What is not known is null.
        """
        from longpole.captures import graph_nodes

        return graph_nodes(self, self.capture_traces)

    @cached_property
    def launches(self) -> pl.DataFrame:
        """Each GPU activity (`event`) and what launched it.

        Columns: `event`, `work_class` (`compute`, `communication`, or `copy`, for fills
        too), `call` (runtime or driver call), `operator` (the innermost around the call, or
        around what enqueued it for another thread), `linked_by` (`correlation`, the weaker
        `external_id`, which gives the operator only, or `holder`: the one launch of a graph in
        which the work of a profile without numbers ran), `delay_ns` (from the return of the
        call to the start of the work; negative where the work began inside the call).
        """
        return frame_of(self._core.launches())

    @cached_property
    def collectives(self) -> pl.DataFrame:
        """Each part that this rank took in a collective, in the order of the calls.

        Columns: `event` (the kernel, or the range of a library on the CPU), `call`,
        `operation`, `named_by` (what says so: `record`, `annotation`, `operator`, `kernel`),
        `group`, `group_size`, `group_ranks` (ascending, with spaces between), `sequence`,
        `call_id`, `peer` (the rank it sends to or receives from), `in_elements`,
        `out_elements`, `data_type`, `bytes` (of the larger buffer), `coalesced`. What the
        trace does not say is null.
        """
        return frame_of(collectives(self._core))

    @cached_property
    def collective_waits(self) -> pl.DataFrame:
        """Split each collective into waiting and moving data, where the profile shows its tasks.

        Profiles of Ascend devices do. Columns: `event`, `waiting_ns` (a wait for the
        notification of a peer is open, and nothing moves), `moving_ns` (data is copied or
        reduced), `awaited_peer` (the peer of the longest wait, by its number in the group),
        `awaited_ns` (how long that is), `group_size` (the largest number of a peer, and one
        more: as many ranks take part at the least).
        """
        return frame_of(collective_waits(self._core))

    @cached_property
    def api_roles(self) -> pl.DataFrame:
        """What each runtime API call (`event`) does, by its name: `role`.

        Roles: `launch`, `graph_launch`, `copy`, `blocking_copy`, `stream_synchronize`,
        `event_synchronize`, `device_synchronize`, `event_record`, `stream_wait`, `query`,
        `allocate`, `stream_ordered_allocate`, `free`, `load_module`, `unload_module`, `other`.
        """
        return frame_of(self._core.api_roles())

    @cached_property
    def blocking_calls(self) -> pl.DataFrame:
        """The runtime API calls (`event`) that waited for a device, and the `reason`.

        Reasons: `role` (such calls always wait), `copy_ended` (its memcpy had ended when it
        returned), `waited` (the dependency graph found the work that it waited for).
        """
        return frame_of(self._core.blocking_calls())

    @cached_property
    def self_times(self) -> pl.DataFrame:
        """The time of each `event` on a thread in which nothing inside it ran: `self_ns`."""
        return frame_of(self._core.self_times())

    @cached_property
    def crossings(self) -> pl.DataFrame:
        """Each `event` that begins inside another one of its thread and ends outside it."""
        return frame_of(self._core.crossings())

    @cached_property
    def steps(self) -> pl.DataFrame:
        """The `ProfilerStep#N` annotations, in order of time.

        Columns: `step` (the N), `name`, `start_ns`, `duration_ns`, `event`, and the
        window in which its work was done, `window_start_ns` to `window_end_ns`: from the
        completion of the step before (or its own start, where that is not in the trace)
        to the end of the last work launched in it.
        """
        return frame_of(self._core.steps(None))

    @property
    def window(self) -> tuple[int, int] | None:
        """From the first to the last work of a main thread or a device, in ns; None without any."""
        return self._core.whole_window()

    @cached_property
    def warning_counts(self) -> dict[str, int]:
        """Counts of what linking and nesting could not settle, or settled with a doubt."""
        return self._core.warning_counts()

    @cached_property
    def inputs(self) -> pl.DataFrame:
        """What each operator (`event`) was called with, where shapes were recorded.

        Columns, each a list with a value for every tensor and every other input: `inputs`
        (its position; the tensors of a list share one), `shapes` and `strides` (null for what
        is no tensor or was not recorded), `dtypes` (as torch names them) and `values` (texts
        of numbers and lists). They are read from the texts of the trace on first use.
        """
        import polars as pl

        from longpole.inputs import INPUT_ARGUMENTS, typed_inputs

        categories = ("cpu_op", "Operator")
        found = [typed_inputs(self.args(name, INPUT_ARGUMENTS)) for name in categories]
        return pl.concat(found).sort("event")

    @cached_property
    def backward_links(self) -> pl.DataFrame:
        """Each operator of a backward pass, and the `forward` operator that it differentiates.

        Columns: `backward` and `forward` (events), by their sequence numbers.
        """
        from longpole._core import backward_links

        return frame_of(backward_links(self._core))

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write all tables to a file that `read_trace` opens again without parsing.

        Every answer on the reopened trace is the same. The file is a zip archive of NumPy arrays,
        which `numpy.load` opens too, and holds no pickle. Arguments of events that were not kept
        in reading are not in it: read the trace with `args="default"` to save what all tables need.

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
        """List what an event ran in, the outermost first, and the event itself.

        Columns: `event`, `relation`, `kind`, `name`, `start_ns`, `duration_ns`. For a GPU
        activity (`launched`) it is the stack of the call that launched it (`enclosing`); in
        a backward pass that of the forward operator stands before it (`forward`).

        Raises
        ------
        ValueError
            There is no such event.

        Examples
        --------
        >>> from longpole.testing import TraceBuilder
        >>> builder = TraceBuilder().python("model.py(3): forward", (0, 30))
        >>> builder = builder.operator("aten::mm", (0, 20))
        >>> trace = builder.launch("gemm", call=(5, 9), work=(9, 50)).read()
        >>> trace.stack_of(3)["name"].to_list()
        ['model.py(3): forward', 'aten::mm', 'cudaLaunchKernel', 'gemm']
        """
        from longpole.stacks import stack_of

        return stack_of(self, event)

    def subtree(self, event: int) -> pl.DataFrame:
        """List an event, all that is nested in it, and the GPU activities that launched.

        Columns: `event`, `parent` (of an activity: the call), `level` (0 for the event),
        `kind`, `name`, `start_ns`, `duration_ns`; parents stand before their children, those
        in order of time.

        Raises
        ------
        ValueError
            There is no such event.
        """
        from longpole.stacks import subtree

        return subtree(self, event)

    def busy(self, start_ns: int, end_ns: int) -> pl.DataFrame:
        """How long each device, and each of its streams, was busy within a window.

        Columns: `device`, `stream` (null for the device as a whole), `count`, `busy_ns`,
        then `compute_ns`, `communication_ns`, `copy_ns` and `idle_ns`, which sum to the
        window (an instant counts for the first of them), and `communication_total_ns`,
        `copy_total_ns` whatever else ran.
        """
        return frame_of(self._core.busy(start_ns, end_ns))

    def times_within(self, spans: pl.DataFrame) -> pl.DataFrame:
        """Measure what threads did in some spans of time, from the outside in.

        Parameters
        ----------
        spans
            `lane`, `start_ns` and `end_ns`; where spans of a lane overlap they count once.

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

        Columns: `device`, `start_ns`, `duration_ns`, `next` (the work that ended it),
        `call` (what launched that), `host_ns` (the part before that call returned, in
        which the device waited for the host; null where the call is not known).
        """
        return frame_of(gaps(self._core, start_ns, end_ns, by_stream=False))

    def critical_path(  # noqa: PLR0917 - the names are a promise
        self,
        step: int | str | None = None,
        annotation: str | None = None,
        instance: int = 0,
        between: tuple[int, int] | None = None,
        end: Literal["period", "last", "cpu", "gpu"] = "period",
        method: Literal["binding", "longest"] = "binding",
        data_load: str | None = None,
        *,
        whole: bool = False,
        step_name: str | None = None,
    ) -> CriticalPath:
        """Find the chain of work and waiting that decided when a window was over.

        Without `step`, `annotation`, `between` or `whole` the window is the step that
        `longpole.choose_window` takes, and the whole trace where it marks no steps.

        Parameters
        ----------
        step, annotation, instance, between, whole, step_name
            Which window, as for `longpole.choose_window`.
        end
            For steps, `"period"` is the time from the completion of the step before to that
            of this one, where both are in the trace. `"last"` begins at the annotation and
            ends with the last of it and of the device work launched in it; `"cpu"` and
            `"gpu"` take one of these only.
        method
            `"binding"` walks back along what finished last; `"longest"` gives the chain that
            holds most work, for comparison.
        data_load
            A regular expression for names of Python functions and annotations that load
            data; by default those with `dataloader` in them.

        Raises
        ------
        WindowError
            The trace has no such step, annotation or work.
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
        from longpole.critical_path.path import CriticalPath
        from longpole.critical_path.windows import core_window

        if method not in {"binding", "longest"}:
            message = f'method is "binding" or "longest", not {method!r}'
            raise ValueError(message)
        number = None if step is None else step_number(step)
        window = core_window(number, annotation, instance, between, end, whole=whole)
        longest = method == "longest"
        with blaming(self.damage):
            core = self._core.critical_path(
                window, longest=longest, data_load=data_load, step_name=step_name
            )
        return CriticalPath(core, self._path, self.damage, self.core.operators_of)

    def verdict(
        self,
        step: int | str | None = None,
        annotation: str | None = None,
        between: tuple[int, int] | None = None,
        *,
        instance: int = 0,
        whole: bool = False,
        data_load: str | None = None,
        step_name: str | None = None,
    ) -> Verdict:
        """Say what holds the program up, and what can be done about it.

        Without `step`, `annotation`, `between` or `whole` the gains hold over all complete
        steps that follow another, together.

        Parameters
        ----------
        step, annotation, instance, whole, data_load, step_name
            As for `critical_path`.
        between
            Two times in ns. The gains hold over the steps completed between them; where there
            are none, over the time itself.

        Raises
        ------
        WindowError
            The trace has no such step, annotation or work.
        ValueError
            Arguments exclude each other, or a pattern is not a regular expression.

        Examples
        --------
        >>> from longpole.testing import TraceBuilder
        >>> trace = TraceBuilder().launch("gemm", call=(0, 10), work=(10, 100)).read()
        >>> trace.verdict().sides
        ('kernels',)
        """
        from longpole.critical_path.windows import core_window
        from longpole.remedies.facts import Facts
        from longpole.verdict.damaged import damaged
        from longpole.verdict.values import verdict_of

        number = None if step is None else step_number(step)
        window = core_window(number, annotation, instance, between, "period", whole=whole)
        with blaming(self.damage):
            parts, facts = self._core.verdict(window, data_load=data_load, step_name=step_name)
        devices = self.device_properties
        verdict = verdict_of(parts, lambda options: Facts(facts, parts, options, devices))
        return damaged(verdict, parts, self.damage) if self.damage else verdict

    def recording_cost(
        self, step_time_ns: int | None = None, *, step_name: str | None = None
    ) -> RecordingCost:
        """Estimate what recording cost, and how long the usual step takes without the profiler.

        Parameters
        ----------
        step_time_ns
            The time of a step without a profiler, if it is known.
        step_name
            As for `critical_path`.

        Returns
        -------
        dict
            A cost for each class of events, with an interval, and the time of the step. Where
            `longpole.record` measured the step without the profiler, that time counts.

        Raises
        ------
        ValueError
            No cost of recording explains the step time that is given.

        Examples
        --------
        >>> from longpole.testing import TraceBuilder
        >>> trace = TraceBuilder().launch("gemm", call=(0, 10), work=(10, 100)).read()
        >>> trace.recording_cost()["status"]
        'unknown'
        """
        from longpole.recording_cost import unknown_cost

        cost = self.without_profiler(step_time_ns, step_name=step_name).removed_cost
        return unknown_cost("not asked") if cost is None else cost

    @property
    def removed_cost(self) -> RecordingCost | None:
        """What recording cost, where this is a trace without the profiler; else None."""
        return self._cost

    def without_profiler(
        self,
        step_time_ns: int | None = None,
        *,
        step_name: str | None = None,
        data_load: str | None = None,
    ) -> Trace:
        """Return the same trace at the times that its events would have without the profiler.

        What recording cost is taken off where it lies, and the dependency graph is solved again:
        work of devices keeps its length. Rows of `events` stay the same. Counters, flows and
        asynchronous events keep their times. Where the trace does not tell what recording cost,
        its times stay; `recording_cost` says why.

        Parameters
        ----------
        step_time_ns
            The time of a step without a profiler, if it is known.
        step_name, data_load
            As for `critical_path`.

        Raises
        ------
        ValueError
            No cost of recording explains the step time that is given.
        """
        from longpole.removed_cost import removed

        key = (step_time_ns, step_name, data_load)
        if self._is_without:
            return self
        if key not in self._without:
            core, cost = removed(self._core, step_time_ns, step_name, data_load)
            found = Trace(core, self._path, self._named_rank, lambda: self.capture_traces)
            found._cost, found._is_without = cost, True
            self._without[key] = found
        return self._without[key]

    def scope(
        self,
        step: int | None = None,
        *,
        annotation: str | None = None,
        instance: int = 0,
        whole: bool = False,
        step_name: str | None = None,
    ) -> tuple[str, int | None, int, int, tuple[str, str]]:
        """Find the window of an answer; see `longpole.choose_window`."""
        from longpole.critical_path.windows import core_window

        window = core_window(step, annotation, instance, None, "period", whole=whole)
        with blaming(self.damage):
            return self._core.scope(window, step_name=step_name)

    def sync_dependencies(
        self, step: int | str | None = None, *, whole: bool = False
    ) -> pl.DataFrame:
        """Who waited for work on a device, or might have had to, in a window.

        The window is chosen as by `critical_path`.

        Columns: `source`, `source_name`, `source_external_id` (the work waited for),
        `target`, `target_name`, `target_external_id` (the call, or the work, that waited),
        `kind` (`sync_return`, `event_wait`, `queue_full`), `evidence` (`recorded` or
        `inferred`), `waited` (whether it decided when the target went on), `on_path`. An
        id that the trace does not give is null.
        """
        return self.critical_path(step, whole=whole).sync_dependencies

    def counters_by_operator(self) -> pl.DataFrame:
        """Join the performance counters of each kernel with the operators that launched it.

        Counters are recorded with `profiler_metrics` (`examples/record_trace.py --counters`).

        Returns
        -------
        DataFrame
            A row for each counted range, in order of time, then one for each kernel that no
            range is found for. Columns: `event` (the range), `kernel_name` (as the range gives
            it), `call` (that launched the kernel), `matched_by` (`correlation`; `name_and_order`:
            the n-th range of a name is the n-th kernel of that name; `order`: the n-th range is
            the n-th launch, names being unknown; null where ranges and launches do not
            correspond), a column for each counter, `op_stack` (names of operators, the outermost
            first), `top_level_op`, `bottom_level_op`, `flops` (floating-point operations, from
            the counters that tell of them) and `dram_bytes` (read and written).

        Raises
        ------
        ValueError
            The trace has counters and was read without them.
        """
        from longpole.counters import counters_by_operator

        return counters_by_operator(self)

    def __repr__(self) -> str:
        return f"<longpole.Trace: {', '.join(self._facts())}>"

    def blocks(self) -> list[Block]:
        """Show it to people: what was read, the verdict, and what there are events of."""
        import polars as pl

        from longpole.report.blocks import Column, Sentence, Table
        from longpole.verdict.blocks import verdict_blocks

        try:
            told = verdict_blocks(self.verdict())
        except WindowError as error:
            why, _, _ = str(error).partition("\nhint: ")
            told = [Sentence(f"There is no verdict: {why}.")]
        kind = pl.col("kind").cast(pl.String)
        counts = self.events.group_by(kind).len().sort("len", "kind", descending=[True, False])
        columns = (Column("kind"), Column("events", "count"))
        return [Sentence(", ".join(self._facts())), *told, Table(columns, counts.rows())]

    def _repr_html_(self) -> str:
        from longpole.report.html import html

        return html(self.blocks())
