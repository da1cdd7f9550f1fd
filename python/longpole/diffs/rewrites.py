"""The signature of a remedy: kernels or launches that show that it was applied.

A remedy may replace most of a step: an attention kernel replaces five others, and a CUDA graph
launches kernels without their operators. Both sides still count as one program if the new side has
the signature of the remedy, and most other kernels are those of the base. If a compiler fused all
kernels, their names have to list the operators of the base.

Limits: most remedies have no signature. They need work that corresponds.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

from longpole.diffs.matching import FUSED, word_of
from longpole.diffs.sides import one_of
from longpole.remedies.catalogue import remedies, remedy_of
from longpole.words.kernel_names import family_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import polars as pl

    from longpole.diffs.sides import Side
    from longpole.remedies.model import Signature

# Share of the time of kernels that no remedy replaced, which both sides must have in common.
_LEAST_COMMON: Final = 0.5

# The same share for a CUDA graph, which replays the kernels unchanged.
_OF_GRAPH: Final = 0.75

# Both sides run the same kernels if they have this share of their number and time in common.
_SAME_KERNELS: Final = 0.85

# One kernel replaced another if one side has this share of the number of the other.
_ONE_FOR_ONE: Final = 0.75

# Families of the kernels that a remedy replaces.
_ATTENTION: Final = frozenset({"attention"})
_OF_ATTENTION: Final = _ATTENTION | {
    "gemm",
    "softmax",
    "elementwise",
    "reduce",
    "copy and fill",
    "layout",
    "dropout and random",
}
_TRITON: Final = frozenset({"triton"})
_PRODUCTS: Final = frozenset({"gemm", "convolution", "attention"})
_POINTWISE: Final = frozenset({"elementwise", "reduce", "copy and fill", "norm", "softmax"})

# Kernels of a smaller share of a step do not count as evidence.
_FEW: Final = 0.1

# Without products, fused kernels have to be this share of the step, and to have this share of their
# words and of the time of the base's operators in common with the base.
_NAMED: Final = 0.75

_NUMBER, _TIME = 0, 1


@dataclass(frozen=True)
class Contents:
    """Kernels and launches of a mean step."""

    kernels: Mapping[str, tuple[float, float]]
    """Number and time in ns, by name."""
    n_graph_launches: float
    operators: Mapping[str, float] = field(default_factory=dict)
    """Time of the kernels of each operator in ns, by its name in names of fused kernels."""

    @cached_property
    def families(self) -> Mapping[str, float]:
        """Time of each family of kernels."""
        times: dict[str, float] = {}
        for name, (_, time_ns) in self.kernels.items():
            family = family_of(name)
            times[family] = times.get(family, 0.0) + time_ns
        return times

    def number_of(self, family: str) -> float:
        """Return the number of kernels of a family."""
        return sum(n for name, (n, _) in self.kernels.items() if family_of(name) == family)

    @property
    def total_ns(self) -> float:
        """Time of all kernels."""
        return sum(self.families.values())

    @property
    def has_products(self) -> bool:
        """Whether products take enough time to show which program it is."""
        return _share(self.only(_PRODUCTS), self) >= _FEW

    def only(self, families: frozenset[str]) -> Contents:
        """Return the kernels of some families."""
        return self.without(frozenset(self.families) - families)

    def without(self, families: frozenset[str]) -> Contents:
        """Return the contents without the kernels of some families."""
        kept = {
            name: value for name, value in self.kernels.items() if family_of(name) not in families
        }
        return Contents(kept, self.n_graph_launches)

    def share_in(self, other: Contents, place: int = _TIME) -> float:
        """Return the share of the time (or number, place 0) that another side has by name."""
        whole = sum(value[place] for value in self.kernels.values())
        common = sum(
            min(value[place], other.kernels[name][place])
            for name, value in self.kernels.items()
            if name in other.kernels
        )
        return common / whole if whole else 1.0


def contents_of(side: Side) -> Contents:
    """Sum the kernels and count the launches of graphs in the mean step of a side."""
    import polars as pl

    work = side.work.filter(one_of("kind", ("kernel",))).drop_nulls("event")
    work = work.with_columns(name=side.events["name"].gather(work["event"]).cast(pl.String))
    sums = work.group_by("name").agg(pl.len(), pl.col("work_ns").sum()).drop_nulls("name")
    kernels = {name: (n / side.n_steps, ns / side.n_steps) for name, n, ns in sums.iter_rows()}
    roles = side.trace.api_roles.filter(pl.col("role").cast(pl.String) == "graph_launch")
    starts_ns = side.events["start_ns"].gather(roles["event"]).to_numpy()
    n_launches = float((side.rows_at(starts_ns) >= 0).sum()) / side.n_steps
    return Contents(kernels, n_launches, _operator_times(side, work))


def contents_of_trace(side: Side) -> Contents:
    """Sum the kernels of a whole trace by name, as shares of all of them."""
    import polars as pl

    kernels = side.events.filter(one_of("kind", ("kernel",)))
    sums = kernels.group_by(pl.col("name").cast(pl.String)).agg(pl.len(), pl.sum("duration_ns"))
    rows = list(sums.drop_nulls("name").iter_rows())
    n_all = max(sum(n for _, n, _ in rows), 1)
    return Contents({name: (n / n_all, float(ns) / n_all) for name, n, ns in rows}, 0.0)


def _operator_times(side: Side, work: pl.DataFrame) -> dict[str, float]:
    """Sum the time of kernels in the mean step by the operator that launched them."""
    launched = side.trace.core.operators_of(work["event"].to_list())
    of_name: Counter[str] = Counter()
    for operator, time_ns in zip(launched, work["work_ns"].to_list(), strict=True):
        of_name[(operator[1] or "") if operator else ""] += time_ns
    times: dict[str, float] = {}
    for name, time_ns in of_name.items():
        if word := word_of(name):
            times[word] = times.get(word, 0.0) + time_ns / side.n_steps
    return times


def has_signature(remedy: str, base: Contents, new: Contents) -> bool | None:
    """Whether the new side has the signature of a remedy; None if the remedy has none."""
    signature = remedy_of(remedy).signature
    return None if signature is None else _SIGNATURES[signature](base, new)


def signed_alone(base: Contents, new: Contents) -> tuple[str, ...]:
    """Return the remedies whose signature shows one program without a prediction.

    A side that was recorded without shapes may have none. Graphs replay the kernels of the base,
    and as many attention kernels have to be added as softmax kernels are gone.
    """
    return tuple(
        one.id
        for one in remedies()
        if (one.signature == "graph_launches" and _has_graph(base, new))
        or (
            one.signature == "attention_kernels"
            and _has_fused_attention(base, new)
            and _is_one_for_one(base, new)
        )
    )


def _is_one_for_one(base: Contents, new: Contents) -> bool:
    """Whether about one attention kernel replaced each softmax kernel."""
    gained, lost = (
        abs(new.number_of(family) - base.number_of(family)) for family in ("attention", "softmax")
    )
    return min(gained, lost) >= _ONE_FOR_ONE * max(gained, lost) > 0


def same_kernels(base: Contents, new: Contents) -> bool:
    """Whether both sides run nearly the same kernels as often and for as long."""
    shares = [
        one.share_in(other, place)
        for one, other in ((base, new), (new, base))
        for place in (_NUMBER, _TIME)
    ]
    return bool(base.kernels and new.kernels) and min(shares) >= _SAME_KERNELS


def _has_fused_attention(base: Contents, new: Contents) -> bool:
    """Whether attention kernels replaced a softmax, and all other kernels stayed."""
    fused = base.families.get("attention", 0.0), new.families.get("attention", 0.0)
    softmax = base.families.get("softmax", 0.0), new.families.get("softmax", 0.0)
    if fused[1] <= fused[0] or softmax[1] >= softmax[0]:
        return False
    return _stayed(base, _OF_ATTENTION, new) and _stayed(new, _ATTENTION, base)


def _has_fused_kernels(base: Contents, new: Contents) -> bool:
    """Whether a compiler fused operators, and all other kernels stayed."""
    if base.has_products != new.has_products:
        return False
    return (
        new.families.get("triton", 0.0) > 0
        and (base.has_products or _names_operators(base, new))
        and _stayed(base, _TRITON | _POINTWISE, new)
        and _stayed(new, _TRITON | _POINTWISE, base)
    )


def _names_operators(base: Contents, new: Contents) -> bool:
    """Whether most of the new side is fused kernels whose names list the operators of the base."""
    fused = {
        name: time_ns for name, (_, time_ns) in new.only(_TRITON).kernels.items() if FUSED in name
    }
    total_ns = sum(base.operators.values())
    if not total_ns or sum(fused.values()) < _NAMED * new.total_ns:
        return False
    named_ns = sum(
        time_ns for word, time_ns in base.operators.items() if any(word in name for name in fused)
    )
    known = {part for word in base.operators for part in word.split("_")}
    words = [part for name in fused for part in _words(name)]
    n_known = sum(word in known for word in words)
    return named_ns >= _NAMED * total_ns and n_known >= _NAMED * len(words) > 0


def _words(fused: str) -> list[str]:
    """Return the words for operators in the name of a fused kernel.

    Examples
    --------
    >>> _words("triton_poi_fused_add_log1p_0")
    ['add', 'log1p']
    """
    _, _, words = fused.partition(FUSED)
    return [word for word in words.split("_") if word and not word.isdigit()]


def _stayed(side: Contents, replaced: frozenset[str], other: Contents) -> bool:
    """Whether the other side has the kernels that are of no family that was replaced."""
    kept = side.without(replaced)
    return _share(kept, side) < _FEW or kept.share_in(other) >= _LEAST_COMMON


def _share(part: Contents, whole: Contents) -> float:
    return part.total_ns / max(whole.total_ns, 1.0)


def _has_graph(base: Contents, new: Contents) -> bool:
    """Whether graphs launch the kernels that the base launched one by one."""
    return (
        new.n_graph_launches > base.n_graph_launches
        and min(base.share_in(new), new.share_in(base)) >= _OF_GRAPH
    )


_SIGNATURES: Final[Mapping[Signature, Callable[[Contents, Contents], bool]]] = {
    "fused_kernels": _has_fused_kernels,
    "graph_launches": _has_graph,
    "attention_kernels": _has_fused_attention,
}
