"""Joins a Ray cluster, or starts one on this machine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from longpole.errors import MissingDependencyError

if TYPE_CHECKING:
    from longpole.errors import LongpoleError


def started_ray(failed: type[LongpoleError], workers: int | None = None) -> Any:
    """Join the cluster that the environment names, or start one on this machine.

    Parameters
    ----------
    failed
        The error to raise if Ray does not start.
    workers
        Number of workers of a cluster on this machine; by default the number of cores.

    Raises
    ------
    MissingDependencyError
        Ray is not installed.
    """
    try:
        import ray
    except ImportError as error:
        message = "engine='ray' needs ray\nhint: pip install 'longpole[ray]'"
        raise MissingDependencyError(message) from error
    if not ray.is_initialized():
        _join_ray(ray, failed, workers)
    return ray


def _join_ray(ray: Any, failed: type[LongpoleError], workers: int | None) -> None:
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    if os.environ.get("RAY_ADDRESS"):
        ray.init(address="auto", **quiet)
        return
    for is_last in (False, True):
        try:
            ray.init(num_cpus=workers, include_dashboard=False, **quiet)
        except Exception as error:
            # On a busy machine, processes started by Ray may exceed its own limit of 30 s.
            ray.shutdown()
            if is_last:
                message = (
                    f"Ray did not start on this machine in two attempts: {error}\n"
                    "hint: start a cluster with `ray start --head` and set RAY_ADDRESS"
                )
                raise failed(message) from error
        else:
            return
