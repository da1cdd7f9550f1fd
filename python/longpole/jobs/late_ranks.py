"""Finds the ranks that the others wait for, why, and the gain of fixing the cause.

Neither durations nor arrival times show which rank is late: that follows from its own work.
Therefore the time of each rank, by class and step, is compared with the median rank, and each
outlier is set to the median in the joint graph. The causes are ranked by the resulting gain of the
run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from longpole.rows.frames import frame_of
from longpole.words.data import computed
from longpole.words.wording import duration, share, short_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars as pl

    from longpole._core import ReducedRank

_LEAST_EXCESS: Final = 0.03
_LEAST_EXCESS_NS: Final = 20_000
LEAST_GAIN: Final = 0.02
_MOST_CANDIDATES: Final = 12
_UNIFORM_RATIO: Final = 1.08
_UNIFORM_SPREAD: Final = 0.08
_UNIFORM_SHARE: Final = 0.8
_LEAST_COMPARABLE: Final = 0.25
_SLOW_KERNEL: Final = 1.15
_THREADS: Final = ("host", "helper_threads")
_NAMED: Final = (*_THREADS, "kernels")

_WHERE: Final = {
    "data_loading": "loading data",
    "host": "on its main thread",
    "helper_threads": "on its other threads",
    "threads": "on its threads",
    "kernels": "in kernels",
    "copies": "copying memory",
}
_SUMMED: Final = ("total_ns", "median_ns", "count", "median_count")
HOST_TIME_OUTSIDE: Final = "host time outside operators"
_STEP_MARK: Final = r"^ProfilerStep\s*#"
_MEDIAN: Final = "the median rank"
_FASTER: Final = "the faster rank of each step"
_RUN: Final = {"without_profiler": "without the profiler", "recorded": "as recorded"}
_WHO_WAITS: Final = {_MEDIAN: "the others", _FASTER: "the other rank"}


Basis = Literal["without_profiler", "recorded"]


@dataclass(frozen=True, slots=True)
class RankRemedy:
    """One cause for which the other ranks wait for a rank."""

    rank: int
    cause: str
    """`data loading`, `host functions`, `host time outside operators`, `slow core`, `slow kernel`,
    `GPU clock`, `more work`, `longer kernels`, `copies`, `unknown cause`."""
    time_class: str | None
    """The class of time in which the rank exceeds the median rank; None if the cause is unknown."""
    name: str | None
    """The function or kernel that accounts for most of it, if one stands out."""
    own_ns: int | None
    """Time of the rank in this class."""
    median_ns: int | None
    """Time of the median rank in this class, or of the rank that `compared_with` names."""
    duration_ns: int
    """Duration of the run, at the times of `basis`."""
    changed_ns: int
    """Duration of the run if this time were as on the median rank, step by step. If the cause is
    taken from the recorded path, the duration without the waits of the rank in `compared_with`."""
    compared_with: str
    """Phrase that names the rank whose time `median_ns` is."""
    evidence: str
    """Sentences with the figures that show the cause and the gain."""
    basis: Basis
    """Which times `duration_ns` and `changed_ns` have; `own_ns` and `median_ns` are as recorded.
    `recorded` if what recording cost is unknown, or the cause is taken from the recorded path."""
    host: str | None = None
    """Host name of the machine; None if the trace does not contain it."""
    device: int | None = None
    """Number of the device that the rank works on; None if unknown, or of several."""
    device_name: str | None = None

    @computed
    def gain_ns(self) -> int:
        """Upper bound of the time that the run would gain."""
        return self.duration_ns - self.changed_ns

    @property
    def gain_share(self) -> float:
        """Gain as a fraction of the run."""
        return self.gain_ns / self.duration_ns if self.duration_ns else 0.0

    @property
    def sentence(self) -> str:
        """Return a sentence that names the late rank, the cause, and the gain of a fix."""
        who = _WHO_WAITS.get(self.compared_with, self.compared_with)
        return f"Rank {self.rank}{self._where} makes {who} wait ({self.what}). {self.evidence}"

    @property
    def _where(self) -> str:
        """Return host and device of the rank in parentheses, as far as they are known."""
        host = None if self.host is None else f"host {self.host}"
        device = None if self.device is None else f"device {self.device}"
        known = ", ".join(filter(None, (host, device, self.device_name)))
        return f" ({known})" if known else ""

    @property
    def what(self) -> str:
        """Return the cause, with the name that accounts for most of it."""
        return self.cause + (f", mostly {short_name(self.name)}" if self.name else "")


def late_ranks(
    ranks: Sequence[ReducedRank],
    program: Sequence[ReducedRank],
    numbers: Sequence[int],
    paces_ns: Callable[[Sequence[tuple[int, list[tuple[Any, ...]]]]], tuple[int, list[int]]],
    step_name: str | None = None,
) -> tuple[RankRemedy, ...]:
    """Set each outlier to the median rank in the joint graph, and keep those that gain 2 % or more.

    `ranks` are as recorded, and decide what stands out and why. `program` has the same ranks
    without the profiler, or as recorded if its cost is unknown. `paces_ns` returns the duration of
    the run at the times of `program`, and with each scaling. `step_name` is a regular expression
    for annotations that mark steps.
    """
    totals = _totals(ranks)
    of_program = totals if program is ranks else _totals(program)
    basis: Basis = "recorded" if program is ranks else "without_profiler"
    marks = step_name or _STEP_MARK
    candidates = _joined(ranks, _candidates(totals), marks)
    scalings = [
        (
            it.place,
            [
                part
                for one in it.classes
                for part in _scalings(program, of_program, it.place, one, marks=marks)
            ],
        )
        for it in candidates
    ]
    found = []
    pace_ns, changed_paces_ns = paces_ns(scalings)
    for it, changed_ns in zip(candidates, changed_paces_ns, strict=True):
        if pace_ns - changed_ns < LEAST_GAIN * pace_ns:
            continue
        cause, name = _cause(ranks, it, marks)
        time_class = it.classes[0] if len(it.classes) == 1 else "threads"
        usual_ns, usual = _usual(totals, numbers, it)
        times_ns = (it.own_ns, usual_ns, pace_ns, changed_ns)
        evidence = _compared(time_class, times_ns, usual, basis)
        rank = numbers[it.place]
        found.append(RankRemedy(rank, cause, time_class, name, *times_ns, usual, evidence, basis))
    return tuple(sorted(found, key=lambda remedy: (-remedy.gain_ns, remedy.rank)))


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A rank's time in one class that stands out."""

    place: int
    classes: tuple[str, ...]
    own_ns: int
    median_ns: int


