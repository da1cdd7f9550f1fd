"""Files of a profile that are not used offline, and what to do instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from longpole.mindspore.findings import Findings
    from longpole.mindspore.layouts import RankFiles

__all__ = ["REFUSED", "refuse"]

_EXPORT: Final = "export with CANN's `msprof --export=on` and read what it wrote"
_SUMMARY: Final = "a summary by MindSpore; the timeline has the runs that it sums up"

REFUSED: Final[Mapping[str, str]] = {
    "memory_usage": "a protobuf of one version of MindSpore; analyse it there, or record with "
    "MindSpore 2.4 or later, which writes memory_record.csv",
    "op_range": "a binary of one version of MindSpore; analyse it there",
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


def refuse(files: RankFiles, findings: Findings) -> None:
    """Add a finding for each file that is there and not used."""
    for kind, reason in _present(files):
        findings.add("refused", files.files[kind], None, reason)


def _present(files: RankFiles) -> Iterator[tuple[str, str]]:
    return ((kind, reason) for kind, reason in REFUSED.items() if kind in files.files)
