"""Each tiny set of ranks gives the answer that was worked out for it."""

from __future__ import annotations

import re

import polars as pl
import pytest

from longpole import Scale
from real_traces import rank_cases, read_case

CASES = {name: case for name, case in rank_cases().items() if "ranks" in case}
pytestmark = pytest.mark.skipif(not CASES, reason="the cases are not here")
NAMES = sorted(CASES)
TIMES = {
    "arrival_us": "arrival_ns",
    "end_us": "end_ns",
    "wait_us": "wait_ns",
    "transfer_us": "transfer_ns",
}


@pytest.fixture
def found(request, tmp_path):
    case = CASES[request.param]
    return case["expect"], read_case(case, tmp_path)


def us(value):
    return value // 1000


def with_key(key):
    return [name for name in NAMES if key in CASES[name]["expect"]]


def by_rank(ranks, call, column):
    """Return a column of the members of a call, None for ranks that are not among them."""
    rows = dict(ranks.members.filter(pl.col("call") == call).select("rank", column).iter_rows())
    return [None if rank not in rows else us(rows[rank]) for rank in ranks.rank_numbers]


@pytest.mark.parametrize("found", with_key("collectives"), indirect=True)
def test_calls_are_matched_and_split_into_waiting_and_transfer(found):
    expect, ranks = found
    assert ranks.calls.height == len(expect["collectives"])
    for place, wanted in enumerate(expect["collectives"]):
        for key, column in TIMES.items():
            if key in wanted:
                assert by_rank(ranks, place, column) == wanted[key], key
        row = ranks.calls.row(place, named=True)
        for key, column in (("last", "last"), ("verdict", "cause"), ("group", "group")):
            assert row[column] == wanted.get(key, row[column])
        if "op" in wanted:
            assert (row["operation"], row["pair"]) in {(wanted["op"], False), ("send", True)}
        if "match" in wanted:
            assert (row["matched_by"] == "order") == (wanted["match"] == "inferred")


@pytest.mark.parametrize("found", with_key("collectives"), indirect=True)
def test_calls_have_the_members_that_took_part(found):
    expect, ranks = found
    for place, wanted in enumerate(expect["collectives"]):
        members = ranks.members.filter(pl.col("call") == place)
        row = ranks.calls.row(place, named=True)
        if "elements" in wanted:
            assert set(members["in_elements"]) == {wanted["elements"]}
        seen = wanted.get("members_seen", wanted.get("members"))
        if isinstance(seen, list):
            assert members["rank"].to_list() == seen
        if isinstance(wanted.get("members"), int):
            assert row["members"] + row["n_absent"] == wanted["members"]
        if "on_path" in wanted:
            assert (place in ranks.path()["call"].to_list()) == wanted["on_path"]
        if "reason" in wanted:
            assert wanted["reason"] in {finding.message for finding in ranks.findings}


@pytest.mark.parametrize("found", with_key("path"), indirect=True)
def test_the_path_is_the_one_that_was_worked_out(found):
    expect, ranks = found
    path = ranks.path().select("rank", "start_ns", "end_ns", "kind", "event")
    rows = [[rank, us(start), us(end), *rest] for rank, start, end, *rest in path.iter_rows()]
    assert rows == expect["path"]


@pytest.mark.parametrize("found", with_key("what_if"), indirect=True)
def test_what_if_gives_the_length_that_was_worked_out(found):
    expect, ranks = found
    for question in expect["what_if"]:
        if question["change"] == "all recordings begin together":
            assert us(ranks.duration_ns - ranks.start_skew_ns) == question["makespan_us"]
            continue
        rank, name, factor = re.fullmatch(
            r"rank (\d+): (\S+) x([\d.]+)", question["change"]
        ).groups()
        change = Scale(by=float(factor), kind="operator", matching=f"^{name}$")
        assert us(ranks.what_if({int(rank): [change]})) == question["makespan_us"]


@pytest.mark.parametrize("found", with_key("findings"), indirect=True)
def test_what_ranks_disagree_about_is_found_and_nothing_else(found):
    expect, ranks = found
    assert len(ranks.findings) == len(expect["findings"])
    for finding, wanted in zip(ranks.findings, expect["findings"], strict=True):
        assert (finding.kind, finding.group, finding.sequence) == (
            wanted["kind"],
            wanted["group"],
            wanted["seq"],
        )
        if "missing" in wanted:
            assert list(finding.ranks) == wanted["missing"]
            assert list(finding.others) == wanted["present"]
        if "elements" in wanted:
            assert sorted(map(int, finding.values)) == sorted(wanted["elements"])


@pytest.mark.parametrize("found", ["clock_offsets"], indirect=True)
def test_clocks_are_brought_to_that_of_the_first_rank(found):
    expect, ranks = found
    assert [us(ns) for ns in ranks.clocks["offset_ns"]] == expect["offset_us"]
    assert ranks.calls["last"][0] == expect["last"]
    assert by_rank(ranks, 0, "wait_ns") == expect["wait_us"]


@pytest.mark.parametrize("found", ["start_skew"], indirect=True)
def test_start_skew_is_no_fault_of_a_rank(found):
    expect, ranks = found
    assert [us(ns) for ns in ranks.clocks["entry_ns"]] == expect["entry_us"]
    arrivals = by_rank(ranks, 0, "arrival_ns")
    paces = [at - entry for at, entry in zip(arrivals, expect["entry_us"], strict=True)]
    assert paces == expect["own_pace_us"]
    assert ranks.late_ranks() == ()


@pytest.mark.parametrize("found", ["missing_call"], indirect=True)
def test_calls_that_all_ranks_made_are_matched_beside_missing_ones(found):
    expect, ranks = found
    for sequence, members in expect["matched"]:
        call = ranks.calls.filter(pl.col("sequence") == sequence)["call"][0]
        assert ranks.members.filter(pl.col("call") == call)["rank"].to_list() == members


@pytest.mark.parametrize("found", ["absent_rank"], indirect=True)
def test_a_rank_without_a_trace_is_named(found):
    expect, ranks = found
    [absent] = [finding for finding in ranks.findings if finding.kind == "absent rank"]
    assert list(absent.ranks) == expect["absent"]
    assert ranks.late_ranks() == ()


@pytest.mark.parametrize("found", ["chain_of_groups"], indirect=True)
def test_the_root_cause_is_found_through_a_chain_of_groups(found):
    expect, ranks = found
    assert ranks.late_ranks()[0].rank == expect["root_cause_rank"]


@pytest.mark.parametrize("found", ["gaps_in_the_sequence"], indirect=True)
def test_lost_calls_are_left_alone(found):
    expect, ranks = found
    places = {rank: ranks.trace(rank).collectives["event"].to_list() for rank in ranks.rank_numbers}
    pairs = []
    for call in ranks.calls["call"]:
        members = ranks.members.filter(pl.col("call") == call)
        rows = members.select("rank", "event").iter_rows()
        pairs.append([places[rank].index(event) for rank, event in rows])
    assert pairs == expect["matched"]
    alone = {finding.ranks[0]: finding.count for finding in ranks.findings}
    assert alone == {rank: len(left) for rank, left in expect["unmatched"]}
