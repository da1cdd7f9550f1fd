"""Runs a function for each rank, in threads or in workers of a Ray cluster.

Both engines call one function for each item and return the results in the order of the items. If a
worker of Ray dies, its items are retried. An item whose worker dies each time is `Lost`, and so is
one that the cluster does not finish in time.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from longpole.devices.clusters import started_ray
from longpole.errors import RanksError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Engine = Literal["threads", "ray"]
ENGINES: Final = ("threads", "ray")

TIMEOUT_S: Final = 600.0
"""Time without a finished rank after which a Ray cluster is given up."""

_RETRIES: Final = 2
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Lost:
    """The result of an item whose worker died each time, or did not finish in time."""

    reason: str


def run(
    engine: Engine,
    work: Callable[[_Item], _Result],
    items: Sequence[_Item],
    *,
    workers: int,
    timeout_s: float = TIMEOUT_S,
    progress: Callable[[int, int], object] | None = None,
) -> list[_Result | Lost]:
    """Call a function for every item, at most `workers` calls at once.

    If Ray finishes no item for `timeout_s`, the remaining items are `Lost`.

    Raises
    ------
    MissingDependencyError
        The engine is not installed.
    RanksError
        Ray does not start.
    ValueError
        The engine is not known.
    """
    if engine not in ENGINES:
        message = f"no engine {engine!r}; there are {', '.join(ENGINES)}"
        raise ValueError(message)
    if not items:
        return []
    done = _Count(len(items), progress)
    if engine == "ray":
        return _with_ray(work, items, workers, timeout_s, done)
    return _in_threads(work, items, workers, done)


class _Count:
    """Counts finished items."""

    def __init__(self, total: int, progress: Callable[[int, int], object] | None) -> None:
        self.total = total
        self.done = 0
        self.progress = progress

    def one(self) -> None:
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, self.total)


def _in_threads(
    work: Callable[[Any], Any], items: Sequence[Any], workers: int, done: _Count
) -> list[Any]:
    found = []
    with ThreadPoolExecutor(max_workers=workers) as pool:
        for result in pool.map(work, items):
            found.append(result)
            done.one()
    return found


def _with_ray(
    work: Callable[[Any], Any], items: Sequence[Any], workers: int, timeout_s: float, done: _Count
) -> list[Any]:
    """Run items on a Ray cluster. Ray itself restarts those of a worker that died.

    The time limit is needed because Ray retries forever if it kills workers for lack of memory, and
    waits forever for workers that never start.
    """
    ray = started_ray(RanksError, workers)
    task = ray.remote(max_retries=_RETRIES)(_done)
    shared = ray.put(work)
    found: dict[int, Any] = {}
    running: dict[Any, int] = {}
    left = deque(range(len(items)))
    try:
        while left or running:
            while left and len(running) < workers:
                place = left.popleft()
                running[task.remote(shared, items[place])] = place
            ready, _ = ray.wait(list(running), num_returns=1, timeout=timeout_s)
            if not ready:
                break
            found[running[ready[0]]] = _answer(ray, ready[0], timeout_s)
            del running[ready[0]]
            done.one()
    finally:
        for reference in running:
            ray.cancel(reference, force=True)
    late = Lost(f"the Ray cluster finished no rank for {timeout_s:g} s")
    return [found.get(at, late) for at in range(len(items))]


def _done(work: Callable[[Any], Any], item: Any) -> Any:
    return work(item)


def _answer(ray: Any, reference: Any, timeout_s: float) -> Any:
    try:
        return ray.get(reference, timeout=timeout_s)
    except ray.exceptions.RayTaskError:
        raise
    except ray.exceptions.RayError as error:
        return Lost(f"its worker died {_RETRIES + 1} times ({type(error).__name__})")
