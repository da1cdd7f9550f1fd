"""The contents of a trace file: events, counters, lanes and metadata, as frames."""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

from longpole.files.damage import damage_of, source_losses
from longpole.rows.frames import frame_of, typed

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from longpole._core import Trace as CoreTrace
    from longpole.files.damage import Damage

_NO_DEVICE: Final = 2**31
ON_DEVICE: Final = ("kernel", "copy", "fill")
"""Kinds of events that are work of a device."""
_EVENT_COLUMNS: Final = (
    "event",
    "kind",
    "category",
    "name",
    "process",
    "thread",
    "device",
    "stream",
    "start_ns",
    "duration_ns",
    "correlation",
    "external_id",
    "parent",
    "depth",
    "lane",
    "position",
)


class TraceTables:
    """The tables of one trace, computed on first use and cached.

    Every frame refers to events by their row in `events`, the column `event`.
    """

    def __init__(self, core: CoreTrace, named_rank: int | None = None) -> None:
        self._core = core
        self._named_rank = named_rank

    @property
    def core(self) -> CoreTrace:
        """The trace as an object of the compiled core."""
        return self._core

    @cached_property
    def events(self) -> pl.DataFrame:
        """All events of the trace, in file order.

        Columns: `event` (row number), `kind`, `category` (as in the file), `name`,
        `process`, `thread` (strings: some are names), `device`, `stream` (of GPU activities),
        `start_ns`, `duration_ns` (null for instants and events without an end), `correlation`,
        `external_id`, `parent` (the innermost event around it on the same thread),
        `depth`, `lane` (row in `lanes`), `position` (in `traceEvents`).
        """
        import polars as pl

        # One column at a time: polars copies strings when it takes them over, and the originals
        # should be freed before the next ones are created. Nesting first, which needs memory.
        made = ["parent", "depth"]
        made += [name for name in _EVENT_COLUMNS if name not in made]
        columns = {name: pl.DataFrame(self._core.events([name])) for name in made}
        return pl.concat([columns[name] for name in _EVENT_COLUMNS], how="horizontal")

    @cached_property
    def annotations(self) -> pl.DataFrame:
        """Named ranges of the program on its threads: `event`, `name`, `start_ns`, ..."""
        import polars as pl

        columns = ["event", "name", "process", "thread", "start_ns", "duration_ns"]
        events = self.events.select("kind", *columns)
        return events.filter(pl.col("kind") == "annotation").drop("kind")

    @cached_property
    def flows(self) -> pl.DataFrame:
        """The ends of the flow arrows that the profiler recorded.

        Columns: `phase` (`s` start, `t` step, `f` finish), `flow` (the id), `category`,
        `name`, `process`, `thread`, `time_ns`, `position`. Ends with the same category
        and id belong together.
        """
        return frame_of(self._core.flows())

    @cached_property
    def counters(self) -> pl.DataFrame:
        """Samples of counters: `name`, `series`, `process`, `time_ns`, `value`, `position`."""
        return frame_of(self._core.counters())

    @cached_property
    def asynchronous(self) -> pl.DataFrame:
        """Parts of asynchronous events (`b`, `n`, `e`), with the columns of `flows`."""
        return frame_of(self._core.asynchronous())

    @cached_property
    def lanes(self) -> pl.DataFrame:
        """Threads and streams: `lane`, `process`, `thread`, `device`, `stream`, `label`.

        `label` is the name of the thread or process in the trace.
        """
        import polars as pl

        statements = self.metadata_events.cast({"process": pl.String, "thread": pl.String})
        named = statements.filter(pl.col("text").is_not_null()).cast({"text": pl.String})
        named = named.sort("last_position")
        threads = named.filter(pl.col("name") == "thread_name")
        processes = named.filter(pl.col("name") == "process_name")
        lanes = frame_of(self._core.lanes()).cast({"process": pl.String, "thread": pl.String})
        key = ["process", "thread"]
        by_thread = threads.select(*key, thread_label="text").unique(key, keep="last")
        by_process = processes.select("process", process_label="text").unique(
            "process", keep="last"
        )
        return typed(
            lanes.join(by_thread, on=key, how="left")
            .join(by_process, on="process", how="left")
            .sort("lane")
            .with_columns(label=pl.coalesce("thread_label", "process_label"))
            .drop("thread_label", "process_label")
        )

    @cached_property
    def devices(self) -> pl.DataFrame:
        """The devices that ran activities, or that the trace describes.

        Columns: `device`, `name`, `count` (of GPU activities), `n_streams`.
        `metadata["deviceProperties"]` has the other properties of a device.
        """
        import polars as pl

        places = self.events.select("kind", "device", "stream")
        work = places.filter(pl.any_horizontal(pl.col("kind") == kind for kind in ON_DEVICE))
        used = work.group_by("device").agg(
            count=pl.len().cast(pl.Int64), n_streams=pl.col("stream").n_unique().cast(pl.Int64)
        )
        described = pl.DataFrame(
            list(self.device_names.items()),
            schema={"device": pl.Int32, "name": pl.Categorical},
            orient="row",
        )
        joined = described.join(used, on="device", how="full", coalesce=True, nulls_equal=True)
        counts = pl.col("count", "n_streams").fill_null(0)
        return joined.with_columns(counts).sort("device")

    @cached_property
    def device_properties(self) -> dict[int, dict[str, Any]]:
        """Properties that the profiler wrote for each device, by number.

        If it describes one device, and all activities have another number, they are the same
        device: ROCm counts processors too.
        """
        listed = self.metadata.get("deviceProperties")
        entries = listed if isinstance(listed, list) else []
        described = {
            entry["id"]: entry
            for entry in entries
            if isinstance(entry, dict)
            and type(entry.get("id")) is int
            and abs(entry["id"]) < _NO_DEVICE
        }
        if len(described) == 1:
            used = {lane["device"] for lane in self._core.lanes().to_dicts()} - {None}
            if len(used) == 1 and not used & described.keys():
                return dict(zip(used, described.values(), strict=True))
        return described

    @property
    def device_names(self) -> dict[int, str | None]:
        """The names of the devices that the trace describes, by number."""
        names = {number: entry.get("name") for number, entry in self.device_properties.items()}
        return {number: name if isinstance(name, str) else None for number, name in names.items()}

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """Metadata of the file: every field other than the events.

        A field that is not valid JSON is returned as a string.
        """
        return {name: _value(text) for name, text in self._core.header}

    @cached_property
    def metadata_events(self) -> pl.DataFrame:
        """Statements about processes and threads in the trace, each once.

        Columns: `name` (`process_name`, `thread_name`, ...), `process`, `thread`, `text`,
        `count` (occurrences in the file), `last_position` (the last of them).
        """
        return frame_of(self._core.metadata_events())

    @cached_property
    def diagnostics(self) -> pl.DataFrame:
        """Findings of reading, one row per kind.

        Columns: `code`, `severity` (`info`, `warning`, `altered`, `data_loss`), `count`,
        `first_offset` (byte of the uncompressed file), `skipped_bytes`, `sentence`, `effect`.
        """
        return frame_of(self._core.diagnostics())

    @property
    def status(self) -> Literal["ok", "recovered"]:
        """`recovered` if something in the file was lost or altered."""
        return "recovered" if self._core.is_recovered else "ok"

    @cached_property
    def damage(self) -> Damage | None:
        """Damage found while reading, its severity and effect on an answer; None without damage."""
        source = source_losses(self.metadata)
        size = (source.n_bytes, source.n_events) if source else (self.n_bytes, self.n_events)
        return damage_of(
            self._core.losses().to_dicts(),
            size,
            format_name=self.format,
            is_of_source=source is not None,
        )

    @property
    def rank(self) -> int | None:
        """Rank of the process in its job, if the file or its profile contains it."""
        return self._named_rank if self._core.rank is None else self._core.rank

    @property
    def world_size(self) -> int | None:
        """Number of processes of the job, if the file contains it."""
        return self._core.world_size

    @property
    def base_time_ns(self) -> int | None:
        """Origin of the times, in ns since 1970; None if times are absolute."""
        return self._core.base_time_ns

    @cached_property
    def span(self) -> tuple[int, int]:
        """First start and last end of any event, in ns: what Perfetto shows as the whole file."""
        import polars as pl

        start = pl.col("start_ns")
        end = (start + pl.col("duration_ns").fill_null(0)).max()
        first_ns, last_ns = self.events.select(start.min(), end.alias("end_ns")).row(0)
        return first_ns or 0, last_ns or 0

    @property
    def n_events(self) -> int:
        """Number of events of any phase in the file."""
        return self._core.n_events

    @property
    def n_bytes(self) -> int:
        """Size of the uncompressed file in bytes."""
        return self._core.n_bytes

    @property
    def phases(self) -> dict[str, int]:
        """Number of events of each phase (`ph`); events without a known phase are under `""`."""
        return self._core.phases

    @property
    def format(self) -> str:
        """`kineto-json`; `chrome-json` for JSON without Kineto's fields; or another format.

        The others are `xprof-json`, `xplane`, `perfetto`, `nsight-sqlite`, `rocpd`, `rpd`,
        `rocprofv3-json`, `rocprofv3-csv`, `rocprof-json` and `rocprof-csv`.
        """
        return self._core.format

    @property
    def compression(self) -> str | None:
        """`gzip`, `zstd`, `xz` or None."""
        return self._core.compression

    @property
    def categories(self) -> list[str | None]:
        """The categories whose events have kept arguments."""
        return self._core.categories()

    def args(self, category: str | None, names: Sequence[str] | None = None) -> pl.DataFrame | None:
        """Return the arguments of the events of one category: `event` and one column each.

        `names` selects columns among those of the category. None if no event of the category has a
        kept argument.
        """
        table = self._core.args(category, names)
        return None if table is None else frame_of(table)

    def _facts(self) -> list[str]:
        facts = [f"{self.n_events:,} events", self.format, self.status]
        if self.rank is not None:
            facts.append(f"rank {self.rank}")
        return facts


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
