"""Attention that writes its scores to memory: product, scale, mask, softmax, product."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from itertools import islice, takewhile
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.engine.critical_path.changes import Drop
from longpole.remedies.model import Found, Remedy
from longpole.remedies.rooflines import (
    Sized,
    form_of,
    in_launch_order,
    in_shape,
    is_product,
    replaced,
    sizes_of,
)
from longpole.words.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from longpole.devices.peaks import Peaks
    from longpole.engine.critical_path.changes import Change
    from longpole.remedies.facts import Facts
    from longpole.remedies.model import Form, How
    from longpole.remedies.recorded import Activity

_FORWARD: Final = "aten::_softmax"
_BACKWARD: Final = "aten::_softmax_backward_data"
_COPY: Final = "aten::copy_"
_MASKS: Final = frozenset(
    ("aten::add", "aten::add_", "aten::masked_fill", "aten::masked_fill_", "aten::where")
)
_BATCHED: Final = frozenset({"aten::bmm", "aten::baddbmm"})

# Operators that make a mask take less than this fraction of the time of the softmax, and at most
# this many follow one another.
_OF_SOFTMAX: Final = 0.1
_MOST_OF_MASK: Final = 8

# Maximum number of elements per head in fused kernels.
_LARGEST_HEAD: Final = 256

# Fraction of the 16-bit peak that fused kernels reach: lower and upper bound.
_OF_PEAK: Final = (0.3, 0.6)

# Without a peak, or with float32, the fused time is estimated from the current products.
_OF_PRODUCTS: Final = (1.5, 0.8)

# The backward pass of a fused kernel recomputes the scores, so it has five products instead of
# four.
_AGAIN: Final = 5 / 4

_START: Final = attrgetter("start_ns")

_SHORTEST_NS: Final = 5_000
_FLOPS_OF_NS: Final = 1e3
_PRECISIONS: Final = {"c10::Half": "fp16", "c10::BFloat16": "bf16"}


class _Attention(NamedTuple):
    """Consecutive operators that all read or write the scores."""

    softmax: Sized
    rows: list[Sized]
    operand_copies: Sequence[Sized] = ()
    """Copies right before it that lay out its operands, and one after it of its result."""

    @property
    def products(self) -> list[Sized]:
        return [row for row in self.rows if is_product(row)]

    @property
    def duration_ns(self) -> int:
        return sum(row.duration_ns for row in self.rows)


def _find(facts: Facts) -> Iterator[Found]:
    found = [it for rows in in_launch_order(facts) for it in _written_out(facts, rows)]
    if not found or not facts.is_worth(sum(it.duration_ns for it in found)):
        return
    careful: dict[int, float] = {}
    hopeful: dict[int, float] = {}
    for attention in found:
        most_ns, least_ns = _fused_ns(facts.peaks, attention)
        kernels = [kernel for row in attention.rows for kernel in row.kernels]
        for part, fused_ns in ((careful, most_ns), (hopeful, least_ns)):
            part.update({kernel.event: 0.0 for kernel in kernels})
            part[kernels[0].event] = fused_ns
    copies = sorted({event for it in found for event in _copies(facts, it)})
    gone: list[Change] = [Drop(kind="copy", events=copies)] if copies else []
    operands = [event for it in found for row in it.operand_copies for event in row.events]
    hopeful.update(dict.fromkeys(operands, 0.0))
    time_ranges = [it for one in found for row in one.rows[1:] for it in row.time_ranges]
    launches = [Drop(time_ranges=time_ranges)] if time_ranges else []
    longest = max(found, key=lambda it: it.duration_ns)
    n_kernels = sum(len(row.kernels) for it in found for row in it.rows)
    n_each = count(round(n_kernels / len(found)), "kernel")
    yield Found(
        careful=[*replaced(careful), *gone],
        hopeful=[*replaced(hopeful), *gone, *launches],
        advice="Compute attention with `torch.nn.functional.scaled_dot_product_attention`"
        + (", with its mask or bias as `attn_mask`" if _is_masked(found) else ""),
        evidence=(
            f"its scores are written to memory, in {n_each} around {in_shape(longest.softmax)}"
        ),
        name=longest.softmax.name,
        events=facts.longest(kernel for it in found for kernel in it.softmax.kernels),
        forms=_forms(found),
    )


def _is_masked(found: list[_Attention]) -> bool:
    """Whether the longest attention adds a mask or a bias to its scores."""
    forward = [it for it in found if it.softmax.name == _FORWARD]
    longest = max(forward, key=lambda it: it.duration_ns, default=None)
    return longest is not None and any(row.name in _MASKS for row in longest.rows)


def _forms(found: list[_Attention]) -> list[Form]:
    """Return the attentions that a script can time: those of one shape together, with gradients."""
    backward: dict[int, list[_Attention]] = defaultdict(list)
    forward: dict[str, list[_Attention]] = defaultdict(list)
    for it in found:
        if it.softmax.name == _FORWARD:
            forward[" ".join(in_shape(row) for row in it.products)].append(it)
        else:
            backward[it.softmax.tensors[0].numel].append(it)
    forms = []
    for _, same in sorted(forward.items()):
        gradients = backward[same[0].softmax.tensors[0].numel]
        has_gradients = len(gradients) == len(same)
        timed = [*same, *(gradients if has_gradients else [])]
        how: How = "fused_attention_training" if has_gradients else "fused_attention"
        products = [same[0].products[0], same[0].products[-1]]
        events = [event for it in timed for row in it.rows for event in row.events]
        forms += form_of(how, products, events)
    return forms


def _written_out(facts: Facts, rows: list[Sized]) -> Iterator[_Attention]:
    for place, row in enumerate(rows):
        if row.name not in {_FORWARD, _BACKWARD} or not row.tensors:
            continue
        scores = row.tensors[0].numel
        first = place - _n_of_scores(row, (rows[it] for it in range(place - 1, -1, -1)))
        end = place + 1 + _n_of_scores(row, islice(rows, place + 1, None))
        between = _between_products(rows[first:end], place - first)
        found = _Attention(row, rows[first + between.start : first + between.stop])
        if _is_attention(found, scores) and not _is_fallback(facts, row):
            copies = _operand_copies(rows, first + between.start, first + between.stop)
            yield found._replace(operand_copies=copies)


def _n_of_scores(softmax: Sized, rows: Iterable[Sized]) -> int:
    """Count the operators next to a softmax that use the scores, or make a mask between them."""
    scores, found, n_small = softmax.tensors[0].numel, 0, 0
    for number, row in enumerate(rows, 1):
        if _is_other(row):
            break
        if scores in sizes_of(row):
            found, n_small = number, 0
        elif row.duration_ns > _OF_SOFTMAX * softmax.duration_ns or n_small == _MOST_OF_MASK:
            break
        else:
            n_small += 1
    return found


def _operand_copies(rows: list[Sized], first: int, end: int) -> list[Sized]:
    """Return the copies next to an attention that lay out its operands and its result."""
    sizes = {tensor.numel for it in rows[first:end] if is_product(it) for tensor in it.tensors}
    before = takewhile(
        lambda it: it.name == _COPY and it.n_elements in sizes,
        (rows[place] for place in range(first - 1, -1, -1)),
    )
    after = (it for it in rows[end : end + 1] if it.name == _COPY and it.n_elements in sizes)
    return [*before, *after]


def _is_other(row: Sized) -> bool:
    """Whether a softmax belongs to another attention."""
    return row.name in {_FORWARD, _BACKWARD}


def _between_products(rows: list[Sized], softmax: int) -> slice:
    """Return the places from the product that writes the scores to the last one that reads them.

    In a backward pass, it includes two products on either side: for scores and value, and for query
    and key.
    """
    scores = rows[softmax].tensors[0].numel
    products = [place for place, row in enumerate(rows) if row.name in _BATCHED]
    reading = [place for place in products if _reads(rows[place], scores)]
    makes = [place for place in products if place < softmax and place not in reading]
    uses = [place for place in reading if place > softmax]
    if not makes or not uses:
        return slice(0, 0)
    if rows[softmax].name == _FORWARD:
        return slice(makes[-1], uses[0] + 1)
    before = [place for place in reading if place < softmax]
    first = min([makes[-1], *before[-1:]])
    return slice(first, uses[:2][-1] + 1)


def _copies(facts: Facts, found: _Attention) -> list[int]:
    """Return the copies on the GPU between the operators of an attention."""
    first, last = found.rows[0], found.rows[-1]
    run = facts.run(first.operator)
    if run is None:
        lane, start_ns, _ = first.turn
        works = facts.launched_in([(lane, start_ns, last.turn[1])])
    else:
        begin_ns, end_ns = (row.kernels[0].start_ns for row in (first, last))
        of_graph = facts.once(_copies_of_calls).get(run.launch, [])
        between = (bisect_left(of_graph, it, key=_START) for it in (begin_ns, end_ns))
        works = of_graph[slice(*between)]
    return [work.event for work in works if "DtoD" in facts.name(work.event)]


def _copies_of_calls(facts: Facts) -> dict[int | None, list[Activity]]:
    """Return the memcpys of each call, in order of time."""
    found: dict[int | None, list[Activity]] = defaultdict(list)
    for copy in sorted(facts.copies, key=_START):
        found[copy.call].append(copy)
    return found


def _reads(row: Sized, n_elements: int) -> bool:
    return any(tensor.numel == n_elements for tensor in row.tensors)


def _is_attention(found: _Attention, scores: int) -> bool:
    """Whether products write and use the scores, with head sizes that fused kernels support."""
    products = found.products
    if len(products) < 2 or any(row.work is None for row in products):  # noqa: PLR2004
        return False
    if any(row.name not in _BATCHED for row in products):
        return False
    heads = [row.work.flops / (2 * scores) for row in products if row.work is not None]
    return max(heads) <= _LARGEST_HEAD


def _is_fallback(facts: Facts, row: Sized) -> bool:
    """Whether torch wrote the scores because its fused kernels do not support the inputs."""
    names = [name for _, _, name in facts.around(row.operator)]
    return any("scaled_dot_product_attention" in name for name in names)


def _fused_ns(peaks: Peaks | None, found: _Attention) -> tuple[float, float]:
    """Return the upper and lower bound of a fused kernel's time."""
    works = [row.work for row in found.products if row.work is not None]
    again = _AGAIN if found.softmax.name == _BACKWARD else 1.0
    precision = _PRECISIONS.get(works[0].dtype)
    peak = None if peaks is None or precision is None else peaks.matrix.get(precision)
    if peak is None:
        products_ns = sum(row.duration_ns for row in found.products) * again
        most_ns, least_ns = (part * products_ns for part in _OF_PRODUCTS)
    else:
        flops = sum(work.flops for work in works) * again
        most_ns, least_ns = (flops / (part * peak * _FLOPS_OF_NS) for part in _OF_PEAK)
    most_ns, least_ns = max(most_ns, _SHORTEST_NS), max(least_ns, _SHORTEST_NS)
    return min(most_ns, found.duration_ns), min(least_ns, found.duration_ns)


REMEDY: Final = Remedy(
    id="fused_attention",
    side="kernels",
    effort="one_line",
    needs="recorded shapes",
    seen_by=(
        "a batched product, kernels over its result with a softmax among them, and a batched "
        "product of that; backward likewise"
    ),
    change=(
        "one kernel that computes the products at 30 to 60 % of the peak of 16 bit; for float32 or "
        "a device of unknown peak, one that takes 0.8 to 1.5 times what the products take; copies "
        "between them are gone, and at most those that lay out operands, and the host time of all "
        "operators but the first"
    ),
    not_when=(
        "heads have more than 256 elements, the scores are used elsewhere, or torch fell back "
        "to it in `scaled_dot_product_attention`"
    ),
    signature="attention_kernels",
    find=_find,
)