def _usual(totals: pl.DataFrame, numbers: Sequence[int], it: _Candidate) -> tuple[int, str]:
    """Return the time to compare a candidate with: two ranks have no median rank."""
    if len(numbers) > 2:  # noqa: PLR2004 - two ranks have no median rank
        return it.median_ns, _MEDIAN
    other = 1 - it.place
    rows = totals.filter((totals["place"] == other) & totals["class"].is_in(it.classes))
    other_ns = int(rows["total_ns"].sum())
    if other_ns < it.own_ns:
        return other_ns, f"rank {numbers[other]}"
    return it.median_ns, _FASTER


def _compared(
    time_class: str, times_ns: tuple[int, int, int, int], usual: str, basis: Basis
) -> str:
    """Compare the time of a rank with the usual one, and the run with what it would be then."""
    own_ns, usual_ns, pace_ns, changed_ns = times_ns
    return (
        f"It spends {duration(own_ns)} {_WHERE[time_class]}; {usual} spends {duration(usual_ns)}. "
        f"If it were like {usual}, the run {_RUN[basis]} would take {duration(changed_ns)} instead "
        f"of {duration(pace_ns)} (at most -{share(1 - changed_ns / max(pace_ns, 1))})."
    )


def _joined(
    ranks: Sequence[ReducedRank], candidates: Sequence[_Candidate], marks: str
) -> Sequence[_Candidate]:
    """Merge the threads of a rank into one candidate if all are slow by the same factor.

    A slow or shared core is a single cause, and its fix speeds up all threads.
    """
    threads: dict[int, list[_Candidate]] = {}
    for it in candidates:
        if it.classes[0] in _THREADS:
            threads.setdefault(it.place, []).append(it)
    joined = {}
    for place, these in threads.items():
        if len(these) == len(_THREADS) and all(
            _is_uniform(_by_name(ranks, place, it.classes[0]), marks) for it in these
        ):
            own_ns, median_ns = sum(it.own_ns for it in these), sum(it.median_ns for it in these)
            classes = tuple(it.classes[0] for it in these)
            joined[place] = _Candidate(place, classes, own_ns, median_ns)
    left = (it for it in candidates if it.classes[0] not in _THREADS or it.place not in joined)
    return [*left, *joined.values()]


