"""The command that measures one kernel with a profiler of the vendor."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

import polars as pl

if TYPE_CHECKING:
    from longpole.trace.trace import Trace

_NVIDIA: Final = re.compile(r"^NVIDIA|^(Tesla|Quadro|GeForce)\b")
_AMD: Final = re.compile(r"^AMD\b|Radeon|Instinct")
_FUNCTION: Final = re.compile(r"(\w+)\s*(?:<|\(|$)")
_QUALIFIED: Final = re.compile(r"\(anonymous namespace\)::|[\w~]+::")
_LONGEST: Final = 64
_RESULT: Final = re.compile(r"^(?:void|static)\s+")


def closer_look(trace: Trace, rows: pl.DataFrame) -> str | None:
    """Return the command for the longest kernel of the row with most kernel time, if known."""
    if rows.is_empty():
        return None
    longest = rows.sort("kernel_ns", descending=True, maintain_order=True).row(0, named=True)
    name = longest["kernel"]
    function = None if name is None else function_of(name)
    vendor = _vendor(trace, longest["device"], longest["longest_event"])
    if function is None or vendor is None:
        return None
    if vendor == "amd":
        part = shlex.quote(function[:_LONGEST])  # it selects kernels by a part of their names
        return f"rocprof-compute profile -n kernel -k {part} -- COMMAND"
    asked = shlex.quote(f"regex:^{re.escape(function)}$")
    return f"ncu --set full --kernel-name {asked} --launch-count 1 -o kernel COMMAND"


def function_of(name: str) -> str | None:
    """Return the function of a kernel without namespaces, arguments and types.

    Examples
    --------
    >>> function_of("void at::native::(anonymous namespace)::f<4, at::X<int>>(int, float*)")
    'f'
    >>> function_of("nvjet_hsh_128x128_64x4")
    'nvjet_hsh_128x128_64x4'
    """
    plain = _QUALIFIED.sub("", _RESULT.sub("", name))
    found = _FUNCTION.match(plain)
    return None if found is None else found[1]


def _vendor(trace: Trace, device: int | None, event: int) -> str | None:
    """Return the vendor of a device by its name, else by the call that launched a kernel."""
    name = None if device is None else trace.device_names.get(device)
    for vendor, pattern in (("nvidia", _NVIDIA), ("amd", _AMD)):
        if name and pattern.search(name):
            return vendor
    call = trace.launches.filter(pl.col("event") == event)["call"].drop_nulls()
    called = None if call.is_empty() else str(trace.events["name"][call[0]])
    return None if called is None else {"cu": "nvidia", "hi": "amd"}.get(called[:2])
