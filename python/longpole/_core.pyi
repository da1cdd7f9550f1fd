import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO, Final, TypeAlias, final

from longpole.engine.recording_cost import OverheadParts
from longpole.formats.convert.execution_trace import Method
from longpole.remedies.parts import CoreParts
from longpole.remedies.sides import BoundsParts, GainParts, Side
from longpole.words.recording import Profiler

_ActivityRow: TypeAlias = tuple[int, int | None, int | None, int | None, str, int, int, int, int]
_ChangeRow: TypeAlias = tuple[
    str,
    str | None,
    str | None,
    int,
    int,
    Sequence[int] | None,
    Sequence[tuple[int, int, int]] | None,
]

__all__ = [
    "FULL_QUEUE_OPERATIONS",
    "ChakraTrace",
    "CriticalPath",
    "Cut",
    "ExecutionTrace",
    "Extraction",
    "Extractor",
    "Facts",
    "InternalError",
    "JointRanks",
    "JointSolution",
    "LinkedTrace",
    "LongpoleError",
    "PairError",
    "ReducedRank",
    "Table",
    "Trace",
    "TraceError",
    "WindowError",
    "align",
    "api_names",
    "check_pattern",
    "confine",
    "context_times",
    "counter_tracks",
    "expand_hops",
    "extended_bounds",
    "extract_formats",
    "guard_main",
    "is_confined",
    "is_own_frame",
    "kernel_family",
    "link_execution_trace",
    "merged_path",
    "open_file",
    "open_folder",
    "outline_tunable",
    "rank_of_calls",
    "read_chakra",
    "read_execution_trace",
    "read_trace",
    "read_tunable",
    "reduce_rank",
    "repair_trace",
    "sequences",
    "spreads",
    "unpack_rank",
]

FULL_QUEUE_OPERATIONS: Final[int]
"""Number of waiting activities from which the queue of a stream counts as full."""

class LongpoleError(Exception):
    """Base class of all exceptions of longpole."""

class TraceError(LongpoleError):
    """A trace that could not be read.

    `code` is a short name for programs, `offset` the byte of the uncompressed file,
    `hint` what to do next, `path` the file; the last two may be None.
    """

    code: str
    offset: int
    hint: str | None
    path: str | None

class WindowError(LongpoleError):
    """The trace does not have the requested window."""

class PairError(LongpoleError):
    """An execution trace and a trace that are not from the same run."""

class InternalError(LongpoleError):
    """An internal error of longpole; please report it."""

