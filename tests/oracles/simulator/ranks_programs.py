"""Programs of several ranks, drawn at random: patterns, uneven work, stragglers of each cause."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .ranks import Job, RankBuilder, RankClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from .ranks import Call

PATTERNS: Final = ("data", "tensor", "expert", "pipeline")
CAUSES: Final = (
    "data loading",
    "host functions",
    "slow core",
    "slow kernel",
    "GPU clock",
    "more work",
)
_SLOW_NAME: Final = {"host functions": "aten::index_put_", "slow kernel": "gemm_128x64"}
_OF_CAUSE: Final = {
    "data loading": ("data loading",),
    "slow core": ("host", "host gap"),
    "GPU clock": ("kernel",),
}


@dataclass(frozen=True, slots=True)
class Straggler:
    """A rank that is slow for one reason, in every step or in every second one."""

    rank: int
    cause: str
    factor: float
    every: int

    def factor_at(self, step: int) -> float:
        """Return by what its time is longer in a step."""
        return self.factor if step % self.every == 0 else 1.0


@dataclass(slots=True)
class RankRun:
    """A run of several ranks with all that is true of it."""

    job: Job
    pattern: str
    stragglers: tuple[Straggler, ...]
    clocks: tuple[RankClock, ...]
    build: Callable[[tuple[Straggler, ...]], Job]

    def without_ns(self, straggler: Straggler) -> int:
        """Return how long the run takes without one of its stragglers, the others left."""
        others = tuple(one for one in self.stragglers if one != straggler)
        return self.build(others).makespan_ns()


def random_ranks(
    seed: int,
    *,
    n_ranks: int = 8,
    n_stragglers: int | None = None,
    pattern: str | None = None,
    n_steps: int = 4,
    largest_entry_ns: int = 100_000,
    largest_offset_ns: int = 5_000_000,
    noise_ns: int = 3_000,
    ring_ns: int = 0,
) -> RankRun:
    """Draw a run: the same seed gives the same run, with or without its stragglers."""
    dice = random.Random(seed)  # noqa: S311 - no secret
    pattern = pattern or dice.choice(PATTERNS)
    count = dice.choice((0, 1, 1, 1, 2, 2)) if n_stragglers is None else n_stragglers
    stragglers = _stragglers(dice, dice.sample(range(n_ranks), count), pattern)
    clocks = _clocks(dice, n_ranks, largest_offset_ns)
    entries = [round(dice.random() * largest_entry_ns) for _ in range(n_ranks)]
    shape = _Shape.drawn(dice, pattern, n_steps)

    def build(these: tuple[Straggler, ...]) -> Job:
        return _build(shape, n_ranks, entries, these, noise_ns=noise_ns, ring_ns=ring_ns)

    return RankRun(build(stragglers), pattern, stragglers, clocks, build)


def _stragglers(dice: random.Random, ranks: list[int], pattern: str) -> tuple[Straggler, ...]:
    causes = [cause for cause in CAUSES if cause != "more work" or pattern == "expert"]
    drawn = [
        Straggler(rank, dice.choice(causes), dice.uniform(1.3, 1.9), dice.choice((1, 1, 2)))
        for rank in ranks
    ]
    return tuple(
        Straggler(one.rank, one.cause, dice.uniform(3, 7), one.every)
        if one.cause in {"data loading", "host functions"}
        else one
        for one in drawn
    )


def _clocks(dice: random.Random, n_ranks: int, largest_offset_ns: int) -> tuple[RankClock, ...]:
    clocks = [RankClock()]
    for _ in range(1, n_ranks):
        offset_ns = round((2 * dice.random() - 1) * largest_offset_ns)
        clocks.append(RankClock(offset_ns, dice.uniform(-20e-6, 20e-6)))
    return tuple(clocks)


@dataclass(frozen=True, slots=True)
class _Shape:
    seed: int
    pattern: str
    layers: int
    steps: int
    kernel_ns: int
    host_ns: int
    loading_ns: int
    has_backward_thread: bool
    synchronizes: bool

    @classmethod
    def drawn(cls, dice: random.Random, pattern: str, n_steps: int) -> _Shape:
        return cls(
            seed=dice.randrange(1 << 30),
            pattern=pattern,
            layers=dice.randint(3, 6),
            steps=n_steps,
            kernel_ns=dice.choice((60_000, 150_000, 400_000)),
            host_ns=dice.choice((8_000, 20_000, 60_000)),
            loading_ns=dice.choice((200_000, 600_000, 2_000_000)),
            has_backward_thread=dice.random() < 0.5,
            synchronizes=dice.random() < 0.5,
        )


def _factors(rank: int, stragglers: tuple[Straggler, ...]) -> dict[str, Callable[[int], float]]:
    found: dict[str, Callable[[int], float]] = {}
    for straggler in stragglers:
        if straggler.rank != rank:
            continue
        for what in _OF_CAUSE.get(straggler.cause, (_SLOW_NAME.get(straggler.cause, ""),)):
            found[what] = straggler.factor_at
    return found


def _build(
    shape: _Shape,
    n_ranks: int,
    entries: list[int],
    stragglers: tuple[Straggler, ...],
    *,
    noise_ns: int,
    ring_ns: int,
) -> Job:
    job = Job(n_ranks)
    for rank in range(n_ranks):
        builder = RankBuilder(job, rank, 1_000_000 + entries[rank], _factors(rank, stragglers))
        more = [one for one in stragglers if one.rank == rank and one.cause == "more work"]
        dice = random.Random(shape.seed + rank)  # noqa: S311 - no secret
        program = _Program(builder, shape, n_ranks, more, dice)
        for step in range(shape.steps):
            builder.step = step
            builder.annotation(f"ProfilerStep#{step}", program.run_step)

    dice = random.Random(shape.seed)  # noqa: S311 - no secret
    noise = {
        (key, rank): dice.randint(0, noise_ns) + ring_ns * rank // max(n_ranks - 1, 1)
        for key, call in sorted(job.calls.items())
        for rank in sorted(call.members)
    }
    keys = {id(call): key for key, call in job.calls.items()}

    def transfer_ns(call: Call, rank: int) -> int:
        return 30_000 + call.elements // 20 + noise[keys[id(call)], rank]

    job.join(transfer_ns)
    return job


class _Program:
    """One rank of a pattern."""

    def __init__(
        self,
        builder: RankBuilder,
        shape: _Shape,
        n_ranks: int,
        more: list[Straggler],
        dice: random.Random,
    ) -> None:
        self.builder = builder
        self.shape = shape
        self.n_ranks = n_ranks
        self.more = more
        self.dice = dice

    def run_step(self) -> None:
        """Load a batch, then do what the pattern asks for."""
        self.builder.loading(self._about(self.shape.loading_ns))
        getattr(self, f"_{self.shape.pattern}")()
        if self.shape.synchronizes:
            self.builder.synchronize()

    def _about(self, nominal_ns: int) -> int:
        return round(nominal_ns * self.dice.uniform(0.98, 1.02))

    def _layer(self, part: str, scale: float = 1.0, grid: str = "[128, 1, 1]") -> None:
        host_ns, kernel_ns = self.shape.host_ns, self.shape.kernel_ns * scale
        names = ("aten::mm", "aten::add", "aten::index_put_")
        kernels = ("gemm_128x64", "elementwise", "softmax")
        shares = (0.6, 0.15, 0.25)
        for name, kernel, part_of in zip(names, kernels, shares, strict=True):
            work = (kernel, self._about(round(kernel_ns * part_of)), grid)
            self.builder.operator(f"{part}{name}", self._about(host_ns), work)

    def _backward(self, body: Callable[[], None]) -> None:
        if self.shape.has_backward_thread:
            self.builder.backward(body)
        else:
            body()

    def _optimizer(self) -> None:
        self.builder.await_stream()
        work = ("adam", self._about(self.shape.kernel_ns // 3), "[64, 1, 1]")
        self.builder.operator("Optimizer.step#Adam.step", self._about(self.shape.host_ns), work)

    @property
    def _all(self) -> tuple[int, ...]:
        return tuple(range(self.n_ranks))

    def _data(self) -> None:
        for _ in range(self.shape.layers):
            self._layer("")

        def backward() -> None:
            for layer in range(self.shape.layers):
                self._layer(_ENGINE if self.shape.has_backward_thread else "", 1.5)
                if layer % 2 or layer == self.shape.layers - 1:
                    self.builder.collective("allreduce", "0", self._all, 2_000_000)

        self._backward(backward)
        self._optimizer()

    def _tensor(self) -> None:
        size = 4 if self.n_ranks % 4 == 0 else 2
        first = self.builder.rank // size * size
        group = tuple(range(first, first + size))
        peers = tuple(range(self.builder.rank % size, self.n_ranks, size))
        for _ in range(self.shape.layers):
            self._layer("")
            self.builder.collective("allreduce", f"tp{first}", group, 400_000)
            self.builder.await_stream()

        def backward() -> None:
            for _ in range(self.shape.layers):
                self._layer(_ENGINE if self.shape.has_backward_thread else "", 1.5)
            name = f"dp{self.builder.rank % size}"
            self.builder.collective("allreduce", name, peers, 3_000_000, stream=21)

        self._backward(backward)
        self.builder.await_stream(21)
        self._optimizer()

    def _expert(self) -> None:
        for _ in range(self.shape.layers):
            self._layer("")
            tokens = self.dice.uniform(0.9, 1.1)
            for straggler in self.more:
                tokens *= straggler.factor_at(self.builder.step)
            self.builder.collective("all_to_allv", "0", self._all, round(500_000 * tokens))
            self.builder.await_stream()
            grid = f"[{round(128 * tokens)}, 1, 1]"
            kernel_ns = round(self.shape.kernel_ns * tokens)
            self.builder.operator(
                "aten::bmm", self.shape.host_ns, ("grouped_gemm", kernel_ns, grid)
            )
            self.builder.collective("all_to_allv", "0", self._all, round(500_000 * tokens))
            self.builder.await_stream()
        self._optimizer()

    def _pipeline(self) -> None:
        stages = 4
        stage = self.builder.rank * stages // self.n_ranks
        width = self.n_ranks // stages
        before, behind = self.builder.rank - width, self.builder.rank + width
        for _ in range(3):
            if stage > 0:
                self._message("recv", before)
            self._layer("")
            if stage < stages - 1:
                self._message("send", behind)
        for _ in range(3):
            if stage < stages - 1:
                self._message("recv", behind)
            self._layer("", 1.5)
            if stage > 0:
                self._message("send", before)
        peers = tuple(range(stage * width, (stage + 1) * width))
        if width > 1:
            self.builder.collective("allreduce", f"dp{stage}", peers, 1_000_000)
        self._optimizer()

    def _message(self, operation: str, other: int) -> None:
        own = self.builder.rank
        stream = 40 + (own < other) * 2 + (operation == "recv")
        peer = ("Dst Rank" if operation == "send" else "Src Rank", other)
        pair = (min(own, other), max(own, other))
        self.builder.collective(
            operation,
            "pp",
            pair,
            2_000_000,
            stream=stream,
            after_compute=operation == "send",
            peer=peer,
        )
        if operation == "recv":
            self.builder.await_stream(stream)


_ENGINE: Final = "autograd::engine::evaluate_function: "
