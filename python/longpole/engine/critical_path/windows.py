"""The window that a path covers, in the core's format."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any, Literal, get_args

from longpole.engine.windows import refuse_several, two_times

if TYPE_CHECKING:
    from collections.abc import Sequence

End = Literal["period", "last", "cpu", "gpu"]
"""The time at which a step or an annotation ends."""


def core_window(
    step: int | None,
    annotation: str | None,
    instance: int,
    between: Sequence[int] | None,
    end: str,
    *,
    whole: bool = False,
) -> tuple[Any, ...]:
    """Return the requested window; without a choice, the default one."""
    refuse_several(step, annotation, between, whole or None)
    if end not in get_args(End):
        message = f"end is one of {', '.join(get_args(End))}, not {end!r}"
        raise ValueError(message)
    instance = _whole(instance)
    if instance and annotation is None:
        message = "instance needs annotation"
        raise ValueError(message)
    if step is not None:
        return ("step", step, end)
    if annotation is not None:
        if instance < 0:
            message = f"instance must be at least 0, not {instance}"
            raise ValueError(message)
        return ("annotation", annotation, instance, "last" if end == "period" else end)
    if between is not None:
        return ("between", *two_times(between))
    return ("whole",) if whole else ("usual",)


def _whole(instance: int) -> int:
    try:
        return index(instance)
    except TypeError:
        message = f"instance must be an integer, not {instance!r}"
        raise TypeError(message) from None
