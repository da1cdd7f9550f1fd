"""Measure what remedies save, beside what longpole predicts from a trace of the slow program.

python examples/remedies/measure.py OUT                 # all programs, about 4 s each
python examples/remedies/measure.py OUT cuda_graph      # some of them
python examples/remedies/measure.py OUT --again         # predict again from the traces of OUT

A program is a file of this folder. It has a `slow` and a `mended` form, which are timed in turns
without a profiler and then recorded, and names the `REMEDY` between them; or it is a `program`
that only looks as if remedies would help, and lists them as `NOT`. Writes a trace of each form,
`results.jsonl` and `evidence.jsonl` into OUT; the last belongs into `python/longpole/remedies`.
Needs torch and a GPU, and tries small sizes without one.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import subprocess
import sys
import time
import traceback
import warnings
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.answer import Verdict

    Step = Callable[[], object]

# The longest that a program may take, and the time that its two forms are timed for, in seconds.
LIMIT_S = 90.0
TIMED_S = 1.2
ROUNDS = 7

RECORDED_STEPS = 3

Row = dict[str, Any]


def main() -> int:
    """Measure each program in a process that the next one shares, unless it fails."""
    options = _parser().parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    names = options.names or _programs()
    results = options.output / "results.jsonl"
    if options.here:
        for name in names:
            row = measured(name, options.output)
            with results.open("a") as file:
                file.write(json.dumps(row) + "\n")
            sys.stdout.write(in_words(row) + "\n")
            sys.stdout.flush()
            if "error" in row:
                return 1  # what a failure leaves may break the next program
        return 0
    if options.again:
        rows = [predicted_again(json.loads(line), options.output) for line in _lines(results)]
        results.write_text("".join(json.dumps(row) + "\n" for row in rows))
        _write_evidence(results)
        return 0
    results.unlink(missing_ok=True)
    end_s = time.monotonic() + options.seconds
    while names and time.monotonic() < end_s:
        is_over = _run_in_process(names, options.output, results, end_s)
        done = [json.loads(line)["name"] for line in _lines(results)]
        if names[0] not in done and not is_over:
            row = {"name": names[0], "error": "the process ended, or took too long"}
            with results.open("a") as file:
                file.write(json.dumps(row) + "\n")
            sys.stdout.write(in_words(row) + "\n")
            done.append(names[0])
        names = [name for name in names if name not in done]
    if names:
        sys.stdout.write(f"not run: {', '.join(names)}\n")
    _write_evidence(results)
    return 0


def _run_in_process(names: list[str], output: Path, results: Path, end_s: float) -> bool:
    """Run programs until one fails or takes too long; return whether the time is over."""
    command = [sys.executable, __file__, str(output), *names, "--here"]
    with subprocess.Popen(command) as process:  # noqa: S603 - this file
        n_done, since_s = len(_lines(results)), time.monotonic()
        while process.poll() is None:
            time.sleep(0.1)
            if len(_lines(results)) > n_done:
                n_done, since_s = len(_lines(results)), time.monotonic()
            if time.monotonic() > min(since_s + LIMIT_S, end_s):
                process.kill()
    return time.monotonic() > end_s


def predicted_again(row: Row, output: Path) -> Row:
    """Predict again from the traces of a program: measured times stay, and what was said first."""
    if "error" in row:
        return row
    name = row["name"]
    traces = (
        {"slow": name} if "not" in row else {"slow": f"{name}.slow", "mended": f"{name}.mended"}
    )
    row.setdefault("first", row["slow"])
    row |= {form: _predicted(output / f"{trace}.json.gz") for form, trace in traces.items()}
    sys.stdout.write(in_words(row) + "\n")
    return row


def _write_evidence(results: Path) -> None:
    """Write what was measured and predicted of each remedy, as longpole shows it."""
    rows = [json.loads(line) for line in _lines(results)]
    pairs = [row for row in rows if "remedy" in row and "error" not in row]
    rows = sorted(map(_evidence, pairs), key=lambda row: (row["remedy"], row["program"]))
    text = "".join(json.dumps(row) + "\n" for row in rows)
    results.with_name("evidence.jsonl").write_text(text)


def _evidence(row: Row) -> Row:
    first = _found(row.get("first", row["slow"]), row["remedy"])
    now = _found(row["slow"], row["remedy"])
    return {
        **{key: row[key] for key in ("remedy", "device", "torch", "date")},
        "program": row["name"],
        "slow_ms": round(row["slow_ms"], 3),
        "mended_ms": round(row["mended_ms"], 3),
        "gain": [round(gain, 3) for gain in row["gain"]],
        "predicted_first": _gain(first),
        "predicted": _gain(now),
        "is_named_first": _is_named(first),
        "is_named": _is_named(now),
        "is_named_after": _is_named(_found(row["mended"], row["remedy"])),
    }


def _found(said: Row, remedy: str) -> Row | None:
    """Return what a verdict says of a remedy, without the cost of recording."""
    found = (it for it in said["without_profiler"]["remedies"] if it["remedy"] == remedy)
    return next(found, None)


def _gain(found: Row | None) -> list[float] | None:
    """Return the predicted interval; None where a remedy is not found, or only said."""
    is_said = found is not None and _is_named(found) and not any(found["gain"])
    return None if found is None or is_said else found["gain"]


def _is_named(found: Row | None) -> bool:
    return found is not None and found.get("named", True)


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def _programs() -> list[str]:
    """List the programs: those with remedies, then those without, and what compiles last."""
    names = {path.stem for path in Path(__file__).parent.glob("*.py")} - {
        "measure",
        "models",
        "ranks",
    }
    last = ("compile", "graph_breaks")
    return sorted(names, key=lambda name: (name.startswith(last), name.startswith("decoy"), name))


def measured(name: str, output: Path) -> Row:
    """Measure one program; a failure is a row, too."""
    import torch

    row: Row = {"name": name, **_where(torch)}
    program: Any = None
    start_s = time.monotonic()
    try:
        program = import_module(name)
        if hasattr(program, "program"):
            row |= {"not": list(program.NOT), "slow": _recorded(program.program(), name, output)}
        else:
            row |= {"remedy": program.REMEDY, **_pair(torch, program, name, output)}
    except Exception:  # noqa: BLE001 - the next program runs all the same
        row["error"] = traceback.format_exc()[-800:]
    finally:
        getattr(program, "close", lambda: None)()
        gc.collect()
        if torch.cuda.is_available() and "error" not in row:
            torch.cuda.empty_cache()
    return row | {"seconds": round(time.monotonic() - start_s, 1)}


def _where(torch: Any) -> Row:
    has_gpu = torch.cuda.is_available()
    return {
        "device": torch.cuda.get_device_name() if has_gpu else "none",
        "torch": torch.__version__,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }


def _pair(torch: Any, program: Any, name: str, output: Path) -> Row:
    """Time both forms in turns, then record both."""
    slow, mended = program.slow(), program.mended()
    row = _in_turns(torch, slow, mended)
    row["slow"] = _recorded(slow, f"{name}.slow", output)
    row["mended"] = _recorded(mended, f"{name}.mended", output)
    return row


def _in_turns(torch: Any, slow: Step, mended: Step) -> Row:
    """Return the times of a step without a profiler, and the gain of each pair of timings."""

    def timed_ms(step: Step, number: int) -> float:
        _wait(torch)
        start_s = time.perf_counter()
        for _ in range(number):
            step()
        _wait(torch)
        return (time.perf_counter() - start_s) / number * 1e3

    for step in (slow, mended):
        timed_ms(step, 3)
    once_ms = timed_ms(slow, 2) + timed_ms(mended, 2)
    number = max(2, min(40, int(TIMED_S * 1e3 / ROUNDS / once_ms)))
    pairs = [(timed_ms(slow, number), timed_ms(mended, number)) for _ in range(ROUNDS)]
    gains = sorted(1 - mended_ms / slow_ms for slow_ms, mended_ms in pairs)
    return {
        "slow_ms": statistics.median(slow_ms for slow_ms, _ in pairs),
        "mended_ms": statistics.median(mended_ms for _, mended_ms in pairs),
        "gain": [statistics.median(gains), gains[1], gains[-2]],
    }


def _wait(torch: Any) -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _recorded(step: Step, name: str, output: Path) -> Row:
    """Record some steps, and return what their verdict says."""
    import longpole

    path = output / f"{name}.json.gz"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", longpole.RecordingWarning)
        longpole.record(
            step,
            path,
            steps=RECORDED_STEPS,
            warm_up=1,
            timed_steps=2,
            overwrite=True,
            show=False,
        )
    return _predicted(path)


def _predicted(path: Path) -> Row:
    """Return what the verdict of a trace says, as recorded and corrected."""
    import longpole

    trace = longpole.read_trace(path)
    return {
        "kilobytes": round(path.stat().st_size / 1e3),
        "as_recorded": _said(trace.verdict()),
        "without_profiler": _said(trace.without_profiler().verdict()),
    }


def _said(verdict: Verdict) -> Row:
    """Return what a verdict says: the sentence, and the remedies that it finds."""
    return {
        "sentence": verdict.sentence,
        "step_ms": verdict.window.length_ns / 1e6,
        "remedies": [
            {
                "remedy": found.remedy,
                "named": found.named,
                "gain": [round(found.gain.low, 4), round(found.gain.high, 4)],
                "advice": found.advice,
            }
            for found in verdict.remedies
        ],
    }


def in_words(row: Row) -> str:
    """Return a row as lines to read: measured, predicted, and what is still said afterwards."""
    if "error" in row:
        return f"{row['name']}: failed\n    " + row["error"].strip().replace("\n", "\n    ")
    named = [it for it in row["slow"]["without_profiler"]["remedies"] if it["named"]]
    lines = [
        f"    {found['remedy']} {_percent(*found['gain'])}: {found['advice']}" for found in named
    ]
    if "not" in row:
        wrong = [found["remedy"] for found in named if found["remedy"] in row["not"]]
        return "\n".join([f"{row['name']}: wrongly named: {', '.join(wrong) or 'none'}", *lines])
    names = [found["remedy"] for found in named]
    mended = row["mended"]["without_profiler"]["remedies"]
    after = [found["remedy"] for found in mended if found["named"]]
    place = names.index(row["remedy"]) + 1 if row["remedy"] in names else None
    gain, least, most = row["gain"]
    text = (
        f"{row['name']}: {row['slow_ms']:.2f} -> {row['mended_ms']:.2f} ms, "
        f"gain {_percent(gain)} ({_percent(least, most)}); {row['remedy']} is "
        f"{'not named' if place is None else f'named in place {place}'}, and "
        f"{'still' if row['remedy'] in after else 'not'} after mending"
    )
    return "\n".join([text, *lines])


def _percent(least: float, most: float | None = None) -> str:
    if most is None or round(100 * least) == round(100 * most):
        return f"{100 * least:.1f} %"
    return f"{100 * least:.1f} to {100 * most:.1f} %"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Measure what remedies save.")
    parser.add_argument("output", type=Path, help="a folder")
    parser.add_argument("names", nargs="*", help="programs; all by default")
    parser.add_argument("--seconds", type=float, default=600.0, help="stop after this time")
    parser.add_argument("--again", action="store_true", help="predict again, without measuring")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
