"""The options of MindSpore's profiler as a plain object, checked without side effects."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from longpole.formats.mindspore.environment import Environment
from longpole.formats.mindspore.option_table import (
    OPTIONS,
    OptionFinding,
    OptionStateError,
    OptionTypeError,
    OptionValueError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

Device = Literal["cpu", "gpu", "ascend"]
_DEVICES: Final[tuple[Device, ...]] = ("cpu", "gpu", "ascend")

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
_WITHOUT_METRICS: Final = ("LevelNone", "Level0")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfilerOptions:
    """What to record, on which device, and where to write it.

    Create it with `ProfilerOptions.check` or `ProfilerOptions.validate`; an option that a device
    does not have keeps its default. `timeline_limit` is in MiB. `findings` lists the problems.
    """

    device: Device
    output_path: Path
    start_profile: bool
    op_time: bool
    profile_framework: Literal["memory", "time", "all"] | None
    timeline_limit: int
    data_process: bool
    sync_enable: bool
    profiler_level: Literal["LevelNone", "Level0", "Level1", "Level2"] | None
    profile_communication: bool
    profile_memory: bool
    parallel_strategy: bool
    aicore_metrics: int
    l2_cache: bool
    hbm_ddr: bool
    pcie: bool
    host_stack: bool
    data_simplification: bool
    ascend_job_id: str
    environment: Environment
    findings: tuple[OptionFinding, ...]

    @classmethod
    def validate(cls, device: str = "cpu", **options: Any) -> Self:
        """Check options as `check` does; warnings are in `findings`, errors are raised.

        Raises
        ------
        OptionTypeError
            `start_profile` is not a bool.
        OptionValueError
            `ascend_job_id` does not exist, or the options for msprof have over 2,048 characters.
        OptionStateError
            The device is not cpu, gpu or ascend, or PROFILING_MODE is set.

        Examples
        --------
        >>> ProfilerOptions.validate("gpu", timeline_limit=-1).timeline_limit
        500
        """
        found = cls.check(device, **options)
        for finding in found.findings:
            if finding.raises is not None:
                raise finding.raises(finding.message)
        return found

    @classmethod
    def check(
        cls,
        device: str = "cpu",
        *,
        environment: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Self:
        """Check options without raising: errors are findings too.

        Parameters
        ----------
        device
            cpu, gpu or ascend, in any case.
        environment
            Environment variables, such as `os.environ`; none by default.
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
        values = {name: option.default for name, option in OPTIONS.items()}
        values |= {name: _checked(name, value, findings) for name, value in asked.items()}
        _apply_level(values, asked, findings)
        del values["start"]
        values["output_path"] = _output(asked, values, settings, findings)
        made = cls(device=known, environment=settings, findings=(), **values)
        if known == "ascend" and len(made.msprof_options()) > _LONGEST:
            message = f"the options for msprof have more than {_LONGEST:,} characters"
            findings.append(OptionFinding("too_long", None, message, raises=OptionValueError))
        return replace(made, findings=tuple(findings))

    def msprof_options(self) -> str:
        """Return the options as the JSON text that MindSpore passes to Ascend's profiler."""
        settings = self.environment
        metrics = -1 if self.profiler_level in _WITHOUT_METRICS else self.aicore_metrics
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
            "profiler_level": self.profiler_level or "off",
            "host_stack": _switch(self.host_stack),
        }
        return json.dumps(values)


def _switch(value: bool) -> str:  # noqa: FBT001 - the value of an option
    return "on" if value else "off"


def _device(device: str, findings: list[OptionFinding]) -> Device:
    name = str(device).lower()
    for known in _DEVICES:
        if name == known:
            return known
    message = f"the device must be cpu, gpu or ascend, not {device!r}"
    findings.append(OptionFinding("unknown_device", None, message, "cpu", OptionStateError))
    return "cpu"


def _supported(
    device: Device, asked: Mapping[str, Any], findings: list[OptionFinding], *, is_quiet: bool
) -> dict[str, Any]:
    """Drop options that the device does not have; report them, unless the environment set them."""
    left = {name: asked[name] for name in asked if device in _devices_of(name)}
    for name in () if is_quiet else asked:
        if name not in left:
            why = f"the device {device} does not have it" if name in OPTIONS else "there is no such"
            message = f"{name} is an invalid param which doesn't work ({why})"
            findings.append(OptionFinding("invalid_option", name, message))
        elif asked.get("op_time", True) is False and OPTIONS[name].needs_op_time:
            message = f"When op_time is set to False, the parameter '{name}' setting is invalid."
            findings.append(OptionFinding("needs_op_time", name, message))
    return left


def _devices_of(name: str) -> frozenset[str]:
    return OPTIONS[name].devices if name in OPTIONS else frozenset()


def _checked(name: str, value: Any, findings: list[OptionFinding]) -> Any:
    """Return a valid value: the requested one, or MindSpore's replacement."""
    rule, instead = OPTIONS[name].check(value), OPTIONS[name].instead
    if rule is None:
        return value
    message = f"the parameter {name} {rule}, but got {_told(value)}"
    if name == "start_profile":
        findings.append(OptionFinding("bad_type", name, message, instead, OptionTypeError))
    else:
        message = f"{message}; it is set to {instead!r}"
        findings.append(OptionFinding("bad_value", name, message, instead))
    return instead


