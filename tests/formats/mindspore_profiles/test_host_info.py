"""Host stages: pairs, nesting, means of dataset stages, compared with MindSpore's own files."""

from __future__ import annotations

import csv
import json

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

import longpole
from longpole.formats.mindspore.timeline import host_info_trace
from longpole.mindspore import ProfileError, read_host_info
from mindspore_files import HEADER, given, host_file, host_line


def events(path, **options):
    info = read_host_info(path, **options)
    return [(event.phase, event.name, event.start_us, event.end_us) for event in info.events]


def codes(path, **options):
    return {found.code: found.lines for found in read_host_info(path, **options).findings}


def test_a_stage_that_starts_again_is_nested(tmp_path):
    lines = [("E", 0, 10), ("E", 0, 20), ("E", 1, 30), ("E", 1, 50)]
    path = host_file(tmp_path, *(host_line(*line) for line in lines))
    assert events(path) == [("X", "E::S", 20, 30), ("X", "E::S", 10, 50)]
    assert codes(path) == {"no_memory": ()}


def test_starts_and_ends_without_the_other_are_reported_with_their_lines(tmp_path):
    path = host_file(tmp_path, host_line("A", 1, 5), host_line("B", 0, 6), host_line("C", 2, 7))
    assert events(path) == [("i", "C::S", 7, None), ("B", "B::S", 6, None)]
    assert codes(path) == {"unmatched_end": (2,), "no_memory": (), "unmatched_start": (3,)}


def test_threads_are_told_apart(tmp_path):
    lines = [("E", 0, 10, 1), ("E", 0, 20, 2), ("E", 1, 30, 1), ("E", 1, 50, 2)]
    path = host_file(tmp_path, *(host_line(e, m, t, tid=tid) for e, m, t, tid in lines))
    assert events(path) == [("X", "E::S", 10, 30), ("X", "E::S", 20, 50)]


def test_rows_of_developers_can_be_left_out(tmp_path):
    lines = [host_line("E", 0, 10, level=0), host_line("E", 1, 20, level=0), host_line("F", 2, 30)]
    path = host_file(tmp_path, *lines)
    assert events(path, developer_rows=False) == [("i", "F::S", 30, None)]


def test_a_clock_that_stepped_back_gives_no_duration(tmp_path):
    lines = [host_line("E", 0, 30, module="Dataset"), host_line("E", 1, 10, module="Dataset")]
    info = read_host_info(host_file(tmp_path, *lines))
    assert not info.events
    assert not info.dataset
    assert [found.code for found in info.findings] == ["clock_stepped_back", "no_memory"]


def test_means_are_of_stages_that_ended_with_the_same_custom_info(tmp_path):
    lines = []
    for start, end, custom in ((0, 10, "a"), (20, 40, "a"), (50, 51, "b")):
        lines.append(host_line("E", 0, 100 + start, module="Dataset"))
        lines.append(host_line("E", 1, 100 + end, module="Dataset", custom=custom))
    dataset = read_host_info(host_file(tmp_path, *lines)).dataset
    assert [(s.custom_info, s.count, s.mean_us) for s in dataset] == [("a", 2, 15), ("b", 1, 1)]


STRICT = {
    "short row": (["1,2,3,M,E,S"], "bad_row"),
    "memory no number": ([host_line("E", 0, 1, memory="x")], "bad_number"),
    "time with a point": ([host_line("E", 0, "5.5")], "bad_number"),
    "comma without quotes": ([host_line("E", 0, 1, custom="{{a},b}")], "extra_fields"),
    "spreadsheet": ([host_line("E", 0, "1.7E+15")], "damaged_stamp"),
}


@pytest.mark.parametrize("case", STRICT)
def test_what_ends_mindspore_is_a_finding(tmp_path, case):
    lines, code = STRICT[case]
    path = host_file(tmp_path, *lines, host_line("F", 2, 9))
    assert events(path) == [("i", "F::S", 9, None)]
    assert codes(path)[code] == (2,)


def test_a_column_that_is_missing_is_one_error(tmp_path):
    path = host_file(tmp_path, "1,2,3", header="tid,pid,level")
    with pytest.raises(ProfileError, match="1: the header has no column") as caught:
        read_host_info(path)
    assert (caught.value.code, caught.value.line) == ("missing_column", 1)


def test_an_empty_file_is_an_error_and_a_header_alone_is_nothing(tmp_path):
    path = host_file(tmp_path)
    assert not read_host_info(path).events
    path.write_text("")
    with pytest.raises(ProfileError, match="the file is empty"):
        read_host_info(path)


def test_columns_in_another_order_and_columns_that_are_new_do_no_harm(tmp_path):
    header = ",".join([*reversed(HEADER.split(",")), "new"])
    line = ",".join([*reversed(host_line("E", 2, 9).split(",")), "x"])
    path = host_file(tmp_path, line, header=header)
    assert events(path) == [("i", "E::S", 9, None)]
    assert codes(path)["extra_columns"] == (1,)


