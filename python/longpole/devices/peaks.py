"""Published peaks of devices, for rooflines.

Figures are the manufacturers' for one device, without structured sparsity, in TFLOP/s and GB/s. The
device of a trace may be slower: clocks are limited by power, and partitions have only a part of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from longpole.words.matrix_units import may_use_tf32

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Bound = Literal["compute", "memory"]
"""The peak that limits some work."""

# TFLOP/s are 1,000 FLOPs a nanosecond.
_FLOPS_OF_NS: Final = 1_000

_LARGE_A100: Final = 60_000_000_000
PRECISIONS: Final[Mapping[str, str]] = {
    "double": "fp64",
    "float": "fp32",
    "c10::Half": "fp16",
    "c10::BFloat16": "bf16",
    "c10::Float8_e4m3fn": "fp8",
    "c10::Float8_e4m3fnuz": "fp8",
    "c10::Float8_e5m2": "fp8",
    "c10::Float8_e5m2fnuz": "fp8",
    "signed char": "int8",
    "fp4": "fp4",
}
"""The precision of a type, by torch's name."""


def precision_of(dtype: str | None, kernel: str, *, is_matrix: bool) -> str | None:
    """Return the type that a kernel computes with; None for types without a known peak.

    float32 products may run as TF32, which only the name of the kernel shows.
    """
    precision = None if dtype is None else PRECISIONS.get(dtype)
    return "tf32" if precision == "fp32" and is_matrix and may_use_tf32(kernel) else precision


@dataclass(frozen=True, slots=True)
class Peaks:
    """Peak performance of one device.

    `matrix` and `vector` are TFLOP/s by type (`fp64`, `fp32`, `tf32`, `bf16`, `fp16`, `fp8`,
    `int8`, `fp4`), on tensor or matrix cores and on the other cores; `bandwidth` is the memory
    bandwidth in GB/s. None if unknown. Types that a device computes far slower than fp32 are left
    out.
    """

    name: str
    matrix: Mapping[str, float]
    vector: Mapping[str, float]
    bandwidth: float | None
    source: str

    def tflops(self, precision: str | None, *, is_matrix: bool) -> float | None:
        """Return the peak of a type; work other than products uses the fp64 or fp32 peak."""
        if is_matrix:
            return None if precision is None else self.matrix.get(precision)
        name = "fp64" if precision == "fp64" else "fp32"
        return self.vector.get(name, self.matrix.get(name))

    def roof_ns(
        self,
        flops: float | None,
        n_bytes: float | None,
        precision: str | None,
        *,
        is_matrix: bool | None,
    ) -> tuple[Bound, float] | None:
        """Return which peak limits some work, and its least time; None if unknown.

        Examples
        --------
        >>> one = Peaks("one", {"bf16": 100.0}, {"fp32": 10.0}, 1_000.0, "as given")
        >>> [one.roof_ns(2e9, 1e6, name, is_matrix=True) for name in ("bf16", "fp8")]
        [('compute', 20000.0), None]
        """
        if flops is None or n_bytes is None or is_matrix is None or self.bandwidth is None:
            return None
        tflops = self.tflops(precision, is_matrix=is_matrix)
        if tflops is None:
            return None
        compute_ns, memory_ns = flops / (tflops * _FLOPS_OF_NS), n_bytes / self.bandwidth
        return ("compute", compute_ns) if compute_ns >= memory_ns else ("memory", memory_ns)

    def overridden(self, tflops: Mapping[str, float], bandwidth: float | None = None) -> Peaks:
        """Replace some peaks of the matrix cores, and the bandwidth if given."""
        given = self.bandwidth if bandwidth is None else bandwidth
        source = "as given" if tflops or bandwidth else self.source
        return replace(self, matrix={**self.matrix, **tflops}, bandwidth=given, source=source)


