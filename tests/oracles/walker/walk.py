"""Walks through damaged inputs: makes each from its number, and asks about it."""

from __future__ import annotations

import json
import random
import shutil
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from oracles.walker.asking import asked, questions_about
from oracles.walker.damage import damage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from oracles.walker.sources import Source

_MOST_SECONDS: Final = 10
_MOST_KIB: Final = 1 << 20
_STATUS: Final = Path("/proc/self/status")
_RESET: Final = Path("/proc/self/clear_refs")


@dataclass(frozen=True)
class Escape:
    """A question that did not end as questions must."""

    number: int
    reader: str
    question: str
    what: str


@dataclass
class Walk:
    """Inputs of a seed, by number; what was asked, and what escaped."""

    sources: Sequence[Source]
    folder: Path
    seed: int
    trace: Path
    n_inputs: Counter[str] = field(default_factory=Counter)
    n_asked: Counter[str] = field(default_factory=Counter)
    escapes: list[Escape] = field(default_factory=list)
    slowest_s: float = 0.0
    peak_kib: int = 0

    def step(
        self,
        number: int,
        n_questions: int | None = 1,
        before: Callable[[int, str], None] = lambda *_: None,
    ) -> None:
        """Damage one input, and ask about it; `before` is called before each question."""
        chance = random.Random(f"{self.seed}-{number}")  # noqa: S311 - damage, not secrets
        source, path = self.made(number, chance)
        if not self.ask(source, path, chance, n_questions, number, before):
            shutil.rmtree(path.parent)

    def ask(  # noqa: PLR0917 - the last two are of a walk
        self,
        source: Source,
        path: Path,
        chance: random.Random,
        n_questions: int | None,
        number: int = 0,
        before: Callable[[int, str], None] = lambda *_: None,
    ) -> int:
        """Ask some questions about an input, or all of them; return how many escaped."""
        self.n_inputs[source.reader] += 1
        out = self.folder / "out"
        out.mkdir(exist_ok=True)
        n_before = len(self.escapes)
        for question in questions_about(source.kind, chance, n_questions):
            before(number, f"{source.reader}: {' '.join(question)}")
            _reset_peak()
            start_s = time.process_time()
            what = asked(question, path, out, self.trace)
            took_s, kib = time.process_time() - start_s, _peak_kib()
            self.slowest_s, self.peak_kib = max(self.slowest_s, took_s), max(self.peak_kib, kib)
            self.n_asked[_name_of(question)] += 1
            if what is None and took_s > _MOST_SECONDS:
                what = f"took {took_s:.0f} s"
            if what is None and kib > _MOST_KIB:
                what = f"took {kib >> 10} MiB"
            if what is not None:
                self.escapes.append(Escape(number, source.reader, " ".join(question), what))
        shutil.rmtree(out)
        return len(self.escapes) - n_before

    def made(self, number: int, chance: random.Random) -> tuple[Source, Path]:
        """Write the damaged input of a number; return its source and where it is."""
        reader = chance.choice(sorted({source.reader for source in self.sources}))
        source = chance.choice([each for each in self.sources if each.reader == reader])
        inner = self.folder / str(number)
        shutil.rmtree(inner, ignore_errors=True)
        inner.mkdir()
        path = inner / source.path.name
        if source.path.is_dir():
            shutil.copytree(source.path, path, copy_function=shutil.copyfile)
        else:
            shutil.copyfile(source.path, path)
        files = source.files
        for file in chance.sample(files, min(len(files), chance.choice((1, 1, 2)))):
            damaged = path / file if path.is_dir() else path
            with suppress(FileNotFoundError):
                damage(damaged, chance)
        return source, path

    def to_json(self) -> str:
        """Return what was found, as JSON."""
        fields = {
            "inputs": self.n_inputs,
            "asked": self.n_asked,
            "escapes": [vars(escape) for escape in self.escapes],
            "slowest_s": self.slowest_s,
            "peak_kib": self.peak_kib,
        }
        return json.dumps(fields)


def _name_of(question: Sequence[str]) -> str:
    """Return the command, the table, the tool or the function that a question asks."""
    word, *rest = question
    if word == "mcp":
        table = json.loads(rest[1]).get("table")
        return f"mcp {rest[0]}" + (f" {table}" if table else "")
    if word == "table":
        return f"table {rest[1]}" if len(rest) > 1 and not rest[1].startswith("-") else "table"
    is_group = word in {"bench", "chakra", "tunableop", "function"}
    return f"{word} {rest[0]}" if is_group else word


def _reset_peak() -> None:
    """Reset the peak of the memory in use; Linux only."""
    with suppress(OSError):
        _RESET.write_text("5")


def _peak_kib() -> int:
    with suppress(OSError):
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
    return 0