def test_what_was_not_recorded_is_no_error(tmp_path):
    lines = [host_line("E", 2, 9, memory="N/A"), host_line("F", 2, "N/A", memory=5)]
    info = read_host_info(host_file(tmp_path, *lines))
    assert [event.name for event in info.events] == ["E::S"]
    assert [row[4] for row in info.memory] == ["F"]
    assert [found.code for found in info.findings] == ["no_time"]


def test_a_byte_order_mark_tabs_and_bad_bytes_are_read_over(tmp_path):
    path = tmp_path / "host_info_0.csv"
    text = f"\ufeff{HEADER}\n{host_line('E', 2, 9)}\t\n".encode()
    path.write_bytes(text + host_line("F?", 2, 10).encode().replace(b"?", b"\xff") + b"\n")
    assert [event[1] for event in events(path)] == ["E::S", "F\ufffd::S"]
    assert codes(path).keys() == {"byte_order_mark", "bad_utf8", "no_memory"}


def test_the_last_line_of_a_file_that_was_cut_is_left_out(tmp_path):
    path = host_file(tmp_path, host_line("E", 2, 9), host_line("F", 2, 1700))
    path.write_bytes(path.read_bytes()[:-3])
    assert events(path) == [("i", "E::S", 9, None)]
    assert codes(path)["cut_line"] == (3,)


def test_the_timeline_is_a_trace(tmp_path):
    lines = [host_line("E", 0, 10), host_line("E", 1, 30), host_line("F", 2, 20)]
    info = read_host_info(host_file(tmp_path, *lines, host_line("G", 0, 40)))
    trace = longpole.read_trace(b"".join(host_info_trace(info)))
    rows = trace.events.select("kind", "name", "start_ns", "duration_ns").rows()
    assert ("operator", "E::S", 10_000, 20_000) in rows
    assert ("instant", "F::S", 20_000, None) in [(*row[:3], row[3] or None) for row in rows]
    assert trace.diagnostics["code"].to_list() == ["unmatched_begin"]
    assert json.loads(b"".join(host_info_trace(info)))["traceEvents"]


def paired(marks):
    """Pair ends with the last start before them that is free, by looking back each time."""
    free, pairs = [], []
    for place, (name, mark) in enumerate(marks):
        if mark == 0:
            free.append((place, name))
            continue
        starts = [start for start in free if start[1] == name]
        if starts:
            free.remove(starts[-1])
            pairs.append((starts[-1][0], place))
    return pairs, [start for start, _ in free]


@for_all(st.lists(st.tuples(st.sampled_from("AB"), st.integers(0, 1)), max_size=30))
def test_pairs_are_those_of_a_slow_search(tmp_path_factory, marks):
    folder = tmp_path_factory.mktemp("pairs")
    lines = [host_line(name, mark, 100 + n) for n, (name, mark) in enumerate(marks)]
    found = events(host_file(folder, *lines))
    pairs, left = paired(marks)
    assert [(start - 100, end - 100) for kind, _, start, end in found if kind == "X"] == pairs
    assert sorted(start - 100 for kind, _, start, _ in found if kind == "B") == left


def test_colons_in_the_names_of_dataset_operators_are_kept(tmp_path):
    lines = [host_line("ns::Map", mark, 10 + mark, module="Dataset") for mark in (0, 1)]
    [stage] = read_host_info(host_file(tmp_path, *lines)).dataset
    assert (stage.operation, stage.stage, stage.mean_us) == ("ns::Map", "S", 1)


def test_the_stages_the_memory_and_the_means_are_those_of_mindspore():
    folder = given("synthetic")
    found = read_host_info(folder / "host_info_0.csv")
    theirs = json.loads((folder / "expected_timeline_0.json").read_text())
    spans = [
        (it["name"], it["ts"], it["ts"] + it["dur"])
        for it in theirs
        if it["ph"] == "X" and it["name"] != "Nested::Same"  # MindSpore loses the outer one
    ]
    ours = [it for it in found.events if it.phase == "X" and it.name != "Nested::Same"]
    assert [(it.name, it.start_us, it.end_us) for it in ours] == spans
    memory = list(csv.reader((folder / "expected_host_memory_0.csv").read_text().splitlines()))
    assert [list(row) for row in found.memory] == memory[1:]
    means = list(csv.reader((folder / "expected_dataset_0.csv").read_text().splitlines()))
    rows = [(it.operation, it.stage, str(it.count), it.custom_info) for it in found.dataset]
    assert rows == [(*row[:3], row[4]) for row in means[1:]]
    expected = [pytest.approx(float(row[3])) for row in means[1:]]
    assert [it.mean_us for it in found.dataset] == expected
