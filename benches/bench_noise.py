"""How often a comparison claims a change that is none, by the noise inside the runs: simulated.

python benches/bench_noise.py
python benches/bench_noise.py --repetitions 500 --only AR

Every run has 100 samples a side; processes lie 1 % apart. Gate 0: every claim is false. The last
row is what no method can see: one side drifts the same way in every run, so it is slower.
"""

from __future__ import annotations

import argparse
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from longpole.bench import Verdict, compare
from longpole.bench.comparison.differences import LOOKS

if TYPE_CHECKING:
    from collections.abc import Callable

    Noise = Callable[[np.random.Generator], np.ndarray]

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
N_SAMPLES = 100
SIZE = (2, LOOKS[-1], N_SAMPLES)
PLACES = np.linspace(0, 1, N_SAMPLES)


def autocorrelated(rho: float) -> Noise:
    """Let each sample be like the one before, 5 % of spread."""

    def noise(generator: np.random.Generator) -> np.ndarray:
        found = generator.normal(0, 1, SIZE)
        for place in range(1, N_SAMPLES):
            found[..., place] *= np.sqrt(1 - rho**2)
            found[..., place] += rho * found[..., place - 1]
        return 0.05 * found

    return noise


def plain(generator: np.random.Generator) -> np.ndarray:
    """Give independent samples, 2 % of spread."""
    return 0.02 * generator.normal(0, 1, SIZE)


def of_both(generator: np.random.Generator, course: np.ndarray) -> np.ndarray:
    """Let both sides go the same way within a run, each run its own way."""
    sign = generator.choice([-1, 1], (1, LOOKS[-1], 1))
    return plain(generator) + sign * course


def of_each(generator: np.random.Generator, course: np.ndarray) -> np.ndarray:
    """Let each side of each run go a way of its own."""
    return plain(generator) + generator.choice([-1, 1], (2, LOOKS[-1], 1)) * course


def wave(generator: np.random.Generator) -> np.ndarray:
    """Let both sides wave by 8 %, with a phase of the run's own."""
    phase = generator.random((1, LOOKS[-1], 1))
    return plain(generator) + 0.08 * np.sin(2 * np.pi * (3 * PLACES + phase))


def outliers(generator: np.random.Generator) -> np.ndarray:
    """Make 15 % of the samples up to half as long again."""
    return plain(generator) + 0.5 * generator.random(SIZE) * (generator.random(SIZE) < 0.15)


def wild_runs(generator: np.random.Generator) -> np.ndarray:
    """Make 15 % of the runs of a side up to a fifth longer."""
    runs = (2, LOOKS[-1], 1)
    return plain(generator) + 0.2 * generator.random(runs) * (generator.random(runs) < 0.15)


def quantised(generator: np.random.Generator) -> np.ndarray:
    """Read times on a clock with steps of 1 %."""
    return np.log(np.round(100 * np.exp(plain(generator))) / 100)


def one_sided(generator: np.random.Generator) -> np.ndarray:
    """Let one side alone drift by 2 %, the same way in every run."""
    return plain(generator) + np.array([0.0, 0.02]).reshape(2, 1, 1) * PLACES


SHAPES: dict[str, Noise] = {
    **{f"AR(1), {rho}": autocorrelated(rho) for rho in (0.0, 0.5, 0.8, 0.9, 0.95)},
    "common wave, 8 %": wave,
    "common drift, 5 %": lambda generator: of_both(generator, 0.05 * PLACES),
    "common step, 5 %": lambda generator: of_both(generator, 0.05 * (PLACES > 0.5)),
    "drift of each side, 2 %": lambda generator: of_each(generator, 0.02 * PLACES),
    "step of each side, 5 %": lambda generator: of_each(generator, 0.05 * (PLACES > 0.5)),
    "15 % outliers": outliers,
    "15 % wild runs": wild_runs,
    "clock with steps of 1 %": quantised,
    "one side drifts, 2 %": one_sided,
}