def _told(value: Any) -> str:
    plain = isinstance(value, str | int | float | None)
    return repr(value)[:60] if plain else f"type {type(value).__name__}"


def _apply_level(
    values: dict[str, Any], asked: Mapping[str, Any], findings: list[OptionFinding]
) -> None:
    """Disable options that a level does not have; report those that were requested.

    A member of an enumeration is converted to its name.
    """
    level = values["profiler_level"]
    values["profiler_level"] = level = getattr(level, "name", level)
    off: dict[str, Any] = {}
    if level in (*_WITHOUT_METRICS, "Level1"):
        off["data_process"] = False
    if level in _WITHOUT_METRICS:
        off["aicore_metrics"] = -1
    for name, value in off.items():
        if name in asked and values[name] != value:
            message = f"the profiler_level {level} does not record {name}; it is set to {value!r}"
            findings.append(OptionFinding("level_without_it", name, message, value))
    values.update(off)


def _output(
    asked: Mapping[str, Any],
    values: Mapping[str, Any],
    settings: Environment,
    findings: list[OptionFinding],
) -> Path:
    """Choose the folder: the job's, the requested one, the environment's, or `data`."""
    job, named = values["ascend_job_id"], values["output_path"]
    if job:
        if os.path.exists(job):  # noqa: PTH110 - false if the text cannot be a path
            return Path(job).parent
        message = f"the folder of ascend_job_id does not exist: {job}"
        found = OptionFinding("no_such_job", "ascend_job_id", message, raises=OptionValueError)
        findings.append(found)
    if "output_path" not in asked:
        return Path(settings.output_path or named)
    if settings.output_path and settings.output_path != str(named):
        message = f"output_path is used, and MS_DIAGNOSTIC_DATA_PATH is not: {named}"
        findings.append(OptionFinding("output_path", "output_path", message, named))
    return Path(named)


# Converts options to those of the `Profiler` class of the installed MindSpore.


_GONE: Final = frozenset(("timeline_limit", "profile_communication", "ascend_job_id"))
"""Options that MindSpore removed in 2.5."""
_ACTIVITIES: Final = frozenset(("op_time", "profile_framework"))
"""Options that became activities in 2.5, on an Ascend device."""


def options_of(options: ProfilerOptions, types: Any) -> dict[str, Any]:
    """Return the arguments for `mindspore.Profiler`.

    Parameters
    ----------
    options
        The options, checked for their device.
    types
        The module `mindspore.profiler`, whose enumerations tell what its options are.
    """
    names = [name for name in sorted(OPTIONS) if options.device in OPTIONS[name].devices]
    values = {name: getattr(options, name) for name in names if name != "start"}
    level = values.pop("profiler_level", None)
    levels = getattr(types, "ProfilerLevel", None)
    if level is not None and levels is not None:
        values["profiler_level"] = _level_of(levels, level)
    if not options.ascend_job_id:
        values.pop("ascend_job_id", None)
    return _since_2_5(values, types) if _is_new(types) else values


def _level_of(levels: Any, name: str) -> Any:
    """Return a level of the installed MindSpore.

    Raises
    ------
    OptionValueError
        It has no such level.
    """
    member = getattr(levels, name, None)
    if member is None:
        known = ", ".join(level.name for level in levels)
        message = f"the installed MindSpore has no profiler_level {name}; it has {known}"
        raise OptionValueError(message)
    return member


def without_effect(types: Any, device: str) -> frozenset[str]:
    """Return the options that the installed MindSpore does not have in any form."""
    gone = frozenset(() if hasattr(types, "ProfilerLevel") else ("profiler_level",))
    if not _is_new(types):
        return gone
    return gone | _GONE | (frozenset() if device == "ascend" else _ACTIVITIES)


def _is_new(types: Any) -> bool:
    """Whether the options are those of MindSpore 2.5 or later."""
    return hasattr(types, "AicoreMetrics")


def _since_2_5(values: dict[str, Any], types: Any) -> dict[str, Any]:
    kept = {name: values[name] for name in values.keys() - _GONE - _ACTIVITIES}
    metrics, stack = kept.pop("aicore_metrics", None), kept.pop("host_stack", None)
    if metrics is None:
        return kept
    activity = types.ProfilerActivity
    activities = [activity.CPU] if values["profile_framework"] is not None else []
    activities += [activity.NPU] if values["op_time"] else []
    kept |= {"with_stack": stack, "activities": activities}
    # Level0, which MindSpore takes unless asked, has no metrics: it warns of any but the default.
    if "profiler_level" in kept or metrics != OPTIONS["aicore_metrics"].default:
        name = "AiCoreNone" if metrics < 0 else AICORE_METRICS[metrics]
        kept["aic_metrics"] = getattr(types.AicoreMetrics, name)
    return kept
