"""Answers the corpus checker: `corpus_adapter.py --stage STAGE FILE...` prints one JSON object.

The stages: `load` what reading gives, `check` with all that the doctor says, `link` with
the joins, `export` with the outputs that other programs open.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl

import longpole
from longpole.tables.check import check


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--stage", default="load")
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    sys.stdout.write(json.dumps(answer(options.stage, options.files)))


def answer(stage: str, files: list[str]) -> dict[str, Any]:
    try:
        traces = [longpole.read_trace(path) for path in files]
    except (longpole.TraceError, OSError) as error:
        return {"status": "error", "events": 0, "diagnostics": [], "error": sentence(error)}
    trace = traces[0]
    answered = {
        "status": "recovered" if any(trace.status == "recovered" for trace in traces) else "ok",
        "events": sum(trace.n_events for trace in traces),
        "diagnostics": [line for trace in traces for line in diagnostics(trace, stage)],
        "error": None,
        "facts": facts(trace),
        "names": trace.events["name"].cast(pl.String).unique().to_list(),
        "meta": {**trace.metadata},
        "distinct_ts_ns_X": complete(trace)["start_ns"].n_unique(),
        "slices_from_BE": slices_from_brackets(trace),
        **links(trace),
        "parent_of": parents(trace),
    }
    if stage == "export":
        answered |= export(trace, files[0])
    return answered


def sentence(error: longpole.TraceError | OSError) -> str:
    code = getattr(error, "code", None)
    return f"{error} [{code}]" if code else str(error)


def diagnostics(trace: longpole.Trace, stage: str) -> list[str]:
    """What is said of a trace: at loading what was altered or lost, else every finding."""
    if stage != "load":
        return [f"{finding.code}: {finding.sentence}" for finding in check(trace)]
    found = trace.diagnostics.filter(pl.col("severity").is_in(["altered", "data_loss"]))
    return [line(row) for row in found.iter_rows(named=True)]


def line(row: dict[str, Any]) -> str:
    place = f"{row['count']} times, first at byte {row['first_offset']}"
    return f"{row['code']}: {row['sentence']}, {place}"


def complete(trace: longpole.Trace) -> pl.DataFrame:
    """Complete events (`X`): those that end without an end event."""
    positions = brackets(trace)
    events = trace.events.filter(pl.col("kind") != "instant")
    return events.filter(~pl.col("position").is_in(positions))


def brackets(trace: longpole.Trace) -> list[int]:
    """The begin events, which the adapter knows only by counting phases."""
    if not trace.phases.get("B"):
        return []
    return trace.events.filter(pl.col("duration_ns").is_null())["position"].to_list()


def slices_from_brackets(trace: longpole.Trace) -> int:
    n_begins = trace.phases.get("B", 0)
    unmatched = trace.diagnostics.filter(pl.col("code") == "unmatched_begin")["count"].sum()
    return n_begins - int(unmatched)


def facts(trace: longpole.Trace) -> dict[str, Any]:
    events = complete(trace).filter(pl.col("duration_ns") >= 0)
    ends = events["start_ns"] + events["duration_ns"]
    return {
        "count_by_ph": {phase: count for phase, count in trace.phases.items() if phase},
        "sum_dur_ns_X": events["duration_ns"].sum(),
        "min_ts_ns_X": events["start_ns"].min(),
        "max_end_ns_X": ends.max(),
    }


def links(trace: longpole.Trace) -> dict[str, int]:
    launches = trace.launches
    return {"kernels": launches.height, "kernels_linked": launches["call"].is_not_null().sum()}


def parents(trace: longpole.Trace) -> dict[str, str | None]:
    events = trace.events.select("event", "name", "parent").cast({"name": pl.String})
    names = events["name"]
    return {
        name: None if parent is None else names[parent]
        for _, name, parent in events.iter_rows()
        if name is not None
    }


def export(trace: longpole.Trace, path: str) -> dict[str, str]:
    """Write the page and the table that a user would open elsewhere, and the terminal's text."""
    page, table = Path("page.html").resolve(), Path("table.csv").resolve()
    page.write_text(trace._repr_html_(), encoding="utf-8")
    table.write_text(command("summary", path, "--format", "csv"), encoding="utf-8")
    return {"html": str(page), "csv": str(table), "text": command("summary", path)}


def command(*arguments: str) -> str:
    run = [sys.executable, "-m", "longpole", *arguments]
    return subprocess.run(run, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
