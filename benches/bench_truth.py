"""How much of a critical path is true: simulated programs by what makes them hard to understand.

python benches/bench_truth.py --seeds 100:112
python benches/bench_truth.py --seeds 100:104 --only graph --only queue
python benches/bench_truth.py --seeds 50000:50012 --write benches/accuracy.md

`right` is the share of time in which the path is the planted one; `false` the share in which it is
another, does not admit that it does not know, and is not called inconclusive. All in percent. With
`--write` the rows are those of the documentation, which takes together similar programs, and rows
that differ in the worst window only, and replace the table between its two marks. Take seeds that
no rule was tried on.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Final

import workloads  # noqa: F401 - finds the oracles
from oracles.judge import Judgement, judge
from oracles.simulator.scenarios import SCENARIOS

if TYPE_CHECKING:
    from collections.abc import Iterator

    Both = tuple[Judgement, Judgement]
    Pair = tuple[str, ...]

# The rows of the documentation, each with the pattern of its scenarios.
ROWS: Final = {
    "ordinary programs": "base: ",
    "device clock 3 to 2,000 us ahead or behind": r"clock (ahead|behind) by \d+ us$",
    "clock behind, graphs only": "graphs only",
    "clocks of two devices apart": "clocks of two devices apart",
    "clocks of two devices 5 or 10 us apart": r"clocks of two devices .* us off",
    "2, 4, 8 devices": r"^\d devices",
    "joint collectives of 2, 4, 8 devices": "joint collectives",
    "graph over 2 to 16 streams, 10 replays": "graph, .*(10 replays|node ids)",
    "graph over 2 or 4 streams, 3 replays": "graph, .* 3 replays",
    "graph over 2 streams, launched once": "graph, 2 streams, 1 replays",
    "graph over 4 streams, launched once": "graph, 4 streams, 1 replays",
    "graph, a tenth of its nodes lost": "nodes lost",
    "graph, 30 % of its nodes hidden": "nodes hidden",
    "threads that start late": "late helper",
    "queues of 1 to 8 loaders, wake-up up to 30 us": "queue, (?!.*80 us)",
    "queue of 2 loaders, wake-up after 80 us": "queue, wake-up after 80 us",
    "polling loops, allocators that scan": "polling|scans",
    "a tenth of the launch calls lost": "launches lost",
    "a tenth of the kernels lost": "kernels lost",
    "a device buffer lost": "device buffer lost",
    "recording starts with a backlog": "backlog",
    "allocations that wait, or do not": "malloc",
    "legacy default stream": "legacy",
    "two threads that launch": "two launching threads",
    "two threads that record events": "two threads, (a stream|two streams) each",
    "two threads on the same streams": "two threads, (the same|events)",
}
HEAD: Final = ["programs", "right", "worst", "falsely certain", "inconclusive"]
BEGIN, END = "<!-- bench_truth: begin -->", "<!-- bench_truth: end -->"


def main() -> None:
    """Print a table of scenarios, or write that of the documentation."""
    options = _parser().parse_args()
    first, _, end = options.seeds.partition(":")
    seeds = range(int(first), int(end or int(first) + 1))
    if options.write:
        table = "\n".join(_documented(seeds))
        text = options.write.read_text(encoding="utf-8")
        before, _, rest = text.partition(BEGIN)
        after = rest.partition(END)[2]
        written = f"{before}{BEGIN}\n{table}\n{END}{after}"
        options.write.write_text(written, encoding="utf-8")
        return
    columns = ["right", "worst", "false", "inconclusive"]
    head = ["program", *columns, "no records: right", *columns[1:]]
    print(f"| {' | '.join(head)} |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name in SCENARIOS:
        if not options.only or any(part in name for part in options.only):
            both = _judged(name, seeds)
            print(f"| {name} | {' | '.join(map(_cells, both))} |", flush=True)


def _documented(seeds: range) -> Iterator[str]:
    """Give the lines of the table in the documentation."""
    yield f"Seeds {seeds.start} to {seeds.stop - 1}, {len(seeds)} programs a scenario.\n"
    yield f"| {' | '.join(HEAD)} |"
    yield f"|---|{'--:|' * (len(HEAD) - 1)}"
    alike: dict[tuple[Pair, Pair, Pair, int], list[tuple[str, Pair]]] = {}
    for row, pattern in ROWS.items():
        names = [name for name in SCENARIOS if re.search(pattern, name)]
        right, worst, false, unsure = _figures([_judged(name, seeds) for name in names])
        print(f"| {row} | {' | '.join(map(_both, (right, worst, false, unsure)))} |", flush=True)
        key = right, false, unsure, len(set(worst))
        alike.setdefault(key, []).append((row, worst))
    for (right, false, unsure, _), rows in alike.items():
        worst = tuple(min(them, key=float) for them in zip(*(of for _, of in rows), strict=True))
        cells = map(_both, (right, worst, false, unsure))
        yield f"| {'; '.join(row for row, _ in rows)} | {' | '.join(cells)} |"


def _figures(found: list[Both]) -> list[Pair]:
    """Give the cells of a row, each with synchronization records and without."""
    cells = []
    for of in zip(*found, strict=True):
        shares = mean(it.mean for it in of), min(it.worst for it in of), mean(it.false for it in of)
        unsure = mean(it.inconclusive for it in of)
        cells.append([*(f"{100 * share:.1f}" for share in shares), f"{100 * unsure:.0f}"])
    return list(zip(*cells, strict=True))


def _both(pair: Pair) -> str:
    """Give one figure where records make no difference."""
    recorded, inferred = pair
    return recorded if recorded == inferred else f"{recorded} / {inferred}"


def _judged(name: str, seeds: range) -> Both:
    """Judge the paths of a scenario, with synchronization records and without."""
    with tempfile.TemporaryDirectory() as folder:
        return (
            judge(name, seeds, Path(folder), sync_records=True),
            judge(name, seeds, Path(folder), sync_records=False),
        )


def _cells(judgement: Judgement) -> str:
    numbers = (judgement.mean, judgement.worst, judgement.false, judgement.inconclusive)
    return " | ".join(f"{100 * number:.1f}" for number in numbers)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Judge critical paths of simulated programs.")
    parser.add_argument("--seeds", default="0:6", help="FIRST:END, the end left out")
    parser.add_argument("--only", action="append", help="scenarios with this in their name")
    parser.add_argument("--write", type=Path, help="the page whose table is replaced")
    return parser


if __name__ == "__main__":
    main()
