"""How much of a critical path is true: simulated programs by what makes them hard to understand.

python benches/bench_truth.py --seeds 100:112
python benches/bench_truth.py --seeds 100:104 --only graph --only queue

`right` is the share of time in which the path is the planted one; `false` the share in which it is
another, does not admit that it does not know, and is not called inconclusive. All in percent.
"""

import argparse
import tempfile
from pathlib import Path

import workloads  # noqa: F401 - finds the oracles
from oracles.judge import Judgement, judge
from oracles.simulator.scenarios import SCENARIOS


def main() -> None:
    """Print a table of scenarios."""
    options = _parser().parse_args()
    first, _, end = options.seeds.partition(":")
    seeds = range(int(first), int(end or int(first) + 1))
    names = [
        name for name in SCENARIOS if not options.only or any(part in name for part in options.only)
    ]
    columns = ["right", "worst", "false", "inconclusive"]
    head = ["program", *columns, "no records: right", *columns[1:]]
    print(f"| {' | '.join(head)} |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            both = [
                judge(name, seeds, Path(folder), sync_records=sync_records)
                for sync_records in (True, False)
            ]
            print(f"| {name} | {' | '.join(map(_cells, both))} |", flush=True)


def _cells(judgement: Judgement) -> str:
    numbers = (judgement.mean, judgement.worst, judgement.false, judgement.inconclusive)
    return " | ".join(f"{100 * number:.1f}" for number in numbers)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Judge critical paths of simulated programs.")
    parser.add_argument("--seeds", default="0:6", help="FIRST:END, the end left out")
    parser.add_argument("--only", action="append", help="scenarios with this in their name")
    return parser


if __name__ == "__main__":
    main()
