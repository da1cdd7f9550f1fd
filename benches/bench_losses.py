"""How far gains hold where records are missing: programs that lose records and run again.

python benches/bench_losses.py --seeds 5000:6000
python benches/bench_losses.py --seeds 5000:5100 --worst 20

A program loses launches, kernels, blocks or a window of the buffer, 5 to 60 % of them. The verdict
on what is left gives an interval for each gain, and the program runs again with each remedy:
`holds` is the share of measured gains that lie in their intervals, with 2 points of slack. Widths
are in points. `wrong` counts programs where one side gains 5 points more than all others and is
not named.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import workloads  # noqa: F401 - finds the oracles
from oracles.lossy import SHARES, judged_lossy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oracles.lossy import Lossy

HEAD = [
    "programs",
    "number",
    "holds, %",
    "median width",
    "of the widest side",
    "named, %",
    "wrong, %",
]


def main() -> None:
    """Print a row for all programs, for each kind of loss, and for each share."""
    options = _parser().parse_args()
    first, _, end = options.seeds.partition(":")
    with ProcessPoolExecutor(options.jobs) as pool:
        judged = list(pool.map(_judged, range(int(first), int(end or int(first) + 1)), chunksize=4))
    print(f"| {' | '.join(HEAD)} |\n|---|{'--:|' * (len(HEAD) - 1)}")
    _print_row("all", judged)
    for lost in sorted({one.lost for one in judged}):
        _print_row(lost, [one for one in judged if one.lost == lost])
    for share in SHARES:
        _print_row(f"{share:.0%} lost", [one for one in judged if one.share == share])
    _print_worst(judged, options.worst)


def _judged(seed: int) -> Lossy:
    with tempfile.TemporaryDirectory() as folder:
        return judged_lossy(seed, Path(folder))


def _print_row(name: str, judged: Sequence[Lossy]) -> None:
    if not any(one.intervals for one in judged):
        return
    intervals = [interval for one in judged for interval in one.intervals]
    sides = [[it.width for it in one.intervals if it.remedy in one.truth] for one in judged]
    widest = [max(widths) for widths in sides if widths]
    shares = [
        statistics.mean(it.holds for it in intervals),
        statistics.median(it.width for it in intervals),
        statistics.median(widest),
        statistics.mean(one.is_named for one in judged),
        statistics.mean(one.is_wrong for one in judged),
    ]
    cells = [str(len(judged)), *(f"{100 * share:.1f}" for share in shares)]
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


def _print_worst(judged: Sequence[Lossy], count: int) -> None:
    rows = [(one, it) for one in judged for it in one.intervals]
    rows.sort(key=lambda row: min(row[1].measured - row[1].low, row[1].high - row[1].measured))
    for one, it in rows[:count]:
        bounds = f"{100 * it.low:.1f} to {100 * it.high:.1f}, measured {100 * it.measured:.1f}"
        print(
            f"  seed {one.seed}: {one.share:.0%} of {one.lost}, {one.program}, {it.remedy} {bounds}"
        )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Judge intervals of gains where records are lost.")
    parser.add_argument("--seeds", default="0:100", help="FIRST:END, the end left out")
    parser.add_argument("--worst", type=int, default=0, help="list so many gains")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    return parser


if __name__ == "__main__":
    main()
