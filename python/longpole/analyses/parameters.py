"""Describes once the parameters that all tables share."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["shared_parameters"]

Question = TypeVar("Question", bound="Callable[..., Any]")

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


def shared_parameters(*, needs_arguments: bool = False) -> Callable[[Question], Question]:
    """Add the shared parameters to a docstring that does not describe them.

    Parameters
    ----------
    needs_arguments
        Whether the table needs event arguments other than those that link events.

    Examples
    --------
    >>> from longpole.analyses.kernels import kernels
    >>> print(kernels.__doc__.splitlines()[4])
    trace
    """
    read = {"trace": "The trace, read with the default `args`."} if needs_arguments else {}

    def declare(question: Question) -> Question:
        doc = inspect.getdoc(question) or ""
        missing = set(inspect.signature(question).parameters) - set(doc.splitlines())
        added = [
            f"{name}\n    {text}\n" for name, text in (_SHARED | read).items() if name in missing
        ]
        question.__doc__ = _FIRST_SECTION.sub(
            lambda found: f"{_HEADER}{''.join(added)}{'' if found[0] else chr(10)}", doc, count=1
        )
        question.__dict__["needs_arguments"] = needs_arguments
        return question

    return declare
