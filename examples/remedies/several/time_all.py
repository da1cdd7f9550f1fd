"""Time programs that are slow for two or three reasons, with each combination of them mended.

python examples/remedies/several/time_all.py OUT                # all programs
python examples/remedies/several/time_all.py OUT logged_training

A program is a file of this folder: its `REMEDIES`, and `made(mended)`, a step with some of them
mended. All forms are timed in turns without a profiler. Then the slow form is recorded, and its
plan is compared: what each line saves after those before it, and all of them together. Writes a
trace of each program and `several.jsonl` into OUT. Needs torch and a GPU, and tries small sizes
without one.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import traceback
from importlib import import_module
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent)]

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from longpole.answer import Verdict

# Rounds in which all forms are timed, and the time of each form in a round, in seconds.
ROUNDS = 7
TIMED_S = 0.15

RECORDED_STEPS = 3

Row = dict[str, Any]


def main() -> int:
    """Time the programs, one after another; one that fails stops no other."""
    parser = argparse.ArgumentParser(description="Time programs with several reasons.")
    parser.add_argument("output", type=Path, help="a folder")
    parser.add_argument("names", nargs="*", help="programs; all by default")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    with (options.output / "several.jsonl").open("w") as file:
        for name in options.names or programs():
            row = measured(name, options.output)
            file.write(json.dumps(row) + "\n")
            file.flush()
            sys.stdout.write(in_words(row) + "\n")
    return 0


def programs() -> list[str]:
    """List the programs of this folder."""
    return sorted(path.stem for path in HERE.glob("*.py") if path.stem != "time_all")


def measured(name: str, output: Path) -> Row:
    """Time all forms of a program and read its plan; a failure is a row, too."""
    import torch

    has_gpu = torch.cuda.is_available()
    device = torch.cuda.get_device_name() if has_gpu else "none"
    row: Row = {"name": name, "device": device, "torch": torch.__version__}
    wait = torch.cuda.synchronize if has_gpu else lambda: None
    try:
        program = import_module(name)
        chosen = [
            some
            for number in range(len(program.REMEDIES) + 1)
            for some in combinations(program.REMEDIES, number)
        ]
        forms = {" + ".join(some): program.made(some) for some in chosen}
        times_ms = in_turns(forms, wait)
        row["times_ms"] = {some: round(time_ms, 4) for some, time_ms in times_ms.items()}
        row["plan"] = judged(recorded(forms[""], output / f"{name}.json.gz"), times_ms)
    except Exception:  # noqa: BLE001 - the next program runs all the same
        row["error"] = traceback.format_exc()[-800:]
    return row


def in_turns(
    forms: Mapping[str, Callable[[], object]], wait: Callable[[], object]
) -> dict[str, float]:
    """Return the median time of a step of each form, in ms; all are timed in turns."""

    def timed_ms(step: Callable[[], object], number: int) -> float:
        wait()
        start_s = time.perf_counter()
        for _ in range(number):
            step()
        wait()
        return (time.perf_counter() - start_s) / number * 1e3

    for step in forms.values():
        timed_ms(step, 3)
    numbers = {
        name: max(2, min(200, int(TIMED_S * 1e3 / timed_ms(step, 2))))
        for name, step in forms.items()
    }
    times: dict[str, list[float]] = {name: [] for name in forms}
    for _ in range(ROUNDS):
        for name, step in forms.items():
            times[name].append(timed_ms(step, numbers[name]))
    return {name: statistics.median(found) for name, found in times.items()}


def recorded(step: Callable[[], object], path: Path) -> Verdict:
    """Record some steps, and return the verdict about the times without the profiler."""
    import longpole

    longpole.record(
        step, path, steps=RECORDED_STEPS, warm_up=1, timed_steps=2, overwrite=True, show=False
    )
    return longpole.read_trace(path).without_profiler().verdict()


def judged(verdict: Verdict, times_ms: Mapping[str, float]) -> list[Row]:
    """Compare the lines of a plan with the times; None where a line is not of this program."""
    rows: list[Row] = []
    mended: list[str] = []
    for line in verdict.plan.lines:
        if line.then is None or line.gain is None:
            continue
        before, mended = saved(mended, times_ms), [*mended, line.remedy]
        after = saved(mended, times_ms)
        is_known = before is not None and after is not None
        rows.append(
            {
                "remedy": line.remedy,
                "then": [line.then.low, line.then.high],
                "then_measured": after - before if is_known else None,
                "together": [line.gain.low, line.gain.high],
                "together_measured": after,
            }
        )
    return rows


def saved(mended: Sequence[str], times_ms: Mapping[str, float]) -> float | None:
    """Return what some remedies together saved, as a share; None if they were not timed."""
    names = {frozenset(name.split(" + ")) if name else frozenset(): name for name in times_ms}
    name = names.get(frozenset(mended))
    return None if name is None else 1 - times_ms[name] / times_ms[""]


def in_words(row: Row) -> str:
    """Return the times of a program and its plan beside what was measured, as lines to read."""
    if "error" in row:
        return f"{row['name']}: failed\n    " + row["error"].strip().replace("\n", "\n    ")
    lines = [f"{row['name']}:"]
    lines += [
        f"    {time_ms:9.3f} ms  {some or 'slow'}" for some, time_ms in row["times_ms"].items()
    ]
    for line in row["plan"]:
        low, high = (100 * part for part in line["then"])
        measured_part = line["then_measured"]
        told = "not timed" if measured_part is None else f"measured {100 * measured_part:.1f} %"
        lines.append(f"    plan: {line['remedy']} saves {low:.1f} to {high:.1f} % then; {told}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
