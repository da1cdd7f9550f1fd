"""Recording backends: torch.profiler, or MindSpore's profiler. Both are imported on use."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Protocol

from longpole.errors import MissingDependencyError
from longpole.formats.mindspore.options import options_of, without_effect

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from longpole.formats.mindspore.options import ProfilerOptions

_NONE: Final = (
    "nothing can record here: neither torch nor mindspore is installed\n"
    "hint: pip install 'longpole[torch]'"
)


class Backend(Protocol):
    """Records between `start` and `stop`, and writes the recording."""

    name: str
    mode: str
    """Execution mode of the program: `graph` or `pynative`."""
    ignored: frozenset[str]
    """Options that do not affect the recording."""

    def device(self) -> str:
        """Return `cpu`, `gpu` or `ascend`."""

    def rank(self) -> int | None:
        """Return the rank in a distributed job, None otherwise."""

    def start(self, options: ProfilerOptions, folder: Path) -> None:
        """Start recording."""

    def step(self) -> None:
        """Mark the end of a step and the start of the next."""

    def stop(self) -> None:
        """End the recording."""

    def write(self, path: Path) -> Path | None:
        """Write the last recording as a trace; None if the backend writes its own files."""


def backend_of(
    choice: str | Backend | None,
    counters: Sequence[str] = (),
    torch_options: Mapping[str, Any] | None = None,
) -> Backend:
    """Choose a backend by name; by default that of the library in use.

    Raises
    ------
    MissingDependencyError
        The library is not installed.
    ValueError
        The name is neither `torch` nor `mindspore`.
    """
    if choice is not None and not isinstance(choice, str):
        return choice
    if choice not in (None, "torch", "mindspore"):
        message = f"the backend must be 'torch' or 'mindspore', not {choice!r}"
        raise ValueError(message)
    names = [choice] if choice else sorted(("torch", "mindspore"), key=_is_unused)
    for name in names:
        if name in sys.modules or find_spec(name) is not None:
            torch = name == "torch"
            return TorchBackend(counters, torch_options) if torch else MindSporeBackend()
    raise MissingDependencyError(_NONE)


def _is_unused(name: str) -> bool:
    return name not in sys.modules


class TorchBackend:
    """Records with torch.profiler, on the CPU and on CUDA or HIP devices."""

    name = "torch"
    mode = "pynative"
    ignored = frozenset(
        ("op_time", "profile_framework", "data_process", "sync_enable", "timeline_limit")
    )

    def __init__(
        self, counters: Sequence[str] = (), options: Mapping[str, Any] | None = None
    ) -> None:
        self._options = dict(options or {})
        self._torch: Any = import_module("torch")
        self._counters = list(counters)
        self._profile: Any = None
        self._mark: Any = None
        self._step = 0

    def device(self) -> str:
        """Return `gpu` if torch has one."""
        return "gpu" if self._torch.cuda.is_available() else "cpu"

    def rank(self) -> int | None:
        """Return the rank in the default process group."""
        distributed = self._torch.distributed
        if not (distributed.is_available() and distributed.is_initialized()):
            return None
        rank: int = distributed.get_rank()
        return rank

    def start(self, options: ProfilerOptions, folder: Path) -> None:  # noqa: ARG002 (protocol)
        """Start recording, and open the first step."""
        profiler = self._torch.profiler
        activities = [profiler.ProfilerActivity.CPU]
        if self.device() == "gpu":
            activities.append(profiler.ProfilerActivity.CUDA)
        chosen = {
            "activities": activities,
            "record_shapes": True,
            "experimental_config": self._experimental(),
        }
        self._profile = profiler.profile(**(chosen | self._options))
        self._profile.start()
        self._open_step()

    def _experimental(self) -> Any:
        """Request synchronization events, and CUPTI counters for each kernel."""
        config = self._torch._C._profiler._ExperimentalConfig  # noqa: SLF001 - torch has no public name for it
        if self._counters:
            return config(profiler_metrics=self._counters, profiler_measure_per_kernel=True)
        return config(enable_cuda_sync_events=self.device() == "gpu")

    def _open_step(self) -> None:
        record = self._torch.profiler.record_function
        self._mark = record(f"ProfilerStep#{self._step}")
        self._mark.__enter__()

    def step(self) -> None:
        """Close the open step and open the next."""
        self._mark.__exit__(None, None, None)
        self._step += 1
        self._open_step()

    def stop(self) -> None:
        """Close the step and end the recording."""
        self._mark.__exit__(None, None, None)
        self._profile.stop()

    def write(self, path: Path) -> Path | None:
        """Write the recording as a Chrome trace."""
        self._profile.export_chrome_trace(str(path))
        return path


class MindSporeBackend:
    """Delegates to `mindspore.Profiler`, which writes its own files."""

    name = "mindspore"

    def __init__(self) -> None:
        mindspore: Any = import_module("mindspore")
        self._mindspore = mindspore
        self._types = getattr(mindspore, "profiler", None)
        self.ignored = without_effect(self._types, self.device())
        self._profiler: Any = None
        is_graph = mindspore.get_context("mode") == mindspore.GRAPH_MODE
        self.mode = "graph" if is_graph else "pynative"

    def device(self) -> str:
        """Return the device target of MindSpore's context."""
        return str(self._mindspore.get_context("device_target")).lower()

    def rank(self) -> int | None:
        """Return None: outside of a job the rank comes from the environment, as in MindSpore."""
        return None

    def start(self, options: ProfilerOptions, folder: Path) -> None:
        """Start MindSpore's profiler, creating it on the first start."""
        if self._profiler is None:
            chosen = options_of(options, self._types)
            place = {"output_path": str(folder), "start_profile": False}
            self._profiler = self._mindspore.Profiler(**(chosen | place))
        self._profiler.start()

    def step(self) -> None:
        """Do nothing, since MindSpore finds steps itself."""

    def stop(self) -> None:
        """End the recording."""
        self._profiler.stop()

    def write(self, path: Path) -> Path | None:  # noqa: ARG002 (protocol)
        """Return None after MindSpore has written its files."""
        self._profiler.analyse()
        return None