def records(logs: np.ndarray, n_runs: int, *, turns: bool, key: str) -> list[dict]:
    """Write the runs of both sides as `bench time` does."""
    rows = []
    for number in range(n_runs):
        for side, name in enumerate(("old", "new")):
            at = EPOCH + timedelta(seconds=4 * number + 2 * side * (not turns))
            rows.append(
                {
                    "key": f"{name} {key}",
                    "outcome": "ok",
                    "samples_ns": (1e6 * np.exp(logs[side, number])).tolist(),
                    "started_at": at.isoformat(),
                    "run": f"{number}{'' if turns else name}",
                    "pair": str(number) if turns else "",
                    "sampling": {
                        "looks": list(LOOKS),
                        "step_ns": 1e4 if "steps" in key else None,
                    },
                }
            )
    return rows


def claims(noise: Noise, name: str, *, turns: bool, seed: int) -> Verdict:
    """Look after 7, 14 and 28 runs, and give the first claim of a change."""
    generator = np.random.default_rng(seed)
    logs = noise(generator) + 0.01 * generator.normal(0, 1, (1 if turns else 2, LOOKS[-1], 1))
    for n_runs in LOOKS:
        rows = records(logs, n_runs, turns=turns, key=name)
        verdict = compare(rows, rows, 0.0, base_key="old", new_key="new").differences[0].verdict
        if verdict in {Verdict.SLOWER, Verdict.FASTER}:
            return verdict
    return Verdict.INCONCLUSIVE


def any_of_many(n_keys: int, seed: int) -> bool:
    """Say whether any of so many keys that did not change is called different."""
    rows: list[dict] = []
    generator = np.random.default_rng(seed)
    logs = 0.003 * generator.normal(0, 1, (n_keys, LOOKS[-1]))
    for n_runs in LOOKS:
        rows = [
            row
            for key in range(n_keys)
            for row in records(one_each(logs[key]), n_runs, turns=True, key=f"k{key}")
        ]
        found = compare(rows, rows, 0.0, base_key="old", new_key="new").differences
        if any(each.verdict in {Verdict.SLOWER, Verdict.FASTER} for each in found):
            return True
    return False


def one_each(changes: np.ndarray) -> np.ndarray:
    """Give runs of one sample a side, of which the second is longer by a change."""
    return np.stack([np.zeros_like(changes), changes])[..., None]


def main() -> None:
    """Print the tables."""
    options = parser().parse_args()
    print(f"{options.repetitions} comparisons a row; claims in percent.\n")
    print("| no change, gate 0 | in turns: slower | faster | separate: slower | faster |")
    print("|---|--:|--:|--:|--:|")
    for name, noise in SHAPES.items():
        if options.only and options.only not in name:
            continue
        cells = []
        for turns in (True, False):
            found = Counter(
                claims(noise, name, turns=turns, seed=options.seed + number)
                for number in range(options.repetitions)
            )
            cells += [
                f"{100 * found[verdict] / options.repetitions:.1f}"
                for verdict in (Verdict.SLOWER, Verdict.FASTER)
            ]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print("\n| keys, none changed | comparisons with any claim |\n|--:|--:|")
    for n_keys in (1, 5, 20, 100):
        n = max(100, options.repetitions // n_keys)
        share = sum(any_of_many(n_keys, options.seed + number) for number in range(n)) / n
        print(f"| {n_keys} | {100 * share:.1f} of {n} |", flush=True)


def parser() -> argparse.ArgumentParser:
    """Say what can be asked for."""
    found = argparse.ArgumentParser(description="Count false claims of simulated comparisons.")
    found.add_argument("--repetitions", type=int, default=200)
    found.add_argument("--seed", type=int, default=0, help="of the first comparison")
    found.add_argument("--only", help="shapes with this in their name")
    return found


if __name__ == "__main__":
    main()
