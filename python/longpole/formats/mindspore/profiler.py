"""A profiler with MindSpore's states and options, using torch.profiler or MindSpore's own."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from longpole.errors import LongpoleError
from longpole.formats.mindspore.backends import Backend, backend_of
from longpole.formats.mindspore.offline import Analysis, offline_analyse
from longpole.formats.mindspore.operators import OpAnalysis, op_analyse
from longpole.formats.mindspore.option_table import OptionFinding
from longpole.formats.mindspore.options import ProfilerOptions
from longpole.formats.mindspore.run_folder import ProfilerInfo, run_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from concurrent.futures import Future
    from pathlib import Path

_LOG: Final = logging.getLogger("longpole.mindspore")


class ProfilerStateError(LongpoleError, RuntimeError):
    """A method of a profiler was called in a state that does not allow it."""


@dataclass(frozen=True, slots=True)
class Recording:
    """The recording: the folder, a trace for each start and stop, and the findings.

    `traces` is empty if MindSpore recorded; its files are in `folder`.
    """

    folder: Path
    traces: Sequence[Path]
    info: Path
    findings: Sequence[OptionFinding]


class Profiler:
    """Records between `start()` and `stop()`; `analyse()` writes and analyses the recording.

    It has the options, states and errors of MindSpore r2.3's `Profiler`. With torch, every start
    and stop writes a trace for `longpole.read_trace`; with MindSpore, its own profiler records.

    Parameters
    ----------
    backend
        `"torch"`, `"mindspore"`, or an object that records; by default the library that the
        program has imported.
    device
        cpu, gpu or ascend; by default that of the backend.
    counters
        CUPTI counters to record for each kernel, with torch on CUDA. Recording them slows the
        program down and serialises kernels.
    torch_options
        Arguments for `torch.profiler.profile`, such as `{"with_stack": True}`.
    environment
        The environment variables; `os.environ` by default.
    options
        MindSpore's options: see `longpole.mindspore.ProfilerOptions`.

    Raises
    ------
    OptionTypeError, OptionValueError, OptionStateError
        See `ProfilerOptions.validate`. Other problems are warnings in `options.findings`.
    MissingDependencyError
        Neither torch nor MindSpore is installed.

    Examples
    --------
    >>> import longpole
    >>> profiler = longpole.Profiler(output_path="data", start_profile=False)  # doctest: +SKIP
    >>> profiler.start(); train(); profiler.stop()  # doctest: +SKIP
    >>> trace = longpole.read_trace(profiler.analyse().traces[0])  # doctest: +SKIP
    """

    def __init__(
        self,
        *,
        backend: str | Backend | None = None,
        device: str | None = None,
        counters: Sequence[str] = (),
        torch_options: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        variables = os.environ if environment is None else environment
        self._findings: list[OptionFinding] = []
        self._is_started = False
        self._recorded: Path | None = None
        self._traces: list[Path] = []
        self._done: Recording | None = None
        self._folder: Path | None = None
        # If Ascend's msprof records, every method returns at once.
        self._is_idle = bool(variables.get("PROFILER_SAMPLECONFIG"))
        if self._is_idle:
            self.options = ProfilerOptions.check(device or "cpu", environment=variables)
            return
        self._backend = backend_of(backend, counters, torch_options)
        target = device or self._backend.device()
        self.options = ProfilerOptions.validate(target, environment=variables, **options)
        self._note([*self.options.findings, *_ignored(self._backend, options)])
        rank = self._backend.rank()
        settings = self.options.environment
        self._info = ProfilerInfo(
            settings.rank(self.options.device) if rank is None else rank,
            settings.rank_size,
            self._backend.mode,
        )
        if self.options.start_profile:
            self.start()

    def start(self) -> None:
        """Start recording; may be called again after `stop()`.

        Raises
        ------
        ProfilerStateError
            The profiler is already recording.
        """
        if self._is_idle:
            return
        if self._is_started:
            message = "The profiler has already started. Do not turn on again in the open state."
            raise ProfilerStateError(message)
        if self._folder is None:
            self._folder, findings = run_folder(self.options)
            self._note(findings)
        self._done = None
        self._info.mark("profiling_start_time")
        self._backend.start(self.options, self._folder)
        self._is_started = True

    def step(self) -> None:
        """Mark the end of a step; does nothing before `start()` and after `stop()`."""
        if self._is_started:
            self._backend.step()

    def stop(self) -> None:
        """End the recording, and write its trace.

        Raises
        ------
        ProfilerStateError
            The profiler is not recording.
        """
        if self._is_idle:
            return
        if not self._is_started:
            message = (
                "The profiler has not started, so can not stop. Please call the start() method "
                "before calling the stop() method."
            )
            raise ProfilerStateError(message)
        self._is_started = False
        self._backend.stop()
        self._recorded = self._folder
        self._info.mark("profiling_stop_time")
        if self._backend.name != "mindspore":
            self._write()

    def _write(self) -> None:
        folder = self._recorded_folder()
        name = f"trace_{self._info.rank_id}_{len(self._traces)}.json"
        path = self._backend.write(folder / name)
        if path is None:
            return
        path.chmod(0o600)
        self._traces.append(path)

    def _recorded_folder(self) -> Path:
        if self._recorded is None:
            message = "nothing was recorded: call start() first"
            raise ProfilerStateError(message)
        return self._recorded

    def analyse(
        self,
        offline_path: str | os.PathLike[str] | None = None,
        pretty: bool = False,  # noqa: FBT001, FBT002 (MindSpore's signature)
        step_list: Sequence[int] | None = None,
        mode: Literal["sync", "async"] = "sync",
    ) -> Recording | Analysis | Future[Analysis] | None:
        """Stop recording and return the result, or analyse an earlier profile.

        Parameters
        ----------
        offline_path
            A MindSpore profile to analyse instead, as `longpole.mindspore.offline_analyse` does.
        pretty, step_list, mode
            For `offline_path`.

        Returns
        -------
        The recording; with `offline_path`, its analysis; None if msprof records.

        Raises
        ------
        ProfilerStateError
            Nothing was recorded.
        """
        if self._is_idle:
            return None
        if offline_path is not None:
            return _offline(offline_path, pretty, step_list, mode)
        if self._is_started:
            self.stop()
        if self._done is None:
            self._done = self._finish(self._recorded_folder())
        return self._done

    def _finish(self, folder: Path) -> Recording:
        self._info.mark("analyse_start_time")
        if self._backend.name == "mindspore":
            self._backend.write(folder)
        self._info.mark("analyse_end_time")
        info = folder / f"profiler_info_{self._info.rank_id}.json"
        if not info.exists():
            info = self._info.write(folder, self._backend.name)
        return Recording(folder, tuple(self._traces), info, tuple(self._findings))

    def op_analyse(self, op_name: str | list[str], device_id: int | None = None) -> OpAnalysis:
        """Return the cost of operators in MindSpore's recording.

        Raises
        ------
        ProfilerStateError
            On Ascend, as in MindSpore; and if torch recorded.
        TypeError, ProfileError
            As for `longpole.mindspore.op_analyse`.
        """
        if self.options.device == "ascend":
            message = "The Interface 'Profiler.op_analyse()' is not supported on Ascend currently."
            raise ProfilerStateError(message)
        folder = self._recorded_folder()
        if self._traces:
            message = (
                "op_analyse reads MindSpore's files; torch recorded a trace\n"
                "hint: ask `longpole table TRACE operators`, or longpole.operators of the trace"
            )
            raise ProfilerStateError(message)
        return op_analyse(folder, op_name, device_id)

    @classmethod
    def offline_analyse(
        cls,
        path: str | os.PathLike[str],
        pretty: bool = False,  # noqa: FBT001, FBT002 (MindSpore's signature)
        step_list: Sequence[int] | None = None,
    ) -> Analysis:
        """Analyse an earlier MindSpore profile: see `longpole.mindspore.offline_analyse`."""
        return offline_analyse(path, pretty, step_list)

    def __enter__(self) -> Self:
        """Start, unless it is already recording."""
        if not self._is_started:
            self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop, if it is recording."""
        if self._is_started:
            self.stop()

    def _note(self, findings: Sequence[OptionFinding]) -> None:
        self._findings += findings
        for finding in findings:
            if finding.severity == "warning":
                _LOG.warning("%s", finding.message)


def _ignored(backend: Backend, options: Mapping[str, Any]) -> list[OptionFinding]:
    return [
        OptionFinding(
            "no_effect",
            name,
            f"{name} has no effect on what {backend.name} records",
        )
        for name in options
        if name in backend.ignored
    ]


def _offline(
    path: str | os.PathLike[str],
    pretty: bool,  # noqa: FBT001 - the arguments are passed on
    step_list: Sequence[int] | None,
    mode: str,
) -> Analysis | Future[Analysis]:
    if mode == "async":
        return offline_analyse(path, pretty, step_list, mode="async")
    if mode != "sync":
        _LOG.warning("mode must be 'sync' or 'async', not %r; it is set to 'sync'", mode)
    return offline_analyse(path, pretty, step_list)
