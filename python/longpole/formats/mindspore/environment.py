"""The environment variables of MindSpore's profiler, and their precedence."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self

from longpole.formats.mindspore.option_table import OptionFinding, OptionStateError

if TYPE_CHECKING:
    from collections.abc import Mapping

_OPTIONS_SINCE_2_5: Final = "MS_PROFILER_OPTIONS"
_NOT_OPTIONS: Final = {"start", "start_time", "file_output_path", "pid"}


@dataclass(frozen=True, slots=True)
class Environment:
    """The configuration from the environment.

    `run_options` are those of MS_PROFILER_RUN_CONFIG, which take precedence over arguments if it
    has `"start": true`, or another value that Python counts as true. `device_id` and `rank_id` are
    None if not set.
    """

    output_path: str | None = None
    rank_id: int | None = None
    rank_size: int = 1
    device_id: int | None = None
    fp_start: str = ""
    bp_end: str = ""
    run_options: Mapping[str, Any] = field(default_factory=dict)
    findings: tuple[OptionFinding, ...] = ()

    @classmethod
    def of(cls, variables: Mapping[str, str]) -> Self:
        """Read the variables; an invalid one becomes a finding."""
        findings: list[OptionFinding] = []
        if variables.get("PROFILING_MODE"):
            message = (
                "PROFILING_MODE is set: another profiler is recording; unset it to use this one"
            )
            origin = ("profiling_mode", "PROFILING_MODE")
            findings.append(OptionFinding(*origin, message, raises=OptionStateError))
        if variables.get(_OPTIONS_SINCE_2_5):
            message = (
                f"{_OPTIONS_SINCE_2_5} is not used: it starts the profiler of MindSpore 2.5 or "
                "later by itself; give the options as arguments, or in MS_PROFILER_RUN_CONFIG"
            )
            findings.append(OptionFinding("unused_variable", _OPTIONS_SINCE_2_5, message))
        return cls(
            output_path=variables.get("MS_DIAGNOSTIC_DATA_PATH") or None,
            rank_id=_whole("RANK_ID", variables, findings),
            rank_size=_whole("RANK_SIZE", variables, findings) or 1,
            device_id=_whole("DEVICE_ID", variables, findings),
            fp_start=variables.get("PROFILING_FP_START", ""),
            bp_end=variables.get("PROFILING_BP_END", ""),
            run_options=_run_options(variables, findings),
            findings=tuple(findings),
        )

    def rank(self, device: str) -> int:
        """Return the rank: on a GPU the device number if set, otherwise RANK_ID, or else 0."""
        if device == "gpu" and self.device_id is not None:
            return self.device_id
        return self.rank_id or 0


def _whole(name: str, variables: Mapping[str, str], findings: list[OptionFinding]) -> int | None:
    text = variables.get(name, "")
    if text.isdecimal() and len(text) < 10:  # noqa: PLR2004 (far above any number of ranks)
        return int(text)
    if text:
        message = f"{name} is not an integer: {text[:40]!r}; it is not used"
        findings.append(OptionFinding("bad_variable", name, message))
    return None


def _run_options(variables: Mapping[str, str], findings: list[OptionFinding]) -> Mapping[str, Any]:
    name = "MS_PROFILER_RUN_CONFIG"
    text = variables.get(name)
    if not text:
        return {}
    try:
        config = json.loads(text)
    except (ValueError, RecursionError):
        config = None
    if not isinstance(config, dict):
        message = f"{name} is not a JSON object and is ignored"
        findings.append(OptionFinding("bad_variable", name, message))
        return {}
    if not config.get("start"):
        return {}
    return {key: value for key, value in config.items() if key not in _NOT_OPTIONS}
