"""Walks through many inputs, in processes that are ended at a limit of time or memory."""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

from oracles.walker.sources import Source, found_sources, write_sources
from oracles.walker.walk import Walk

_MEMORY: Final = "/dev/shm"  # noqa: S108 - thousands of small files a second
_BLOCK: Final = 5_000
_LIMIT_BYTES: Final = 3 << 30
_MOST_CPU_S: Final = 20
_MOST_S: Final = 120
_STARTED: Final = ("socket.connect", "subprocess", "os.system", "os.exec", "os.posix_spawn")


def main() -> int:
    """Walk; return 1 if anything escaped."""
    options = _options()
    if options.worker:
        _work(options)
        return 0
    folder = Path(
        tempfile.mkdtemp(
            prefix="longpole-walk-",
            dir=options.folder or (_MEMORY if Path(_MEMORY).is_dir() else None),
        )
    )
    sources = _chosen(options, folder / "sources")
    (folder / "sources.json").write_text(
        json.dumps([[source.reader, source.kind, str(source.path)] for source in sources])
    )
    totals = _Totals(time.monotonic())
    at = options.first
    while at < options.first + options.n:
        end = min(at + _BLOCK, options.first + options.n)
        at = _block(folder, options, at, end, totals)
        totals.show(at - options.first)
    totals.show_all()
    if not totals.n_escaped:
        shutil.rmtree(folder)
    return int(totals.n_escaped > 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="oracles.walker", description=__doc__)
    parser.add_argument("n", type=int, help="number of inputs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--questions", type=int, default=1, help="about each input; 0 for all")
    parser.add_argument("--reader", action="append", help="only inputs of this reader")
    parser.add_argument("--also", type=Path, action="append", default=[], help="more inputs")
    parser.add_argument("--folder", type=Path, help="where to write inputs")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def _chosen(options: argparse.Namespace, folder: Path) -> list[Source]:
    sources = write_sources(folder)
    for also in options.also:
        sources += found_sources(also)
    return [each for each in sources if not options.reader or each.reader in options.reader]


class _Totals:
    """What all processes found."""

    def __init__(self, start_s: float) -> None:
        self._start_s = start_s
        self._inputs: Counter[str] = Counter()
        self._asked: Counter[str] = Counter()
        self._slowest_s, self._peak_kib = 0.0, 0
        self.n_escaped = 0

    def add(self, found: dict[str, Any]) -> None:
        self._inputs.update(found["inputs"])
        self._asked.update(found["asked"])
        self._slowest_s = max(self._slowest_s, found["slowest_s"])
        self._peak_kib = max(self._peak_kib, found["peak_kib"])

    def escaped(self, escape: dict[str, Any]) -> None:
        self.n_escaped += 1
        _tell(json.dumps(escape))

    def show(self, n_inputs: int) -> None:
        per_s = n_inputs / max(time.monotonic() - self._start_s, 1e-9)
        _tell(
            f"{n_inputs} inputs, {sum(self._asked.values())} questions, {self.n_escaped} escaped, "
            f"{per_s:.0f}/s, slowest {self._slowest_s:.1f} s, peak {self._peak_kib >> 10} MiB"
        )

    def show_all(self) -> None:
        for counted in (self._inputs, self._asked):
            _tell("".join(f"{count:>8}  {name}\n" for name, count in sorted(counted.items())))


def _tell(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - what the program is for


def _block(folder: Path, options: argparse.Namespace, at: int, end: int, totals: _Totals) -> int:
    """Walk from one number to another in a process; return where to go on."""
    command = [sys.executable, "-m", "oracles.walker", str(end - at), "--first", str(at)]
    command += ["--seed", str(options.seed), "--questions", str(options.questions)]
    environment = {**os.environ, "POLARS_MAX_THREADS": "1", "RAYON_NUM_THREADS": "1"}
    with subprocess.Popen(
        [*command, "--worker", str(folder)], stdout=subprocess.PIPE, env=environment, text=True
    ) as process:
        assert process.stdout is not None
        number, question = at, "start"
        is_done = False
        for line in process.stdout:
            kind, _, rest = line.partition(" ")
            if kind == "at":
                number, question = json.loads(rest)
            elif kind == "escape":
                totals.escaped(json.loads(rest))
            elif kind == "found":
                totals.add(json.loads(rest))
                is_done = True
    if is_done:
        return end
    code = process.returncode
    how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    last = (folder / "stderr").read_text(errors="replace")[-600:]
    what = f"the process ended: {how}: {last}"
    totals.escaped({"number": number, "question": question, "what": what})
    return number + 1


def _work(options: argparse.Namespace) -> None:
    """Walk in this process, with limits; each line of stdout says how far it is."""
    stdout = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(options.worker / "stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 2)
    os.dup2(2, 1)
    resource.setrlimit(resource.RLIMIT_DATA, (_LIMIT_BYTES, _LIMIT_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    folder = options.worker
    rows = json.loads((folder / "sources.json").read_text())
    sources = [Source(reader, kind, Path(path)) for reader, kind, path in rows]
    trace = folder / "sources/kineto/by_hand.json"
    walk = Walk(sources, folder, options.seed, trace)
    did: list[str] = []
    sys.addaudithook(lambda event, _: did.append(event) if event.startswith(_STARTED) else None)

    def say(kind: str, what: object) -> None:
        stdout.write(f"{kind} {json.dumps(what)}\n")
        stdout.flush()

    def before(number: int, question: str) -> None:
        say("at", [number, question])
        signal.setitimer(signal.ITIMER_PROF, _MOST_CPU_S)
        signal.setitimer(signal.ITIMER_REAL, _MOST_S)

    for number in range(options.first, options.first + options.n):
        n_before = len(walk.escapes)
        walk.step(number, options.questions or None, before)
        for escape in walk.escapes[n_before:]:
            say("escape", vars(escape))
        if did:
            say("escape", {"number": number, "what": f"did {did.pop()}"})
    stdout.write(f"found {walk.to_json()}\n")
    stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
