"""The effect of hypothetical changes, as an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole._core import kernel_family
from longpole.cli.answer import exit_codes
from longpole.cli.answer.inputs import name_of
from longpole.cli.answer.usage import usage_errors
from longpole.cli.answer.windows import exit_code_of, known_of
from longpole.critical_path import Change, Drop, Scale
from longpole.critical_path.explain import path_blocks
from longpole.critical_path.path import KindTotal, NameTotal
from longpole.data import Row, plain
from longpole.recording_cost import step_blocks
from longpole.report.blocks import Headline, Notes, Sentence
from longpole.report.document import Abstention, Document, Warned
from longpole.verdict import Remedy, Verdict
from longpole.verdict.blocks import table_of
from longpole.wording import count, duration, share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.cli.answer.emit import Answer
    from longpole.cli.answer.windows import Found
    from longpole.critical_path import CriticalPath, WhatIf
    from longpole.report.blocks import Block
    from longpole.report.document import Record
    from longpole.trace import Trace

__all__ = [
    "WHATIF",
    "OneRemedy",
    "TimedForm",
    "WhatIfData",
    "changed_answer",
    "ideal_answer",
    "share_of_steps",
]

WHATIF: Final = "longpole.whatif/1"
_MOST_NAMES: Final = 5
_MOST_NAMES_IN_DATA: Final = 10
_LEAST_GAIN: Final = 0.001


class Gain(Row):
    """Length of a window after a change, next to its recorded length."""

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


class TimedForm(Row):
    """Operators of one shape that were timed in both forms."""

    operators: list[str]
    device: str
    slow_ns: float
    changed_ns: float
    factor: list[float]
    """The tenth part of the factors between the two, the median, and the nine tenths."""


class OneRemedy(Row):
    """What one remedy saves, in the places that it fits."""

    length_ns: int
    remedies: list[Remedy]
    script: str | None
    """What was written and run to time both forms."""
    forms: list[TimedForm]
    measured_low: float | None
    """Least share that the first remedy saves with the measured factors; null if nothing was timed
    on the device on which the trace was recorded."""
    measured_high: float | None


WhatIfData = Changed | Ideal | OneRemedy


def changed_answer(name: str, trace: Trace, found: Found, *, changes: Sequence[Change]) -> Answer:
    """Report the length of the window after some changes."""
    with usage_errors():
        answer = found.path.what_if(changes)
    verdict = found.verdict()
    known = known_of(name, trace, found, verdict)
    chosen = list(zip(changes, found.path.n_chosen(changes), strict=True))
    unmatched = [_unmatched(change) for change, n_edges in chosen if n_edges == 0]
    if unmatched:
        because = [*known["abstains_because"], Abstention("change_without_effect", found.name)]
        warnings = [*known["warnings"], *unmatched]
        known |= {"warnings": warnings, "abstains_because": because, "status": "partial"}
    gains = _gain(found.path, answer)
    of_steps = share_of_steps(trace, found, verdict, changes)
    words = ", ".join(map(_words, changes))
    document = Document(
        schema=WHATIF,
        **known,
        data=Changed(
            changes=list(changes),
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
            *_selected(chosen),
            *_why_longer(answer),
            *_in_all_steps(verdict, of_steps),
            *step_blocks(trace.removed_cost),
        ],
        records=lambda: [{"path": name, "window": found.name, "changes": words, **plain(gains)}],
    )
    return document, exit_codes.INCONCLUSIVE if unmatched else exit_code_of(verdict)


def ideal_answer(name: str, trace: Trace, found: Found) -> Answer:
    """Rank remedies by gain."""
    verdict = found.verdict()
    ranked = verdict.remedies
    helpful = [row for row in ranked if row.gain_high >= _LEAST_GAIN]
    document = Document(
        schema=WHATIF,
        **known_of(name, trace, found, verdict),
        data=Ideal(length_ns=found.path.length_ns, verdict=verdict),
        blocks=lambda: [
            Headline(f"{name_of(name)}: {found.title}"),
            Sentence(verdict.sentence),
            table_of(helpful, n_windows=verdict.window.n),
            *_useless(len(ranked) - len(helpful)),
            *step_blocks(trace.removed_cost),
        ],
        records=lambda: [_record(name, row) for row in ranked],
    )
    return document, exit_code_of(verdict)


def _selected(chosen: list[tuple[Change, int]]) -> list[Block]:
    """Report how many events a pattern selects, since it may select others than intended."""
    told = [
        f"{_words(change)}: {_how(change.matching)} selects {count(n_edges, 'edge')} of the "
        "dependency graph of the whole trace."
        for change, n_edges in chosen
        if change.matching is not None and n_edges > 0
    ]
    return [Notes(told)] if told else []


def _how(matching: str) -> str:
    """Return what selects kernels: the name of a family, or a pattern of names."""
    is_family = kernel_family(matching) == matching
    return f"the family of kernels {matching}" if is_family else "the pattern (case-sensitive)"


def _why_longer(answer: WhatIf) -> list[Block]:
    """Explain a window that becomes longer although work was removed."""
    if answer.gain_ns >= 0:
        return []
    told = (
        "The change shortens what comes before this window by more than what is in it: the window "
        "begins earlier, and the program is not slower. `--whole` says what it gains in all."
    )
    return [Notes([told])]


def share_of_steps(
    trace: Trace, found: Found, verdict: Verdict, changes: Sequence[Change]
) -> float | None:
    """Return the gain in all steps of the verdict, if this is one of them."""
    if found.step not in verdict.steps or len(verdict.steps) == 1:
        return None
    ends = [
        trace.critical_path(step=step, step_name=found.step_name).window
        for step in (verdict.steps[0], verdict.steps[-1])
    ]
    between = (ends[0][0], ends[1][1])
    together = trace.critical_path(between=between, data_load=found.data_load)
    return together.what_if(changes).gain_ns / together.length_ns


def _in_all_steps(verdict: Verdict, share_of_steps: float | None) -> list[Block]:
    """Report the effect on the mean step, to which the gains of a verdict refer."""
    if share_of_steps is None:
        return []
    than = "shorter" if share_of_steps > 0 else "longer"
    becomes = (
        f"would be {share(abs(share_of_steps))} {than}" if share_of_steps else "stays as it is"
    )
    n_steps = count(len(verdict.steps), "step")
    return [Notes([f"The mean of the {n_steps} that the verdict is about {becomes}."])]


def _useless(number: int) -> list[Block]:
    """Count remedies with a negligible gain."""
    if not number:
        return []
    gain = "gains" if number == 1 else "gain"
    return [Notes([f"{count(number, 'more remedy', 'more remedies')} {gain} less than 0.1 %."])]


def _record(name: str, remedy: Remedy) -> Record:
    return {
        "path": name,
        "remedy": remedy.remedy,
        "name": remedy.name,
        "named": remedy.named,
        "gain_ns": remedy.gain_ns,
        "share": remedy.gain,
        "least_share": remedy.gain_low,
        "most_share": remedy.gain_high,
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


def _unmatched(change: Change) -> Warned:
    return Warned(
        code="change_without_effect",
        count=1,
        message=f"nothing in the trace matches {_target(change)!r}",
        effect="this change changes nothing",
        hint="`longpole path` lists kinds and names",
    )


def _headline(name: str, found: Found, answer: WhatIf, words: str) -> str:
    before_ns = found.path.length_ns
    part = share(abs(answer.gain_ns) / before_ns)
    than = "less" if answer.gain_ns >= 0 else "more"
    times = f"{duration(before_ns)} -> {duration(answer.makespan_ns)}"
    return f"{name_of(name)}: {found.title}, with {words}: {times}, {part} {than}"
