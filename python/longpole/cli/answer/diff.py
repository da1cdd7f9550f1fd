"""A comparison of two sides as an answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from longpole.analyses.diff import diff, diff_steps
from longpole.cli.answer import exit_codes
from longpole.cli.answer.diff_sections import diff_sections
from longpole.cli.answer.inputs import name_of, warnings_of
from longpole.cli.answer.usage import require, usage_errors
from longpole.remedies.facts import ARGUMENTS
from longpole.report.blocks import Headline
from longpole.report.document import DATA_FORMATS, Abstention, Document

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from longpole.analyses.diff import Diff
    from longpole.cli.answer.emit import Answer
    from longpole.report.sections import Section
    from longpole.trace import Trace

__all__ = ["DIFF", "DIFF_ARGS", "diff_answer", "step_answer"]

DIFF: Final = "longpole.diff/1"
DIFF_ARGS: Final = (*ARGUMENTS, "Total Allocated", "Device Id")
"""The arguments of events that are compared."""

_GATE: Final = 0.03

Named = tuple[str, "Trace"]


def diff_answer(
    base: Sequence[Named],
    new: Sequence[Named],
    *,
    gate: float | None,
    top: int,
    window: Mapping[str, Any],
    as_recorded: bool = False,
    step_times_ns: tuple[int | None, int | None] = (None, None),
) -> Answer:
    """Compare two sides of named traces."""
    sides = [[trace for _, trace in side] for side in (base, new)]
    old, now = sides
    with usage_errors():
        times: dict[str, Any] = {"as_recorded": as_recorded, "step_times_ns": step_times_ns}
        found = diff(old, now, gate=_GATE if gate is None else gate, **times, **window)
    names = [_name(side) for side in (base, new)]
    page = _page(found, sides[0], sides[1], top, window)
    return _answer(" -> ".join(names), [*base, *new], found, page, gate=gate, top=top)


def step_answer(
    traces: Sequence[Named],
    step: int,
    against: int | None,
    *,
    gate: float | None,
    top: int,
    window: Mapping[str, Any],
    as_recorded: bool = False,
) -> Answer:
    """Compare one step of a trace with the others."""
    require(len(traces) == 1, "--step compares steps of one trace")
    share = _GATE if gate is None else gate
    with usage_errors():
        trace = traces[0][1]
        found = diff_steps(trace, step, against, gate=share, as_recorded=as_recorded, **window)
    other = "the other steps" if against is None else f"step {against}"
    title = f"{_name(traces)}: step {step} against {other}"
    side = [traces[0][1]]
    page = _page(found, side, side, top, window)
    return _answer(title, traces, found, page, gate=gate, top=top)


def _page(
    found: Diff, base: list[Trace], new: list[Trace], top: int, window: Mapping[str, Any]
) -> Callable[[], Sequence[Section]]:
    step_name = window.get("step_name")
    return lambda: diff_sections(found, base, new, top=top, step_name=step_name)


def _answer(
    title: str,
    traces: Sequence[Named],
    found: Diff,
    page: Callable[[], Sequence[Section]],
    *,
    gate: float | None,
    top: int,
) -> Answer:
    document = Document(
        schema=DIFF,
        input={"path": title, "traces": [path for path, _ in traces]},
        status="abstained" if _exit_code(found, gate) == exit_codes.INCONCLUSIVE else "ok",
        abstains_because=_abstentions(found, gate),
        scope={"gate": found.gate},
        warnings=[warned for _, trace in traces for warned in warnings_of(trace)],
        forms_with_warnings=DATA_FORMATS,
        data=found,
        blocks=lambda: [Headline(title), *found.blocks(top)],
        sections=page,
        records=found.records,
    )
    return document, _exit_code(found, gate)


def _abstentions(found: Diff, gate: float | None) -> list[Abstention]:
    if found.verdict != "inconclusive":
        is_open = _exit_code(found, gate) == exit_codes.INCONCLUSIVE
        return [Abstention("host_alone")] if is_open else []
    if any(it.is_grave for it in (*found.base.damage, *found.new.damage)):
        return [Abstention("damaged")]
    return [Abstention("noise" if found.is_related else "unrelated")]


def _exit_code(found: Diff, gate: float | None) -> int:
    if found.verdict == "inconclusive":
        return exit_codes.INCONCLUSIVE
    if gate is not None and found.rests_on_host and found.verdict != "neutral":
        return exit_codes.INCONCLUSIVE
    is_worse = gate is not None and found.verdict == "regression"
    return exit_codes.FINDINGS if is_worse else exit_codes.OK


def _name(side: Sequence[Named]) -> str:
    """Return the name of a side: its trace, or the directory of its traces."""
    paths = [path for path, _ in side]
    if len(paths) == 1:
        return name_of(paths[0])
    folders = {str(Path(path).parent) for path in paths}
    return f"{name_of(folders.pop())}/ ({len(paths)} traces)" if len(folders) == 1 else paths[0]
