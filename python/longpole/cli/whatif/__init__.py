"""`longpole whatif`: compute how long a step would take after a change."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import click

from longpole.answer import Remedy, Verdict
from longpole.answer.blocks import (
    basis_of,
    none_of,
    plan_blocks,
    ranked,
    rest_of,
    told_of,
    with_gaps,
)
from longpole.answer.sentences import catching_up
from longpole.cli.answer import exit_codes
from longpole.cli.answer.inputs import name_of
from longpole.cli.answer.problems import require, usage_errors
from longpole.cli.answer.windows import exit_code_of, known_of
from longpole.cli.ask.options import Options, answers, graph_options
from longpole.cli.ask.traces import FILE, answer_each
from longpole.cli.ask.windows import OF_PATH, OF_PROGRAM, Asked, window_options
from longpole.cli.whatif.explained import SCHEMA, Explained, RemedyType, explained
from longpole.cli.whatif.remedy import (
    SomeRemedies,
    remedies_in,
    remedy_answer,
    share_of_steps,
)
from longpole.engine.critical_path.changes import Change, Drop, RemoveWait, Scale, kind_named
from longpole.engine.recording_cost import step_blocks, timing_blocks
from longpole.report.blocks import Headline, Notes, Sentence
from longpole.report.document import Abstention, Document, Warned
from longpole.report.paths import KindTotal, NameTotal, path_blocks
from longpole.words.data import Row, plain
from longpole.words.kernel_names import family_of
from longpole.words.wording import count, duration, listing, share

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longpole.cli.answer.emit import Answer
    from longpole.cli.answer.windows import Found
    from longpole.engine.critical_path import CriticalPath, WhatIf
    from longpole.engine.critical_path.changes import WorkKind
    from longpole.report.blocks import Block
    from longpole.report.document import Record
    from longpole.trace.trace import Trace

_MOST_NAMES: Final = 5
_MOST_NAMES_IN_DATA: Final = 10
_OPTIONS: Final = "--scale, --drop and --remove-wait"
_FACTOR: Final = re.compile(
    r"(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?) ?(?P<unit>[%xX]?)"
)
_NO_FAMILY: Final = "other"
_OTHERS: Final = "Alone, or instead of a line of the plan:"
_MAY: Final = "What may save something:"
_SURELY: Final = "Of remedies, the changes that surely hold are applied."
_WORK: Final = frozenset(
    ("operator", "runtime", "host_gap", "data_loading", "kernel", "copy", "communication")
)


@click.command()
@answers("longpole.cli.whatif:WhatIfData")
@click.argument("traces", type=FILE, nargs=-1, metavar="[TRACE...]")
@window_options(*OF_PATH, OF_PROGRAM)
@click.option(
    "--scale",
    multiple=True,
    metavar="WHAT=FACTOR",
    help="Multiply the time of WHAT, such as kernel:gemm=0.5.",
)
@click.option("--drop", multiple=True, metavar="WHAT", help="Set the time of WHAT to 0.")
@click.option(
    "--remove-wait",
    multiple=True,
    metavar="WHAT",
    help="Remove the waits of WHAT, such as sync_return or event_wait:nccl.",
)
@click.option(
    "--remedy",
    "ids",
    type=RemedyType(),
    multiple=True,
    metavar="ID",
    help="Explain a remedy, such as tensor_cores, and compute what it saves, or several together.",
)
@click.option(
    "--measure",
    type=click.Path(dir_okay=False, readable=False, path_type=Path),
    metavar="FILE",
    help="Write a script to FILE that times both forms of what --remedy changes, run it, and "
    "compute with its times. Needs torch.",
)
@graph_options
def whatif(
    *,
    traces: Sequence[str],
    window: Asked,
    ids: Sequence[str],
    measure: Path | None,
    options: Options,
    **asked: Sequence[str],
) -> int:
    """Compute how long a step would take after a change.

    Without a change, show what each remedy saves. With --remedy, the answer begins with how the
    remedy is recognised, how its gain is computed, and what it was measured to save; this needs
    no TRACE. Without TRACE and --remedy, all remedies are listed.

    WHAT is a kind of time, such as kernel,
    operator, launch or communication; a kind and a pattern of names (`kernel:flash`); or a
    pattern of names of any kind (`:flash`). The name of a family of kernels, such as gemm or
    attention, selects all kernels of the family (`kernel:gemm`). FACTOR is a number, a percentage
    (`50%`) or a multiple (`2x`). Several changes are applied together.

    \b
    Examples:
      longpole whatif trace.json.gz --step 3
      longpole whatif trace.json.gz --scale kernel:gemm=0.5 --drop launch
      longpole whatif trace.json.gz --remedy cuda_graph --remedy optimizer_loop
      longpole whatif trace.json.gz --remedy cuda_graph --drop kernel:gemm
      longpole whatif trace.json.gz --remedy tensor_cores --measure forms.py
      longpole whatif --remedy cuda_graph
    """
    from longpole.engine.arguments import ARGUMENTS

    require(
        not (measure and any(asked.values())),
        f"--measure times what a remedy changes; leave out {_OPTIONS}",
    )
    require(measure is None or len(set(ids)) == 1, "--measure needs --remedy, once")
    require(not ids or len(traces) < 2, "--remedy is about one trace")  # noqa: PLR2004
    changes = _changes_of(asked)
    ids = list(dict.fromkeys(ids))
    if not traces:
        is_asked = window.is_any or window.step_time_ns or changes or measure
        require(not is_asked, "give TRACE; without one, only remedies are explained")
        return options.emit(explained(ids))
    answer = partial(_changed_answer, changes=changes, ids=ids) if changes else _ranking
    if ids and not changes:
        answer = partial(remedy_answer, ids=ids, script=measure)
    return answer_each(
        traces,
        options,
        SCHEMA,
        answer,
        window=window,
        about="program",
        arguments=ARGUMENTS,
    )


class Gain(Row):
    """Length of a window without the profiler, before and after a change."""

    length_ns: int
    makespan_ns: int
    """Length after the change."""
    gain_ns: int
    share: float | None


class Changed(Gain):
    """The result of some changes."""

    changes: list[Change]
    inferred_ns: int
    kinds: list[KindTotal]
    names: list[NameTotal]
    share_of_steps: float | None
    """Gain in all steps of the verdict together, as a fraction of their time; null if the window is
    not one of several steps."""


class Ideal(Row):
    """Remedies with their gains."""

    length_ns: int
    verdict: Verdict


WhatIfData = Changed | Ideal | SomeRemedies | Explained


def _changed_answer(
    name: str, trace: Trace, found: Found, *, changes: Sequence[Change], ids: Sequence[str]
) -> Answer:
    """Report the length of the window after the changes that remedies surely make, and others."""
    verdict = found.verdict
    rows = remedies_in(verdict, ids)
    unfit = [one for one in ids if one not in {row.remedy for row in rows}]
    require(not unfit, f"nothing in {found.name} fits the remedy {listing(unfit)}; leave it out")
    of_remedies = [change for row in rows for change in row.changes]
    every = [*of_remedies, *changes]
    with usage_errors():
        answer = found.path.what_if(every)
    known = known_of(name, trace, found, verdict)
    chosen = list(zip(changes, found.path.n_chosen(changes), strict=True))
    unmatched = [_unmatched(change, found.path) for change, n_edges in chosen if n_edges == 0]
    if unmatched:
        because = [*known["abstains_because"], Abstention("change_without_effect", found.name)]
        warnings = [*known["warnings"], *unmatched]
        known |= {"warnings": warnings, "abstains_because": because, "status": "partial"}
    gains = _gain(found.path, answer)
    of_steps = share_of_steps(found, verdict.steps, every)
    words = ", ".join([*ids, *map(_words, changes)])
    document = Document(
        schema=SCHEMA,
        **known,
        data=Changed(
            changes=every,
            **gains,
            inferred_ns=answer.critical_path.inferred_ns,
            kinds=answer.critical_path.kind_totals,
            names=answer.critical_path.name_totals[:_MOST_NAMES_IN_DATA],
            share_of_steps=of_steps,
        ),
        blocks=lambda: [
            Headline(_headline(name, found, answer, words)),
            *([Sentence(trace.damage.sentence)] if trace.damage else []),
            *path_blocks(answer.critical_path, _MOST_NAMES),
            *([Notes([_SURELY])] if ids else []),
            *_selected(chosen),
            *_catching_up(verdict),
            *_in_all_steps(verdict, of_steps),
            *_with_gaps(verdict, found.path.length_ns),
            *step_blocks(found.answer.recording_cost),
        ],
        records=lambda: [{"path": name, "window": found.name, "changes": words, **plain(gains)}],
    )
    return document, exit_codes.INCONCLUSIVE if unmatched else exit_code_of(verdict)


def _ranking(name: str, trace: Trace, found: Found) -> Answer:
    """Show the plan, and the other remedies that are worth saying."""
    verdict = found.verdict
    rows, others = verdict.remedies, rest_of(verdict)
    if not verdict.plan.lines:
        others = [row for row in rows if row.is_worth_saying]
    document = Document(
        schema=SCHEMA,
        **known_of(name, trace, found, verdict),
        data=Ideal(length_ns=found.path.length_ns, verdict=verdict),
        blocks=lambda: [
            Headline(f"{name_of(name)}: {found.title}"),
            Sentence(verdict.sentence),
            *plan_blocks(verdict),
            *_beside_plan(verdict, others),
            *_own_changes(found.path, verdict),
            *timing_blocks(found.answer.recording_cost),
        ],
        records=lambda: [_record(name, row) for row in rows],
    )
    return document, exit_code_of(verdict)


def _beside_plan(verdict: Verdict, others: Sequence[Remedy]) -> list[Block]:
    """Show the remedies outside the plan, and what the search covered."""
    none, basis = none_of(verdict), basis_of(verdict) if verdict.remedies else []
    none += told_of(verdict.start_up)
    blocks: list[Block] = [Notes(none)] if none else []
    if others:
        blocks += [Sentence(_OTHERS if verdict.plan.lines else _MAY), ranked(others)]
    return [*blocks, *([Notes(basis)] if basis else [])]


def _selected(chosen: list[tuple[Change, int]]) -> list[Block]:
    """Report how many events a pattern selects, since these may not be the intended ones."""
    told = [
        f"{_words(change)}: {_how(change.matching)} selects {count(n_edges, 'edge')} of the "
        "dependency graph of the whole trace."
        for change, n_edges in chosen
        if change.matching is not None and n_edges > 0
    ]
    return [Notes(told)] if told else []


def _how(matching: str) -> str:
    """Return what selects kernels: the name of a family, or a pattern of names."""
    is_family = family_of(matching) == matching
    return f"the family of kernels {matching}" if is_family else "the pattern (case-sensitive)"


def _catching_up(verdict: Verdict) -> list[Block]:
    """Report that the window is shorter than steps are in the long run."""
    window = verdict.window
    if window.caught_up_ns is None:
        return []
    return [Notes([catching_up(window.caught_up_ns, window.unit)])]


def _in_all_steps(verdict: Verdict, share_of_steps: float | None) -> list[Block]:
    """Report the effect on the mean step, to which the gains of a verdict refer."""
    if share_of_steps is None:
        return []
    gain = _saved(round(share_of_steps * verdict.window.mean_ns), verdict.window.mean_ns)
    becomes = f"would take {gain}" if share_of_steps else "stays as it is"
    n_steps = count(len(verdict.steps), "step")
    return [Notes([f"The mean of the {n_steps} that the verdict is about {becomes}."])]


def _with_gaps(verdict: Verdict, length_ns: int) -> list[Block]:
    """Report that the length before the change includes gaps, which the verdict leaves out."""
    return [
        Notes([f"The change is computed for the {it}."]) for it in with_gaps(verdict, length_ns)
    ]


def _own_changes(path: CriticalPath, verdict: Verdict) -> list[Block]:
    """Show how to try other changes: half of the largest kind of work on the path, or one remedy.

    Waits and unexplained time are not work, so they are not suggested.
    """
    kinds = (row["kind"] for row in path.kind_totals if row["kind"] in _WORK)
    tries = [f"`--scale {kind}=50%`" for kind in kinds][:1]
    ids = [line.remedy for line in verdict.plan.lines] or [row.remedy for row in verdict.remedies]
    tries += [f"`--remedy {one}`" for one in ids[:1]]
    told = f"To compute one change, add for example {' or '.join(tries)}."
    return [Notes([told])] if tries else []


def _record(name: str, remedy: Remedy) -> Record:
    return {
        "path": name,
        "remedy": remedy.remedy,
        "name": remedy.name,
        "named": remedy.named,
        "gain_ns": remedy.gain.duration_ns,
        "share": remedy.gain.value,
        "least_share": remedy.gain.low,
        "most_share": remedy.gain.high,
        "advice": remedy.advice,
    }


def _gain(path: CriticalPath, answer: WhatIf) -> Gain:
    return Gain(
        length_ns=path.length_ns,
        makespan_ns=answer.makespan_ns,
        gain_ns=answer.gain_ns,
        share=answer.gain_ns / path.length_ns,
    )


def _words(change: Change) -> str:
    """Return a change as it was requested."""
    what = _target(change)
    if isinstance(change, Scale):
        return f"{what} x {change.by}"
    return f"{what} dropped" if isinstance(change, Drop) else f"{what} waits removed"


def _target(change: Change) -> str:
    return ":".join(part for part in (change.kind or "", change.matching) if part is not None)


def _unmatched(change: Change, path: CriticalPath) -> Warned:
    return Warned(
        code="change_without_effect",
        count=1,
        message=f"nothing in the trace matches {_target(change)!r}",
        effect="this change changes nothing",
        hint=_hint(change, path),
    )


def _hint(change: Change, path: CriticalPath) -> str:
    """Return which names a pattern is compared with, and the change that was probably meant."""
    if change.matching is None:
        return "`longpole path` lists the kinds"
    kinds = [row["kind"] for row in path.kind_totals if row["kind"] is not None]
    for name in (change.matching, re.escape(change.matching).replace("\\ ", " ")):
        tried = [Scale(by=1, kind=cast("WorkKind", kind), matching=name) for kind in kinds]
        others = path.n_chosen(tried)
        found = [f"`{kind}:{name}`" for kind, n in zip(kinds, others, strict=True) if n]
        if found:
            return f"{' or '.join(found)} matches"
    told = "patterns match recorded names, which `longpole path --json` shows"
    family = family_of(change.matching)
    is_kernel = change.kind in {None, "kernel"} and family != _NO_FAMILY
    return f"{told}; `kernel:{family}` selects all such kernels" if is_kernel else told


def _headline(name: str, found: Found, answer: WhatIf, words: str) -> str:
    before_ns = found.path.length_ns
    times = f"{duration(before_ns)} -> {duration(answer.makespan_ns)}"
    gain = _saved(answer.gain_ns, before_ns)
    return f"{name_of(name)}: {found.title}, with {words}: {times}, {gain}"


def _saved(gain_ns: int, of_ns: int) -> str:
    """Format a gain or a loss as a time and its share."""
    than = "less" if gain_ns >= 0 else "more"
    return f"{duration(abs(gain_ns))} ({share(abs(gain_ns) / of_ns)}) {than}"


def _changes_of(asked: Mapping[str, Sequence[str]]) -> list[Change]:
    """Return the requested changes."""
    with usage_errors():
        return [
            *(
                Scale(by=by, kind=kind, matching=name)
                for kind, name, by in map(_scaled, asked["scale"])
            ),
            *(Drop(kind=kind, matching=name) for kind, name in map(_what, asked["drop"])),
            *(
                RemoveWait(kind=kind or "sync_return", matching=name)
                for kind, name in map(_what, asked["remove_wait"])
            ),
        ]


def _scaled(text: str) -> tuple[Any, str | None, float]:
    what, equals, factor = text.rpartition("=")
    found = _FACTOR.fullmatch(factor)
    if not equals or found is None:
        message = f"{text!r} has no factor; give one, as in `kernel:gemm=0.5`"
        raise click.BadParameter(message, param_hint="'--scale'")
    return (*_what(what), float(found["number"]) / (100 if found["unit"] == "%" else 1))


def _what(text: str) -> tuple[Any, str | None]:
    """Split `KIND:PATTERN`; either part may be missing."""
    if not text:
        message = "give a kind, or `kind:pattern`"
        raise click.UsageError(message)
    kind, _, pattern = text.partition(":")
    return kind_named(kind) or None, pattern or None
