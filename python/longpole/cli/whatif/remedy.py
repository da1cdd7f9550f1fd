"""`longpole whatif --remedy`: what remedies save, as predicted or as measured."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from longpole.answer import Remedy, Verdict
from longpole.answer.after import AfterRemedies
from longpole.answer.blocks import ranked
from longpole.cli.answer.inputs import name_of
from longpole.cli.answer.problems import usage_errors
from longpole.cli.answer.windows import exit_code_of, known_of
from longpole.cli.whatif.computed import remedy_blocks
from longpole.cli.whatif.explained import (
    SCHEMA,
    ExplainedRemedy,
    chosen_remedies,
    explanation,
    explanations,
)
from longpole.engine.critical_path.changes import Change, Scale
from longpole.errors import MissingDependencyError
from longpole.files.writing import new_file
from longpole.formats.convert.remedy_script import remedy_script
from longpole.remedies.catalogue import remedies
from longpole.report.blocks import Headline, Notes, Sentence
from longpole.report.document import Document
from longpole.words.data import Row
from longpole.words.wording import duration, listing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.cli.answer.emit import Answer
    from longpole.cli.answer.windows import Found
    from longpole.report.blocks import Block
    from longpole.trace.trace import Trace

_LAST_LINES: Final = 3

# If a side saves less than this, remedies of that side are not looked for or hardly save anything.
_LITTLE: Final = 0.05


class TimedForm(Row):
    """Operators of one shape that were timed in both forms."""

    operators: list[str]
    device: str
    slow_ns: float
    changed_ns: float
    factor: list[float]
    """The tenth percentile of the factors between the two forms, the median, and the ninetieth."""


class SomeRemedies(Row):
    """What remedies save, in the places that they fit."""

    explained: list[ExplainedRemedy]
    length_ns: int
    remedies: list[Remedy]
    script: str | None
    """Path of the script that timed both forms."""
    forms: list[TimedForm]
    measured_low: float | None
    """Smallest share that the first remedy saves with the measured factors; null if nothing was
    timed on the device on which the trace was recorded.
    """
    measured_high: float | None
    after: AfterRemedies | None
    """All of them together, and what limits the program then; null if none fits."""


def remedy_answer(
    name: str, trace: Trace, found: Found, *, ids: Sequence[str], script: Path | None
) -> Answer:
    """Return what remedies save; of a single one, with a script, by what it measures."""
    asked = chosen_remedies(ids)
    verdict = found.verdict
    rows = remedies_in(verdict, ids)
    forms = [] if script is None else _timed(name, trace, ids[0], rows, script)
    recorded_on = {str(it.get("name")) for it in trace.device_properties.values()}
    is_of_device = bool(forms) and all(form["device"] in recorded_on for form in forms)
    low, high = _measured(found, verdict, rows[0], forms) if is_of_device else (None, None)
    after = found.answer.after_remedies(ids) if any(row.changes for row in rows) else None
    document = Document(
        schema=SCHEMA,
        **known_of(name, trace, found, verdict),
        data=SomeRemedies(
            explained=explanations(asked),
            length_ns=found.path.length_ns,
            remedies=rows,
            script=None if script is None else str(script),
            forms=forms,
            measured_low=low,
            measured_high=high,
            after=after,
        ),
        blocks=lambda: [
            *(block for one in asked for block in explanation(one)),
            Headline(f"{name_of(name)}: {found.title}, with {listing(ids)}"),
            Sentence(verdict.sentence),
            *_places(rows, ids),
            *([Sentence(after.sentence)] if after and after.sentence else []),
            *_computed(found, rows, ids, len(verdict.remedy_steps)),
            *_told(rows, forms, script, (low, high)),
        ],
        records=lambda: [
            {
                "path": name,
                "remedy": row.remedy,
                "name": row.name,
                "least_share": row.gain.low,
                "most_share": row.gain.high,
                "measured_least_share": low,
                "measured_most_share": high,
            }
            for row in rows
        ],
    )
    return document, exit_code_of(verdict)


def remedies_in(verdict: Verdict, ids: Sequence[str]) -> list[Remedy]:
    """Return the places of a verdict to which remedies of some ids apply.

    Raises
    ------
    click.UsageError
        A remedy does not exist.
    """
    chosen_remedies(ids)
    return [row for row in verdict.remedies if row.remedy in ids]


def _computed(found: Found, rows: list[Remedy], ids: Sequence[str], n_steps: int) -> list[Block]:
    """Show the changes of a single remedy; those of several are shown for each by itself."""
    if not rows or len(ids) != 1:
        return []
    return remedy_blocks(cast("Trace", found.answer.trace), found, rows[0], n_steps)


def _places(rows: list[Remedy], ids: Sequence[str]) -> list[Block]:
    found = {row.remedy for row in rows}
    missing = [one for one in remedies() if one.id in ids and one.id not in found]
    blocks: list[Block] = [ranked(rows)] if rows else []
    if missing:
        names = listing([one.id for one in missing])
        told = f"The trace shows nothing that {names} would shorten noticeably."
        blocks.append(Sentence(told))
    return blocks


def _told(
    rows: list[Remedy],
    forms: list[TimedForm],
    script: Path | None,
    measured: tuple[float | None, float | None],
) -> list[Block]:
    low, high = measured
    if not forms:
        return []
    row = rows[0]
    told = f"Predicted: saves {100 * row.gain.low:.1f} to {100 * row.gain.high:.1f} %. "
    if low is None or high is None:
        told += (
            f"The trace was recorded on another device than {forms[0]['device']}, where both forms "
            "were timed, so that the factors are not used."
        )
    else:
        told += f"With the measured factors: {100 * low:.1f} to {100 * high:.1f} %."
    return [
        Sentence(told),
        Notes(
            [
                f"{', '.join(form['operators'])}: {duration(round(form['slow_ns']))} as recorded, "
                f"{duration(round(form['changed_ns']))} changed on {form['device']}"
                for form in forms
            ]
        ),
        Sentence(f"{script} times them again."),
    ]


def _timed(
    name: str, trace: Trace, remedy: str, rows: list[Remedy], script: Path
) -> list[TimedForm]:
    """Write the script, run it, and return the times that it prints."""
    with usage_errors():
        text = remedy_script(trace, remedy, rows[0].forms if rows else ())
    with new_file(script, force=False, inputs=[Path(name)]) as unfinished:
        unfinished.write_text(text, encoding="utf-8")
    done = subprocess.run(  # noqa: S603 - the script was written above
        [sys.executable, str(script)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = " ".join(done.stderr.strip().splitlines()[-_LAST_LINES:])
        message = f"{script} could not time the operators: {last}"
        raise MissingDependencyError(message)
    return [json.loads(line) for line in done.stdout.splitlines()]


def _measured(
    found: Found, verdict: Verdict, row: Remedy, forms: list[TimedForm]
) -> tuple[float, float]:
    """Return the smallest and the largest saving of a remedy with the measured factors."""
    factors = [form["factor"] for form in forms]
    sets = (
        _with_factors(row.changes, row, [slowest for _, _, slowest in factors]),
        _with_factors(row.hopeful_changes, row, [fastest for fastest, _, _ in factors]),
    )
    shares = []
    for changes in sets:
        share = share_of_steps(found, verdict.remedy_steps, changes)
        if share is None:
            share = found.path.what_if(changes).gain_ns / found.path.length_ns
        shares.append(share)
    return min(shares), max(shares)


def _with_factors(changes: Sequence[Change], row: Remedy, factors: list[float]) -> list[Change]:
    """Replace the assumed factors of the timed kernels by the measured ones."""
    timed = {event for form in row.forms for event in form.events}
    time_ranges = {time_range for form in row.forms for time_range in form.time_ranges}
    kept: list[Change] = []
    for change in changes:
        events: Any = change.events
        if time_ranges.intersection(change.time_ranges or ()):
            continue
        if events is None or change.kind == "kernel_delay":
            kept.append(change)
        elif left := [event for event in events if event not in timed]:
            kept.append(replace(change, events=left))
    scaled = [
        Scale(by=factor, kind="kernel", events=list(form.events))
        for form, factor in zip(row.forms, factors, strict=True)
    ]
    scaled += [
        Scale(by=factor, time_ranges=form.time_ranges)
        for form, factor in zip(row.forms, factors, strict=True)
        if form.time_ranges
    ]
    return [*kept, *scaled]


def share_of_steps(found: Found, steps: Sequence[int], changes: Sequence[Change]) -> float | None:
    """Return the gain in several steps together, if this is one of them."""
    if found.step not in steps or len(steps) == 1:
        return None
    return found.answer.gain(changes).value
