"""Writes traces of any size, fast: one short simulation, repeated with everything shifted.

The events of the simulated block become templates in which the numbers to shift are left open; a
repetition is a single formatting of a template, so memory does not grow with the size. Blocks
follow one another in time as if the device had been awaited between them. Events stand in the
order of a real trace: those of the threads of all blocks, then those of the devices.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass, field
from itertools import groupby
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .facts import facts_of
from .run import PROGRAMS, Run, opened, order_of, simulate
from .text import event, head, plain_number, tail

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .kineto import Record


_MEGABYTE = 1_000_000
_BLOCK_LIMIT = 4 * _MEGABYTE  # larger blocks would be more varied, but slower to simulate
_BLOCK_SHARE = 0.06  # of the file, so that its size can be met
_LAYER_SIZE = 45_000  # of a block that has a step with one layer
_MOST_LAYERS = 24
_BETWEEN_BLOCKS_NS = 50_000
_MICROSECOND_NS = 1_000
_HOST_CATEGORIES = ("cpu_op", "user_annotation", "python_function", "cpu_instant_event", "fwdbwd")
_OPEN = "\x00"  # stands in no name
_ROLE_OF_FLOWS = {"ac2g": "correlation"}


def write_large(
    path: str | Path,
    megabytes: float,
    *,
    seed: int = 0,
    python_frames: bool = False,
    sync_records: bool = False,
) -> int:
    """Write a training trace of about a given number of megabytes of JSON.

    Parameters
    ----------
    path
        The file; it is written anew, compressed where its name ends so.
    megabytes
        Size of the JSON before compression, in units of 10^6 bytes; met within 5 % from 1 up.
    seed
        Of the block that is repeated.
    python_frames
        Whether the profiler saw Python functions.
    sync_records
        Whether there are `cuda_sync` events.

    Returns
    -------
    int
        The number of events.
    """
    size = round(megabytes * _MEGABYTE)
    run = _block(size, seed, python_frames=python_frames)
    order = order_of(run.events, sync_records=sync_records)
    sections = _sections([run.events[position] for position in order])
    facts = facts_of(run.program, shapes=run.shapes)
    n_blocks = _n_blocks(size - len(head(facts) + tail(facts)), sections)
    with opened(path) as file:
        file.write(head(facts))
        file.writelines(_texts(sections, n_blocks))
        file.write(tail(facts))
    return sum(len(section.records) * section.times(n_blocks) for section in sections)


@dataclass(slots=True)
class _Section:
    """Events that stand together in the file: their text, with the numbers to shift left open."""

    records: list[Record]
    repeats: bool
    template: str = ""
    roles: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The section as it stands the first time."""
        return self.template % tuple(self.numbers)

    def times(self, n_blocks: int) -> int:
        """Return how often the section occurs in a file of `n_blocks` blocks."""
        return n_blocks if self.repeats else 1

    def note(self, role: str, value: int) -> str:
        """Leave a number open."""
        self.roles.append(_ROLE_OF_FLOWS.get(role, role))
        self.numbers.append(value)
        return _OPEN

    def texts(self, spans: dict[str, int], n_blocks: int) -> Iterator[str]:
        """Yield the section as often as it stands, every time with larger numbers."""
        steps = [spans[role] for role in self.roles]
        numbers = self.numbers
        for _ in range(self.times(n_blocks)):
            yield self.template % tuple(numbers)
            numbers = list(map(add, numbers, steps))


def _block(size: int, seed: int, *, python_frames: bool) -> Run:
    """Return the run to repeat: as many layers and steps as make a small share of the file."""
    target = min(_BLOCK_LIMIT, size * _BLOCK_SHARE)
    layers = min(_MOST_LAYERS, max(1, int(target / _LAYER_SIZE)))

    def run(steps: int) -> Run:
        return simulate(
            "training",
            seed=seed,
            python_frames=python_frames,
            steps=steps,
            layers=layers,
        )

    one = run(1)
    one_size = sum(len(event(entry, plain_number)) for entry in one.events)
    return run(max(1, round(target / one_size)))


def _sections(records: Sequence[Record]) -> list[_Section]:
    return [
        _section(list(group), repeats=name != "fixed")
        for name, group in groupby(records, key=_section_name)
    ]


