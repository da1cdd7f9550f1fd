"""Devices of a Ray cluster: one actor per device runs the same worker as on this machine.

The actor is pinned to the node of its device, and takes the lease and starts the guard there. It
keeps no state: the schedule and the only file of records belong to the process that runs the
runner. If an actor dies, its guard ends the job; the attempt is recorded as lost and repeated by a
new actor, or on another device if the node is gone too.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from longpole.bench.run.schedule import Task
from longpole.bench.run.worker import LocalWorker, Tried, device_lost, worker_lost
from longpole.devices import Device, discover, select
from longpole.devices.clusters import started_ray
from longpole.errors import DeviceError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from longpole.bench.run.job import Job, Policy

START_S: Final = 180.0
"""Maximum time for a node to start an actor; a busy node takes a minute or more."""

# Ray would hide the devices from an actor or renumber them; the worker chooses by UUID.
_ENVIRONMENT: Final = {
    "env_vars": {
        f"RAY_EXPERIMENTAL_NOSET_{name}_VISIBLE_DEVICES": "1" for name in ("CUDA", "HIP", "ROCR")
    }
}


@dataclass(frozen=True, slots=True)
class Place:
    """A device of a node; `name` is used on the node, `device` in this process."""

    node: str
    names: tuple[str, ...]
    name: str
    device: Device
    n_gpus: int
    """Number of GPUs that Ray counts for the actor."""


class Cluster:
    """The devices of a Ray cluster, in the order of its nodes."""

    def __init__(self, places: Sequence[Place]) -> None:
        self.places = tuple(places)

    @classmethod
    def find(cls, names: Sequence[str]) -> Self:
        """Find devices on every node. Without a name, every GPU is selected.

        Raises
        ------
        DeviceError
            A name matches no device of the cluster, or it has none, or Ray does not start.
        MissingDependencyError
            Ray is not installed.
        """
        ray = started_ray(DeviceError)
        nodes = [node for node in ray.nodes() if node["Alive"]]
        found = _found(ray, nodes, names)
        missing = set(names).intersection(*(here.missing for here in found))
        places = {place.device.uuid: place for place in _places(nodes, found, names)}
        if missing or not places:
            what = ", ".join(sorted(missing)) or "a GPU"
            message = (
                f"no node of the Ray cluster has {what}; nodes: {len(nodes)}\n"
                "hint: `longpole devices` lists the devices of a node; `cpu` is its processor"
            )
            raise DeviceError(message)
        return cls(list(places.values()))

    def workers(
        self, *, policy: Policy, lock_folder: Path | None, record_env: Collection[str]
    ) -> Iterator[RayWorker]:
        """Yield a worker for each device, without starting it."""
        for place in self.places:
            yield RayWorker(place, policy, lock_folder, tuple(record_env))


class Here(NamedTuple):
    """The devices of a node, and the names that match none."""

    devices: list[Device]
    missing: set[str]


def _found(ray: Any, nodes: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[Here]:
    looks = [_pinned(ray, _devices_here, node["NodeID"]).remote(names) for node in nodes]
    return [_here(ray, node, look, names) for node, look in zip(nodes, looks, strict=True)]


def _here(ray: Any, node: Mapping[str, Any], look: Any, names: Sequence[str]) -> Here:
    """Wait for the devices of a node; a dead node has none."""
    try:
        here: Here = ray.get(look, timeout=START_S)
    except ray.exceptions.RayError as error:
        if not any(each["Alive"] for each in ray.nodes() if each["NodeID"] == node["NodeID"]):
            return Here([], set(names))
        message = f"a node of the Ray cluster does not say what devices it has: {_said(error)}"
        raise DeviceError(message) from error
    return here


def _devices_here(names: Sequence[str]) -> Here:
    """Find devices on the node where this runs."""
    if not names:
        return Here([device for device in discover() if device.vendor != "cpu"], set())
    here = Here([], set())
    for name in names:
        try:
            here.devices.extend(select([name]))
        except DeviceError:
            here.missing.add(name)
    return here


def _places(
    nodes: Sequence[Mapping[str, Any]], found: Sequence[Here], names: Sequence[str]
) -> Iterator[Place]:
    for node, here in zip(nodes, found, strict=True):
        has_gpus = node["Resources"].get("GPU", 0) >= len(here.devices)
        for device in here.devices:
            known = replace(device, uuid=_unique(device, node["NodeID"]))
            n_gpus = int(has_gpus and device.vendor != "cpu")
            yield Place(node["NodeID"], tuple(names), device.uuid, known, n_gpus)


def _unique(device: Device, node: str) -> str:
    """Distinguish devices with the same name on several nodes.

    These are CPUs, simulated devices, and AMD boards without a serial number.
    """
    is_alike = device.vendor in {"cpu", "fake"} or device.uuid.startswith("AMD-")
    return f"{device.uuid}-{node[:12]}" if is_alike else device.uuid


def _pinned(ray: Any, work: Any, node: str, **options: Any) -> Any:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    where = NodeAffinitySchedulingStrategy(node, soft=False)
    wanted = {"num_cpus": 0, "scheduling_strategy": where, "runtime_env": _ENVIRONMENT}
    return ray.remote(**wanted, **options)(work)


class Given(NamedTuple):
    """A task sent to an actor."""

    job: Job
    id: str
    digest: str
    attempts: int
    device_errors: int
    is_cancelled: bool


class RayWorker:
    """Runs jobs on a device of a node, through an actor there."""

    def __init__(
        self, place: Place, policy: Policy, lock_folder: Path | None, record_env: tuple[str, ...]
    ) -> None:
        self.device = place.device
        self.waits_for: str | None = None
        self.deadline: float | None = None
        self._place = place
        self._policy = policy
        self._given = (place, policy, lock_folder, record_env)
        self._ray = started_ray(DeviceError)
        self._actor: Any = None
        self._is_over = False

    def open(self) -> None:
        """Start the actor.

        Raises
        ------
        DeviceError
            The node does not start it, or no longer exists.
        """
        options = {"num_gpus": self._place.n_gpus, "max_concurrency": 2, "max_restarts": 0}
        actor = _pinned(self._ray, DeviceActor, self._place.node, **options)
        self._actor = actor.remote(*self._given)
        try:
            self._ray.get(self._actor.open.remote(), timeout=START_S)
        except self._ray.exceptions.RayError as error:
            self._end_actor()
            message = f"the node {self._place.node[:12]} gives no worker: {_said(error)}"
            raise DeviceError(message) from error

    def attempt(self, task: Task) -> Tried:
        """Run the job once, on the node."""
        left_s = None if self.deadline is None else max(0.0, self.deadline - time.monotonic())
        given = Given(
            *(task.job, task.id, task.digest),
            *(task.attempts, task.device_errors, task.is_cancelled),
        )
        try:
            answer = self._ray.get(self._actor.attempt.remote(given, left_s))
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause or error from error
        except self._ray.exceptions.RayError as error:
            return self._lost(task, _said(error))
        tried: Tried
        tried, task.attempts, task.device_errors = answer
        return tried

    def cancel(self, task: Task) -> None:
        """End the current job."""
        if self._actor is not None:
            self._actor.cancel.remote(task.id)

    def kill(self) -> None:
        """End the actor, and with it its guard and the running job."""
        self._is_over = True
        self._end_actor()

    def _end_actor(self) -> None:
        actor, self._actor = self._actor, None
        if actor is not None:
            self._ray.kill(actor)

    def close(self) -> None:
        """Release the device."""
        if self._actor is not None:
            with contextlib.suppress(self._ray.exceptions.RayError):
                self._ray.get(self._actor.close.remote(), timeout=START_S)
        self.kill()

    def _lost(self, task: Task, reason: str) -> Tried:
        """Start another actor; if the node has none, the device is lost."""
        self._end_actor()
        task.attempts += 1
        reason = f"the worker on node {self._place.node[:12]} died: {reason}"
        if not self._is_over:
            try:
                self.open()
            except DeviceError as error:
                return device_lost(task, str(error), self.device)
        return worker_lost(task, reason, self.device, self._policy)


def _said(error: BaseException) -> str:
    """Return the first line of an error; the other lines are about Ray's internals."""
    cause = getattr(error, "cause", None) or error
    return str(cause).strip().partition("\n")[0] or type(cause).__name__


