"""Damages inputs of every reader and asks every command and table about them; nothing escapes.

    PYTHONPATH=tests python -m oracles.walker SECONDS [SEED]

prints how many inputs and questions there were, and each that ended with an error of longpole's
own, took more than ten seconds of CPU time or more than a gigabyte.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import shutil
import sqlite3
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import longpole
from ascend_profiles import write_database
from longpole.analyses.questions import questions
from longpole.bench.tune import read_cache
from longpole.cli import program
from longpole.cli.answer import exit_codes
from oracles.simulator.nsight import write_nsight
from oracles.simulator.perfetto import perfetto
from oracles.simulator.rocpd import write_rocpd, write_rocprof_json
from oracles.simulator.rocprof_csv import write_rocprof_csv
from oracles.simulator.run import simulate

if TYPE_CHECKING:
    from collections.abc import Iterator

EXTREMES: Final = (
    *(None, True, "", "x" * 300, "\0", "nan", [], {}, [[0]], {"a": 1}, 0, -1, 0.5, -0.0),
    *(
        2**31,
        2**53,
        2**62,
        2**63 - 1,
        2**63,
        -(2**63),
        10**30,
        1e308,
        1e-308,
        4_611_686_018_427_386,
    ),
)
CELLS: Final = ("text", "", 0.5, 1e308, float("inf"), b"\xff\x00", 0, -1, 2**62, 2**63 - 1, None)
COMMANDS: Final = (
    *(["summary"], ["summary", "--whole"], ["check"], ["path"], ["path", "--whole"]),
    *(["whatif", "--ideal"], ["serving"], ["diff"], ["ranks"], ["report"], ["convert"]),
    *(["chakra", "check"], ["chakra", "show"], ["chakra", "replay"], ["mindspore", "summary"]),
)
_MEMORY: Final = (["table", "memory"], ["table", "memory_curve"], ["table", "memory_churn"])
ABOUT: Final = {
    "memory.raw.json": _MEMORY,
    "snapshot.json": _MEMORY,
    "nccl_trace_rank_0": (["ranks"], ["check"], ["summary"]),
    "kernel_tuner.json": (["check"],),
}
"""What is asked about files that are not traces."""
_MOST_SECONDS: Final = 10
_MOST_KIB: Final = 1 << 20


@dataclass(frozen=True)
class Escape:
    """A question that did not end as questions must."""

    source: str
    question: str
    what: str


def write_sources(folder: Path) -> list[Path]:
    """Write a sound input for each reader; return the files."""
    run = simulate("training", seed=1, steps=2, shapes=True, python_frames=True)
    run.write(folder / "kineto.json")
    write_nsight(run, folder / "nsight.sqlite")
    write_rocpd(run, folder / "rocpd.db")
    write_rocprof_json(run, folder / "rocprof.json")
    (folder / "csv").mkdir()
    write_rocprof_csv(run, folder / "csv")
    csv = sorted((folder / "csv").rglob("*.csv"))
    (folder / "perfetto.pftrace").write_bytes(perfetto(run.events))
    write_database(folder / "ascend_pytorch_profiler_0.db")
    longpole.read_trace(folder / "kineto.json").save(folder / "saved.longpole")
    (folder / "memory.raw.json").write_text(json.dumps([[n, 1, 8 * n, n % 8] for n in range(30)]))
    (folder / "snapshot.json").write_text(json.dumps(_snapshot()))
    (folder / "nccl_trace_rank_0").write_text(json.dumps(_dump()))
    (folder / "kernel_tuner.json").write_text(json.dumps(_cache()))
    files = [path for path in sorted(folder.iterdir()) if path.is_file()]
    return [*files, *csv[-1:]]


def _snapshot() -> dict[str, Any]:
    frames = [{"filename": "train.py", "line": 3, "name": "step"}]
    block = {"size": 8, "state": "active_allocated", "frames": frames}
    event = {"action": "alloc", "addr": 7, "size": 8, "time_us": 5, "frames": frames}
    segment = {"device": 0, "total_size": 64, "blocks": [block]}
    return {
        "segments": [segment],
        "device_traces": [[event, {**event, "action": "free_completed"}]],
    }


def _dump() -> dict[str, Any]:
    entry = {
        "record_id": 1,
        "process_group": ["0", "default_pg"],
        "collective_seq_id": 1,
        "p2p_seq_id": 0,
        "profiling_name": "nccl:all_reduce",
        "input_sizes": [[10, 4]],
        "input_dtypes": ["Float"],
        "state": "scheduled",
        "is_p2p": False,
        "time_created_ns": 1,
    }
    entries = [entry, entry | {"record_id": 2, "collective_seq_id": 2, "state": "started"}]
    return {"pg_config": {"0": {"name": "0", "desc": "d", "ranks": "[0, 1]"}}, "entries": entries}


def _cache() -> dict[str, Any]:
    runs = {str(n): {"b": n, "time": 1.5, "times": [1.5, 1.6]} for n in range(4)}
    return {"tune_params_keys": ["b"], "tune_params": {"b": [0, 1, 2, 3]}, "cache": runs}


def damage(source: Path, target: Path, chance: random.Random) -> None:
    """Write a source with one to three changes: of its values, or of its bytes."""
    shutil.copyfile(source, target)
    of_values = {".json": _json, ".db": _database, ".sqlite": _database, "": _json}
    change = of_values.get(source.suffix, _bytes)
    for _ in range(chance.randint(1, 3)):
        with contextlib.suppress(ValueError, sqlite3.Error):
            (change if chance.random() < 0.8 else _bytes)(target, chance)


def _json(path: Path, chance: random.Random) -> None:
    document = json.loads(path.read_bytes())
    inner = document
    while isinstance(inner, dict | list) and inner:
        key = chance.choice(list(inner) if isinstance(inner, dict) else range(len(inner)))
        if not isinstance(inner[key], dict | list) or not inner[key] or chance.random() < 0.1:
            inner[key] = chance.choice(EXTREMES)
            break
        inner = inner[key]
    path.write_text(json.dumps(document))


def _database(path: Path, chance: random.Random) -> None:
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        names = "SELECT name FROM sqlite_master WHERE type = 'table'"
        table = chance.choice([name for (name,) in database.execute(names)])
        columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
        rows = [row[0] for row in database.execute(f'SELECT rowid FROM "{table}"')]  # noqa: S608
        if rows:
            change = f'UPDATE "{table}" SET "{chance.choice(columns)}" = ? WHERE rowid = ?'  # noqa: S608
            database.execute(change, (chance.choice(CELLS), chance.choice(rows)))


def _bytes(path: Path, chance: random.Random) -> None:
    content = bytearray(path.read_bytes())
    at, length = chance.randrange(len(content) + 1), chance.randrange(64)
    match chance.randrange(4):
        case 0:
            del content[at : at + length]
        case 1:
            content[at : at + length] = chance.randbytes(length)
        case 2:
            del content[at:]
        case _:
            content[at:at] = content[: chance.randrange(200)]
    path.write_bytes(content)


def asked(question: list[str]) -> str | None:
    """Ask a question; return how it escaped, or None."""
    out, err = io.StringIO(), io.StringIO()
    start_s = time.process_time()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = program.run(question)
    except BaseException as error:  # noqa: BLE001 - what escapes is what is looked for
        return f"{type(error).__name__}: {error}"[:300]
    if code == exit_codes.INTERNAL:
        return err.getvalue()[:300]
    took_s = time.process_time() - start_s
    return f"took {took_s:.0f} s" if took_s > _MOST_SECONDS else None


def questions_about(
    path: Path, folder: Path, chance: random.Random, n: int | None = None
) -> Iterator[list[str]]:
    """Return some commands and tables, or all of them."""
    tables = [["table", name] for name in sorted(questions())]
    asked = ABOUT.get(path.name, [*COMMANDS, *tables])
    for word, *rest in chance.sample(asked, len(asked) if n is None else min(n, len(asked))):
        match word:
            case "ranks" if path.name in ABOUT:
                yield [word, str(path)]
            case "diff" | "ranks":
                yield [word, str(path), str(path), *rest]
            case "report":
                yield [word, str(path), "-o", str(folder / "out.html"), "-f"]
            case "convert":
                yield [word, str(path), "-o", str(folder / "out.longpole"), "-f"]
            case "chakra" | "mindspore":
                yield [word, *rest, str(path)]
            case _:
                yield [word, str(path), *rest]


def walk(folder: Path, seed: int, n_inputs: int, n_questions: int = 4) -> tuple[int, list[Escape]]:
    """Damage inputs and ask about them; return how many questions there were, and what escaped."""
    sources = write_sources(folder)
    chance = random.Random(seed)  # noqa: S311 - damage, not secrets
    n_asked, escapes = 0, []
    for _ in range(n_inputs):
        source = chance.choice(sources)
        inner = Path(tempfile.mkdtemp(dir=folder))
        path = inner / source.name
        damage(source, path, chance)
        for question in questions_about(path, inner, chance, n_questions):
            n_asked += 1
            if what := asked(question):
                escapes.append(Escape(str(path), " ".join(question[:1] + question[2:]), what))
        if source.name == "kernel_tuner.json":
            with contextlib.suppress(ValueError):
                read_cache(path)
        if not any(escape.source == str(path) for escape in escapes):
            shutil.rmtree(inner)
    return n_asked, escapes


def main() -> int:
    """Walk for some seconds; return 1 if anything escaped."""
    import resource

    seconds, seed = float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    folder = Path(tempfile.mkdtemp(prefix="longpole-walk-"))
    end_s = time.monotonic() + seconds
    n_inputs = n_asked = n_escaped = 0
    while time.monotonic() < end_s:
        part = folder / str(seed)
        part.mkdir()
        n, escapes = walk(part, seed, 50)
        n_inputs, n_asked, seed = n_inputs + 50, n_asked + n, seed + 1
        n_escaped += len(escapes)
        for escape in escapes:
            line = json.dumps([escape.source, escape.question, escape.what])
            print(line, flush=True)  # noqa: T201 - what the program is for
        if not escapes:
            shutil.rmtree(part)
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    told = f"{n_inputs} inputs, {n_asked} questions, {n_escaped} escaped"
    print(f"{told}, peak {peak_kib >> 10} MiB")  # noqa: T201
    return int(n_escaped > 0 or peak_kib > _MOST_KIB)


if __name__ == "__main__":
    sys.exit(main())
