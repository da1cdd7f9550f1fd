"""The options of MindSpore's profiler as a plain object, checked without side effects."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from longpole.mindspore.environment import Environment
from longpole.mindspore.option_checks import CHECKS, DEFAULTS, DEVICES, WITHOUT_OP_TIME
from longpole.mindspore.option_findings import (
    OptionFinding,
    OptionStateError,
    OptionTypeError,
    OptionValueError,
    raise_first,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["AICORE_METRICS", "ProfilerOptions"]

Device = Literal["cpu", "gpu", "ascend"]

AICORE_METRICS: Final[Mapping[int, str]] = {
    -1: "None",
    0: "ArithmeticUtilization",
    1: "PipeUtilization",
    2: "Memory",
    3: "MemoryL0",
    4: "ResourceConflictRatio",
    5: "MemoryUB",
    6: "L2Cache",
}
_LONGEST: Final = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfilerOptions:
    """What to record, on which device, and where to write it.

    Make one with `ProfilerOptions.check` or `ProfilerOptions.validate`; an option that a device
    does not have keeps its default. `timeline_limit` is in MiB. `findings` says what was wrong.
    """

    device: Device
    output_path: Path
    start_profile: bool = True
    op_time: bool = True
    profile_framework: Literal["memory", "time", "all"] | None = "all"
    timeline_limit: int = 500
    data_process: bool = True
    sync_enable: bool = True
    profiler_level: Literal["Level0", "Level1", "Level2"] | None = None
    profile_communication: bool = False
    profile_memory: bool = False
    parallel_strategy: bool = True
    aicore_metrics: int = 0
    l2_cache: bool = False
    hbm_ddr: bool = False
    pcie: bool = False
    host_stack: bool = True
    data_simplification: bool = True
    ascend_job_id: str = ""
    environment: Environment = field(default_factory=Environment)
    findings: tuple[OptionFinding, ...] = ()

    @classmethod
    def validate(
        cls,
        device: str = "cpu",
        *,
        environment: Mapping[str, str] | None = None,
        exists: Callable[[Path], bool] = Path.exists,
        **options: Any,
    ) -> Self:
        """Check options; warnings stand in `findings`.

        Raises
        ------
        OptionTypeError
            `start_profile` is no bool.
        OptionValueError
            `ascend_job_id` does not exist, or the options for msprof have over 2,048 characters.
        OptionStateError
            The device is none of cpu, gpu and ascend, or PROFILING_MODE is set.

        Examples
        --------
        >>> ProfilerOptions.validate("gpu", timeline_limit=-1).timeline_limit
        500
        """
        found = cls.check(device, environment=environment, exists=exists, **options)
        raise_first(found.findings)
        return found

    @classmethod
    def check(
        cls,
        device: str = "cpu",
        *,
        environment: Mapping[str, str] | None = None,
        exists: Callable[[Path], bool] = Path.exists,
        **options: Any,
    ) -> Self:
        """Check options without raising: errors are findings too.

        Parameters
        ----------
        device
            cpu, gpu or ascend, in any case.
        environment
            Environment variables, such as `os.environ`; none by default.
        exists
            Tells whether a path exists, for `ascend_job_id`.
        options
            MindSpore's options by name.

        Examples
        --------
        >>> found = ProfilerOptions.check("cpu", pcie=True, timeline_limit="big")
        >>> [(each.option, each.used) for each in found.findings]
        [('pcie', None), ('timeline_limit', 500)]
        """
        settings = Environment.of(environment or {})
        findings: list[OptionFinding] = list(settings.findings)
        known = _device(device, findings)
        asked = {**options, **settings.run_options}
        asked = _supported(known, asked, findings, is_quiet=bool(settings.run_options))
        values = {name: _checked(name, asked, findings) for name in asked}
        _apply_level(values)
        values["output_path"] = _output(asked, values, settings, findings, exists)
        made = cls(device=known, environment=settings, **values)
        if known == "ascend" and len(made.msprof_options()) > _LONGEST:
            message = f"the options for msprof have more than {_LONGEST:,} characters"
            findings.append(_error("too_long", None, message, OptionValueError))
        return made._with(findings)

    def _with(self, findings: list[OptionFinding]) -> Self:
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return type(self)(**{**values, "findings": tuple(findings)})

    def msprof_options(self) -> str:
        """Give the options as the JSON text that MindSpore hands to Ascend's profiler."""
        settings = self.environment
        metrics = self.aicore_metrics if self.profiler_level != "Level0" else -1
        values = {
            "output": str(self.output_path / "profiler"),
            "fp_point": settings.fp_start,
            "bp_point": settings.bp_end,
            "training_trace": _switch(self.op_time),
            "task_trace": _switch(self.op_time),
            "aic_metrics": AICORE_METRICS[metrics],
            "aicpu": _switch(self.data_process or self.op_time),
            "profile_memory": _switch(self.op_time and self.profile_memory),
            "hccl": _switch(self.op_time and self.profile_communication),
            "l2_cache": _switch(self.l2_cache),
            "hbm_ddr": _switch(self.hbm_ddr),
            "pcie": _switch(self.pcie),
            "parallel_strategy": _switch(self.parallel_strategy),
            "op_time": _switch(self.op_time),
            "profile_framework": self.profile_framework,
            "profiler_level": self.profiler_level,
            "host_stack": _switch(self.host_stack),
        }
        return json.dumps(values)

    def for_mindspore(self) -> dict[str, Any]:
        """Give the options that the device has, as MindSpore's `Profiler` takes them."""
        names = DEVICES[self.device] - {"start"}
        values = {name: getattr(self, name) for name in sorted(names)}
        if self.profiler_level is None:
            values.pop("profiler_level", None)
        if not self.ascend_job_id:
            values.pop("ascend_job_id", None)
        return values

    @property
    def profiling_options(self) -> str | None:
        """What PROFILING_OPTIONS is to hold: MindSpore sets it for communication alone."""
        return self.msprof_options() if self.profile_communication else None


