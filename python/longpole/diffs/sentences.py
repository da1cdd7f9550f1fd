"""Formats a comparison as sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.diffs.machine import HOST_KINDS
from longpole.diffs.samples import FEWEST
from longpole.diffs.setups import described, differing
from longpole.jobs.findings import listed
from longpole.remedies.catalogue import remedy_of
from longpole.words.path_kinds import MEANINGS
from longpole.words.wording import (
    change,
    count,
    duration,
    duration_range,
    listing,
    share,
    short_name,
)

if TYPE_CHECKING:
    from longpole.diffs.values import Change, DiffSide, Findings, Prediction

KINDS: Final = {
    "kernel": "kernel",
    "copy": "memcpy or memset",
    "communication": "communication",
    "operator": "operator",
    "runtime": "runtime API call",
    "host_gap": "host time outside operators",
    "data_loading": "data loading",
    "wait": "call that waits",
}
_EXPOSED: Final = {"communication": "communication", "copy": "copies"}
_WIDEST: Final = 60
_LEAST_EFFECT: Final = 0.001
_LEAST: Final = 0.0005

# Below this fraction of the step, recording overhead is not mentioned.
_LEAST_COST: Final = 0.05

# A change with a smaller share of the whole does not explain it (a judgement, not measured).
_LEAST_SHARE: Final = 0.1

# A change in the other direction is named if its effect is at least this share of the first one's.
_OFFSETS: Final = 0.5

# If no single change explains the whole, kinds of work are named: at most this many, each with at
# least this share of the whole.
_MOST_KINDS: Final = 2
_LEAST_OF_KIND: Final = 0.2

# If at least this share of the work corresponds, it is less likely that the programs are different.
_SOME_SIMILAR: Final = 0.1

# Host work within this factor of the quartiles of unchanged operators changed like the machine.
_LIKE_MACHINE: Final = 1.1
_STEP: Final = "ProfilerStep#N"

# Changes of a smaller share of the step are not named.
_LEAST_NAMED: Final = 0.001

_LEAST_LAUNCHES: Final = 0.5
_MOST_STEPS: Final = 3
_STRUCTURAL: Final = frozenset({"added", "removed", "fused", "split", "replaced"})
_ON_DEVICE: Final = frozenset({"kernel", "copy", "communication"})
_OF_OTHERS: Final = frozenset({"communication", "exposed", "wait"})
"""Kinds of time that other ranks change, too."""
_WITH_LAUNCHES: Final = _ON_DEVICE | {"operator", "runtime"}

_BECAME: Final = {
    "renamed": ", replaced by {new}",
    "fused": ", fused into {new}",
    "split": ", split into {new}",
    "replaced": ", replaced by {new}",
    "reshaped": ", with other shapes",
    "moved": ", now {new} elsewhere in the step",
}


def sentence(diff: Findings) -> str:
    """Return whether the step changed, by how much, and why; damage comes first."""
    damage = _damage(diff)
    return " ".join(damage if diff.is_lost else [*_left_out(diff), *damage, _compared(diff)])


def _left_out(diff: Findings) -> list[str]:
    """Return which ranks are not compared."""
    ranks = diff.left_out_ranks
    if not ranks:
        return []
    n_ranks = len({*diff.base.ranks, *diff.new.ranks, *ranks})
    left = f"{n_ranks - len(ranks)} of {count(n_ranks, 'rank')}"
    compared = "is" if n_ranks - len(ranks) == 1 else "are"
    return [f"A trace of {listed(ranks)} is damaged, so only {left} {compared} compared."]


def _damage(diff: Findings) -> list[str]:
    """Describe the damage of each side: severe damage alone, or one of several traces."""
    base, new = (
        max(side.damage, key=lambda it: it.is_grave, default=None) for side in (diff.base, diff.new)
    )
    if base is not None and base == new:
        return [base.sentence]
    return [
        damage.sentence.replace("The trace", f"The {name} trace", 1)
        for name, damage in (("base", base), ("new", new))
        if damage is not None and damage.is_grave >= diff.is_lost
    ]


_NO_WORK: Final = "neither trace has launches or operators to compare"


def _compared(diff: Findings) -> str:
    base, new = diff.base, diff.new
    verdict = " ".join(filter(None, [diff.verdict.capitalize(), described(diff.setups)]))
    has_steps = base.unit == new.unit and base.unit in {"step", "repetition"}
    unit = base.unit if has_steps else "window"
    if diff.n_differences == 0 and diff.change == 0:
        length = duration(round(base.mean_ns))
        return f"{verdict}: the two sides are the same; the {unit} takes {length}."
    times = " to ".join(_length(side) for side in (base, new))
    if not diff.is_one_program and diff.similarity is None:
        return (
            f"{verdict}: {_NO_WORK}. {_if_one_program(diff, times)}. The table annotations shows "
            "what each trace marks."
        )
    if not diff.is_one_program:
        return (
            f"{verdict}: these {_seem(diff)} be two different programs; only "
            f"{_similarity(diff)} of their launches or operators correspond. "
            f"{_if_one_program(diff, times)}."
        )
    told = f"{verdict}{_why_open(diff)}: the {mean_of(diff)}{unit} goes from {times}"
    told += _without_profiler(diff)
    told += f" ({_change(diff)}; {numbers(base)} and {numbers(new)})"
    told += f"{_on_one_machine(diff)}."
    if not diff.is_related:
        return " ".join([told, *_other_work(diff), *_predicted(diff)])
    return " ".join([told, *_of_outliers(diff), *_of_late_rank(diff), *_predicted(diff)])


def _change(diff: Findings) -> str:
    """Return the change, and that of the recorded steps if it is another one."""
    told, recorded = percent(diff.change), percent(diff.recorded_change)
    is_other = _without_profiler(diff) and told != recorded
    return f"{told}, as recorded {recorded}" if is_other else told


def _seem(diff: Findings) -> str:
    return "may" if (diff.similarity or 0) >= _SOME_SIMILAR else "seem to"


def _if_one_program(diff: Findings, times: str) -> str:
    """Return the lengths of two programs that only the reader knows to be one."""
    if diff.base.unit == diff.new.unit == "step":
        told = f"the {mean_of(diff)}step goes from {times} ({percent(diff.change)})"
        return f"If they are one program, {told}"
    return f"The base takes {_length(diff.base)}, the new side {_length(diff.new)}"


def mean_of(diff: Findings) -> str:
    """Return the word for the length of a step that is compared; none if steps were timed."""
    return "" if diff.is_timed else "mean "


def _length(side: DiffSide) -> str:
    """Return the length of a step, with its range without the profiler."""
    told = duration(round(side.mean_ns))
    if side.range_ns is None or not side.is_in_range:
        return told
    return f"{told} ({side.range_source} {duration_range(*map(round, side.range_ns))})"


def _similarity(diff: Findings) -> str:
    return f"{100 * (diff.similarity or 0):.0f} %"


def _why_open(diff: Findings) -> str:
    """Return what is missing for a verdict: certain times, or enough runs or steps of each side."""
    if diff.open_by == "cost":
        return " (the change depends on what recording cost)"
    if diff.open_by == "machine":
        return " (the machine may have made the change)"
    sides = (diff.base, diff.new)
    if any(side.timed_ns for side in sides):
        return ""
    if diff.is_one_recording:
        return f" (fewer than {FEWEST} other steps)" if diff.base.n_steps < FEWEST else ""
    are_runs = any(side.n_runs > 1 for side in sides)
    fewest = min(side.n_runs if are_runs else side.n_steps for side in sides)
    if diff.verdict != "inconclusive" or fewest >= FEWEST:
        return ""
    return f" (each side needs {FEWEST} {'runs' if are_runs else 'steps'})"


def _without_profiler(diff: Findings) -> str:
    """Note that times exclude the profiler, if that changes them."""
    sides = (diff.base, diff.new)
    matters = any(
        side.range_ns or side.mean_ns < (1 - _LEAST_COST) * side.recorded_mean_ns for side in sides
    )
    return " without the profiler" if matters else ""


def _on_one_machine(diff: Findings) -> str:
    """Describe the change apart from that of the machine, if the machine changed."""
    machine = diff.machine
    if machine is None or not diff.machine_matters:
        return ""
    times = max(machine.ratio, 1 / machine.ratio)
    slower = "slower" if machine.ratio > 1 else "faster"
    return f"; operators that did not change ran {times:.2f} times {slower} than in the base"


def _of_outliers(diff: Findings) -> list[str]:
    """Return which steps are much longer than the others, if they make the change."""
    base, new = diff.base, diff.new
    steps = [*base.outlier_steps, *new.outlier_steps]
    if not steps or diff.change is None or diff.is_one_recording or diff.is_timed:
        return []
    without = new.mean_of_others_ns / base.mean_of_others_ns - 1
    if abs(without - diff.change) <= diff.gate / 2:
        return []
    told = listing(
        [
            f"{_steps(side.outlier_steps)} of the {name}"
            for name, side in (("base", base), ("new side", new))
            if side.outlier_steps
        ]
    )
    takes, it = ("takes", "it") if len(steps) == 1 else ("take", "them")
    told = f"{told} {takes} more than 1.5 times the median"
    return [f"{told}; without {it}, the mean step changes by {percent(without)}."]


def _steps(steps: tuple[int, ...]) -> str:
    numbers = listing([str(step) for step in steps[:_MOST_STEPS]])
    if len(steps) > _MOST_STEPS:
        return f"{len(steps)} steps"
    return f"{'Step' if len(steps) == 1 else 'Steps'} {numbers}"


def _other_work(diff: Findings) -> list[str]:
    """Describe the evidence that steps with different work are from the same program."""
    if diff.is_stated:
        told = f"Only {_similarity(diff)} of their launches or operators correspond"
        told = f"{_NO_WORK.capitalize() if diff.similarity is None else told}: both run the same"
        told = f"{told} program, as stated, so the steps are compared, not their parts"
        return [f"{told}{_mostly(diff)}."]
    if diff.undone or diff.signs:
        told = f"Only {_similarity(diff)} of their launches or operators correspond"
        undone = f"the new side lacks what {listing(diff.undone)} gave the base"
        done = f"the new side has the kernels of {listing(diff.signs)}"
        why = undone if diff.undone else done
        return [f"{told}, so the steps are compared, not their parts: {why}."]
    applied = {row.remedy for row in diff.predictions}
    if not applied or any(remedy_of(name).signature == "graph_launches" for name in applied):
        told = "Both sides run the same kernels, but only {} of their launches or operators"
        told = f"{told.format(_similarity(diff))} correspond"
        return [f"{told}, so the steps are compared, not their parts."]
    told = f"Only {_similarity(diff)} of their launches or operators correspond"
    return [f"{told}, so the steps are compared, not their parts{_mostly(diff)}."]


def _mostly(diff: Findings) -> str:
    """Return what each side spends most in, if that differs."""
    sides = [_most(diff, number) for number in (0, 1)]
    is_same = len({(side or "").split(" (")[0] for side in sides}) == 1
    most = "; ".join(
        f"the {name} spends most in {what}"
        for name, what in zip(("base", "new side"), sides, strict=True)
        if what and not is_same
    )
    return f": {most}" if most else ""


def _most(diff: Findings, number: int) -> str | None:
    """Return the GPU activities that take most of a step of one side."""
    rows = [
        ((change.base_ns, change.new_ns)[number], (change.base_names, change.new_names)[number])
        for change in diff.changes
        if change.kind in {"kernel", "copy", "communication"}
    ]
    time_ns, names = max(rows, key=lambda row: row[0], default=(0.0, ()))
    if not time_ns or not names:
        return None
    return f"{_names(names)} ({duration(round(time_ns))})"


def predicted(prediction: Prediction) -> str:
    """Format the prediction of a remedy, as one gain or an interval.

    Examples
    --------
    >>> from longpole.diffs.values import Prediction
    >>> predicted(Prediction("copies", 9.0, 1.0, 0.19, 0.24, 0.203, is_alone=True))
    '19 to 24 %'
    """
    low, high = (f"{100 * gain:.0f}" for gain in (prediction.gain_low, prediction.gain_high))
    if low == high:
        return f"{100 * prediction.gain_high:.1f} %"
    return f"{low} to {high} %"


def percent(share: float | None) -> str:
    """Format a change with its sign.

    Examples
    --------
    >>> percent(-0.2), percent(0.0312), percent(None), percent(0.0001)
    ('-20.0 %', '+3.1 %', 'unknown', '±0.0 %')
    """
    if share is None:
        return "unknown"
    return change(share) if abs(share) >= _LEAST else "±0.0 %"


def _predicted(diff: Findings) -> list[str]:
    """Compare the predicted and the measured gain of an applied remedy."""
    at = " at the speed of the base" if diff.machine_matters else ""
    return [
        f"Remedy {row.remedy} {_became(row)}: {predicted(row)} predicted, "
        f"{100 * row.measured:.1f} % from one recording to the other{at}."
        for row in diff.predictions
        if row.is_alone
    ] or _applied_together(diff)


def _became(row: Prediction) -> str:
    """Return whether a remedy was applied, which only a prediction that came true shows."""
    if row.came_true:
        return "was applied"
    return "no longer applies, but its prediction did not come true"


def _applied_together(diff: Findings) -> list[str]:
    """Return the remedies that no longer fit, whose gains cannot be separated."""
    if not diff.predictions or not diff.predictions[0].came_true:
        return []
    told = f"Remedies {listing([row.remedy for row in diff.predictions])} no longer apply"
    return [f"{told}: {100 * diff.predictions[0].measured:.1f} % together."]


def _cause(change: Change, diff: Findings) -> str:
    """Describe a change of work and its effect on the step."""
    if change.kind == "exposed":
        return _of_overlap(change)
    if change.kind == "wait":
        return _of_wait(change)
    subject = _part(change) if diff.is_part(change) else _subject(change)
    told = f"{subject}: {_times(change)} a step"
    if change.effect_ns is None:
        return told
    if abs(change.effect_ns) < _LEAST_EFFECT * max(change.base_ns, change.new_ns, 1.0):
        return f"{told}, which other work hides, so the step does not change"
    side = "longer" if change.effect_ns > 0 else "shorter"
    return f"{told}, which alone makes the step {duration(round(abs(change.effect_ns)))} {side}"


def _of_wait(change: Change) -> str:
    """Describe calls that wait for the GPU and were added or removed."""
    more = change.new_count - change.base_count
    waits = "waits" if round(abs(more)) == 1 else "wait"
    calls = f"{_more(more)} {'call' if waits == 'waits' else 'calls'} that {waits}"
    told = f"{calls} for the GPU ({_names(change.base_names or change.new_names)})"
    if not change.effect_ns:
        return f"{told}, which other work hides, so the step does not change"
    side = "longer" if change.effect_ns > 0 else "shorter"
    return f"{told}, which make the step up to {duration(round(abs(change.effect_ns)))} {side}"


def _of_overlap(change: Change) -> str:
    """Describe how much work lost or gained its overlap with kernels."""
    what = _EXPOSED[str(change.base_names[0])]
    became = "was lost" if change.change_ns > 0 else "was gained"
    told = f"overlap of {what} with kernels {became}: {_times(change)} a step run without a kernel"
    if not change.effect_ns:
        return f"{told}, which other work hides, so the step does not change"
    side = "longer" if change.effect_ns > 0 else "shorter"
    return f"{told}, which makes the step up to {duration(round(abs(change.effect_ns)))} {side}"


def _causes(diff: Findings) -> list[str]:
    """List the largest changes."""
    certain = [change for change in diff.changes if change.stands_out]
    if not certain and min(diff.base.n_steps, diff.new.n_steps) == 1:
        return ["One step does not show how much steps differ, so no change is named."]
    if not certain:
        return [_nothing_certain(diff)]
    others = [change for change in certain if not _is_by_machine(change, diff)]
    large = [change for change in others if _is_worth_naming(change, diff)]
    if not others:
        return ["No work changed by more than the machine may have changed it."]
    if not large:
        return [f"No work changed by more than {share(_LEAST_NAMED)} of the step."]
    return [_named(_same_direction_first(large, diff), diff)]


def _same_direction_first(others: list[Change], diff: Findings) -> list[Change]:
    """Return changes with those first whose effect has the direction of a change that matters."""
    if abs(diff.change or 0.0) < diff.gate:
        return others
    change_ns = diff.new.mean_ns - diff.base.mean_ns
    return sorted(others, key=lambda change: (change.effect_ns or 0.0) * change_ns <= 0)


def _of_late_rank(diff: Findings) -> list[str]:
    """Describe the rank that the others wait for, and what changed most on it."""
    late = diff.late_rank
    if late is None:
        return _causes(diff)
    has_name = late.name and late.cause != "data loading"
    what = f"{late.cause}, mostly {short_name(late.name, _WIDEST)}" if has_name else late.cause
    least_ns = _LEAST_SHARE * abs(late.change_ns)
    if late.base_gain_ns < least_ns:
        waits = "now makes the others wait"
    elif late.new_gain_ns < least_ns:
        waits = "no longer makes the others wait"
    else:
        waits = f"makes the others wait {'longer' if late.change_ns > 0 else 'less'}"
    side = "longer" if late.effect_ns > 0 else "shorter"
    makes = f"which makes the step {duration(round(abs(late.effect_ns)))} {side}"
    told = f"What changed most: rank {late.rank} {waits} ({what}), {makes}."
    own = [
        change
        for change in diff.changes
        if change.stands_out
        and change.kind not in _OF_OTHERS
        and change.change_ns * late.change_ns > 0
        and _is_worth_naming(change, diff)
    ]
    largest = max(own, key=lambda change: abs(change.change_ns), default=None)
    if largest is None:
        return [told]
    return [told, f"On rank {late.rank}, {_subject(largest)}: {_times(largest)} a step."]


def _named(others: list[Change], diff: Findings) -> str:
    """Describe the largest change, and what offsets it."""
    first = _of_structure(others, diff) or _cause(others[0], diff)
    machine = " and the ".join(setup.what for setup in differing(diff.setups))
    if machine:
        told = f"What the {machine} did to the step cannot be told from what the program did"
        return f"{told}; the largest change of work is {first}."
    if _explains(others[0], diff):
        against = _counterpart(others, diff)
        more = "" if against is None else f"; and {_cause(against, diff)}"
        return f"What changed most: {first}{more}."
    return f"No single change explains that: {_by_kind(diff) or f'the largest is {first}'}."


def _is_worth_naming(change: Change, diff: Findings) -> bool:
    """Whether a change of work, or what it does to the step, is a noticeable part of the step."""
    least_ns = _LEAST_NAMED * max(diff.base.mean_ns, diff.new.mean_ns)
    return max(abs(change.change_ns), abs(change.effect_ns or 0.0)) >= least_ns


def _of_structure(others: list[Change], diff: Findings) -> str | None:
    """Describe work that replaced other work, with the launches that this adds or removes.

    More or fewer launches take more or less host time, so this is told with their cause. None if
    the largest change is another one.
    """
    first = others[0]
    launches = next((row for row in diff.counts if row.what == "launches"), None)
    more = 0.0 if launches is None else launches.new - launches.base
    if launches is None or abs(more) < _LEAST_LAUNCHES or first.kind not in _WITH_LAUNCHES:
        return None
    alike = [
        change
        for change in others
        if (change.new_count - change.base_count) * more > 0
        and (change.effect_ns or 0.0) * more >= 0
    ]
    structural = [change for change in alike if change.relation in _STRUCTURAL]
    leads = [change for change in structural if change.kind in _ON_DEVICE] or structural
    if first not in alike or not leads:
        return None
    lead = max(leads, key=lambda change: abs(change.new_count - change.base_count))
    host = [change for change in alike if change.kind in {"operator", "runtime"}]
    members = {id(change): change for change in (lead, first, *host)}
    change_ns = diff.new.mean_ns - diff.base.mean_ns
    effect_ns = sum(change.effect_ns or 0.0 for change in members.values())
    subject = _part(lead) if diff.is_part(lead) else _subject(lead)
    launches_more = f"{_more(more)} {'launch' if round(abs(more)) == 1 else 'launches'}"
    told = f"{subject}: {_times(lead)} a step, with {launches_more}"
    if not effect_ns or effect_ns * change_ns <= 0:
        return told
    effect_ns = min(effect_ns, change_ns, key=abs)
    side = "longer" if effect_ns > 0 else "shorter"
    return f"{told}, which together make the step {duration(round(abs(effect_ns)))} {side}"


def _counterpart(others: list[Change], diff: Findings) -> Change | None:
    """Return the change that offsets most of the effect of the first one, or None."""
    first, *rest = others
    effect_ns = first.effect_ns or 0.0
    left_ns = diff.new.mean_ns - diff.base.mean_ns - effect_ns
    against = [
        change
        for change in rest
        if (change.effect_ns or 0.0) * effect_ns < 0
        and (change.effect_ns or 0.0) * left_ns > 0
        and abs(change.effect_ns or 0.0) >= _OFFSETS * abs(effect_ns)
    ]
    return max(against, key=lambda change: abs(change.effect_ns or 0.0), default=None)


def _nothing_certain(diff: Findings) -> str:
    kinds = _by_kind(diff) if abs(diff.change or 0.0) >= diff.gate else None
    if kinds:
        return f"No single change stands out from the noise of the steps: {kinds}."
    return "Nothing that ran changed by more than the steps differ themselves."


def _is_by_machine(change: Change, diff: Findings) -> bool:
    """Whether host work became as much slower or faster as operators that did not change."""
    machine = diff.machine
    if machine is None or not diff.machine_matters or change.kind not in HOST_KINDS:
        return False
    if not change.base_ns or change.base_names != change.new_names:
        return False
    ratio = change.new_ns / change.base_ns
    return machine.low / _LIKE_MACHINE <= ratio <= machine.high * _LIKE_MACHINE


def _by_kind(diff: Findings) -> str | None:
    """Describe which kinds of work the critical path has more or less of."""
    change_ns = diff.new.mean_ns - diff.base.mean_ns
    rows = [
        row
        for row in diff.path
        if row.kind in MEANINGS
        and row.change_ns * change_ns > 0
        and abs(row.change_ns) >= _LEAST_OF_KIND * abs(change_ns)
    ][:_MOST_KINDS]
    if not rows:
        return None
    more = "more" if change_ns > 0 else "less"
    parts = [
        f"{duration(round(abs(row.change_ns)))} {more} of {MEANINGS[row.kind]}" for row in rows
    ]
    return f"the critical path of a step has {' and '.join(parts)}"


def _explains(change: Change, diff: Findings) -> bool:
    """Whether a change has enough effect, and in the direction of the step, to be the cause."""
    if change.effect_ns is None:
        return True
    change_ns = diff.new.mean_ns - diff.base.mean_ns
    if change.effect_ns * change_ns < 0 and abs(diff.change or 0.0) >= diff.gate:
        return False
    return abs(change.effect_ns) >= _LEAST_SHARE * abs(change_ns)


def numbers(side: DiffSide) -> str:
    """Return how many runs, timings or steps of a side are compared."""
    if side.n_runs > 1:
        return count(side.n_runs, "run")
    if side.timed_ns:
        return count(len(side.timed_ns), "timing")
    return count(side.n_steps, side.unit)


def _subject(change: Change) -> str:
    if change.kind == "data_loading":
        return "data loading"
    base, new = (_names(names) for names in (change.base_names, change.new_names))
    if change.kind == "handover":
        return "host time outside operators, before the first work of another thread"
    if change.kind == "host_gap":
        where = "in the step itself" if base == _STEP else f"in {base or new}"
        return f"host time outside operators, {where}"
    word = "copy" if change.kind == "copy" else KINDS[change.kind]
    if change.relation in _BECAME and base and new:
        number = count(len(change.base_names), word, "copies" if word == "copy" else None)
        what = f"the {word} {base}" if len(change.base_names) == 1 else f"{number} ({base})"
        return what + _BECAME[change.relation].format(new=new)
    side = {"added": "the new ", "removed": "the removed "}.get(change.relation, "the ")
    return f"{side}{word} {base or new}"


def _part(change: Change) -> str:
    """Describe added or removed work of a name that both sides have."""
    more = change.new_count - change.base_count
    word = "copy" if change.kind == "copy" else KINDS[change.kind]
    names = _names(change.base_names or change.new_names)
    return f"{_more(more)} of the {word} {names}"


def _more(difference: float) -> str:
    """Return how many more or fewer there are: a mean of steps is rounded, and said to be."""
    number, side = round(abs(difference)), "more" if difference > 0 else "fewer"
    if number == abs(difference):
        return f"{number:,} {side}"
    return f"about {number:,} {side}" if number else f"less than 1 {side}"


def _names(names: tuple[str | None, ...]) -> str:
    """Return the first of some names, which takes longest, and how many more there are."""
    each = tuple(dict.fromkeys(short_name(name, _WIDEST) for name in names))
    more = f" and {len(each) - 1} more" if len(each) > 1 else ""
    return f"{each[0]}{more}" if each else ""


def _times(change: Change) -> str:
    base, new = duration(round(change.base_ns)), duration(round(change.new_ns))
    if not change.base_names:
        return new
    if not change.new_names:
        return base
    share = f" ({percent(change.change)})" if change.base_ns else ""
    return f"{base} to {new}{share}"
