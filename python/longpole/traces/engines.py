"""Where the ranks are read: threads, processes, or the workers of a Ray cluster.

Every engine does a piece of work for each item and gives the results in the order of the items.
The work of a worker that dies is done again; an item that kills its worker each time is `Lost`.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from longpole.errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["ENGINES", "Engine", "Lost", "run"]

Engine = Literal["threads", "processes", "ray"]
ENGINES: Final = ("threads", "processes", "ray")

_RETRIES: Final = 2
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Lost:
    """What became of an item whose worker died each time."""

    reason: str


def run(
    engine: Engine,
    work: Callable[[_Item], _Result],
    items: Sequence[_Item],
    *,
    workers: int,
    progress: Callable[[int, int], object] | None = None,
) -> list[_Result | Lost]:
    """Do the work for every item, at most `workers` at once.

    Raises
    ------
    MissingDependencyError
        The engine is not installed.
    ValueError
        There is no such engine.
    """
    if engine not in _RUNS:
        message = f"no engine is called {engine!r}; there are {', '.join(ENGINES)}"
        raise ValueError(message)
    if not items:
        return []
    done = _Count(len(items), progress)
    return _RUNS[engine](work, items, workers, done)


class _Count:
    """Counts what is done."""

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


def _in_processes(
    work: Callable[[Any], Any], items: Sequence[Any], workers: int, done: _Count
) -> list[Any]:
    """Work in a pool; when one of its processes dies, what ran then is tried again, alone."""
    found: dict[int, Any] = {}
    left = list(range(len(items)))
    while left:
        for at, result in _one_pool(work, items, left, workers):
            found[at] = result
            done.one()
        left = [at for at in left if at not in found]
        # The pool starts its work in order, one ahead of what runs.
        for at in left[: workers + 1]:
            alone = dict(_one_pool(work, items, [at], 1))
            found[at] = alone.get(
                at, Lost("the process that read it died, twice (killed, or out of memory)")
            )
            done.one()
        left = [at for at in left if at not in found]
    return [found[at] for at in range(len(items))]


def _one_pool(
    work: Callable[[Any], Any], items: Sequence[Any], places: Sequence[int], workers: int
) -> Iterator[tuple[int, Any]]:
    """Give the results as they come, each with its place; none of what a dead process left."""
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    n_workers = min(workers, len(places))
    with ProcessPoolExecutor(n_workers, mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(work, items[at]): at for at in places}
        for future in as_completed(futures):
            try:
                result = future.result()
            except BrokenProcessPool:
                continue
            yield futures[future], result


def _with_ray(
    work: Callable[[Any], Any], items: Sequence[Any], workers: int, done: _Count
) -> list[Any]:
    try:
        import ray
    except ImportError as error:
        message = "engine='ray' needs ray\nhint: pip install 'longpole[ray]'"
        raise MissingDependencyError(message) from error
    if not ray.is_initialized():
        _join_ray(ray, workers)
    task = ray.remote(max_retries=_RETRIES)(_done)
    shared = ray.put(work)
    found: dict[int, Any] = {}
    running: dict[Any, int] = {}
    for at in range(len(items) + workers):
        if at < len(items):
            running[task.remote(shared, items[at])] = at
        while running and (len(running) >= workers or at >= len(items)):
            ready, _ = ray.wait(list(running), num_returns=1)
            place = running.pop(ready[0])
            try:
                found[place] = ray.get(ready[0])
            except ray.exceptions.RayTaskError:
                raise
            except ray.exceptions.RayError as error:
                found[place] = Lost(
                    f"its worker died {_RETRIES + 1} times ({type(error).__name__})"
                )
            done.one()
    return [found[at] for at in range(len(items))]


def _done(work: Callable[[Any], Any], item: Any) -> Any:
    return work(item)


def _join_ray(ray: Any, workers: int) -> None:
    """Join the cluster that the environment names, or start one on this machine."""
    import os

    quiet = {"log_to_driver": False, "include_dashboard": False, "logging_level": "ERROR"}
    if os.environ.get("RAY_ADDRESS"):
        ray.init(address="auto", log_to_driver=False, logging_level="ERROR")
    else:
        ray.init(num_cpus=workers, **quiet)


_RUNS: Final[dict[str, Callable[..., list[Any]]]] = {
    "threads": _in_threads,
    "processes": _in_processes,
    "ray": _with_ray,
}
