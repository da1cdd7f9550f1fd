"""The tables of a trace: their list, the decorators that declare one, and how to compute one.

A table is a file of this folder with a function of the same name, which takes a trace and a window
and returns a frame, or data with `blocks()` and `records()`. The names of its other parameters are
those of command-line options. A docstring describes them if their meaning differs from that in
`_SHARED`. Where a table has several kinds of rows, its parameter `by` chooses one, and each is a
view: a function of its own, declared with `view`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, is_typeddict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars as pl

    from longpole.tables.needs import Need

    Note = tuple[Callable[[pl.DataFrame], bool], str]

PATH_TABLES: Final = frozenset(("segments", "sync"))
"""Tables about the critical path."""
MOST_ROWS: Final = 20
"""Number of rows that are shown as text by default."""
_SHARED: Final = {
    "trace": "The trace.",
    "recording": "A trace with `profile_memory=True`, or what `longpole.read_memory` read.",
    "window": "From `choose_window`; by default the window that it chooses without more.",
    "where": "A condition on the columns of `activities`: an expression of polars, or a text as"
    " in\n    SQL, such as `\"name LIKE '%gemm%' AND stream = 7\"` (its grammar is in the guide)."
    " An invalid\n    one raises `ValueError`.",
    "sort": "The column of the rows to order them by: the largest numbers first, else ascending.\n"
    "    An unknown one raises `ValueError`.",
    "top": "How many rows to show; the rows hold all.",
}
_HEADER: Final = "Parameters\n----------\n"
_FIRST_SECTION: Final = re.compile(rf"{_HEADER}|(?=^\w+\n---)", re.MULTILINE)

Question = TypeVar("Question", bound="Callable[..., Any]")
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class View:
    """One kind of rows of a table: what it is computed from, and what is said about it."""

    answer: type | None = None
    """The `Row` of its frame, or the class of its data; by default a frame whose columns are not
    declared."""
    needs: Sequence[Need] = ()
    """Events that it is computed from; the first missing one explains why it is empty."""
    empty: str = "The table has no rows."
    """What it means if they were recorded, but it has no rows."""
    legend: Sequence[Note] = ()
    """Sentences below the rows, each with the condition under which it is shown."""
    needs_arguments: bool = False
    """Whether it needs event arguments other than those that link events."""
    ignores_window: bool = False
    """Whether a longer window never gives more rows."""
    is_of_host: bool = False
    """Whether it has no times of GPU activities."""


@dataclass(frozen=True, slots=True)
class _Declared:
    views: Mapping[str | None, View]
    asks: Mapping[str, Callable[..., Any]]
    """The function of each view, if they differ."""


def view(answer: type | None = None, **declared: Any) -> Callable[[Question], Question]:
    """Declare the function of one of the views of a table; the arguments are those of `View`."""
    found = View(answer, **declared)
    describe = shared_parameters(needs_arguments=found.needs_arguments)

    def declare(question: Question) -> Question:
        vars(question)["view"] = found
        return describe(question)

    return declare


def table(
    answer: type | None = None,
    *,
    by: Mapping[str, Callable[..., Any]] | Sequence[str] = (),
    **declared: Any,
) -> Callable[[Question], Question]:
    """Declare the function of a table.

    Parameters
    ----------
    answer
        As in `View`.
    by
        The values of the parameter `by`, the default first. A mapping has the function of each; in
        a sequence, all have the same columns.
    declared
        The other fields of `View`, unless `by` is a mapping, whose functions declare theirs.
    """
    views: dict[str | None, View] = (
        {word: vars(ask)["view"] for word, ask in by.items()}
        if isinstance(by, Mapping)
        else dict.fromkeys(by or (None,), View(answer, **declared))
    )
    needs_arguments = any(each.needs_arguments for each in views.values())
    describe = shared_parameters(needs_arguments=needs_arguments)

    def declare(question: Question) -> Question:
        asks = by if isinstance(by, Mapping) else {}
        vars(question)["declared"] = _Declared(views, asks)
        return describe(question)

    return declare


def ask_by(
    asks: Mapping[str, Callable[..., Found]], by: str, recording: Any, window: Any, **options: Any
) -> Found:
    """Answer with one of the views of a table.

    Raises
    ------
    ValueError
        There is no such view, or it does not have an option that is not None.
    """
    if by not in asks:
        *others, last = map('"{}"'.format, asks)
        message = f"by is {', '.join(others)} or {last}, not {by!r}"
        raise ValueError(message)
    given = {name: value for name, value in options.items() if value is not None}
    unknown = given.keys() - inspect.signature(asks[by]).parameters.keys()
    if unknown:
        message = f'{min(unknown)} does not apply to by="{by}"'
        raise ValueError(message)
    return asks[by](recording, window, **given)


def shared_parameters(*, needs_arguments: bool = False) -> Callable[[Question], Question]:
    """Add the shared parameters to a docstring that does not describe them.

    Parameters
    ----------
    needs_arguments
        Whether the table needs event arguments other than those that link events.

    Examples
    --------
    >>> from longpole.tables.gaps import gaps
    >>> print(gaps.__doc__.splitlines()[7])
    trace
    """
    read = {"trace": "The trace, read with the default `args`."} if needs_arguments else {}

    def describe(question: Question) -> Question:
        doc = inspect.getdoc(question) or ""
        missing = set(inspect.signature(question).parameters) - set(doc.splitlines())
        added = [
            f"{name}\n    {text}\n" for name, text in (_SHARED | read).items() if name in missing
        ]
        question.__doc__ = _FIRST_SECTION.sub(
            lambda found: f"{_HEADER}{''.join(added)}{'' if found[0] else chr(10)}", doc, count=1
        )
        return question

    return describe


def question(name: str) -> Callable[..., Any]:
    """Return the function that answers a question."""
    ask: Callable[..., Any] = getattr(import_module(f"longpole.tables.{name}"), name)
    return ask


def views_of(name: str) -> Mapping[str | None, View]:
    """Return the views of a table by the value of `by`, the default first; None without `by`."""
    declared: _Declared = vars(question(name))["declared"]
    return declared.views


def words_of(name: str) -> tuple[str, ...]:
    """Return the values of a table's parameter `by`, the default first; empty without it."""
    return tuple(word for word in views_of(name) if word is not None)


def view_of(name: str, by: str | None = None) -> View:
    """Return one of the views of a table, by default the first."""
    views = views_of(name)
    return views[next(iter(views)) if by is None else by]


def gives_frame(name: str, by: str | None = None) -> bool:
    """Whether the answer to a question is a frame rather than data with its own fields."""
    answer = view_of(name, by).answer
    return answer is None or is_typeddict(answer)


def choices_of(name: str, by: str | None = None) -> frozenset[str]:
    """Return the options of a table, or of one of its views, besides trace, window and `by`."""
    ask = question(name)
    asks = vars(ask)["declared"].asks
    asked = asks.get(by or next(iter(asks)), ask) if asks else ask
    _, *others = inspect.signature(asked).parameters
    return frozenset(others) - {"window", "by"}


def reads_memory_files(name: str) -> bool:
    """Whether a table also accepts memory timelines and snapshots."""
    return "recording" in inspect.signature(question(name)).parameters


def arguments_of(name: str, by: str | None = None) -> Literal["ids", "default"]:
    """Return which event arguments must be read for a question."""
    return "default" if view_of(name, by).needs_arguments else "ids"
