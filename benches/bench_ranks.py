"""Holds the answers about simulated ranks against the truth: run with --seeds 0:200.

    python benches/bench_ranks.py --seeds 0:100 --ranks 8

Prints one line for each question with what was right, of how many.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from longpole import read_traces
from oracles.simulator.ranks_judge import judge

if TYPE_CHECKING:
    from oracles.simulator.ranks_judge import Judged
from oracles.simulator.ranks import write_ranks
from oracles.simulator.ranks_programs import random_ranks

WORTH = 0.02
USUAL_ENTRY_NS = 100_000


def main() -> None:
    """Judge sets of ranks and print what was right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:20")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--pattern")
    parser.add_argument("--entry-ns", type=int, default=USUAL_ENTRY_NS)
    parser.add_argument("--ring-ns", type=int, default=0)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    first, last = map(int, options.seeds.split(":"))
    tally = Tally(Counter(), [])
    for seed in range(first, last):
        draw = partial(
            random_ranks,
            seed,
            n_ranks=options.ranks,
            pattern=options.pattern,
            ring_ns=options.ring_ns,
        )
        run = draw(largest_entry_ns=options.entry_ns)
        is_skewed = options.entry_ns > USUAL_ENTRY_NS
        together = draw(largest_entry_ns=0) if is_skewed else None
        times = run.job.times_ns()
        with tempfile.TemporaryDirectory() as folder:
            rows = write_ranks(run.job, times, run.clocks, Path(folder))
            judged = judge(run, times, rows, read_traces(folder), together)
        tally.add(judged)
        if options.verbose and not judged.is_right:
            print(seed, run.pattern, run.stragglers, judged)
    print(tally)


@dataclass
class Tally:
    """What was right, and of how many."""

    counts: Counter[str]
    what_if_errors: list[float]

    def add(self, judged: Judged) -> None:
        """Count one set."""
        counts = self.counts
        counts["sets"] += 1
        for worth, is_named in judged.stragglers:
            if worth >= WORTH:
                counts["stragglers worth 2 %"] += 1
                counts["rank and cause right"] += is_named == "cause"
                counts["rank right"] += is_named in {"cause", "rank"}
        counts["false remedies"] += judged.n_false
        counts["quiet sets"] += judged.is_quiet
        counts["quiet and said so"] += judged.is_quiet and judged.n_remedies == 0
        counts["paths right for 98 %"] += judged.path_share >= 0.98
        counts["clocks"] += judged.n_clocks
        counts["clocks within bound"] += judged.n_clocks_within
        self.what_if_errors += judged.what_if_errors

    def __str__(self) -> str:
        """Give a line for each question."""
        lines = [f"{name}: {count}" for name, count in self.counts.items()]
        errors = sorted(self.what_if_errors)
        if errors:
            within = sum(error <= 0.03 for error in errors)
            median = errors[len(errors) // 2]
            lines.append(f"what-if within 3 %: {within} of {len(errors)}, median {median:.2%}")
        return "\n".join(lines)


if __name__ == "__main__":
    main()
