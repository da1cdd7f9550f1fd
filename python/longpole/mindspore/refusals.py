"""Files of a profile that are not used offline, and what to do instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.mindspore.errors import ProfileError
from longpole.mindspore.layouts import WITHOUT_TIMELINE, named

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from longpole.mindspore.findings import Findings
    from longpole.mindspore.layouts import RankFiles

__all__ = ["refuse", "refused_file"]

_EXPORT: Final = "export it with CANN's `msprof --export=on` and read the result"
_SUMMARY: Final = "a summary by MindSpore; the timeline has the runs in it"

_REFUSED: Final[Mapping[str, str]] = {
    "memory_usage": "a protobuf of one version of MindSpore: analyse it with that MindSpore "
    "(Profiler.analyse()), or record again with MindSpore 2.4 or later and profile_memory=True, "
    "which writes memory_record.csv and operator_memory.csv",
    "op_range": "a binary of one version of MindSpore: analyse it with that MindSpore "
    "(Profiler.analyse()) and read the trace_view.json that it writes",
    "hccl_raw": f"made from binaries by MindSpore; {_EXPORT}",
    "aicore_intermediate_detail": _SUMMARY,
    "aicore_intermediate_type": _SUMMARY,
    "aicpu_intermediate": _SUMMARY,
    "output_op_compute_time": _SUMMARY,
    "output_op_compute_time_detail": _SUMMARY,
    "framework_raw": "shapes and types of inputs, without times",
    "minddata_aicpu": f"the queue of an Ascend device; {_EXPORT}",
    "dynamic_shape_info": "made by MindSpore; ask op_analyse for times by shape",
    "ascend_timeline_display": "a timeline already; read it as a trace",
}
"""Why a kind of file is not used, and what to do."""


def refused_file(path: Path) -> ProfileError | None:
    """Return why a file of MindSpore's profiler is not a timeline; None if it may be one."""
    kind, _ = named(path) or ("", 0)
    if kind in _REFUSED and kind != "ascend_timeline_display":
        return ProfileError(path, "refused", _REFUSED[kind])
    if kind not in WITHOUT_TIMELINE:
        return None
    hint = "give the folder of the profile, or ask `longpole mindspore` about it"
    return ProfileError(path, "no_timeline", f"{kind}: a file without a timeline", hint=hint)


def refuse(files: RankFiles, findings: Findings) -> None:
    """Add a finding for each existing file that is not used."""
    for kind, reason in _REFUSED.items():
        if (path := files.get(kind)) is not None:
            findings.add("refused", path, None, reason)
