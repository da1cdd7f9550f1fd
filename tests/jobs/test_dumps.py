"""Dumps of PyTorch's flight recorder: which call hangs, who lacks it, who waits."""

from __future__ import annotations

import gzip
import json
import pickle

import pytest

import longpole
from longpole import dumps, read_dumps
from longpole.cli import program
from longpole.testing import TraceBuilder
from real_traces import rank_cases

ALL = "[0, 1, 2]"


def entry(sequence, state="completed", operation="all_reduce", **more):
    """Return a call as the recorder writes it."""
    found = {
        "record_id": sequence,
        "pg_id": 0,
        "process_group": ["0", "default_pg"],
        "collective_seq_id": sequence,
        "p2p_seq_id": 0,
        "op_id": sequence,
        "profiling_name": f"nccl:{operation}",
        "input_sizes": [[10, 4]],
        "input_dtypes": ["Float"],
        "output_sizes": [[10, 4]],
        "output_dtypes": ["Float"],
        "state": state,
        "is_p2p": False,
        "time_created_ns": 1_000 * sequence,
    }
    return found | more


@pytest.fixture
def write(tmp_path):
    """Write the entries of each rank into a folder, and read them."""

    def written(*of_ranks, groups=None):
        config = {"0": {"name": "0", "desc": "default_pg", "ranks": ALL}}
        for rank, entries in enumerate(of_ranks):
            document = {"entries": entries, "pg_config": groups or config, "version": "2.10"}
            path = tmp_path / f"nccl_trace_rank_{rank}"
            path.write_text(json.dumps(document), encoding="utf-8")
        return read_dumps(tmp_path)

    return written


def told(found):
    return " ".join(block.text for block in dumps(found).blocks() if hasattr(block, "text"))


def test_the_rank_that_has_not_called_is_named(write, said):
    waits = [entry(1), entry(2), entry(3, "started")]
    found = write(waits, [entry(1), entry(2)], waits)
    [call] = found.open_calls
    assert (call.sequence, call.missing, call.started) == (3, (1,), (0, 2))
    assert (call.last_complete, call.waits_for) == (2, (1,))
    said.within(told(found))


def test_a_call_that_some_completed_and_one_lacks_makes_no_rank_wait(write, said):
    done = [entry(1), entry(2)]
    said.within(told(write(done, [entry(1)], done)))


def test_where_a_late_rank_was_last_is_said(write):
    frames = [
        {"name": "all_reduce", "filename": "/site-packages/torch/distributed.py", "line": 1},
        {"name": "evaluate", "filename": "train.py", "line": 88},
    ]
    found = write([entry(1), entry(2, "started")], [entry(1, frames=frames)], [entry(1)])
    places = {it.rank: it.place for it in found.open_calls[0].places}
    assert places[1].endswith("evaluate (train.py:88)")


def test_a_call_that_has_not_started_on_a_rank_holds_the_others(write, said):
    found = write([entry(1, "started")], [entry(1, "scheduled")], [entry(1, "started")])
    [call] = found.open_calls
    assert call.waits_for == (1,)
    said.within(told(found))


def test_ranks_that_called_something_else_are_said_to_disagree(write, said):
    other = entry(1, "started", "broadcast")
    found = write([entry(1, "started")], [other], [entry(1, "started")])
    said.within(told(found))
    found = write(
        [entry(1, "started")], [entry(1, "started", input_sizes=[[7]])], [entry(1, "started")]
    )
    said.within(told(found))


def test_what_a_rank_has_written_over_is_no_missing_call(write):
    long = [entry(number) for number in range(5, 9)]
    found = write(long, [entry(number) for number in range(3, 9)], long)
    assert found.open_calls == ()
    assert found.findings == ()
    assert found.calls["sequence"].to_list() == [5, 6, 7, 8]


def test_a_rank_that_waits_in_another_group_is_not_the_cause(write):
    groups = {
        "0": {"name": "0", "desc": "all", "ranks": ALL},
        "1": {"name": "1", "desc": "pair", "ranks": "[1, 2]"},
    }
    inner = {"process_group": ["1", "pair"]}
    found = write(
        [entry(1, "started")],
        [entry(1, "started", record_id=7, **inner)],
        [entry(1, "started")],
        groups=groups,
    )
    calls = {call.group: call for call in found.open_calls}
    assert (calls["0"].missing, calls["0"].is_root) == ((1,), False)
    assert (calls["1"].missing, calls["1"].started) == ((2,), (1,))
    # Rank 2 waits in group 0 for rank 1, and rank 1 in group 1 for rank 2: a circle.
    assert not calls["1"].is_root


