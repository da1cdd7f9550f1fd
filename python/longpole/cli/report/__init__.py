"""`longpole report`: write a report about traces as one HTML page, or a picture of one step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from longpole.cli.answer import exit_codes
from longpole.cli.answer.inputs import name_of, record_of
from longpole.cli.answer.problems import require, usage_errors
from longpole.cli.answer.windows import abstained
from longpole.cli.ask.options import Options, answers, output_options, shared_options
from longpole.cli.ask.traces import named_traces, traces_argument
from longpole.cli.ask.windows import NO_WORK, Asked, Recording, profiler_options, window_options
from longpole.cli.diff import DIFF_ARGS, same_program_option
from longpole.data import Row
from longpole.files import new_file
from longpole.report.blocks import Notes, Sentence
from longpole.report.document import Document
from longpole.wording import count, duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.cli.answer.emit import Answer
    from longpole.report.sections import Page

__all__ = ["WrittenReport", "report"]

_SCHEMA: Final = "longpole.report/1"

# A file without an ending, such as /dev/stdout, gets a page.
_SUFFIXES: Final = ("", ".html", ".htm", ".svg")


@click.command()
@answers("longpole.cli.report:WrittenReport")
@traces_argument
@output_options()
@click.option(
    "--diff",
    "base",
    type=click.Path(readable=False),
    metavar="BASE",
    help="Compare with this trace or these traces.",
)
@same_program_option
@window_options("step", "step_name", "whole")
@profiler_options
@shared_options
def report(
    *,
    traces: Sequence[str],
    output: Path,
    force: bool,
    base: str | None,
    is_same_program: bool,
    options: Options,
    window: Asked,
    recording: Recording,
) -> int:
    """Write a report about traces as one HTML page that opens offline.

    The page has the verdict with figures and bars, a timeline, flame graphs, all tables and
    the diagnostics. For several ranks of one run, it starts with the run as a whole. If FILE
    ends in .svg, write only a picture of the critical path above what devices and threads did.

    \b
    Examples:
      longpole report trace.json.gz -o report.html
      longpole report trace.json.gz -o step.svg --step 3
      longpole report rank*.json.gz -o report.html
      longpole report after.json.gz --diff before.json.gz -o diff.html
    """
    from longpole.report.page import page_text

    require(
        output.suffix.lower() in _SUFFIXES,
        f"--output ends in .html (a page) or .svg (a picture), not {output.suffix!r}",
    )
    _check_comparison(base, window, recording, is_same_program=is_same_program)
    if output.suffix == ".svg":
        require(
            len(traces) == 1 and base is None, "a picture (.svg) shows one trace; give only one"
        )
        return options.emit(_picture(traces[0], output, options, window, recording, force=force))
    if base is None:
        page, paths = _page(traces, options, window, recording)
    else:
        compared = {"as_recorded": recording.as_recorded, "is_same_program": is_same_program}
        page, paths = _diff_page(traces, base, options, window.step_name, **compared)
    inputs = [Path(path) for path in paths if path != "-"]
    with new_file(output, force=force, inputs=inputs) as unfinished:
        unfinished.write_text(page_text(page), encoding="utf-8")
    return options.emit(_written(page, paths, output))


def _check_comparison(
    base: str | None, window: Asked, recording: Recording, *, is_same_program: bool
) -> None:
    """Refuse options that a comparison, or a report without one, would ignore."""
    if base is None:
        require(not is_same_program, "--same-program needs --diff")
        return
    is_of_one = window.step is not None or window.whole or recording.step_time_ns is not None
    require(not is_of_one, "--step, --whole and --step-time are about one trace, without --diff")


def _page(
    traces: Sequence[str],
    options: Options,
    window: Asked,
    recording: Recording,
) -> tuple[Page, list[str]]:
    """Create the page, and return the names of its inputs."""
    from longpole.cli.report.page import report_page

    with usage_errors():
        named = named_traces(traces, options, args="default")
        recorded = None
        if len(named) == 1:
            [(path, recorded)] = named
            named = [(path, recording.of(recorded, step_name=window.step_name))]
        return report_page(named, window, recorded), [path for path, _ in named]


def _diff_page(
    traces: Sequence[str], base: str, options: Options, step_name: str | None, **compared: bool
) -> tuple[Page, list[str]]:
    from longpole.cli.report.page import diff_page

    named = named_traces(traces, options, args=DIFF_ARGS)
    old = named_traces([base], options, args=DIFF_ARGS)
    with usage_errors():
        page = diff_page(old, named, step_name=step_name, **compared)
    return page, [path for path, _ in (*old, *named)]


def _picture(
    path: str, output: Path, options: Options, window: Asked, recording: Recording, *, force: bool
) -> Answer:
    """Write a picture of the window, and report its size."""
    from longpole.plot.lanes import lanes
    from longpole.plot.picture import picture

    [(name, trace)] = named_traces([path], options, args="ids")
    trace = recording.of(trace, step_name=window.step_name)
    with usage_errors():
        chosen = window.window(trace)
    drawn = None if chosen is None else lanes(trace, chosen, window.path(trace, chosen))
    if chosen is None or drawn is None:
        return abstained(_SCHEMA, name, trace, NO_WORK, "no_work")
    with new_file(output, force=force, inputs=[Path(name)] if name != "-" else []) as unfinished:
        title = f"{Path(name_of(name)).name}: {chosen.title}, {duration(drawn.length_ns)}"
        unfinished.write_text(picture(drawn, title), encoding="utf-8")
    n_bytes = output.stat().st_size
    found = WrittenReport(output=str(output), bytes=n_bytes, sections=[])
    document = Document(
        schema=_SCHEMA,
        input={"path": name},
        data=found,
        blocks=lambda: [Sentence(f"{output}: {chosen.title}, {n_bytes / 1e3:.0f} kB")],
        records=lambda: [record_of(found)],
    )
    return document, exit_codes.OK


class WrittenReport(Row):
    """The written report."""

    output: str
    """Path of the file."""
    bytes: int
    sections: list[str]
    """Sections of the page; none for a picture."""


def _written(page: Page, paths: Sequence[str], output: Path) -> Answer:
    """Report what was written to which file."""
    from longpole.cli.report.page import APART

    n_bytes = output.stat().st_size
    told = f"{output}: {count(len(page.sections), 'section')}, {n_bytes / 1e6:.1f} MB"
    sections = [section.key for section in page.sections]
    apart = [Notes([APART])] if sections[:1] == ["traces"] else []
    found = WrittenReport(output=str(output), bytes=n_bytes, sections=sections)
    document = Document(
        schema=_SCHEMA,
        input={"path": paths[0], "traces": list(paths)},
        data=found,
        blocks=lambda: [Sentence(told), *apart],
        records=lambda: [record_of(found)],
    )
    return document, exit_codes.OK
