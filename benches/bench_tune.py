"""How much of an exhaustive search `longpole tune` measures, and how good its choice is.

    python benches/bench_tune.py [--searches 5] [--runs 7]

200 matrix products in C, with gcc: 10 do not build, 5 are slow and 5 wrong. Programs time their
processor time, so that a busy machine tells the same. An exhaustive search says which candidate is
the best; then there are searches with seeds. `measured` is the runner's account, `processor` that
of the programs; both with finals, of the exhaustive search without them.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from longpole.bench import read_results
from longpole.bench.tune import Effort, Space, Task, Tuning, read_task, tune
from longpole.bench.tune.space import label_of
from longpole.devices import select

EXAMPLE = Path(__file__).parents[1] / "examples" / "tune"
MOST_MEASURED, MOST_WORSE = 0.25, 0.03

# What stands in the source of the example, and what is put in its place.
PLANTED = {
    "CLOCK_MONOTONIC": "CLOCK_PROCESS_CPUTIME_ID",
    "static float a[N][N]": """#if BLOCK_I == 256 && BLOCK_K == 128
#error "planted"
#endif
static float a[N][N]""",
    "    for (int k = 0; k < N; k += BLOCK_K)\n": """
#if BLOCK_I == 64 && BLOCK_K == 128 && ORDER == 1
    for (int k = 0; k < N / 2; k += BLOCK_K)
#elif BLOCK_I == 32 && BLOCK_K == 8 && ORDER == 2
    for (int again = 0; again < 200; again++)
    for (int k = 0; k < N; k += BLOCK_K)
#else
    for (int k = 0; k < N; k += BLOCK_K)
#endif
""",
    "    return file == NULL || fwrite(c, sizeof c, 1, file) != 1 || fclose(file);": """
    int fault = file == NULL || fwrite(c, sizeof c, 1, file) != 1 || fclose(file);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    printf("all: %.4f ms\\n", end.tv_sec * 1e3 + end.tv_nsec / 1e6);
    return fault;""",
}


def main() -> None:
    """Search, print, and say whether the limits hold."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--searches", type=int, default=5)
    options.add_argument("--runs", type=int, default=7)
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        task = planted_task(Path(folder))
        whole = searched(task, "exhaustive", Effort(n_runs=arguments.runs))
        whole_s = processor_s(task.folder / "exhaustive0.jsonl", " in turns")
        print(f"exhaustive: {whole.screening_s:.1f} s, {whole_s:.1f} s of processor; {told(whole)}")
        misses = 0
        for seed in range(arguments.searches):
            found = searched(task, "halving", Effort(n_runs=arguments.runs, seed=seed))
            measured = (found.screening_s + found.finals_s) / whole.screening_s
            share = processor_s(task.folder / f"halving{seed}.jsonl") / whole_s
            worse = duel(task, whole, found)
            misses += share > MOST_MEASURED or worse > MOST_WORSE
            said = f"measured {measured:.1%}, processor {share:.1%}, {worse:+.1%} in a duel"
            print(f"seed {seed}: {said}; {told(found)}", flush=True)
    sys.exit(bool(misses))


def planted_task(folder: Path) -> Task:
    """Write the example with 40 block sizes and 20 faults: 200 candidates."""
    source = (EXAMPLE / "matmul.c").read_text()
    for old, new in PLANTED.items():
        if old not in source:
            sys.exit(f"the example no longer has {old!r}")
        source = source.replace(old, new)
    declared = (EXAMPLE / "matmul.toml").read_text()
    for name, values in (("i", "[8, 32, 64, 256]"), ("k", "[8, 16, 32, 64, 128]")):
        declared = re.sub(rf"block_{name} = {{.*}}", f"block_{name} = {values}", declared)
    (folder / "matmul.c").write_text(source)
    (folder / "matmul.toml").write_text(re.sub(r"constraints = .*", "", declared))
    shutil.copy(EXAMPLE / "reference.py", folder)
    subprocess.run([sys.executable, "reference.py"], cwd=folder, check=True)
    return read_task(folder / "matmul.toml")


def searched(task: Task, strategy: str, effort: Effort) -> Tuning:
    """Search; what failed must not have won."""
    results = task.folder / f"{strategy}{effort.seed}.jsonl"
    cpu = select(["cpu"])
    found = tune(task, strategy, results=results, force=True, devices=cpu, effort=effort)
    failed = {each.label for each in found.candidates if each.outcome != "ok"}
    if found.winner is None or failed & {each.label for each in found.finalists}:
        sys.exit(f"{strategy}: a candidate that failed is a finalist, or none works")
    return found


def processor_s(results: Path, but: str | None = None) -> float:
    """Add up the processor time of all programs, and the whole time of those that were ended."""
    runs = {(each.id, each.started_at): each for each in read_results(results).records}
    seconds = 0.0
    for each in runs.values():
        if but is None or but not in each.key:
            printed = re.search(r"all: ([0-9.]+) ms", each.stdout_tail)
            seconds += float(printed[1]) / 1e3 if printed else each.seconds or 0.0
    return seconds


def duel(task: Task, whole: Tuning, found: Tuning) -> float:
    """Measure the winners of two searches in turns; say by how much the second is worse."""
    best, other = (each.winner.point for each in (whole, found) if each.winner is not None)
    if best == other:
        return 0.0
    two = replace(task, space=Space.of_points([best, other]), baseline=best)
    results = task.folder / "duel.jsonl"
    cpu = select(["cpu"])
    effort = Effort(n_runs=1)
    held = tune(two, results=results, force=True, devices=cpu, effort=effort, budget_s=1.0)
    costs = {label_of(each.point): each.value for each in held.finalists}
    return costs[label_of(other)] / costs[label_of(best)] - 1


def told(found: Tuning) -> str:
    """Say what won."""
    label = found.winner.label if found.winner else "none"
    return f"{label}, tied with {len(found.tied)}; finals {found.finals_s:.1f} s; {found.outcomes}"


if __name__ == "__main__":
    main()