def test_messages_are_joined_by_pair(write):
    message = {"is_p2p": True, "collective_seq_id": 0}
    send = entry(1, "started", "send 0->1", **message, p2p_seq_id=1)
    receive = entry(1, "scheduled", "recv 1<-0", **message, p2p_seq_id=1)
    found = write([send], [receive], [])
    [call] = found.open_calls
    assert found.calls["pair"].to_list() == [True]
    assert (call.started, call.scheduled, call.waits_for) == ((0,), (1,), (1,))


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: data[:40] + b"?" * 9])
def test_a_dump_whose_gzip_stream_is_damaged_is_refused_by_name(tmp_path, damage):
    packed = gzip.compress(json.dumps({"entries": [entry(1)], "pg_config": {}}).encode())
    path = tmp_path / "rank_0.json.gz"
    path.write_bytes(damage(packed))
    with pytest.raises(
        longpole.RanksError, match=r"rank_0\.json\.gz is not a flight recorder dump.*cut or corrupt"
    ):
        read_dumps([path])


def test_a_pickle_is_refused_by_name_and_never_opened(tmp_path, capsys):
    class Bomb:
        def __reduce__(self):
            return (tmp_path.joinpath("opened").write_text, ("yes",))

    tmp_path.joinpath("rank_0").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(longpole.RanksError, match="pickle"):
        read_dumps(tmp_path)
    assert program.run(["ranks", str(tmp_path)]) != 0
    text = capsys.readouterr().err
    assert "rank_0 is a pickle" in text
    assert "_dump_nccl_trace_json" in text
    assert not tmp_path.joinpath("opened").exists()


def test_the_command_answers_about_dumps(write, tmp_path, capsys, said):
    write([entry(1, "started")], [], [entry(1, "started")])
    assert program.run(["ranks", str(tmp_path)]) == 0
    said.within(capsys.readouterr().out)
    tmp_path.joinpath("nccl_trace_rank_2").write_text('{"entries": 3, "pg_status": {}}')
    assert program.run(["ranks", str(tmp_path), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["status"] == "partial"
    assert answer["warnings"][0]["code"] == "unreadable_rank"


def test_traces_that_are_named_are_no_dumps(tmp_path, capsys):
    for rank in (0, 1):
        TraceBuilder().header(distributedInfo={"rank": rank}).operator("a", (0, 5)).write(
            tmp_path / f"rank{rank}.json"
        )
    program.run(["ranks", *map(str, sorted(tmp_path.iterdir())), "--json"])
    assert json.loads(capsys.readouterr().out)["schema"] == "longpole.ranks/1"


CASE = rank_cases().get("flight_recorder_hang")


@pytest.mark.skipif(CASE is None, reason="the cases are not here")
def test_the_hang_that_was_worked_out_is_found(tmp_path):
    for rank, dump in enumerate(CASE["flight_recorder"]):
        tmp_path.joinpath(f"rank{rank}.json").write_text(json.dumps(dump), encoding="utf-8")
    found = read_dumps(tmp_path)
    [wanted] = CASE["expect"]["findings"]
    [finding] = found.findings
    assert (finding.kind, finding.group) == (wanted["kind"], wanted["group"])
    assert finding.sequence == wanted["seq"]
    assert (list(finding.ranks), list(finding.others)) == (wanted["missing"], wanted["present"])
    [call] = found.open_calls
    assert (call.operation, call.last_complete) == (wanted["op"], CASE["expect"]["last_complete"])


@pytest.mark.parametrize(
    "damage",
    [
        {"record_id": "one"},
        {"profiling_name": {}},
        {"state": 7},
        {"collective_seq_id": 2**80},
        {"input_sizes": [[400_000_000_000, [0]]]},
        {"input_sizes": [[2**40, 2**40]]},
        {"input_dtypes": "Float"},
        {"input_dtypes": [["Float"]]},
        {"time_created_ns": [{}]},
        {"frames": {"filename": 3}},
        {"process_group": 3},
    ],
    ids=str,
)
def test_a_call_with_a_value_of_the_wrong_type_is_counted_and_the_rest_answered(tmp_path, damage):
    sound = entry(1, "scheduled")
    path = tmp_path / "nccl_trace_rank_0"
    path.write_text(json.dumps({"entries": [sound | damage, entry(2, "scheduled")]}))
    found = read_dumps([path])
    assert 2 in found.members["sequence"].to_list()
    [damaged] = [it for it in found.findings if it.kind == "damaged rank"]
    assert (damaged.ranks, damaged.count) == ((0,), 1)


@pytest.mark.parametrize("text", ["\ud800", "a\udfff"])
def test_half_a_character_in_a_dump_ends_no_answer(write, text):
    found = write([entry(1, process_group=[text, text], profiling_name=f"nccl:{text}")], [entry(2)])
    assert len(found) == 2


def test_a_number_of_many_digits_in_a_file_name_is_no_rank(tmp_path):
    for last in "12":
        path = tmp_path / f"nccl_trace_rank_999999999999999999999{last}"
        path.write_text(json.dumps({"entries": [entry(1)], "pg_config": {}}))
    assert read_dumps(tmp_path).rank_numbers == (0, 1)


def test_a_dump_of_more_calls_than_a_recorder_holds_is_refused(tmp_path):
    path = tmp_path / "nccl_trace_rank_0"
    text = '{"entries": [' + ",".join(["[]"] * 100_001) + "]}"
    path.write_bytes(gzip.compress(text.encode()))
    with pytest.raises(longpole.RanksError, match="more than 100,000 calls"):
        read_dumps([path])