def _totals(ranks: Sequence[ReducedRank]) -> pl.DataFrame:
    """Return the time of each rank, class and step, with that of the median rank."""
    import polars as pl

    frames = [
        frame_of(rank.step_totals()).with_columns(pl.col("class").cast(pl.String), place=place)
        for place, rank in enumerate(ranks)
    ]
    known = pl.concat(frames)
    cells = known.select("step", "class").unique()
    places = pl.DataFrame({"place": range(len(ranks))}, schema={"place": pl.Int32})
    every = cells.join(places, how="cross").join(
        known.cast({"place": pl.Int32}), on=["step", "class", "place"], how="left", nulls_equal=True
    )
    every = every.with_columns(pl.col("total_ns").fill_null(0))
    median = pl.col("total_ns").quantile(0.5, "lower").over("step", "class")
    return every.with_columns(median_ns=median.cast(pl.Int64))


def _candidates(totals: pl.DataFrame) -> list[_Candidate]:
    import polars as pl

    excess = (pl.col("total_ns") - pl.col("median_ns")).clip(lower_bound=0)
    summed = totals.group_by("place", "class").agg(
        own_ns=pl.col("total_ns").sum(), median_ns=pl.col("median_ns").sum(), excess_ns=excess.sum()
    )
    stands_out = (pl.col("excess_ns") > _LEAST_EXCESS_NS) & (
        pl.col("excess_ns") > _LEAST_EXCESS * pl.col("median_ns")
    )
    order = summed.filter(stands_out).sort(
        "excess_ns", "place", "class", descending=[True, False, False]
    )
    rows = order.head(_MOST_CANDIDATES).iter_rows(named=True)
    return [
        _Candidate(row["place"], (row["class"],), row["own_ns"], row["median_ns"]) for row in rows
    ]


def _scaling(totals: pl.DataFrame, place: int, time_class: str) -> tuple[Any, ...]:
    """Scale a class of time of one rank to that of the median rank, step by step."""
    import polars as pl

    rows = totals.filter(
        (pl.col("place") == place)
        & (pl.col("class") == time_class)
        & (pl.col("total_ns") > pl.col("median_ns"))
    )
    factors = list(rows.select("step", "median_ns", "total_ns").iter_rows())
    return (time_class, None, factors)


def _scalings(
    ranks: Sequence[ReducedRank], totals: pl.DataFrame, place: int, time_class: str, *, marks: str
) -> list[tuple[Any, ...]]:
    """Scale what exceeds the median rank: a few functions or kernels, else the whole class.

    Scaling a slow kernel and its neighbours alike would gain less where ranks meet between them.
    """
    whole = _scaling(totals, place, time_class)
    if time_class not in _NAMED or _is_uniform(_by_name(ranks, place, time_class), marks):
        return [whole]
    slow = _slow_names(_by_name(ranks, place, time_class, keys=("name",)))
    steps = totals.filter((totals["place"] == place) & (totals["class"] == time_class))
    medians_ns = dict(steps.select("step", "median_ns").iter_rows())
    excess_ns = {step: own - median for step, median, own in whole[2]}
    total_ns, total_excess_ns = sum(medians_ns.values()), sum(excess_ns.values())
    if 2 * sum(more for _, more, _ in slow) < total_excess_ns or not total_ns:
        return [whole]
    # Totals by name are not known per step: their excess is assumed in the steps where the class
    # exceeds the median.
    return [
        (
            time_class,
            name,
            [
                (step, usual_ns, usual_ns + round(more_ns * part / total_excess_ns))
                for step, part in excess_ns.items()
                if (usual_ns := round(median_ns * medians_ns[step] / total_ns))
            ],
        )
        for name, more_ns, median_ns in slow
    ]


def _slow_names(names: pl.DataFrame) -> list[tuple[str, int, int]]:
    """Return names that other ranks run too but this one runs longer: name, excess and median."""
    import polars as pl

    rows = names.filter(
        pl.col("is_common") & (pl.col("excess_ns") > _LEAST_EXCESS * pl.col("median_ns"))
    )
    return list(rows.select("name", "excess_ns", "median_ns").iter_rows())


def _cause(ranks: Sequence[ReducedRank], it: _Candidate, marks: str) -> tuple[str, str | None]:
    """Return the cause of a rank's longer time in a class, and the name with most of it."""
    time_class = it.classes[0]
    if time_class == "copies":
        return "copies", None
    names = _by_name(ranks, it.place, time_class)
    excess_ns = it.own_ns - it.median_ns
    if time_class == "data_loading":
        return "data loading", _name_of_most(names, excess_ns)
    if _is_uniform(names, marks):
        return ("GPU clock" if time_class == "kernels" else "slow core"), None
    if time_class == "kernels":
        same = _has_same_work(names, _first_name(names))
        return ("slow kernel" if same else "more work"), _name_of_most(names, excess_ns)
    work = names.filter(~_is_mark(marks))
    if 2 * sum(work["excess_ns"].clip(lower_bound=0).to_list()) < excess_ns:
        return HOST_TIME_OUTSIDE, None
    return "host functions", _name_of_most(work, excess_ns)


