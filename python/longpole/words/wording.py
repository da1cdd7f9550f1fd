"""Formats quantities and names for people. Programs get the plain values."""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from longpole.words.kernel_names import kernel_label

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_DIGITS: Final = "0123456789"
_UNITS: Final = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))

_ROUNDS_UP: Final = 0.9995
_FIXED_POINT: Final = (1e-4, 1e15)
_SMALLEST_SHARE: Final = 0.001
_LARGEST_CHANGE: Final = 9.0
_LARGEST: Final = 1e300
"""A larger number is written as infinite: it is not measured, but the result of an overflow."""

# Characters that move the cursor, change colours or text direction, or are invisible: controls,
# line ends, surrogates, Default_Ignorable_Code_Point of Unicode (such as tags and variation
# selectors), the Braille blank, and private characters.
_INVISIBLE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u2800\u3164\ud800-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
)
_CPP_NOISE: Final = ("at::native::", "<unnamed>::", "(anonymous namespace)::")
_NODE: Final = re.compile(
    r"autograd::engine::evaluate_function: (?:torch::autograd::)?"
    r"(?:(?P<forward>.+?)Backward0?|(?P<other>.+))$",
    re.DOTALL,
)
_WORD_END: Final = re.compile(r".*[^0-9A-Za-z]", re.DOTALL)
_LEAST_ROOM: Final = 4
_LONGEST_WORD: Final = 24
_PLACE_OF_FRAME: Final = re.compile(r"^(?P<path>.*[/\\])(?P<file>[^/\\]+\(\d+\): .*)$", re.DOTALL)


def duration(nanoseconds: float) -> str:
    """Format a time with three digits, in the unit that fits best.

    Examples
    --------
    >>> duration(1_214_000_000), duration(46_830), duration(980), duration(0.2), duration(math.inf)
    ('1.21 s', '46.8 µs', '980 ns', '0 s', 'inf s')
    """
    if not abs(nanoseconds) <= _LARGEST:
        return f"{_not_finite(nanoseconds)} s"
    nanoseconds = round(nanoseconds)
    if nanoseconds == 0:
        return "0 s"
    # A value that rounds up to 1000 of a unit is written as 1 of the next unit.
    size = abs(nanoseconds) / _ROUNDS_UP
    unit_ns, unit = next((unit for unit in _UNITS if size >= unit[0]), _UNITS[-1])
    return f"{_three_digits(nanoseconds / unit_ns, is_whole=unit_ns == 1)} {unit}"


def clock_error(shift_ns: float) -> str:
    """Return how far a clock is from the host's, whose timestamps are shifted by `shift_ns`.

    >>> clock_error(-14_000), clock_error(0)
    ("14.0 µs ahead of the host's", "equal to the host's")
    """
    if not shift_ns:
        return "equal to the host's"
    side = "behind" if shift_ns > 0 else "ahead of"
    return f"{duration(abs(shift_ns))} {side} the host's"


def duration_range(least_ns: float, most_ns: float) -> str:
    """Format two times, with a common unit only once; times that look equal are one.

    Examples
    --------
    >>> duration_range(24_900_000, 31_200_000), duration_range(900, 1_200)
    ('24.9 to 31.2 ms', '900 ns to 1.20 µs')
    >>> duration_range(24_900_000, 24_910_000)
    '24.9 ms'
    """
    (least, unit), most = duration(least_ns).split(), duration(most_ns)
    if f"{least} {unit}" == most:
        return most
    return f"{least} to {most}" if most.endswith(f" {unit}") else f"{least} {unit} to {most}"


def _three_digits(value: float, *, is_whole: bool) -> str:
    digits_before = len(str(int(abs(value) / _ROUNDS_UP)))
    return f"{value:,.{0 if is_whole else max(3 - digits_before, 0)}f}"


def number(value: float) -> str:
    """Format a number with four digits, or more if its integer part has more.

    Examples
    --------
    >>> number(62_398.34), number(2_940.018), number(97.687), number(18.5), number(0.61523)
    ('62,398', '2,940', '97.69', '18.5', '0.6152')
    """
    if not abs(value) <= _LARGEST:
        return _not_finite(value)
    smallest, largest = _FIXED_POINT
    if value != 0 and not smallest <= abs(value) < largest:
        return f"{value:.4g}"
    digits_before = 1 + math.floor(math.log10(abs(value))) if value else 1
    text = f"{value:,.{max(4 - digits_before, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _not_finite(value: float) -> str:
    """Return the text of a number beyond those that are formatted with digits, or of NaN."""
    if value > _LARGEST:
        return "inf"
    return "-inf" if value < -_LARGEST else "nan"