@final
class Table:
    """Columns owned by the Rust core, handed over through the Arrow stream protocol."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __len__(self) -> int: ...
    def to_dicts(self) -> list[dict[str, Any]]: ...

@final
class Facts:
    """Facts about the windows of a verdict, for remedies; see `longpole.remedies.Facts`."""

    @property
    def windows(self) -> list[tuple[int, int]]: ...
    @property
    def numbers(self) -> list[int]: ...
    def on_threads(
        self, kinds: Sequence[str], least_ns: int, prefixes: Sequence[str]
    ) -> list[tuple[int, int, int, int, int]]: ...
    def calls(self, roles: Sequence[str]) -> list[tuple[int, int, int, int, int]]: ...
    def activities(self, kinds: Sequence[str], least_ns: int) -> list[_ActivityRow]: ...
    def launched_in(self, time_ranges: Sequence[tuple[int, int, int]]) -> list[_ActivityRow]: ...
    def names_in(
        self, time_ranges: Sequence[tuple[int, int, int]]
    ) -> list[tuple[str, str, int, int, int, int]]: ...
    def thread_gaps(
        self, least_ns: int
    ) -> list[tuple[int, int, int, int, int, int | None, int | None, bool]]: ...
    def waits(
        self,
    ) -> list[tuple[tuple[int, int, int, int, int], int | None, int | None]]: ...
    def host_pace_ns(self) -> int | None: ...
    def name(self, event: int) -> str: ...
    def place(self, event: int) -> tuple[str, int, int, int | None]: ...
    def around(self, event: int) -> list[tuple[int, str, str]]: ...
    def number(self, event: int, key: str) -> int | None: ...
    def text(self, event: int, key: str) -> str | None: ...
    def alike(self, events: Sequence[int], keys: Sequence[str]) -> list[int]: ...
    def pageable_ends(self, event: int) -> tuple[bool, bool]: ...
    def gains(
        self,
        possible: Sequence[tuple[Sequence[tuple[Any, ...]], Sequence[tuple[Any, ...]] | None]],
    ) -> list[GainParts]: ...
    def values(self, sets: Sequence[Sequence[tuple[Any, ...]]]) -> list[float]: ...
    def gains_of_sides(self) -> list[tuple[Side, GainParts]]: ...
    def gains_after(self, changes: Sequence[tuple[Any, ...]]) -> list[tuple[Side, float]]: ...

def extended_bounds(own: BoundsParts, other: BoundsParts) -> BoundsParts: ...

@final
class CriticalPath:
    """The critical path of one window, as observed or after changes."""

    @property
    def window(self) -> tuple[int, int]: ...
    @property
    def inferred_ns(self) -> int: ...
    @property
    def unexplained_ns(self) -> int: ...
    @property
    def doubtful_ns(self) -> int: ...
    @property
    def clock_shifts(self) -> list[tuple[int | None, int | None, int]]: ...
    @property
    def behind_unexplained_ns(self) -> int: ...
    @property
    def undecided_ns(self) -> int: ...
    @property
    def is_inconclusive(self) -> bool: ...
    def totals(self, *, by_name: bool) -> list[tuple[str, str | None, int, int, int | None]]: ...
    def waits_on_path(self) -> tuple[int, int]: ...
    def segments(self) -> Table: ...
    def kernel_segments(self) -> Table: ...
    def slack(self) -> Table: ...
    def nodes(self) -> Table: ...
    def edges(self) -> Table: ...
    def work(self, steps: Sequence[tuple[int, int]]) -> Table: ...
    def violations(self) -> Table: ...
    def counts(self) -> dict[str, int]: ...
    def sync_dependencies(self, within: tuple[int, int] | None = None) -> Table: ...
    def what_if(
        self,
        changes: Sequence[_ChangeRow],
    ) -> CriticalPath: ...
    def lengths_ns(self, sets: Sequence[Sequence[_ChangeRow]]) -> list[int]: ...
    def length_in(self, other: CriticalPath) -> int: ...
    def n_chosen(
        self,
        changes: Sequence[_ChangeRow],
    ) -> list[int]: ...
    def perfetto(self) -> list[bytes]: ...

@final
class Trace:
    """The stages of one trace, each computed on first use and cached."""

    @property
    def is_recovered(self) -> bool: ...
    @property
    def n_events(self) -> int: ...
    @property
    def n_bytes(self) -> int: ...
    @property
    def phases(self) -> dict[str, int]: ...
    @property
    def header(self) -> list[tuple[str, str]]: ...
    @property
    def profiler(self) -> Profiler: ...
    @property
    def is_of_server(self) -> bool: ...
    @property
    def rank(self) -> int | None: ...
    @property
    def world_size(self) -> int | None: ...
    @property
    def base_time_ns(self) -> int | None: ...
    @property
    def format(self) -> str: ...
    @property
    def compression(self) -> str | None: ...
    def events(self, columns: Sequence[str]) -> Table: ...
    def launches(self) -> Table: ...
    def api_roles(self) -> Table: ...
    def blocking_calls(self) -> Table: ...
    def self_times(self) -> Table: ...
    def times_within(self, spans: Sequence[tuple[int, int, int]]) -> Table: ...
    def crossings(self) -> Table: ...
    def steps(self, step_name: str | None, *, with_repetitions: bool = False) -> Table:
        """List the steps; without steps, the repetitions of GPU activities if wanted."""

    def whole_window(self) -> tuple[int, int] | None: ...
    def activities(self) -> Table: ...
    def backward_links(self) -> Table: ...
    def collectives(self) -> Table: ...
    def collective_waits(self) -> Table: ...
    def server_iterations(self) -> tuple[str, Table] | None:
        """Return what marks a server's iterations, and a row for each; None without marks."""

    def host_parts(self) -> Table:
        """List annotations and functions that are a known `part` of the host's work."""

    def busy(self, window: tuple[int, int], chosen: bytes | None = None) -> Table: ...
    def phase_times(self, window: tuple[int, int], host: tuple[int, int]) -> tuple[Table, Table]:
        """Measure the phases of a training step on main threads and on devices; see `phases`."""

    def gaps(self, window: tuple[int, int]) -> Table: ...
    def class_times(self, window: tuple[int, int], chosen: bytes | None = None) -> Table:
        """Measure for each device how long each combination of activity classes ran.

        Columns: `device`, `compute`, `communication` and `copy` (whether it ran), `duration_ns`.
        """

    def idle_causes(
        self, window: tuple[int, int], short_ns: int, chosen: bytes | None = None
    ) -> Table:
        """Split the time in which no chosen event ran on a device or stream by cause.

        Columns: `device`, `stream` (null for the device as a whole), `cause` as in `idle`,
        `count`, `duration_ns`, `host_ns`, and the columns of `spreads` of the intervals.
        """

    def queues(self, window: tuple[int, int], chosen: bytes | None = None) -> Table:
        """List the number of queued activities at the start of a window and after each change.

        Columns: `device`, `stream`, `time_ns`, `event` (the call, or the activity that started) and
        `queue_length` from then on, by device, stream and time.
        """

    def enclosing(self, events: bytes, among: bytes, *, outermost: bool) -> Table: ...
    def running_at(self, lanes: bytes, times_ns: bytes) -> Table: ...
    def overlaps(self, events: bytes, others: bytes) -> Table:
        """Measure how long each of the given events ran concurrently with `others` on its device.

        Columns: `event` and `overlap_ns`; events without an end are left out.
        """

    def device_ranges(self, ranges: bytes | None = None) -> Table:
        """Find the annotation on a stream, among `ranges` or all, in which each activity began.

        Columns: `event` and `annotation`; of several, the last to begin.
        """

    def critical_path(
        self,
        window: tuple[Any, ...],
        *,
        longest: bool,
        data_load: str | None,
        step_name: str | None,
    ) -> CriticalPath: ...
    def verdict(
        self,
        window: tuple[Any, ...],
        *,
        data_load: str | None,
        step_name: str | None,
        every_window: bool,
    ) -> tuple[CoreParts, Facts]: ...
    def without_profiler(
        self, step_time_ns: int | None, *, data_load: str | None, step_name: str | None
    ) -> tuple[OverheadParts, Trace | None]: ...
    def window_times(self, window: tuple[Any, ...], *, step_name: str | None) -> tuple[int, int]:
        """Return the start and end of a window; two times are those of the recording."""

    def recorded_times(self, lane: int, range_ns: tuple[int, int]) -> tuple[int, int]:
        """Return two times of a thread as they were recorded."""

    def recording_cost(
        self, step_time_ns: int | None, *, data_load: str | None, step_name: str | None
    ) -> OverheadParts: ...
    def facts(self, window: tuple[Any, ...], *, step_name: str | None) -> Facts: ...
    def clock_contradictions(
        self,
    ) -> tuple[Table, list[tuple[int | None, int | None, int]]]: ...
    def scope(
        self, window: tuple[Any, ...], *, step_name: str | None
    ) -> tuple[str, int | None, tuple[tuple[int, int], tuple[int, int]], tuple[str, str]]: ...
    def lanes(self) -> Table: ...
    def flows(self) -> Table: ...
    def asynchronous(self) -> Table: ...
    def counters(self) -> Table: ...
    def metadata_events(self) -> Table: ...
    def categories(self) -> list[str | None]: ...
    def args(self, category: str | None, names: Sequence[str] | None = None) -> Table | None: ...
    def diagnostics(self) -> Table: ...
    def losses(self) -> Table: ...
    def warning_counts(self) -> dict[str, int]: ...
    def kernels_by_name(
        self, window: tuple[int, int], host: tuple[int, int], top: int
    ) -> tuple[list[tuple[str | None, int, int, int, int]], int]: ...
    def belonging(self, window: tuple[int, int], host: tuple[int, int]) -> Table: ...
    def operators_by_name(
        self, start_ns: int, end_ns: int, top: int
    ) -> tuple[list[tuple[str | None, int, int, int, int]], int]: ...
    def blocking_by_name(
        self, start_ns: int, end_ns: int
    ) -> list[tuple[tuple[str | None, int, int, int, int], str]]: ...
    def unlinked(self, start_ns: int, end_ns: int) -> tuple[int, int]: ...
    def earlier_work(self, start_ns: int, end_ns: int) -> tuple[int, int]: ...
    def idle(
        self, start_ns: int, end_ns: int, short_ns: int
    ) -> list[tuple[int | None, str, int, int | None]]: ...
    def event_warnings(self) -> list[tuple[str, str | None, int, int, str | None, int]]: ...
    def event_names(self, events: Sequence[int]) -> list[str | None]: ...
    def operators_of(
        self, events: Sequence[int]
    ) -> list[tuple[int, str | None, str | None] | None]: ...
    def event_durations_ns(self, events: Sequence[int]) -> list[int | None]: ...
    def launches_without_work(self) -> list[int]: ...
    def save(self, path: str | os.PathLike[str]) -> None: ...
    def write(
        self,
        path: str | os.PathLike[str],
        *,
        perfetto: bool,
        gzip: bool = False,
        rank: int | None = None,
        kept: bytes | None = None,
    ) -> int: ...