class DeviceActor:
    """The actor: the worker of one device, on the node of the device."""

    def __init__(
        self, place: Place, policy: Policy, lock_folder: Path | None, record_env: tuple[str, ...]
    ) -> None:
        named = place.names or ["all"]
        found = next(
            (device, provider)
            for name in named
            for device, provider in _selected(name)
            if device.uuid == place.name
        )
        self._worker = LocalWorker(
            place.device, found[1], policy=policy, lock_folder=lock_folder, record_env=record_env
        )
        self._task: Task | None = None
        self._cancelled: set[str] = set()

    def open(self) -> None:
        """Join the queue for the device."""
        self._worker.open()

    def attempt(self, given: Given, left_s: float | None) -> tuple[Tried, int, int]:
        """Run the job once; also return its counts, which are those of the task."""
        task = Task(given.job, given.id, given.digest)
        task.attempts, task.device_errors = given.attempts, given.device_errors
        self._task = task
        task.is_cancelled = given.is_cancelled or given.id in self._cancelled
        self._worker.deadline = None if left_s is None else time.monotonic() + left_s
        try:
            return self._worker.attempt(task), task.attempts, task.device_errors
        finally:
            self._task = None

    def cancel(self, name: str) -> None:
        """End a job, including one that has not arrived yet."""
        self._cancelled.add(name)
        task = self._task
        if task is not None and task.id == name:
            task.is_cancelled = True
            self._worker.cancel(task)

    def close(self) -> None:
        """Release the device."""
        self._worker.close()


def _selected(name: str) -> list[tuple[Device, Any]]:
    with contextlib.suppress(DeviceError):
        return list(select([name]).items())
    return []
