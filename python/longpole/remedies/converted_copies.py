"""Tensors that the CPU converts to a larger type before they are copied to the GPU.

As bytes, an image has a quarter of its size as float32. `images.to("cuda", torch.float32)` converts
on the CPU, too, unless it is called with `non_blocking=True`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.engine.critical_path.changes import Insert, Scale
from longpole.flops.dtypes import python_name
from longpole.remedies.model import Found, Remedy
from longpole.remedies.pinned_copies import CALL_NS
from longpole.words.wording import count, duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from longpole.engine.critical_path.changes import Change
    from longpole.flops import Tensor
    from longpole.remedies.facts import Activity, Facts, OnThread

__all__ = ["REMEDY"]

_COPY: Final = "aten::copy_"

# Smaller tensors cost a launch, on either side.
_LEAST_BYTES: Final = 1 << 20

# Operators that only make or view the tensor between its conversion and its copy.
_BETWEEN: Final = {
    "aten::to",
    "aten::_to_copy",
    "aten::empty",
    "aten::empty_like",
    "aten::empty_strided",
    "aten::as_strided",
    "aten::contiguous",
    "aten::detach",
    "aten::expand",
    "aten::expand_as",
    "aten::unsqueeze",
    "aten::view",
    "detach",
    _COPY,
}

# Cost of the conversion on the GPU: a launch, and a pass over memory at a part of its bandwidth.
# For an unknown device, a low bandwidth is assumed, in bytes per ns.
_LAUNCH_NS: Final = 20_000
_OF_BANDWIDTH: Final = 0.6
_LEAST_BANDWIDTH: Final = 300.0


class _Converted(NamedTuple):
    """A conversion on the CPU and the copy of its result to the GPU."""

    cast: OnThread
    copy: Activity
    source: str
    target: str
    """Element types before and after the conversion."""
    sizes: tuple[int, int]
    """Bytes before and after the conversion."""

    @property
    def share(self) -> float:
        """The bytes to copy without the conversion, as a share of those copied."""
        return self.sizes[0] / self.sizes[1]


def _find(facts: Facts) -> Iterator[Found]:
    large = [
        row
        for row in facts.uploads
        if (facts.number(row.event, "bytes") or 0) >= _LEAST_BYTES
        and row.operator is not None
        and facts.name(row.operator) == _COPY
    ]
    if not large:
        return
    ended: dict[int, list[OnThread]] = defaultdict(list)
    for row in sorted(facts.operators(_COPY), key=lambda row: (row.end_ns, row.event)):
        ended[row.lane].append(row)
    of_types: dict[tuple[str, str], list[_Converted]] = defaultdict(list)
    for copy in large:
        converted = _converted(facts, copy, ended)
        if converted is not None:
            of_types[converted.source, converted.target].append(converted)
    for _, rows in sorted(of_types.items()):
        gone_ns = sum(row.cast.duration_ns + row.copy.duration_ns for row in rows)
        if facts.is_worth(gone_ns):
            yield _found(facts, rows)


def _converted(
    facts: Facts, copy: Activity, ended: Mapping[int, list[OnThread]]
) -> _Converted | None:
    """Return the conversion whose result is copied, if the CPU ran it just before."""
    begin, sent = facts.place(copy.operator or 0), facts.called(copy.operator)
    rows = ended.get(begin.lane, [])
    place = bisect_right(rows, begin.start_ns, key=lambda row: row.end_ns)
    if place == 0 or sent is None:
        return None
    cast = rows[place - 1]
    call = facts.called(cast.event)
    sizes = None if call is None else _sizes(call.tensor(1), call.tensor(0), sent.tensor(1))
    if call is None or sizes is None or facts.number(copy.event, "bytes") != sizes[1]:
        return None
    between = facts.names_in([(begin.lane, cast.end_ns, begin.start_ns)])
    computed = {row.name for row in between if row.kind == "operator"} - _BETWEEN
    # A cast that launches GPU activities runs on the GPU.
    if computed or facts.launched_in([cast.time_range]):
        return None
    types = [tensor.dtype for tensor in call.all_tensors()]
    return _Converted(cast, copy, types[1], types[0], sizes)


def _sizes(
    source: Tensor | None, target: Tensor | None, sent: Tensor | None
) -> tuple[int, int] | None:
    """Return the bytes before and after a conversion to a larger type; None if it is not one."""
    if source is None or target is None or sent is None:
        return None
    is_sent = target.dtype == sent.dtype and source.numel == target.numel == sent.numel
    small, large = source.item_bytes, target.item_bytes
    if not is_sent or small is None or large is None or small >= large:
        return None
    return small * source.numel, large * target.numel


def _found(facts: Facts, rows: list[_Converted]) -> Found:
    source, target = (python_name(name) or name for name in (rows[0].source, rows[0].target))
    gone = [change for row in rows for change in _gone(facts, row)]
    host_ns = sum(row.cast.duration_ns for row in rows)
    n_copies = max(round(facts.per_window(len(rows))), 1)
    n_bytes = sum(row.sizes[1] for row in rows) / len(rows)
    return Found(
        careful=[*gone, *(_conversion(facts, row) for row in rows)],
        hopeful=gone,
        advice=f"Copy the {source} as it is, and convert it to {target} on the GPU",
        evidence=(
            f"{count(n_copies, 'copy', 'copies')} of {n_bytes / 1e6:,.1f} MB "
            f"{facts.each}, which the CPU converts in "
            f"{duration(round(host_ns / len(rows)))} {'' if n_copies == 1 else 'each '}before"
        ),
        name=facts.name(rows[0].copy.event),
        events=facts.longest(row.cast for row in rows),
    )


def _gone(facts: Facts, row: _Converted) -> Iterator[Change]:
    """Yield the changes that remove the conversion on the CPU, except for a launch."""
    launch = min(_LAUNCH_NS / max(row.cast.duration_ns, 1), 1.0)
    yield Scale(by=launch, time_ranges=[row.cast.time_range])
    yield Scale(by=row.share, kind="copy", events=[row.copy.event])
    call = row.copy.call
    if call is not None and any(facts.core.pageable_ends(row.copy.event)):
        # The call copies the bytes to a staging buffer.
        length_ns = max(facts.place(call).duration_ns or 0, CALL_NS)
        yield Scale(by=max(row.share, CALL_NS / length_ns), events=[call])


def _conversion(facts: Facts, row: _Converted) -> Change:
    """Return the cost of a conversion on the GPU, which follows the copy."""
    known = None if facts.peaks is None else facts.peaks.bandwidth
    rate = _LEAST_BANDWIDTH if known is None else known
    return Insert(time_ns=round(sum(row.sizes) / (_OF_BANDWIDTH * rate)), events=[row.copy.event])


REMEDY: Final = Remedy(
    id="converted_copies",
    side="copies",
    effort="one_line",
    needs="recorded shapes, and memcpys with their bytes",
    seen_by=(
        "`copy_` on the CPU to a larger type, then the copy of its result to the GPU, of 1 MB or "
        "more"
    ),
    change=(
        "the copy has the bytes of the smaller type, and a kernel converts; at most together with "
        "the next one"
    ),
    not_when="the host computes with the result, or a worker converts, which is not recorded",
    find=_find,
)