def _section_name(entry: Record) -> str:
    """Return which stretch of the file an event belongs to; `fixed` is there only once."""
    category = entry.get("cat", "")
    if entry["ph"] == "M" or category in ("", "Trace"):
        return "fixed"
    if category in _HOST_CATEGORIES:
        return "host"
    return "annotation" if category == "gpu_user_annotation" else "device"


def _section(records: list[Record], *, repeats: bool) -> _Section:
    section = _Section(records, repeats)
    number = section.note if repeats else plain_number
    texts = ["," + event(entry, number) for entry in records]
    section.template = "".join(texts).replace("%", "%%").replace(_OPEN, "%d")
    return section


def _n_blocks(size: int, sections: Sequence[_Section]) -> int:
    """Return how many blocks come nearest to a size."""
    once = sum(len(section.text) for section in sections if not section.repeats)
    block = sum(len(section.text) for section in sections if section.repeats)
    return max(1, round((size - once) / block))


def _texts(sections: Sequence[_Section], n_blocks: int) -> Iterator[str]:
    """Yield the text of all events; nothing stands before the first."""
    spans = _spans(sections)
    later_ns = (n_blocks - 1) * spans["time"] * _MICROSECOND_NS
    stretched = [
        section if section.repeats else _stretched(section, later_ns) for section in sections
    ]
    texts = (text for section in stretched for text in section.texts(spans, n_blocks))
    yield next(texts).removeprefix(",")
    yield from texts


def _stretched(section: _Section, later_ns: int) -> _Section:
    """Return the events that are there once, the span and the end of the recording moved."""
    records = [entry.copy() for entry in section.records]
    for entry in records:
        if entry.get("cat") == "Trace":
            entry["duration_ns"] += later_ns
        elif entry["name"] == "Record Window End":
            entry["start_ns"] += later_ns
    return _section(records, repeats=False)


def _spans(sections: Sequence[_Section]) -> dict[str, int]:
    """Return by how much the numbers of each role differ from one block to the next."""
    by_role: dict[str, list[int]] = {}
    for section in sections:
        for role, value in zip(section.roles, section.numbers, strict=True):
            by_role.setdefault(role, []).append(value)
    spans = {role: max(values) - min(values) + 1 for role, values in by_role.items()}
    # Times are those of starts: the last event of a block still has to end.
    spans["time"] += _BETWEEN_BLOCKS_NS // _MICROSECOND_NS
    return spans


# The command of `benches/workloads.py`: writes the trace of a simulated program.


def main(arguments: Sequence[str] | None = None) -> int:
    """Write what the command line asks for."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.megabytes is None:
        _write_run(options)
    elif options.program == "training":
        _write_large(options)
    else:
        parser.error("only training steps are repeated to a size")
    return 0


def _write_run(options: argparse.Namespace) -> None:
    given: dict[str, Any] = {} if options.steps is None else {"steps": options.steps}
    run = simulate(
        options.program,
        seed=options.seed,
        python_frames=options.python_frames,
        shapes=options.shapes,
        **given,
    )
    order = run.write(options.output, sync_records=options.sync_records)
    if options.truth is not None:
        text = json.dumps(run.truth.to_json(order), separators=(",", ":"))
        options.truth.write_text(text + "\n", encoding="utf-8")
    sys.stderr.write(f"{options.output}: {len(order)} events\n")


def _write_large(options: argparse.Namespace) -> None:
    n_events = write_large(
        options.output,
        options.megabytes,
        seed=options.seed,
        python_frames=options.python_frames,
        sync_records=options.sync_records,
    )
    sys.stderr.write(f"{options.output}: {n_events} events\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Write the trace of a simulated program.")
    parser.add_argument("program", choices=sorted(PROGRAMS))
    parser.add_argument("-o", "--output", type=Path, required=True, help="gzip if it ends in .gz")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, help="steps or requests of the program")
    parser.add_argument("--megabytes", type=float, help="repeat the steps up to this size")
    parser.add_argument("--truth", type=Path, help="where to write what is true of the run")
    parser.add_argument("--python-frames", action="store_true", help="with Python functions")
    parser.add_argument("--shapes", action="store_true", help="with the shapes of tensors")
    parser.add_argument(
        "--sync-records", action="store_true", help="with cuda_sync events, as few traces have"
    )
    return parser