# For each device: its name in longpole, a pattern for its driver's name, TFLOP/s of the vector
# units (fp64, fp32) and of the matrix units (fp64, fp32, tf32, fp16, bf16, fp8, int8, fp4), and the
# GB/s of its memory. The first matching pattern counts.
_SHEETS: Final = {
    "NVIDIA V100 data sheet (2020)": """
        V100 PCIe       V100-PCIE    7.0  14.0   7.0  14.0  -  112  -  -  -  -   900
        V100S           V100S        8.2  16.4   8.2  16.4  -  130  -  -  -  -  1134
        V100 SXM2       V100         7.8  15.7   7.8  15.7  -  125  -  -  -  -   900
    """,
    "NVIDIA Turing architecture white paper (2018)": """
        T4              T4$          -  8.1  -  8.1  -  65  -  -  130  -  320
    """,
    "NVIDIA A10 data sheet (2021)": """
        A10             A10$         -  31.2  -  31.2  62.5  125  125  -  250  -  600
    """,
    "NVIDIA A10G data sheet (2022)": """
        A10G            A10G$        -  35  -  35  35  70  70  -  140  -  600
    """,
    "NVIDIA A30 data sheet (2022)": """
        A30             A30$         5.2  10.3  10.3  10.3  82  165  165  -  330  -  933
    """,
    "NVIDIA A40 data sheet (2021)": """
        A40             A40$         -  37.4  -  37.4  74.8  149.7  149.7  -  299.3  -  696
    """,
    "NVIDIA L4 data sheet; half of the figures with sparsity": """
        L4              L4$          -  30.3  -  30.3  60  121  121  242.5  242.5  -  300
    """,
    "NVIDIA L40 data sheet; half of the figures with sparsity": """
        L40             L40$         -  90.5  -  90.5  90.5  181  181  362  362  -  864
    """,
    "NVIDIA L40S data sheet": """
        L40S            L40S$        -  91.6  -  91.6  183  362  362  733  733  -  864
    """,
    "NVIDIA Ampere GA102 architecture white paper, with sums in fp32": """
        RTX A6000       RTX A6000$   -  38.7  -  38.7  77.4  154.8  154.8  -  309.7  -  768
        RTX 3090        RTX 3090$    -  35.6  -  35.6  35.6  71  71  -  284  -  936
    """,
    "NVIDIA Ada architecture white paper, with sums in fp32": """
        RTX 6000 Ada  RTX 6000 Ada  -  91.1  -  91.1  182.1  364.2  364.2  728.5  728.5  -  960
        RTX 4090        RTX 4090$    -  82.6  -  82.6  82.6  165.2  165.2  330.3  660.6  -  1008
    """,
    "NVIDIA RTX Blackwell architecture white paper, with sums in fp32": """
        RTX 5090        RTX 5090$    -  104.8  -  104.8  104.8  209.5  209.5  419  838  1676  1792
    """,
    "NVIDIA A800 data sheet (2022)": """
        A800 PCIe 80GB  A800.*PCIe   9.7  19.5  19.5  19.5  156  312  312  -  624  -  1935
        A800 SXM 80GB   A800-SXM     9.7  19.5  19.5  19.5  156  312  312  -  624  -  2039
    """,
    "NVIDIA A100 data sheet (2022)": """
        A100 PCIe 80GB  A100.*PCIe   9.7  19.5  19.5  19.5  156  312  312  -  624  -  1935
        A100 40GB       -            9.7  19.5  19.5  19.5  156  312  312  -  624  -  1555
        A100 SXM 80GB   A100         9.7  19.5  19.5  19.5  156  312  312  -  624  -  2039
    """,
    "NVIDIA H100 data sheet; half of the figures with sparsity": """
        H100 PCIe       H100 PCIe    26  51  51  51  378    756.5  756.5  1513    1513  -    2000
        H100 NVL        H100 NVL     30  60  60  60  417.5  835.5  835.5  1670.5  1670.5  -  3900
        H100 SXM        H100         34  67  67  67  494.7  989.4  989.4  1978.9  1978.9  -  3350
    """,
    "NVIDIA H800 data sheet; half of the figures with sparsity": """
        H800 PCIe       H800 PCIe    0.8  51  0.8  51  378    756.5  756.5  1513    1513  -    2000
        H800 SXM        H800$        1  67  1  67  494.7  989.4  989.4  1978.9  1978.9  -  3350
    """,
    "NVIDIA HGX H20 data sheet, an eighth": """
        H20             H20$         1  44  1  44  74  148  148  296  296  -  4000
    """,
    "NVIDIA GH200 data sheet; half of the figures with sparsity": """
        GH200 HBM3e     GH200.*144G  34  67  67  67  494.7  989.4  989.4  1978.9  1978.9  -  4900
        GH200           GH200        34  67  67  67  494.7  989.4  989.4  1978.9  1978.9  -  4000
    """,
    "NVIDIA H200 data sheet; half of the figures with sparsity": """
        H200 NVL        H200 NVL     30  60  60  60  417.5  835.5  835.5  1670.5  1670.5  -  4800
        H200            (?<!G)H200   34  67  67  67  494.7  989.4  989.4  1978.9  1978.9  -  4800
    """,
    "NVIDIA HGX B200 data sheet, an eighth; half of the figures with sparsity": """
        B200            (?<!G)B200   37  75  37  75  1125  2250  2250  4500  4500  9000  7700
    """,
    "NVIDIA GB200 NVL72 data sheet, one of 72; half of the figures with sparsity": """
        GB200           GB200        40  80  40  80  1250  2500  2500  5000  5000  10000  8000
    """,
    "NVIDIA HGX B300 data sheet, an eighth; half of the figures with sparsity": """
        B300            (?<!G)B300   1.25  75  1.25  75  1125  2250  2250  4500  -  13125  8000
    """,
    "AMD Instinct MI200 series data sheet": """
        MI210           MI210        22.6  22.6  45.3  45.3  -  181  181  -  181  -  1638.4
    """,
    "AMD Instinct MI200 series data sheet, half: each of its two dies is a device": """
        MI250X          MI250X      23.95  23.95  47.85  47.85  -  191.5  191.5  -  191.5  -  1638.4
    """,
    "AMD Instinct MI300A data sheet": """
        MI300A  MI300A  61.3  122.6  122.6  122.6  490.3  980.6  980.6  1961.2  1961.2  -  5300
    """,
    "AMD Instinct MI300X data sheet": """
        MI300X  MI300X  81.7  163.4  163.4  163.4  653.7  1307.4  1307.4  2614.9  2614.9  -  5300
    """,
    "AMD Instinct MI325X data sheet": """
        MI325X  MI325X  81.7  163.4  163.4  163.4  653.7  1307.4  1307.4  2614.9  2614.9  -  6000
    """,
    "AMD Instinct MI355X data sheet": """
        MI355X  MI355X  78.6  157.3  78.6  157.3  -  2516.6  2516.6  5033.2  5033.2  10066.3  8000
    """,
}
_VECTOR: Final = ("fp64", "fp32")
_MATRIX: Final = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4")


