"""Contradictions to plant: in each, one part of the product says something else than the others."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from longpole.cli.ask.windows import Asked, Chosen
from longpole.trace.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pytest

    from longpole.answer.answer import Answer

    Plant = Callable[[pytest.MonkeyPatch], None]


def _is(command: str) -> bool:
    """Whether a command is being run."""
    context = click.get_current_context(silent=True)
    return context is not None and context.info_name == command


def _question(command: str, **changed: Any) -> Plant:
    """Ask another question in one command alone."""
    original = Asked.question.fget
    assert original is not None

    def question(self: Asked) -> Any:
        other = replace(self, **changed) if _is(command) else self
        return original(other)

    return lambda patch: patch.setattr(Asked, "question", property(question))


def _predicts_as_recorded(command: str) -> Plant:
    """Keep the cost of recording in the predictions of one command alone."""
    original = Asked.of

    def of(self: Asked, trace: Trace) -> Answer:
        return self.as_recorded(trace) if _is(command) else original(self, trace)

    return lambda patch: patch.setattr(Asked, "of", of)


def _facts_without_cost(command: str) -> Plant:
    """Plant facts without the cost of recording in one command."""
    original = Asked.as_recorded

    def as_recorded(self: Asked, trace: Trace) -> Answer:
        return self.of(trace) if _is(command) else original(self, trace)

    return lambda patch: patch.setattr(Asked, "as_recorded", as_recorded)


def _wrapped(place: str, change: Callable[..., Any]) -> Plant:
    """Change what a function returns; `change` gets its result and its arguments."""
    module, _, name = place.partition(":")
    owner: Any = importlib.import_module(module)
    *path, last = name.split(".")
    for part in path:
        owner = getattr(owner, part)
    original = getattr(owner, last)

    def wrapped(*args: Any, **options: Any) -> Any:
        return change(original(*args, **options), *args, **options)

    return lambda patch: patch.setattr(owner, last, wrapped)


def _row(record: dict[str, Any], section: str, **changed: Callable[[Any], Any]) -> dict[str, Any]:
    """Return a row of the CSV with other values, if it is of a section."""
    if not str(record["section"]).startswith(section):
        return record
    return record | {key: change(record[key]) for key, change in changed.items()}


def _rows(section: str, **changed: Callable[[Any], Any]) -> Plant:
    return _wrapped(
        "longpole.cli.summary:_records",
        lambda rows, *_: [_row(row, section, **changed) for row in rows],
    )


def _swapped(gain: Any) -> Any:
    """Swap the bounds of a gain."""
    other = object.__new__(type(gain))
    for name in gain.__slots__:
        object.__setattr__(other, name, getattr(gain, name))
    object.__setattr__(other, "low", gain.high)
    object.__setattr__(other, "high", gain.low)
    return other


def _scaled(gain: Any, by: float) -> Any:
    """Return a gain with other values."""
    other = _swapped(_swapped(gain))
    for name in ("low", "value", "high"):
        object.__setattr__(other, name, getattr(gain, name) * by)
    return other


def _stale(patch: pytest.MonkeyPatch) -> None:
    """Return the first answer about a file for all later questions, also of another window."""
    original, kept = Trace.answer_as_timed, {}

    def answer(self: Trace, question: Any) -> Any:
        return kept.setdefault(str(self.path), original(self, question))

    patch.setattr(Trace, "answer_as_timed", answer)


def _between(patch: pytest.MonkeyPatch) -> None:
    from longpole.answer import actions

    original = actions.between
    patch.setattr(actions, "between", lambda low, high: original(round(low, 1), round(high, 1)))


def _limit_said_otherwise(told: str, *_: Any) -> str:
    return told.replace("waits limit it more than any work does", "the kernels limit it")


def _idle_halved(frame: Any, *_: Any, **__: Any) -> Any:
    import polars as pl

    return frame.with_columns(pl.col("duration_ns") // 2)


def _without_longest(frame: Any, *_: Any, **__: Any) -> Any:
    return frame.slice(1)


CONTRADICTIONS: Mapping[str, Plant] = {
    "whatif forgets the name of steps": _question("whatif", step_name=None),
    "path forgets the name of steps": _question("path", step_name=None),
    "the list of tables forgets the name of steps": _question("table", step_name=None),
    "diff forgets the name of steps": _question("diff", step_name=None),
    "the page forgets the step": _question("report", step=None),
    "whatif forgets the step": _question("whatif", step=None),
    "path takes the whole trace": _question("path", step=None, chosen=Chosen(whole=True)),
    "whatif keeps the cost of recording": _predicts_as_recorded("whatif"),
    "path keeps the cost of recording": _predicts_as_recorded("path"),
    "the page keeps the cost of recording": _predicts_as_recorded("report"),
    "the list of tables keeps the cost of recording": _predicts_as_recorded("table"),
    "path takes the cost of recording off": _facts_without_cost("path"),
    "tables take the cost of recording off": _facts_without_cost("table"),
    "a share in CSV is of another length": _rows("remedy: ", share=lambda it: it * 1.1),
    "a time in CSV is of all steps": _rows("remedy: ", duration_ns=lambda it: 4 * it + 1),
    "idle shares in CSV are of idle time": _rows("idle", share=lambda it: it * 2 + 0.1),
    "CSV has another sentence": _rows("verdict", name=lambda it: it.replace("step", "trace")),
    "CSV leaves a remedy out": _wrapped(
        "longpole.cli.summary:_records",
        lambda rows, *_: [row for row in rows if row["section"] != rows[2]["section"]],
    ),
    "low and high of a remedy are swapped": _wrapped(
        "longpole.answer.values:_remedy",
        lambda row, *_, **__: replace(row, gain=_swapped(row.gain)),
    ),
    "a gain is rounded twice in sentences": _between,
    "a line of the plan saves what it saves alone": _wrapped(
        "longpole.answer.plan:saving_then", lambda *_, **__: "saves 3 to 97 %"
    ),
    "the total is the sum of what the lines save alone": _wrapped(
        "longpole.answer.plan:total", lambda told, *_, **__: told.replace("(", "(1")
    ),
    "the page leaves out the total": _wrapped(
        "longpole.cli.answer.overview:gain_parts",
        lambda parts, *_: [it for it in parts if "Together" not in str(it)],
    ),
    "a line of the plan is in it twice": _wrapped(
        "longpole.answer.values:plan_in", lambda plan, *_: replace(plan, lines=plan.lines * 2)
    ),
    "the answer of another window is kept": _stale,
    "the sentence names another limit": _wrapped(
        "longpole.answer.values:sentence", _limit_said_otherwise
    ),
    "the tile of the page names another limit": _wrapped(
        "longpole.answer.values:limit_words",
        lambda words, *_: words and ("kernels", words[1]),
    ),
    "the page leaves out the first remedy": _wrapped(
        "longpole.cli.answer.overview:_intervals", lambda shown, *_: replace(shown, rows=())
    ),
    "causes of idle time do not add up": _wrapped("longpole.tables.idle:ask_by", _idle_halved),
    "a gap is missing": _wrapped("longpole.tables.gaps:matching", _without_longest),
    "the tool for agents takes the first step": _wrapped(
        "longpole.cli.mcp.tools:_words",
        lambda words, name, *_: [*words, "--step=1"] if name == "summary" else words,
    ),
    "the tool for agents forgets the step": _wrapped(
        "longpole.cli.mcp.tools:_words",
        lambda words, *_: [word for word in words if not word.startswith("--step=")],
    ),
    "Python keeps the cost of recording": lambda patch: patch.setattr(
        Asked, "of", Asked.as_recorded
    ),
    "two remedies together save less than one": _wrapped(
        "longpole.answer.after:together",
        lambda found, *_: found._replace(
            lines=[replace(line, gain=_scaled(line.gain, 0.5)) for line in found.lines]
        ),
    ),
    "the exit code of whatif is that of another answer": _wrapped(
        "longpole.cli.whatif:exit_code_of", lambda code, *_: 4 - code
    ),
    "diff keeps the cost of recording": _wrapped(
        "longpole.diffs.comparison:_question",
        lambda asked, *_, **__: replace(asked, as_recorded=True, step_time_ns=None),
    ),
}
"""What a contradiction is, and how it is planted."""
