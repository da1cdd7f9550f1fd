"""How often `longpole diff` is right, on simulated runs of which the truth is known.

python benches/bench_diff.py [--programs 40]

For each program: two runs of it (neutral?), a run with one kernel 5 % slower (named first?), a
run with kernels renamed, operators fused, both, all fused, and on another device (how many
launches find the right counterpart?), and another program (called unrelated?).
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))  # benches are run as scripts

import longpole
from longpole.diffs.sides import side_of
from oracles.rewriting import (
    launch_names,
    other_device,
    rewritten,
    run_of,
    truly_matched,
    with_layers,
)
from oracles.simulator import Machine, Run, Scale, simulate
from oracles.simulator.programs import training

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oracles.simulator import Program

REWRITINGS = {
    "renamed": {"rename": 0.4},
    "fused": {"fuse": 0.4},
    "renamed and fused": {"rename": 0.4, "fuse": 0.4},
    "all fused": {"fuse": 1.0},
    "another device": None,
}


class Tally:
    """How many of how many were right, by what was asked."""

    def __init__(self) -> None:
        self.right: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()

    def add(self, what: str, n_right: int, n_asked: int = 1) -> None:
        """Count answers."""
        self.right[what] += n_right
        self.asked[what] += n_asked

    def show(self) -> None:
        """Print a line for each question."""
        for what, n_asked in self.asked.items():
            share = 100 * self.right[what] / n_asked
            print(f"{what:52} {self.right[what]:6,} of {n_asked:6,}  {share:6.2f} %")


def main() -> None:
    """Ask about every program, and print what was right."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=40)
    parser.add_argument("--steps", type=int, default=24)
    options = parser.parse_args()
    tally, begun = Tally(), time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.programs):
            for spread in (0.02, 0.15):
                noise(tally, Path(folder), seed, options.steps, spread)
            matching(tally, Path(folder), seed)
            unrelated(tally, Path(folder), seed)
    tally.show()
    print(f"{time.process_time() - begun:.0f} CPU seconds")


def noise(tally: Tally, folder: Path, seed: int, steps: int, spread: float) -> None:
    """Ask about two runs of one program, and about one with a slower kernel."""
    dice = random.Random(seed)  # noqa: S311 - no secret
    scale = dice.choice((0.3, 1.0, 3.0))
    program = training(seed, steps=steps, layers=6, world_size=1, kernel_scale=scale)
    base = read(folder, run_of(program, seed, spread=spread))
    again = longpole.diff(base, read(folder, run_of(program, seed + 5_000, spread=spread)))
    noisy = f"noise {spread:.0%}, {steps} steps"
    tally.add(f"A/A neutral, {noisy}", again.verdict == "neutral")
    tally.add(f"A/A not different, {noisy}", again.verdict in {"neutral", "inconclusive"})
    tally.add(f"A/A nothing stands out, {noisy}", not any(c.stands_out for c in again.changes))
    name = dice.choice(sorted({n for n in launch_names(program) if not n.startswith("Mem")}))
    change = Scale("kernel", f"^{re.escape(name)}$", by=1.05)
    for same_noise in (False, True):
        machine = Machine(seed=seed if same_noise else seed + 9_000, spread=spread)
        found = longpole.diff(base, read(folder, Run(program, machine, [change])))
        is_first = (found.changes[0].kind, found.changes[0].base_names) == ("kernel", (name,))
        whose = "the same noise" if same_noise else "other noise"
        tally.add(f"5 % slower kernel first, {noisy}, {whose}", is_first)


def matching(tally: Tally, folder: Path, seed: int) -> None:
    """Ask what became of each launch of a program that was written anew."""
    program = training(seed, steps=4, layers=8, world_size=1)
    base = side_of(read(folder, run_of(program, seed, shapes=True)))
    for what, shares in REWRITINGS.items():
        changed = other_device(program) if shares is None else rewritten(program, seed, **shares)
        new = side_of(read(folder, run_of(changed.program, seed + 500, shapes=True)))
        tally.add(f"launches matched right, {what}", *truly_matched(base, new, changed.origins))
    larger = training(seed, steps=4, layers=12, world_size=1)
    longer = with_layers(program, larger, (8, 12))
    new = side_of(read(folder, run_of(larger, seed + 600, shapes=True)))
    tally.add(
        "launches matched right, half as many layers more",
        *truly_matched(base, new, longer.origins),
    )
    same = [(number,) for number in range(len(launch_names(program)))]
    for what, new in other_recordings(folder, program, seed):
        tally.add(f"launches matched right, {what}", *truly_matched(base, side_of(new), same))


def other_recordings(
    folder: Path, program: Program, seed: int
) -> Iterator[tuple[str, longpole.Trace]]:
    """Record the same program in other ways, and on other shapes."""
    coarse = Machine(seed=seed + 700, spread=0.02, quantum_ns=1_000)
    path = folder / "old.json"
    Run(program, coarse).write(path, sync_records=False)
    yield "an older torch, no shapes", longpole.read_trace(path, args=["Input Dims"])
    run_of(program, seed + 800, shapes=True, python_frames=True).write(path)
    yield "with Python stacks", longpole.read_trace(path, args=["Input Dims"])
    run_of(program, seed + 900, shapes=True).write(path)
    path.write_text(re.sub(r"\b(64|1024)\b(?=[,\]])", "96", path.read_text()))
    yield "on other shapes", longpole.read_trace(path, args=["Input Dims"])


def unrelated(tally: Tally, folder: Path, seed: int) -> None:
    """Ask about two programs that have nothing to do with each other."""
    one = read(folder, simulate("training", seed=seed, steps=4))
    other = read(folder, simulate("random", seed=seed, steps=4))
    tally.add("unrelated programs called so", not longpole.diff(one, other).is_related)
    changed = other_device(training(seed, steps=4))
    same = read(folder, run_of(changed.program, seed + 1))
    tally.add("one program on two devices not called so", longpole.diff(one, same).is_related)


def read(folder: Path, run: Run) -> longpole.Trace:
    """Write a run and read it."""
    path = folder / "trace.json"
    run.write(path)
    return longpole.read_trace(path, args=["Input Dims"])


if __name__ == "__main__":
    main()