def _read_sheets() -> Iterator[tuple[str, Peaks]]:
    """Yield the pattern and the peaks of each device."""
    for source, rows in _SHEETS.items():
        for row in filter(None, map(str.strip, rows.splitlines())):
            name, pattern, *figures = re.split(r"  +", row)
            *peaks, bandwidth = map(_figure, figures)
            vector = dict(zip(_VECTOR, peaks[:2], strict=True))
            matrix = dict(zip(_MATRIX, peaks[2:], strict=True))
            yield pattern, Peaks(name, _known(matrix), _known(vector), bandwidth, source)


def _figure(text: str) -> float | None:
    if text == "-":
        return None
    return int(text) if text.isdecimal() else float(text)


def _known(figures: Mapping[str, float | None]) -> Mapping[str, float]:
    known = {dtype: figure for dtype, figure in figures.items() if figure is not None}
    return MappingProxyType(known)


_BY_PATTERN: Final = tuple(_read_sheets())

PEAKS: Final = tuple(peaks for _, peaks in _BY_PATTERN)
"""All known devices."""


def peaks_of(name: str | None, memory_bytes: int | None = None) -> Peaks | None:
    """Return the peaks of a device by its driver's name.

    Parameters
    ----------
    name
        Name, as in the device properties of a trace.
    memory_bytes
        Size of its memory, which distinguishes two kinds of A100.

    Returns
    -------
    Peaks or None
        None for a device that is not in the table.

    Examples
    --------
    >>> peaks_of("NVIDIA H100 80GB HBM3").matrix["bf16"]
    989.4
    >>> peaks_of("NVIDIA A100-SXM4-40GB", 42_505_273_344).bandwidth
    1555
    """
    for pattern, peaks in _BY_PATTERN:
        if name is not None and pattern != "-" and re.search(pattern, name, re.IGNORECASE):
            is_small = memory_bytes is not None and memory_bytes < _LARGE_A100
            if peaks.name.startswith("A100") and (is_small or "40GB" in name):
                return next(each for each in PEAKS if each.name == "A100 40GB")
            return peaks
    return None