def _is_mark(marks: str) -> pl.Expr:
    """Whether a name is that of a step, whose time excludes the events in the step."""
    import polars as pl

    return pl.col("name").str.contains(marks) | (pl.col("name") == "")


def _name_of_most(names: pl.DataFrame, excess_ns: int) -> str | None:
    """Return the name with the largest excess if it accounts for at least half of the total."""
    is_most = not names.is_empty() and 2 * names["excess_ns"][0] >= excess_ns
    return _first_name(names) if is_most else None


def _by_name(
    ranks: Sequence[ReducedRank],
    place: int,
    time_class: str,
    keys: tuple[str, ...] = ("name", "shape"),
) -> pl.DataFrame:
    """Compare each name and shape of a rank with the median over all ranks."""
    import polars as pl

    totals = [_name_totals(rank, time_class, keys) for rank in ranks]
    usual = (
        pl.concat(totals)
        .group_by(keys)
        .agg(
            median_ns=pl.col("total_ns").quantile(0.5, "lower"),
            median_count=pl.col("count").quantile(0.5, "lower"),
            n_ranks=pl.len(),
        )
        .with_columns(is_common=pl.col("n_ranks") * 2 > len(ranks))
    )
    joined = totals[place].join(usual, on=keys, how="left")
    median = pl.when("is_common").then(pl.col("median_ns")).otherwise(0)
    return joined.with_columns(excess_ns=pl.col("total_ns") - median).sort(
        "excess_ns", *keys, descending=[True, *(False for _ in keys)]
    )


def _name_totals(rank: ReducedRank, time_class: str, keys: tuple[str, ...]) -> pl.DataFrame:
    import polars as pl

    rows = frame_of(rank.name_totals()).filter(pl.col("class") == time_class)
    summed = rows.group_by(keys).agg(pl.col("total_ns").sum(), pl.col("count").sum())
    return summed.with_columns(pl.col("name").cast(pl.String))


def _is_uniform(names: pl.DataFrame, marks: str) -> bool:
    """Whether all common names take longer by the same factor; steps count as one name."""
    import polars as pl

    is_mark = _is_mark(marks)
    steps = names.filter(is_mark & pl.col("is_common"))
    step = steps.select(pl.col("is_common").first(), *map(pl.sum, _SUMMED))
    work = names.filter(~is_mark).select("is_common", *_SUMMED)
    same = pl.concat([work, step] if steps.height else [work]).filter(
        pl.col("is_common")
        & (pl.col("median_ns") > 0)
        & (pl.col("count") == pl.col("median_count"))
    )
    if same.height < 2:  # noqa: PLR2004 - one name always has a single factor
        return False
    same = same.with_columns(ratio=pl.col("total_ns") / pl.col("median_ns")).sort("ratio")
    is_upper_half = same["median_ns"].cum_sum() * 2 >= _total_ns(same, "median_ns")
    middle = same.filter(is_upper_half)["ratio"][0]
    near = same.filter((pl.col("ratio") / middle - 1).abs() <= _UNIFORM_SPREAD)
    covered = _total_ns(near) >= _UNIFORM_SHARE * _total_ns(same)
    covered &= _total_ns(same) >= _LEAST_COMPARABLE * _total_ns(names)
    is_many = _total_ns(near.sort("total_ns").tail(1)) < _UNIFORM_SHARE * _total_ns(near)
    return bool(middle > _UNIFORM_RATIO and covered and is_many)


def _total_ns(names: pl.DataFrame, column: str = "total_ns") -> int:
    return sum(names[column].to_list())


def _first_name(names: pl.DataFrame) -> str | None:
    return None if names.is_empty() else str(names["name"][0])


def _has_same_work(names: pl.DataFrame, name: str | None) -> bool:
    """Whether the rank launches a kernel as often, and with the same shapes, as the others."""
    import polars as pl

    rows = names.filter(pl.col("name") == name)
    slow = rows.filter(pl.col("is_common") & (pl.col("count") == pl.col("median_count")))
    is_most = _total_ns(slow) * 2 > _total_ns(rows)
    return is_most and _total_ns(slow) > _SLOW_KERNEL * _total_ns(slow, "median_ns")