def _switch(value: bool) -> str:  # noqa: FBT001 (the value itself)
    return "on" if value else "off"


def _error(
    code: str, option: str | None, message: str, raises: type[Any], used: object = None
) -> OptionFinding:
    return OptionFinding(code, "error", option, message, used, raises)


def _device(device: str, findings: list[OptionFinding]) -> Device:
    name = str(device).lower()
    for known in DEVICES:
        if name == known:
            return known
    message = f"the device is one of cpu, gpu and ascend, not {device!r}"
    findings.append(_error("unknown_device", None, message, OptionStateError, "cpu"))
    return "cpu"


def _supported(
    device: Device, asked: Mapping[str, Any], findings: list[OptionFinding], *, is_quiet: bool
) -> dict[str, Any]:
    """Leave out what the device does not have; say so, unless the environment chose."""
    left = {name: value for name, value in asked.items() if name in DEVICES[device]}
    if is_quiet:
        return left
    for name in asked:
        if name not in left:
            why = f"the device {device} does not have it" if name in CHECKS else "there is no such"
            message = f"{name} is an invalid param which doesn't work ({why})"
            findings.append(OptionFinding("invalid_option", "warning", name, message))
        elif asked.get("op_time", True) is False and name not in WITHOUT_OP_TIME:
            message = f"When op_time is set to False, the parameter '{name}' setting is invalid."
            findings.append(OptionFinding("needs_op_time", "warning", name, message))
    return left


def _checked(name: str, asked: Mapping[str, Any], findings: list[OptionFinding]) -> Any:
    """Give a value that can be: the one asked for, or what MindSpore takes instead."""
    problem = CHECKS[name](asked[name])
    if problem is None:
        return asked[name]
    message = f"the parameter {name} {problem.rule}, but got {_told(asked[name])}"
    if name == "start_profile":
        findings.append(_error("bad_type", name, message, OptionTypeError, True))  # noqa: FBT003
        return True
    instead = f"{message}; it is set to {problem.used!r}"
    findings.append(OptionFinding("bad_value", "warning", name, instead, problem.used))
    return problem.used


def _told(value: Any) -> str:
    plain = isinstance(value, str | int | float | None)
    return repr(value)[:60] if plain else f"type {type(value).__name__}"


def _apply_level(values: dict[str, Any]) -> None:
    """Let a level switch off what it does not have; and take the name of a member of an enum."""
    values.pop("start", None)
    level = values.get("profiler_level")
    level = getattr(level, "name", level)
    if level is not None:
        values["profiler_level"] = level
    if level in ("Level0", "Level1"):
        values["data_process"] = False
    if level == "Level0":
        values["aicore_metrics"] = -1


def _output(
    asked: Mapping[str, Any],
    values: dict[str, Any],
    settings: Environment,
    findings: list[OptionFinding],
    exists: Callable[[Path], bool],
) -> Path:
    """Choose the folder: the job's, the one asked for, the environment's, or `data`."""
    job = values.get("ascend_job_id", "")
    if job:
        if exists(Path(job)):
            return Path(job).parent
        message = f"the folder of ascend_job_id does not exist: {job}"
        findings.append(_error("no_such_job", "ascend_job_id", message, OptionValueError))
    named = values.get("output_path")
    if named is not None and "output_path" in asked:
        if settings.output_path and settings.output_path != str(named):
            message = f"output_path is used, and MS_DIAGNOSTIC_DATA_PATH is not: {named}"
            findings.append(OptionFinding("output_path", "warning", "output_path", message, named))
        return Path(named)
    return Path(settings.output_path or DEFAULTS["output_path"])
