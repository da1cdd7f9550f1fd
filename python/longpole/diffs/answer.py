"""The answer of a comparison, for people, for programs and as one table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.diffs.blocks import diff_blocks
from longpole.diffs.values import OF_ORDER, Findings, joined
from longpole.report.html import html

if TYPE_CHECKING:
    import polars as pl

    from longpole.diffs.values import Change
    from longpole.report.blocks import Block
    from longpole.report.document import Record

_HTA: Final = ("added", "removed", "increased", "decreased", "unchanged")


@dataclass(frozen=True, slots=True)
class Diff(Findings):
    """The changes between two sides, and whether they matter."""

    def __str__(self) -> str:
        return self.sentence

    @property
    def table(self) -> pl.DataFrame:
        """Return the work of both sides by name, with the columns of HTA's trace comparison.

        Columns: `kind`, `name`, `base_counts`, `base_total_duration_ns`, `new_counts`,
        `new_total_duration_ns`, `diff_counts`, `diff_duration_ns` (all as the mean per step) and
        `counts_change_categories` (`added`, `removed`, `increased`, `decreased`, `unchanged`).
        """
        import polars as pl

        return pl.DataFrame(self.records(), infer_schema_length=None)

    def _repr_html_(self) -> str:
        return html(self.blocks())

    def records(self) -> list[Record]:
        """Return a row for each kind and name, largest change of time first."""
        rows: dict[tuple[str, str], list[float]] = {}
        for change in self.changes:
            if change.kind in OF_ORDER:
                continue
            for number, names in enumerate((change.base_names, change.new_names)):
                if names:
                    _add(rows, change, names, number)
        records = [
            _record(kind, name, (values[0], values[1]), (values[2], values[3]))
            for (kind, name), values in rows.items()
        ]
        return sorted(
            records,
            key=lambda row: (-abs(float(row["diff_duration_ns"] or 0)), row["kind"], row["name"]),
        )

    def blocks(self, top: int | None = None) -> list[Block]:
        """Show the answer on one screen or, with the number of changes to list, in full."""
        return diff_blocks(self, top)


def _add(
    rows: dict[tuple[str, str], list[float]],
    change: Change,
    names: tuple[str | None, ...],
    number: int,
) -> None:
    """Add one side of a change to the row of its name; fused work has one joint row."""
    row = rows.setdefault((change.kind, joined(names)), [0.0, 0.0, 0.0, 0.0])
    row[2 * number] += change.new_count if number else change.base_count
    row[2 * number + 1] += change.new_ns if number else change.base_ns


def _record(kind: str, name: str, base: tuple[float, float], new: tuple[float, float]) -> Record:
    """Return the count and the time of both sides."""
    (base_count, base_ns), (new_count, new_ns) = base, new
    if not base_count or not new_count:
        category = _HTA[0] if new_count else _HTA[1]
    else:
        more = new_count - base_count
        category = _HTA[4] if not more else _HTA[2] if more > 0 else _HTA[3]
    return {
        "kind": kind,
        "name": name,
        "base_counts": base_count,
        "base_total_duration_ns": base_ns,
        "new_counts": new_count,
        "new_total_duration_ns": new_ns,
        "diff_counts": new_count - base_count,
        "diff_duration_ns": new_ns - base_ns,
        "counts_change_categories": category,
    }
