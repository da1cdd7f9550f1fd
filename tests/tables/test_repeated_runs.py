"""Sequences of kernels across operators."""

import random
from collections import Counter

import longpole
from longpole.engine.windows import choose_window
from longpole.testing import TraceBuilder


def sequences(trace, **choices):
    return longpole.kernels(trace, choose_window(trace, whole=True), by="sequence", **choices)


def program(chance):
    """Choose kernels for two streams, in groups that one operator or none launches."""
    letters, found = chance.choice(["ab", "abc", "abcd"]), {}
    for stream, n_operators in ((7, 9), (8, 4)):
        groups = [chance.choices(letters, k=chance.randint(1, 3)) for _ in range(n_operators)]
        found[stream] = [(names, chance.random() < 0.8) for names in groups]
    return found


def launched(streams):
    """Launch the kernels of each stream, one after the other."""
    builder, at = TraceBuilder(), 0
    for stream, groups in streams.items():
        for names, is_operator in groups:
            if is_operator:
                builder.operator("aten::op", (at, at + 10 * len(names)))
            for name in names:
                call, work = (at + 1, at + 3), (at + 4, at + 8)
                builder.launch(name, call=call, work=work, stream=stream)
                at += 10
    return builder.read()


def numbered(streams):
    """Return the names on each stream, each with a number for what launched it."""
    found, number = [], 0
    for groups in streams.values():
        row = []
        for names, is_operator in groups:
            number += 1
            for name in names:
                number += not is_operator
                row.append((name, number))
        found.append(row)
    return found


def runs_by_trying_all(streams, least):
    """Find runs whose parts of `least` kernels all occur as often as the run, and no longer one."""
    rows = numbered(streams)
    places = {}
    for row in rows:
        for begin in range(len(row)):
            for end in range(begin + least, len(row) + 1):
                names = tuple(name for name, _ in row[begin:end])
                places.setdefault(names, []).append(row[begin:end])
    often = {run: len(at) for run, at in places.items()}

    def is_fixed(run):
        parts = [run[begin : begin + least] for begin in range(len(run) - least + 1)]
        return all(often[part] == often[run] for part in parts)

    fixed = [run for run in often if is_fixed(run)]
    shorter = {part for run in fixed for part in (run[1:], run[:-1])}
    found = {run: apart(rows, run) for run in fixed if run not in shorter}
    return {
        run: len(kept)
        for run, kept in found.items()
        if len(kept) > 1 and any(part[0][1] != part[-1][1] for part in kept)
    }


def apart(rows, run):
    """Find occurrences that do not overlap."""
    kept = []
    for row in rows:
        at = 0
        while at <= len(row) - len(run):
            part = row[at : at + len(run)]
            is_it = tuple(name for name, _ in part) == run
            kept += [part] if is_it else []
            at += len(run) if is_it else 1
    return kept


def test_sequences_across_operators_are_those_that_trying_all_finds():
    lengths = Counter()
    for seed in range(60):
        chance = random.Random(seed)  # noqa: S311
        streams = program(chance)
        least = chance.randint(1, 5)
        rows = sequences(launched(streams), min_length=least)
        across = rows.filter(rows["operator_name"].is_null())
        found = dict(zip(map(tuple, across["kernels"]), across["count"], strict=True))
        assert found == runs_by_trying_all(streams, least), seed
        times = [count * 4_000 * len(run) for run, count in found.items()]
        assert across["duration_ns"].to_list() == times
        lengths.update(map(len, found))
    assert {2, 3, 4, 5, 6} <= set(lengths)


def test_a_sequence_of_one_operator_is_no_sequence_across():
    builder = TraceBuilder()
    for at in (0, 100):
        builder.operator("aten::linear", (at, at + 50))
        builder.launch("gemm", call=(at + 1, at + 2), work=(at + 4, at + 8))
        builder.launch("add", call=(at + 3, at + 4), work=(at + 9, at + 12))
    rows = sequences(builder.read(), min_length=2)
    assert rows.select("operator_name", "count").rows() == [("aten::linear", 2)]


def pairs(n_times):
    builder = TraceBuilder()
    for at in range(0, 100 * n_times, 100):
        for begin, operator, kernel in ((0, "aten::mm", "gemm"), (20, "aten::add", "add")):
            builder.operator(operator, (at + begin, at + begin + 15))
            call, work = (at + begin + 1, at + begin + 2), (at + begin + 4, at + begin + 8)
            builder.launch(kernel, call=call, work=work)
    return builder.read()


def test_a_condition_on_operators_keeps_what_they_launched():
    rows = sequences(pairs(5), min_length=2)
    assert ["gemm", "add"] in rows["kernels"].to_list()
    rows = sequences(pairs(5), min_length=2, where="name = 'aten::mm'")
    assert rows["kernels"].to_list() == [["gemm", "gemm"]]


def test_no_sequence_is_longer_than_the_trace():
    assert sequences(pairs(2), min_length=10**9).is_empty()
