"""The peak of the memory of devices in a recording, in a line of the summary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.words.wording import memory_size, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.trace.trace import Trace

_INSTANTS: Final = "cpu_instant_event"
_TOTAL: Final = "Total Allocated"
_CPU: Final = 0
# The sum of two such sizes fits 64 bits.
_TOO_LARGE: Final = 1 << 61

# Devices that are named, those with the highest peaks.
_MOST_DEVICES: Final = 2


def memory_peaks(trace: Trace) -> Iterator[str]:
    """Yield the peak of each device in the recording, with the size of its memory if known."""
    table = trace.core.args(_INSTANTS, [_TOTAL, "Device Type", "Device Id"])
    if table is None:
        return
    peaks: dict[int, int] = {}
    for row in table.to_dicts():
        device, n_bytes = row.get("Device Id"), row.get(_TOTAL)
        if row.get("Device Type") in {None, _CPU}:
            continue
        if isinstance(device, int) and isinstance(n_bytes, int) and 0 < n_bytes <= _TOO_LARGE:
            peaks[device] = max(peaks.get(device, 0), n_bytes)
    for device in sorted(peaks, key=lambda it: (-peaks[it], it))[:_MOST_DEVICES]:
        properties = trace.device_properties.get(device, {})
        size = properties.get("totalGlobalMem")
        of_all = ""
        if isinstance(size, int) and size > 0:
            of_all = f" of {memory_size(size)} ({share(peaks[device] / size)})"
        yield f"Memory of device {device} peaks at {memory_size(peaks[device])}{of_all}."
