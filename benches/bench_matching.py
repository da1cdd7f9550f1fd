"""Holds the matching of calls without numbers against the truth: run with --seeds 0:50.

    python benches/bench_matching.py --seeds 0:50 --lost 0.1 --offset-ns 200000

Prints how many pairs of members are true, how many of them were found, and how many wrong ones.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from longpole import read_traces
from oracles.simulator.ranks_judge import matched_pairs
from oracles.simulator.ranks_programs import random_ranks

PATTERNS = ("data", "tensor", "expert")


def main() -> None:
    """Judge sets of ranks and print what was matched."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:20")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--lost", type=float, default=0.1)
    parser.add_argument("--offset-ns", type=int, default=200_000)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    first, last = map(int, options.seeds.split(":"))
    n_true = n_right = n_wrong = n_ambiguous = 0
    for seed in range(first, last):
        pattern = PATTERNS[seed % len(PATTERNS)]
        run = random_ranks(seed, n_ranks=options.ranks, pattern=pattern, n_steps=options.steps)
        found = matched_pairs(
            run,
            read_traces,
            seed=seed,
            largest_offset_ns=options.offset_ns,
            lost=options.lost,
        )
        n_ambiguous += found.is_ambiguous
        if not found.is_ambiguous:
            n_true += found.n_true
            n_right += found.n_right
            n_wrong += found.n_wrong
        if options.verbose and (found.n_wrong or found.n_right < found.n_true):
            print(seed, pattern, found)
    print(f"sets: {last - first}, of these called ambiguous: {n_ambiguous}")
    if n_true:
        print(f"true pairs found, in the others: {n_right / n_true:.2%} of {n_true}")
        print(f"wrong among the pairs found: {n_wrong / max(n_right + n_wrong, 1):.2%}")


if __name__ == "__main__":
    main()
