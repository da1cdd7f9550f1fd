"""How often verdicts on real processes are right, on the machine at hand, as its users ask.

python benches/bench_verdicts.py --trials 20
python benches/bench_verdicts.py --trials 40 --load --only turns
python benches/bench_verdicts.py --minutes 7.5     # as many trials as fit, most of them in turns

Every verdict comes from `longpole bench time` and `longpole bench compare`; the table counts them.
Where no change was planted, `slower` and `faster` are false. The rate of a row is that of wrong
claims where nothing was planted, else that of changes found, with its 95 % limits (Wilson). With
`--load` another process keeps a core busy in bursts. pyperf and hyperfine judge the same functions
where they are installed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Judge: TypeAlias = Callable[[str, int], tuple[str, float]]

LONGPOLE = [sys.executable, "-m", "longpole", "bench"]
WORKLOADS = """
import hashlib
DATA = bytes(1 << 16)

def loop(n=1000):
    total = 0
    for number in range(n):
        total += number * number
    return total

def loop_again(): return loop(1000)
def loop_base(): return loop(1000)
def loop_3(): return loop(1030)
def loop_10(): return loop(1100)

def table(n=1000):
    return {str(number): number for number in range(n)}

def table_again(): return table(1000)
def table_base(): return table(1000)
def table_3(): return table(1030)
def table_10(): return table(1100)

def digest(n=100):
    for _ in range(n):
        hashlib.sha256(DATA[:4096]).digest()

def digest_again(): return digest(100)
def digest_base(): return digest(100)
def digest_3(): return digest(103)
def digest_10(): return digest(110)
"""
KINDS = ("loop", "table", "digest")
BURSTS = """
import time
while True:
    end = time.time() + 0.2
    while time.time() < end:
        pass
    time.sleep(0.2)
