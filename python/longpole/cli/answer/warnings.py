"""What to know about an answer about a window, although the trace was read as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.report.document import Warned
from longpole.wording import count, duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.critical_path import CriticalPath
    from longpole.trace import Trace

__all__ = ["window_warnings"]

# Less work from before recording changes no gain that is worth naming.
_MUCH_EARLIER: Final = 0.01


def window_warnings(
    trace: Trace, path: CriticalPath, window_name: str, data_load: str | None
) -> Iterator[Warned]:
    """Give the warnings about the path of a window."""
    window_name = "the whole trace" if window_name == "whole trace" else window_name
    has_work = trace.warning_counts["device_work"] > 0
    n_launches = 0 if has_work else len(trace.core.launches_without_work())
    if n_launches:
        yield Warned(
            code="no_device_work",
            count=n_launches,
            message="calls launched GPU activities, and the trace has none of them",
            effect="the answer is about the host only",
            hint="see `longpole check`",
        )
    n_earlier, earlier_ns = trace.core.earlier_work(*path.window)
    if earlier_ns > _MUCH_EARLIER * path.length_ns:
        yield Warned(
            code="earlier_work",
            count=n_earlier,
            message=(
                f"{count(n_earlier, 'GPU activity', 'GPU activities')} "
                f"({duration(earlier_ns)} of {window_name}) "
                f"{'was' if n_earlier == 1 else 'were'} most likely launched before recording "
                f"began and {'belongs' if n_earlier == 1 else 'belong'} to earlier work"
            ),
            effect="shares and gains include this time",
        )
    if path.status == "inconclusive":
        yield Warned(
            code="much_unexplained",
            count=1,
            message=f"more than a tenth of the path of {window_name} is unexplained",
            effect="shares of its kinds and names may be too small",
        )
    if data_load is not None and not _finds_name(trace, data_load):
        yield Warned(
            code="pattern_without_effect",
            count=1,
            message=f"no function or annotation matches --data-load {data_load!r}",
            effect="nothing counts as data loading",
        )


def _finds_name(trace: Trace, pattern: str) -> bool:
    import polars as pl

    may_load = pl.col("kind").cast(pl.String).is_in(["python", "annotation"])
    names = trace.events.filter(may_load).select(pl.col("name").cast(pl.String).unique())
    return names.filter(pl.col("name").str.contains(pattern)).height > 0
