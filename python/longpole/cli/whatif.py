"""`longpole whatif`: how long a step or a whole trace would take if something were different."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from longpole.cli import exit_codes
from longpole.cli.frames import markdown_of, records_of
from longpole.cli.matching import matched
from longpole.cli.options import Options, shared_options, traces_argument
from longpole.cli.output import Document, Warned, markdown_cell
from longpole.cli.terminal import Column
from longpole.cli.traces import answer_each, title
from longpole.cli.windows import Window, answer_of, known_of, window_options
from longpole.critical_path import Detach, Drop, Scale
from longpole.wording import count, duration, escape, share

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from longpole.cli.terminal import Terminal
    from longpole.critical_path import Change, CriticalPath, WhatIf
    from longpole.trace import Trace

__all__ = ["whatif"]

_SCHEMA: Final = "longpole.whatif/1"
_MOST_NAMES: Final = 10
_LEAST_GAIN: Final = 0.001
_NOUNS: Final = {"sync_return": "call", "runtime": "call", "data_loading": "data loading"}


@click.command()
@traces_argument
@window_options
@click.option(
    "--scale",
    multiple=True,
    metavar="WHAT=FACTOR",
    help="Multiply the time of WHAT, as in `kernel:gemm=0.5`.",
)
@click.option("--drop", multiple=True, metavar="WHAT", help="Let WHAT take no time.")
@click.option(
    "--detach",
    multiple=True,
    metavar="WHAT",
    help="Let WHAT no longer wait, as in `sync_return` or `event_wait:nccl`.",
)
@click.option("--ideal", is_flag=True, help="Ask the usual questions and rank the answers.")
@shared_options
def whatif(
    *,
    traces: Sequence[str],
    window: Window,
    scale: Sequence[str],
    drop: Sequence[str],
    detach: Sequence[str],
    ideal: bool,
    options: Options,
) -> int:
    """Say how long the trace, or a step of it, would take if something were different.

    Without `--step`, `--annotation` or `--between` it is about the whole trace.

    WHAT is a kind, a kind and a pattern of names (`kernel:gemm`), or a pattern of names
    of any work (`:gemm`). Several changes hold together.

    \b
    Examples:
      longpole whatif trace.json.gz --step 3 --ideal
      longpole whatif trace.json.gz --scale kernel:gemm=0.5 --drop launch
    """
    changes = _changes(scale, drop, detach)
    if ideal and changes:
        message = "--ideal asks its own questions; leave out --scale, --drop and --detach"
        raise click.UsageError(message)
    if not (ideal or changes):
        message = "say what is different with --scale, --drop or --detach, or ask for --ideal"
        raise click.UsageError(message)

    def document(name: str, trace: Trace, found: CriticalPath) -> Document:
        if ideal:
            return _ideal_document(name, trace, window, found)
        return _changed_document(name, trace, window, found, changes)

    return answer_each(traces, options, _SCHEMA, answer_of(_SCHEMA, window, document))


def _changes(scale: Sequence[str], drop: Sequence[str], detach: Sequence[str]) -> list[Change]:
    try:
        return [
            *(Scale(by=by, kind=kind, matching=name) for kind, name, by in map(_scaled, scale)),
            *(Drop(kind=kind, matching=name) for kind, name in map(_what, drop)),
            *(Detach(kind=kind, matching=name) for kind, name in map(_waiting, detach)),
        ]
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _scaled(text: str) -> tuple[str | None, str | None, float]:
    what, equals, factor = text.rpartition("=")
    try:
        by = float(factor)
    except ValueError:
        equals = ""
    if not equals:
        message = f"{text!r} has no factor; write it as in `kernel:gemm=0.5`"
        raise click.BadParameter(message, param_hint="'--scale'")
    return (*_what(what), by)


def _what(text: str) -> tuple[str | None, str | None]:
    """Split `KIND:PATTERN`, of which either may be missing."""
    if not text:
        message = "say what is different: a kind, or `kind:pattern`"
        raise click.UsageError(message)
    kind, _, pattern = text.partition(":")
    return kind or None, pattern or None


def _waiting(text: str) -> tuple[str, str | None]:
    """Split what is to wait no longer; without a kind it is calls that wait for the device."""
    kind, pattern = _what(text)
    return kind or "sync_return", pattern


def _asked(found: CriticalPath, changes: Sequence[Change]) -> WhatIf:
    try:
        return found.what_if(changes)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _changed_document(
    name: str, trace: Trace, window: Window, found: CriticalPath, changes: Sequence[Change]
) -> Document:
    answer = _asked(found, changes)
    kinds = answer.critical_path.by_kind
    known = known_of(name, trace, window, found)
    without_effect = [_unmatched(change) for change in changes if not matched(change, found, trace)]
    if without_effect:
        known["warnings"] = [*known["warnings"], *without_effect]
        known["status"] = "partial"
        known["exit_code"] = exit_codes.INCONCLUSIVE
    return Document(
        schema=_SCHEMA,
        **known,
        data={
            "changes": [_change(change) for change in changes],
            **_gain(found, answer),
            "inferred_ns": answer.critical_path.inferred_ns,
            "kinds": kinds.to_dicts(),
            "names": answer.critical_path.by_name.head(_MOST_NAMES).to_dicts(),
        },
        text=lambda terminal: _lines(
            terminal.styled(_headline(name, window, found, answer, changes), "bold"),
            answer.critical_path.explain(width=terminal.width),
        ),
        markdown=lambda: _lines(
            f"### {markdown_cell(_headline(name, window, found, answer, changes))}",
            "",
            *markdown_of(kinds),
        ),
        records=lambda: [
            {
                "path": name,
                "window": window.name,
                "changes": ", ".join(map(_words, changes)),
                **_gain(found, answer),
            }
        ],
    )


def _gain(found: CriticalPath, answer: WhatIf) -> dict[str, int | float]:
    return {
        "length_ns": found.length_ns,
        "makespan_ns": answer.makespan_ns,
        "gain_ns": answer.gain_ns,
        "gain": answer.gain_ns / found.length_ns,
    }


def _change(change: Change) -> dict[str, str | float | None]:
    """Give a change as data: what is done, and to what."""
    done = type(change).__name__.lower()
    by = float(change.by) if isinstance(change, Scale) else None
    return {"change": done, "kind": change.kind, "matching": change.matching, "by": by}


def _words(change: Change) -> str:
    """Give a change as it was asked for."""
    what = _target(change)
    if isinstance(change, Scale):
        return f"{what} x {change.by}"
    return f"{what} {'dropped' if isinstance(change, Drop) else 'detached'}"


def _target(change: Change) -> str:
    return ":".join(part for part in (change.kind or "", change.matching) if part is not None)


def _unmatched(change: Change) -> Warned:
    return Warned(
        code="change_without_effect",
        count=1,
        message=f"nothing in the trace matches {_target(change)!r}",
        effect="this change changes nothing",
        hint="`longpole path` lists kinds and names",
    )


def _ideal_document(name: str, trace: Trace, window: Window, found: CriticalPath) -> Document:
    answers = found.ideal()
    return Document(
        schema=_SCHEMA,
        **known_of(name, trace, window, found),
        data={"length_ns": found.length_ns, "ideal": answers.to_dicts()},
        text=lambda terminal: _lines(
            terminal.styled(
                f"{title(name)}: {window.name}: {duration(found.length_ns)}; if ...", "bold"
            ),
            *_gains(answers, terminal),
        ),
        markdown=lambda: _lines(
            f"### {markdown_cell(name)}: {markdown_cell(window.name)}: "
            f"{duration(found.length_ns)}; if ...",
            "",
            *markdown_of(answers.rename({"gain": "share"})),
        ),
        records=lambda: records_of(name, answers),
    )


def _gains(answers: pl.DataFrame, terminal: Terminal) -> list[str]:
    """List what would make the window shorter or longer, and count what hardly would."""
    helpful = answers.filter(answers["gain"].abs() >= _LEAST_GAIN)
    columns = [
        Column("gain"),
        Column("share"),
        Column("makespan"),
        Column("if", "left"),
        Column("", "left", has_names=True),
    ]
    rows = [
        [
            duration(row["gain_ns"]),
            share(row["gain"]),
            duration(row["makespan_ns"]),
            _question(row["question"], row["kind"]),
            row["name"] or "-",
        ]
        for row in helpful.iter_rows(named=True)
    ]
    lines = terminal.table(columns, rows) if rows else []
    useless = answers.filter(answers["gain"].abs() < _LEAST_GAIN)
    if useless.height:
        little = f"less than {share(_LEAST_GAIN)}" if (useless["gain_ns"] != 0).any() else "nothing"
        lines.append(f"  {count(useless.height, 'more question')} would gain {little}.")
    return lines


def _question(question: str, kind: str) -> str:
    """Say what `this` is."""
    noun = _NOUNS.get(kind, kind)
    return (
        question.replace("this ", f"this {noun} ", 1) if question.startswith("this ") else question
    )


def _headline(
    name: str, window: Window, found: CriticalPath, answer: WhatIf, changes: Sequence[Change]
) -> str:
    asked = escape(", ".join(map(_words, changes)))
    part = share(abs(answer.gain_ns) / found.length_ns)
    than = "less" if answer.gain_ns >= 0 else "more"
    times = f"{duration(found.length_ns)} -> {duration(answer.makespan_ns)}"
    return f"{title(name)}: {window.name}, with {asked}: {times}, {part} {than}"


def _lines(*lines: str) -> str:
    return "\n".join(lines) + "\n"