"""


def main() -> int:
    """Print a table of designs and planted changes."""
    options = parser().parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder, loaded(is_loaded=options.load):
        Path(folder, "workloads_here.py").write_text(WORKLOADS)
        os.chdir(folder)
        head = ["design", "change", "trials", "slower", "faster", "same", "inconclusive"]
        print(f"| {' | '.join([*head, 'rate', 'limits', 's a verdict'])} |")
        print("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|", flush=True)
        for name, planted, judge in designs():
            if not options.only or any(part in name for part in options.only):
                show(name, planted, list(trials(options, name, planted, judge)))
        print(f"\nload average: {os.getloadavg()[0]:.1f} at the end, {load:.1f} at the beginning")
    return 0


def trials(
    options: argparse.Namespace, name: str, planted: str, judge: Judge
) -> Iterator[tuple[str, float]]:
    """Ask as often as was wanted, or for as long as this row may take."""
    if options.minutes is None:
        yield from (judge(planted, trial) for trial in range(options.trials))
        return
    weights = {(each, change): weight(each, change) for each, change, _ in designs()}
    seconds = 60 * options.minutes * weights[name, planted] / sum(weights.values())
    deadline = time.monotonic() + seconds
    trial = 0
    longest_s = 0.0
    while time.monotonic() + longest_s / 2 < deadline or trial == 0:
        answer = judge(planted, trial)
        longest_s = max(longest_s, answer[1])
        trial += 1
        yield answer


def weight(name: str, planted: str) -> float:
    """Say how much of the time a row deserves."""
    shares = {"turns": 4.0, "one": 0.5, "separate": 1.5, "commands": 1.0}
    first = name.split(maxsplit=1)[0].strip(",")
    return shares.get(first, 0.4) * {"again": 4.0, "3": 2.5, "10": 1.0}[planted]


def limits(count: int, n: int) -> tuple[float, float]:
    """Give the 95 % limits of a rate (Wilson)."""
    z = 1.96
    middle = (count + z**2 / 2) / (n + z**2)
    half = z / (n + z**2) * (count * (n - count) / n + z**2 / 4) ** 0.5
    return max(0.0, middle - half), min(1.0, middle + half)


def designs() -> Iterator[tuple[str, str, Judge]]:
    """Give each way to ask, the change that is planted, and what asks."""
    for planted in ("again", "3", "10"):
        yield "turns, gate 1 %", planted, in_turns
    yield "one run a side", "10", one_run
    for planted in ("again", "10"):
        yield "separate, 10 a side, gate 3 %", planted, separate
    for planted in ("again", "3", "10"):
        yield "commands in turns, gate 1 %", planted, commands
    if find_spec("pyperf"):
        for planted in ("again", "3", "10"):
            yield "pyperf, 10 processes a side", planted, pyperf
    if shutil.which("hyperfine"):
        for planted in ("again", "3", "10"):
            yield "hyperfine, intervals of 2 sd apart", planted, hyperfine


def named(kind: str, what: str) -> str:
    """Name a function of the workloads."""
    return f"workloads_here:{kind}_{what}"


def verdict_of(*arguments: str) -> str:
    """Ask for a comparison, and give its verdict."""
    command = [*LONGPOLE, *arguments, "--json"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    return json.loads(answer.stdout)["data"]["differences"][0]["verdict"]


def timed(judge: Callable[[str, str], str]) -> Judge:
    """Say how long a verdict took as well."""

    def ask(planted: str, trial: int) -> tuple[str, float]:
        begin = time.monotonic()
        return judge(planted, KINDS[trial % len(KINDS)]), time.monotonic() - begin

    return ask


@timed
def in_turns(planted: str, kind: str) -> str:
    """Compare two functions that share processes."""
    return verdict_of("time", named(kind, "base"), named(kind, planted), "--gate", "1%")


@timed
def one_run(planted: str, kind: str) -> str:
    """Compare one process with one other."""
    names = named(kind, "base"), named(kind, planted)
    return verdict_of("time", *names, "--runs", "1", "--gate", "1%")


@timed
def separate(planted: str, kind: str) -> str:
    """Compare processes of one side with later ones of the other."""
    for side, what in (("a", "base"), ("b", planted)):
        command = [*LONGPOLE, "time", named(kind, what), "--runs", "10", "-o", f"{side}.jsonl"]
        subprocess.run([*command, "-f"], capture_output=True, check=True)
    keys = ["--base-key", named(kind, "base"), "--new-key", named(kind, planted)]
    return verdict_of("compare", "a.jsonl", "b.jsonl", *keys, "--gate", "3%")


def python_of(kind: str, what: str) -> list[str]:
    """Give a command that runs a function so often that it takes some 30 ms."""
    n_calls = {"loop": 400, "table": 150, "digest": 60}[kind]
    code = f"import workloads_here as w\nfor _ in range({n_calls}): w.{kind}_{what}()"
    return [sys.executable, "-S", "-c", code]


@timed
def commands(planted: str, kind: str) -> str:
    """Compare two programs."""
    texts = [" ".join(map(quoted, python_of(kind, what))) for what in ("base", planted)]
    return verdict_of("time", "-c", texts[0], "-c", texts[1], "--gate", "1%")


def quoted(word: str) -> str:
    """Write a word for a command line."""
    return f"'{word}'" if re.search(r"[^\w/.-]", word) else word


@timed
def pyperf(planted: str, kind: str) -> str:
    """Have pyperf compare, as its documentation does."""
    for side, what in (("a", "base"), ("b", planted)):
        Path(f"{side}.json").unlink(missing_ok=True)
        setup = f"import sys; sys.path.insert(0, {str(Path.cwd())!r}); import workloads_here as w"
        command = [sys.executable, "-m", "pyperf", "timeit", "-s", setup, f"w.{kind}_{what}()"]
        limits = ["-p", "10", "--name", "it", "-o", f"{side}.json"]
        subprocess.run([*command, *limits], capture_output=True, check=True)
    command = [sys.executable, "-m", "pyperf", "compare_to", "a.json", "b.json"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for word in ("slower", "faster"):
        if word in said:
            return word
    return "same" if "ot significant" in said else "inconclusive"


@timed
def hyperfine(planted: str, kind: str) -> str:
    """Read the means and deviations of hyperfine, which gives no verdict."""
    texts = [" ".join(map(quoted, python_of(kind, what))) for what in ("base", planted)]
    command = ["hyperfine", "-N", "--export-json", "h.json", *texts]
    subprocess.run(command, capture_output=True, check=True)
    base, new = json.loads(Path("h.json").read_text())["results"]
    apart = new["mean"] - base["mean"]
    spread = 2 * (base["stddev"] + new["stddev"])
    if abs(apart) <= spread:
        return "inconclusive"
    return "slower" if apart > 0 else "faster"


@contextlib.contextmanager
def loaded(*, is_loaded: bool) -> Iterator[None]:
    """Keep a core busy in bursts."""
    if not is_loaded:
        yield
        return
    process = subprocess.Popen([sys.executable, "-c", BURSTS])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def show(name: str, planted: str, found: list[tuple[str, float]]) -> None:
    """Print a row, in counts."""
    counts = Counter(verdict for verdict, _ in found)
    rows = [counts[each] for each in ("slower", "faster", "same", "inconclusive")]
    change = "none" if planted == "again" else f"{planted} % slower"
    count = rows[0] + rows[1] if planted == "again" else rows[0]
    low, high = limits(count, len(found))
    rate = [f"{100 * count / len(found):.0f} %", f"{100 * low:.0f} to {100 * high:.0f} %"]
    seconds = f"{median(seconds for _, seconds in found):.1f}"
    cells = [name, change, len(found), *rows, *rate, seconds]
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def parser() -> argparse.ArgumentParser:
    """Say what can be asked for."""
    found = argparse.ArgumentParser(description="Judge verdicts on real processes.")
    found.add_argument("--trials", type=int, default=20)
    found.add_argument("--minutes", type=float, help="as many trials as fit in so long")
    found.add_argument("--only", action="append", help="designs with this in their name")
    found.add_argument("--load", action="store_true", help="beside a process that works in bursts")
    return found


if __name__ == "__main__":
    raise SystemExit(main())