def confine(folders: Sequence[str | os.PathLike[str]]) -> None:
    """Confine this process: afterwards, it can only open files in these folders and below them.

    The folders are given by their real paths.
    """

def is_confined() -> bool:
    """Whether the process is confined to folders."""

def open_file(path: str | os.PathLike[str], *, is_named: bool) -> int:
    """Open a file for reading, and return its descriptor. POSIX only.

    A pipe or a terminal is opened only if the user named it, devices and sockets never.
    """

def open_folder(path: str | os.PathLike[str]) -> int:
    """Open a folder, whose entries can then be listed, and return its descriptor. POSIX only."""

def read_trace(
    source: str | os.PathLike[str] | bytes | BinaryIO,
    *,
    args: str | Sequence[str] | None = None,
    vocabulary: Sequence[tuple[str, str, str]] | None = None,
    strict: bool = False,
    max_bytes: int | None = None,
    max_events: int | None = None,
    threads: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> Trace: ...

@final
class Cut:
    """Copies a trace, passed in chunks, with only the events at some positions."""

    def __new__(cls, kept: bytes) -> Cut: ...
    def feed(self, text: bytes) -> bytes: ...
    @property
    def n_written(self) -> int: ...

def sequences(groups: bytes, values: bytes, n_groups: int) -> Table: ...
def spreads(lengths: bytes, values: bytes) -> Table: ...
def counter_tracks(series: Sequence[tuple[str, bytes, bytes]]) -> bytes: ...
def api_names() -> list[tuple[str, str]]:
    """List every known name of a runtime API call with its role."""

def check_pattern(pattern: str) -> None:
    """Raise `ValueError` for an invalid regular expression, or one that takes too much memory."""

def is_own_frame(name: str) -> bool:
    """Whether the name of a Python frame belongs to the program, not to a library."""

def kernel_family(name: str) -> str:
    """Return the family of a kernel from its name: `gemm`, `attention` ... or `other`."""

def context_times(
    trace: Trace,
    frames: Sequence[str],
    window: tuple[int, int],
    *,
    host: tuple[int, int],
    annotation_names: str | None,
    by_inputs: bool,
    chosen: bytes | None,
) -> tuple[Table, Table, tuple[int, int], tuple[int, int]]:
    """The times of chains of frames; see `longpole.trace.contexts.context_times`."""

def guard_main() -> None:
    """Serve as the guard of a device until standard input ends."""

@final
class Extractor:
    """Finds records in one stream that is passed in chunks."""

    def __new__(
        cls, formats: Sequence[str], patterns: Sequence[str], max_records: int
    ) -> Extractor: ...
    def feed(self, chunk: bytes) -> None: ...
    def record(
        self,
        name: str,
        offset: int,
        rows: Sequence[tuple[str, str, str, bool, Sequence[tuple[str, str]]]],
    ) -> None: ...
    def reject(self, name: str, offset: int, text: bytes, reason: str) -> None: ...
    def finish(self, died: bool) -> Extraction: ...

@final
class Extraction:
    """The records found in one stream."""

    def records(self) -> Table: ...
    def rows(
        self,
    ) -> list[tuple[str, str | None, float | None, str, str, int | None, int | None, str]]: ...
    def fields(self) -> Table: ...
    def rejections(self) -> Table: ...
    def rejection_counts(self) -> list[tuple[str, int]]: ...
    def omitted(
        self,
    ) -> list[
        tuple[
            str,
            str | None,
            bool,
            int,
            int,
            tuple[float, str, str, int | None, int | None] | None,
            float | None,
        ]
    ]: ...
    @property
    def n_bytes(self) -> int: ...
    @property
    def is_unterminated(self) -> bool: ...

def extract_formats() -> list[tuple[str, str]]: ...
def read_tunable(text: bytes, columns: set[str] | None = None) -> Table: ...
def outline_tunable(texts: Sequence[bytes], *, place: bool = False) -> Table: ...

@final
class ExecutionTrace:
    """The nodes of an execution trace."""

    @property
    def is_recovered(self) -> bool: ...
    @property
    def schema(self) -> str: ...
    @property
    def pid(self) -> int | None: ...
    def nodes(self) -> Table: ...
    def diagnostics(self) -> Table: ...
    def __len__(self) -> int: ...

def read_execution_trace(
    source: str | os.PathLike[str] | bytes | BinaryIO,
    *,
    strict: bool = False,
    max_bytes: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> ExecutionTrace: ...

@final
class LinkedTrace:
    """An execution trace with the times of a trace."""

    @property
    def method(self) -> Method: ...
    @property
    def n_linked(self) -> int: ...
    @property
    def pids_differ(self) -> bool: ...
    @property
    def dropped(self) -> list[tuple[str, int]]: ...
    def nodes(self) -> Table: ...
    def dependencies(self) -> Table: ...
    def unlinked(self) -> Table: ...
    def iterations(self) -> Table: ...
    def collectives(self) -> Table: ...
    def write_chakra(self, path: str | os.PathLike[str], gaps: bool) -> None: ...
    def write_et_plus(self, path: str | os.PathLike[str], gaps: bool) -> None: ...
    def replay(
        self, gaps: bool
    ) -> tuple[
        int,
        int | None,
        int,
        list[tuple[str, int, int, int, int, int | None]],
        tuple[int, int, int, int] | None,
    ]: ...

def link_execution_trace(
    execution: ExecutionTrace,
    trace: Trace,
    *,
    iteration: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> LinkedTrace: ...

@final
class ChakraTrace:
    """A Chakra graph."""

    @property
    def attributes(self) -> list[tuple[str, str]]: ...
    def nodes(self) -> Table: ...
    def dependencies(self) -> Table: ...
    def check(self) -> Table: ...
    def attributes_of(self, row: int) -> list[tuple[str, str]]: ...
    def replay(
        self, gaps: bool
    ) -> tuple[
        int,
        int | None,
        int,
        list[tuple[str, int, int, int, int, int | None]],
        tuple[int, int, int, int] | None,
    ]: ...
    def __len__(self) -> int: ...

def read_chakra(
    source: str | os.PathLike[str] | bytes | BinaryIO,
    *,
    progress: Callable[[int], object] | None = None,
) -> ChakraTrace: ...

@final
class ReducedRank:
    """One rank, reduced to the events that affect other ranks."""

    def pack(self) -> bytes:
        """The rank as bytes, for another process of the same version; see `unpack_rank`."""

    @property
    def rank(self) -> int | None: ...
    @property
    def world_size(self) -> int | None: ...
    @property
    def host(self) -> str | None: ...
    @property
    def steps(self) -> list[int]: ...
    @property
    def window(self) -> tuple[int, int]: ...
    @property
    def n_members(self) -> int: ...
    @property
    def n_bytes(self) -> int: ...
    def step_totals(self) -> Table: ...
    def name_totals(self) -> Table: ...
    def boundary_nodes(self) -> Table: ...

@final
class JointRanks:
    """Several ranks joined: their calls, clocks and the solution of their graph."""

    def __new__(cls, ranks: Sequence[ReducedRank]) -> JointRanks: ...
    def calls(self) -> Table: ...
    def members(self) -> Table: ...
    def clocks(self) -> Table: ...
    def findings(
        self,
    ) -> list[
        tuple[
            str,
            str | None,
            int | None,
            int,
            list[int],
            list[int],
            list[str],
            list[int],
            bool,
        ]
    ]: ...
    def merged_rank(
        self,
        trace: Trace,
        place: int,
        *,
        number: int,
        title: str,
        lanes: Sequence[str],
        calls: Mapping[int, int],
        earlier_ns: int,
    ) -> list[bytes]:
        """Return a rank as packets of a Perfetto trace."""

    def solve(
        self, changed: Sequence[tuple[int, ReducedRank]], *, together: bool
    ) -> JointSolution: ...

@final
class JointSolution:
    """The end of a run, as observed or after changes."""

    @property
    def run(self) -> tuple[int, int]: ...
    @property
    def n_early_ends(self) -> int: ...
    def completions(self) -> Table: ...
    def node_times(self, place: int) -> Table: ...
    def late_ns(self) -> list[int]: ...
    def legs(self, step: int | None, start_ns: int) -> Table: ...
    def common_ns(self, place: int, time_ns: int) -> int: ...
    def clock(self, place: int) -> tuple[int, float, int]: ...

def reduce_rank(
    trace: Trace,
    *,
    rank: int | None = None,
    data_load: str | None = None,
    step_name: str | None = None,
    changes: Sequence[tuple[str, str | None, str | None, int, int, list[int] | None]] | None = None,
    scalings: Sequence[tuple[str, str | None, list[tuple[int | None, int, int]]]] | None = None,
) -> ReducedRank:
    """Reduce one rank, as observed or after changes; see `longpole.TraceSet`."""

def rank_of_calls(
    rank: int | None,
    *,
    world_size: int | None,
    groups: Sequence[tuple[str, str | None, int | None, list[int] | None]],
    calls: Sequence[
        tuple[str | None, int, int | None, int | None, int | None, str | None, int | None]
    ],
) -> ReducedRank:
    """Create a rank of which only the order of its calls is known, not their times.

    A group is its name, description, size and ranks; a call is its operation, the index of its
    group, number, peer, elements, data type and bytes.
    """

def unpack_rank(packed: bytes) -> ReducedRank:
    """Return the rank that `ReducedRank.pack` converted to these bytes.

    Raises ValueError if the bytes are from another version or are not a packed rank.
    """

def merged_path(segments: Sequence[tuple[int, int, int, str, str]]) -> bytes:
    """Return the path across ranks as packets of a Perfetto trace.

    A segment is its rank, start and end in ns, kind and title.
    """

def expand_hops(
    trace: Trace,
    hops: Sequence[tuple[int | None, int]],
    clock: tuple[int, float, int],
    *,
    data_load: str | None = None,
) -> Table:
    """Return the segments of time ranges of the path in one rank, on the common clock."""

def repair_trace(
    source: str | os.PathLike[str] | bytes | BinaryIO,
    output: str | os.PathLike[str],
    gzip: bool,
    rank: int | None = None,
    *,
    as_object: bool = False,
) -> int | None:
    """Write everything readable of a trace; see `longpole.formats.convert.repaired.repair`."""

def align(
    base: Sequence[Sequence[int]], new: Sequence[Sequence[int]]
) -> list[tuple[int, int, int]]:
    """Match the elements of two sequences, in order.

    Row r has the keys of round r, one for each element. Returns the index in each sequence and the
    round of each pair; both indices increase from pair to pair.
    """