def memory_size(n_bytes: int) -> str:
    """Format an amount of memory.

    Examples
    --------
    >>> memory_size(3 << 29), memory_size(494 << 20), memory_size(1536), memory_size(8)
    ('1.5 GiB', '494 MiB', '1.5 KiB', '8 B')
    """
    if not abs(n_bytes) <= _LARGEST:
        return f"{_not_finite(n_bytes)} B"
    for unit, n_each in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if abs(n_bytes) >= n_each:
            return f"{number(n_bytes / n_each)} {unit}"
    return f"{n_bytes} B"


def listing(names: Sequence[str]) -> str:
    """Join names with commas and an "and".

    Examples
    --------
    >>> listing(["host"]), listing(["host", "kernels", "copies"])
    ('host', 'host, kernels and copies')
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def share(part: float) -> str:
    """Format a fraction in percent; the surrounding text must name the whole.

    Examples
    --------
    >>> share(0.4683), share(0.00001), share(0), share(1), share(0.9999), share(-0.00001)
    ('46.8 %', '<0.1 %', '0 %', '100 %', '>99.9 %', '-<0.1 %')
    """
    if not abs(part) <= _LARGEST:
        return f"{_not_finite(part)} %"
    if part in (0, 1):
        return f"{100 * part:.0f} %"
    if part < 0:
        return f"-{share(-part)}"
    if 0 < part < _SMALLEST_SHARE:
        return "<0.1 %"
    if 1 - _SMALLEST_SHARE < part < 1:
        return ">99.9 %"
    return f"{100 * part:,.1f} %"


def parse_share(text: str) -> float:
    """Parse a fraction: `3%` equals `0.03`; `3` is rejected as ambiguous.

    Raises
    ------
    ValueError
        It is not a fraction below one.

    Examples
    --------
    >>> parse_share("3%"), parse_share("0.03")
    (0.03, 0.03)
    """
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        message = f"{text!r} is not a share; write 3% or 0.03"
        raise ValueError(message)
    return value


def change(part: float) -> str:
    """Format a change in percent with its sign, or as a factor from ten times on.

    Examples
    --------
    >>> change(-0.2), change(0.0312), change(8.5), change(39.47), change(9)
    ('-20.0 %', '+3.1 %', '+850.0 %', '40x', '10x')
    """
    if not abs(part) <= _LARGEST:
        return f"{_not_finite(part)} %"
    return f"{1 + part:,.0f}x" if part >= _LARGEST_CHANGE else f"{100 * part:+.1f} %"


def whole_percent(part: float) -> str:
    """Format a fraction as a whole percentage; 0 % only for 0, and 100 % only for 1.

    Examples
    --------
    >>> [whole_percent(part) for part in (0.0, 0.002, 0.31, 0.998, 1.0)]
    ['0 %', 'less than 1 %', '31 %', 'over 99 %', '100 %']
    """
    if 0 < part < 0.005:  # noqa: PLR2004
        return "less than 1 %"
    if 0.995 <= part < 1:  # noqa: PLR2004
        return "over 99 %"
    if not abs(part) <= _LARGEST:
        return f"{_not_finite(part)} %"
    return f"{100 * part:.0f} %"


def count(number: float, noun: str = "", plural: str | None = None) -> str:
    """Format a number with its noun.

    Examples
    --------
    >>> count(1, "step"), count(12_000, "step"), count(2, "copy", "copies")
    ('1 step', '12,000 steps', '2 copies')
    """
    text = f"{round(number):,}" if abs(number) <= _LARGEST else _not_finite(number)
    if not noun:
        return text
    return f"{text} {noun if number == 1 else plural or noun + 's'}"


def escape(text: str) -> str:
    r"""Escape characters that control a terminal or are invisible.

    Examples
    --------
    >>> escape("a\x1b[31mb\u202ec\U000e0041")
    'a\\x1b[31mb\\u202ec\\U000e0041'
    """
    if text.isascii() and text.isprintable():
        return text
    return _INVISIBLE.sub(lambda match: ascii(match[0])[1:-1], text)


def short_name(name: str | None, width: int = 60) -> str:
    """Shorten a name to a width: kernels to their operation, Python frames to file and function.

    Examples
    --------
    >>> short_name("void at::native::(anonymous namespace)::softmax_kernel<float, 4>(float*, int)")
    'softmax f32'
    >>> short_name("/usr/lib/python3/site-packages/torch/nn/linear.py(114): forward", 30)
    '…/nn/linear.py(114): forward'
    >>> short_name("autograd::engine::evaluate_function: MmBackward0")
    'backward of Mm'
    """
    if name is None:
        return "(no name)"
    frame = _place_of_frame(name)
    if frame:
        return _short_frame(frame["path"], frame["file"], width)
    label = kernel_label(name)
    return fitted(escape(label) if label else _clean(name), width)


def _place_of_frame(name: str) -> re.Match[str] | None:
    return _PLACE_OF_FRAME.match(name) if "): " in name else None


def _clean(name: str) -> str:
    """Return a name without C++ noise; an autograd node becomes `backward of` its operator."""
    node = _NODE.match(name)
    if node:
        return escape(f"backward of {node['forward']}" if node["forward"] else node["other"])
    text = name.removeprefix("void ")
    for noise in _CPP_NOISE:
        text = text.replace(noise, "")
    return escape(text) or "(empty name)"


def fitted(text: str, width: int) -> str:
    """Shorten a text to a width, and never inside a number: `4096` must not become `409`.

    Examples
    --------
    >>> fitted("aten::mm [4096, 4096]", 19)
    'aten::mm [4096, …'
    """
    return text if len(text) <= width else _head(text, width - 1) + "…"


def _head(text: str, length: int) -> str:
    """Return the first characters of a text, without the beginning of a number."""
    head = text[:length]
    is_in_number = text[length : length + 1].isdecimal()
    return (head.rstrip(_DIGITS) or head) if is_in_number else head


def _from(text: str, start: int) -> str:
    """Return a text from a place, without the end of a number."""
    rest = text[start:]
    return (rest.lstrip(_DIGITS) or rest) if start and text[start - 1].isdecimal() else rest


def operator_name(name: str | None, sizes: str | None) -> str:
    """Format an operator with its input sizes, which a trace contains as JSON.

    Examples
    --------
    >>> operator_name("aten::mul", "[[64, 1024, 1024], [64, 1024, 1024], []]")
    'aten::mul [64, 1024, 1024]'
    >>> operator_name("aten::mm", "[[64, 32], [32, 16]]"), operator_name("aten::add", None)
    ('aten::mm [64, 32] [32, 16]', 'aten::add')
    """
    shown = name or "(no name)"
    try:
        tensors = json.loads(sizes) if sizes else []
    except (ValueError, RecursionError):
        return shown
    is_list = isinstance(tensors, list)
    texts = [str(tensor) for tensor in (tensors if is_list else []) if tensor and tensor != [[]]]
    return " ".join([shown, *dict.fromkeys(texts)])


def short_names(names: Sequence[str | None], width: int) -> list[str]:
    """Shorten names to a width, keeping different names different if possible.

    Examples
    --------
    >>> short_names(["gemm_bf16_128x64_tn_align8", "gemm_bf16_128x64_nt_align4"], 14)
    ['gemm_b…_align8', 'gemm_b…_align4']
    >>> short_names(["gemm_bf16_64x64_128x32_tn_align8", "gemm_bf16_64x64_256x32_tn_align8"], 14)
    ['gemm…_128x32_…', 'gemm…_256x32_…']
    >>> short_names(["nvjet_tst_128x64_64x8_1x2_h_NTT", "nvjet_tst_128x64_64x8_1x2_h_TNT"], 40)
    ['gemm 128x64 bf16 (nvjet) …NTT', 'gemm 128x64 bf16 (nvjet) …TNT']
    """
    short = _told_apart(names, [short_name(name, width) for name in names], width)
    meant: dict[str, set[str | None]] = {}
    for text, name in zip(short, names, strict=True):
        meant.setdefault(text, set()).add(name)
    both_ends = [
        text
        if len(meant[text]) == 1 or name is None or kernel_label(name) is not None
        else _without_middle(name, width)
        for text, name in zip(short, names, strict=True)
    ]
    alike: dict[str, set[str]] = {}
    for text, name in zip(both_ends, names, strict=True):
        alike.setdefault(text, set()).add(name or "")
    differences = {
        name: difference
        for each in alike.values()
        if len(each) > 1
        for name, difference in _differences(each, width).items()
    }
    return [
        text if name is None or kernel_label(name) is not None else differences.get(name, text)
        for text, name in zip(both_ends, names, strict=True)
    ]


def _told_apart(names: Sequence[str | None], short: list[str], width: int) -> list[str]:
    """Add the words that distinguish kernels with the same short name, else a number."""
    meant: dict[str, set[str]] = {}
    for text, name in zip(short, names, strict=True):
        if name is not None and kernel_label(name) is not None:
            meant.setdefault(text, set()).add(name)
    apart = {
        name: text
        for label, alike in meant.items()
        if len(alike) > 1
        for name, text in _each_apart(label, sorted(alike), width)
    }
    return [
        text if name is None else apart.get(name, text)
        for text, name in zip(short, names, strict=True)
    ]


def _each_apart(label: str, alike: list[str], width: int) -> list[tuple[str, str]]:
    room = width - len(label) - 2
    rests = _rests(alike, room) if room >= _LEAST_ROOM else []
    if len(set(rests)) == len(alike):
        return [(name, f"{label} …{rest}") for name, rest in zip(alike, rests, strict=True)]
    marks = [f" #{number}" for number in range(1, len(alike) + 1)]
    return [
        (name, fitted(label, width - len(mark)) + mark)
        for name, mark in zip(alike, marks, strict=True)
    ]


def _rests(alike: list[str], room: int) -> list[str]:
    """Return the part of each name that starts with the word in which it differs from others."""
    texts = [*map(_clean, alike)]
    common = _length_in_common(texts)
    begin = max(common - _LONGEST_WORD, 0)
    word = _WORD_END.search(texts[0][begin:common])
    start = begin + word.end() if word else common
    return [fitted(text[start:] or text[-room:], room) for text in texts]


def _length_in_common(texts: Collection[str]) -> int:
    """Return the number of characters with which all texts begin."""
    first, last = min(texts), max(texts)  # all others sort between these
    return bisect_left(range(len(first)), 1, key=lambda at: first[: at + 1] != last[: at + 1])


def _differences(alike: set[str], width: int) -> dict[str, str]:
    """Keep the beginning of each name, and the part where it differs from others."""
    texts = {name: _plain(name) for name in alike}
    common = _length_in_common(texts.values())
    return {name: _difference(name, text, common, width) for name, text in texts.items()}


def _difference(name: str, text: str, common: int, width: int) -> str:
    head = width // 3
    if common <= head or len(text) <= width:
        return short_name(name, width)
    room = width - head - 2
    begin, rest = _head(text, head), _from(text, max(common - room // 4, head))
    return f"{begin}…{_head(rest, room)}…" if len(rest) > room else f"{begin}…{rest}"


def _without_middle(name: str, width: int) -> str:
    """Keep both ends of a name, without the C++ parameters."""
    text = _plain(_without_parameters(name))
    end = width // 2
    if len(text) <= width:
        return text
    return f"{_head(text, width - end - 1)}…{_from(text, len(text) - end)}"


def _without_parameters(name: str) -> str:
    head, parenthesis, rest = name.rpartition("(")
    return head if parenthesis and rest.endswith(")") and rest.count(")") == 1 else name


def _plain(name: str) -> str:
    """Return a full name without noise, for kernels and frames."""
    frame = _place_of_frame(name)
    return short_name(name, len(name) + 1) if frame else _clean(name)


def _short_frame(path: str, file: str, width: int) -> str:
    """Keep as many of the innermost folders as fit."""
    short = escape(file)
    folders = [folder for folder in re.split(r"[/\\]", path) if folder]
    for folder in reversed(folders):
        longer = f"{escape(folder)}/{short}"
        if len(longer) + 2 > width:
            break
        short = longer
    if short != escape("/".join([*folders, file])):
        short = f"…/{short}"
    return fitted(short, width)
