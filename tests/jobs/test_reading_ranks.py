"""Which files are read as ranks, and what is said of those that cannot be."""

from __future__ import annotations

import json

import pytest
from polars.testing import assert_frame_equal

import longpole
from longpole import read_traces
from longpole.cli import program
from longpole.testing import TraceBuilder


def rank(number, start, **header):
    """Return a rank that arrives at a collective at `start` and leaves it at 130."""
    builder = TraceBuilder().header(distributedInfo={"rank": number, "world_size": 3}, **header)
    builder.operator("aten::mm", (0, start))
    return builder.launch("ncclDevKernel_AllReduce", call=(start, start + 3), work=(start + 5, 130))


@pytest.fixture
def folder(tmp_path):
    for number, start in enumerate((10, 20, 100)):
        rank(number, start).write(tmp_path / f"trace_rank{number}.json.gz")
    return tmp_path


def kinds(ranks):
    return [finding.kind for finding in ranks.findings]


def test_a_rank_that_cannot_be_read_is_named_and_the_rest_is_answered(folder):
    folder.joinpath("trace_rank1.json.gz").write_bytes(b"nothing like a trace")
    ranks = read_traces(folder)
    assert ranks.rank_numbers == (0, 2)
    assert "unreadable rank" in kinds(ranks)
    assert "trace_rank1.json.gz" in ranks.findings[0].message
    assert ranks.calls["cause"].to_list() == ["inconclusive"]


def test_where_ranks_are_missing_no_wait_is_given_and_the_declared_size_is(folder, capsys, said):
    folder.joinpath("trace_rank1.json.gz").unlink()
    assert program.run(["ranks", str(folder), "--json"]) == 4
    document = json.loads(capsys.readouterr().out)
    assert (document["inputs"][0]["world_size"], document["data"]["world_size"]) == (3, 3)
    assert document["data"]["n_ranks"] == 2
    assert [reason["code"] for reason in document["abstains_because"]] == ["missing_ranks"]
    for row in document["data"]["ranks"]:
        assert (row["calls"], row["decided_calls"]) == (1, 0)
        assert (row["wait_ns"], row["transfer_ns"]) == (None, None)
    assert document["data"]["calls"][0]["transfer_ns"] is None
    program.run(["ranks", str(folder)])
    printed = " ".join(capsys.readouterr().out.split())
    assert "2 ranks of 3 (0 and 2)" in printed
    said.within(printed)


def test_where_ranks_are_missing_the_others_waited_at_least_for_each_other(folder, capsys, said):
    folder.joinpath("trace_rank1.json.gz").unlink()
    ranks = read_traces(folder)
    errors_ns = ranks.clocks["bound_ns"].sum()
    program.run(["ranks", str(folder), "--json"])
    data = json.loads(capsys.readouterr().out)["data"]
    least = {row["rank"]: row["wait_at_least_ns"] for row in data["ranks"]}
    assert least == {0: 90_000 - errors_ns, 2: 0}
    assert 80_000 < least[0] < 90_000
    assert data["calls"][0]["latest"] == 2
    assert data["calls"][0]["wait_at_least_ns"] == least[0]
    program.run(["ranks", str(folder)])
    printed = " ".join(capsys.readouterr().out.split())
    said.within(printed)
    said.within(printed)


def test_where_only_least_waits_are_known_the_longest_call_is_first_with_its_step(tmp_path, capsys):
    for number, lateness in enumerate((0, 40)):
        builder = TraceBuilder().header(distributedInfo={"rank": number, "world_size": 3})
        for step in range(3):
            start = 200 * step + lateness * step
            builder.step(step, (200 * step, 200 * step + 199))
            work = (start + 5, 200 * step + 150)
            builder.launch("ncclDevKernel_AllReduce", call=(start, start + 3), work=work)
        builder.write(tmp_path / f"rank{number}.json")
    program.run(["ranks", str(tmp_path)])
    rows = [line.split()[:4] for line in capsys.readouterr().out.splitlines()]
    first = rows.index(["call", "step", "operation", "last"])
    assert [row[:2] for row in rows[first + 1 : first + 4]] == [["2", "2"], ["1", "1"], ["0", "0"]]


def test_the_reason_why_calls_cannot_be_matched_is_given_once(tmp_path, capsys, said):
    for number, ends in enumerate(((100, 3_000), (100, 6_000))):
        builder = TraceBuilder().header(distributedInfo={"rank": number, "world_size": 3})
        for start, end in zip((10, 2_000), ends, strict=True):
            builder.launch(
                "ncclDevKernel_AllReduce", call=(start, start + 3), work=(start + 5, end)
            )
        start = 8_000
        if number:
            builder.launch("ncclDevKernel_AllGather", call=(start, start + 3), work=(8_005, 9_000))
        builder.write(tmp_path / f"rank{number}.json")
    program.run(["ranks", str(tmp_path)])
    printed = " ".join(capsys.readouterr().out.split())
    said.within(printed)
    assert printed.count("have no sequence number") == 1
    said.within(printed)


def test_operations_that_do_not_wait_for_all_ranks_have_no_least_wait(tmp_path):
    for number, start in enumerate((10, 100)):
        builder = TraceBuilder().header(distributedInfo={"rank": number, "world_size": 3})
        name = "ncclDevKernel_Broadcast"
        builder.launch(name, call=(start, start + 3), work=(start + 5, 130))
        builder.write(tmp_path / f"rank{number}.json")
    found = longpole.ranks(read_traces(tmp_path)).records()
    assert {row["wait_at_least_ns"] for row in found} == {0}


def test_recordings_that_start_at_different_times_are_said_first_even_without_all_ranks(
    tmp_path, capsys
):
    for number, start in enumerate((0, 1_000)):
        builder = TraceBuilder().header(distributedInfo={"rank": number, "world_size": 3})
        builder.operator("aten::mm", (start, start + 10))
        work = (start + 15, 1_100)
        builder.launch("ncclDevKernel_AllReduce", call=(start + 10, start + 13), work=work)
        builder.write(tmp_path / f"rank{number}.json")
    program.run(["ranks", str(tmp_path)])
    said = " ".join(capsys.readouterr().out.split())
    assert 0 < said.index("of the run is start skew") < said.index("No trace is given")


def test_one_rank_has_nothing_to_match(tmp_path, capsys, said):
    builder = TraceBuilder()
    for number in range(7):
        at = 100 * number
        builder.launch("ncclDevKernel_Generic_1", call=(at, at + 3), work=(at + 5, at + 50))
    builder.write(tmp_path / "rank0.json")
    program.run(["ranks", str(tmp_path / "rank0.json")])
    printed = " ".join(capsys.readouterr().out.split())
    said.within(printed)
    said.within(printed)
    assert "call (5 of 7)" in printed


def test_where_all_ranks_are_there_waits_are_given(folder, capsys):
    assert program.run(["ranks", str(folder), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["data"]["ranks"]
    assert {row["rank"]: row["wait_ns"] for row in rows} == {0: 90_000, 1: 80_000, 2: 0}


def test_a_rank_that_is_there_twice_is_named(folder):
    rank(2, 50).write(folder / "trace_rank7.json.gz")
    ranks = read_traces(folder)
    assert ranks.rank_numbers == (0, 1, 2)
    assert {"files disagree", "duplicate rank"} <= set(kinds(ranks))


def test_neither_the_order_of_files_nor_the_number_of_workers_changes_anything(folder):
    files = sorted(folder.iterdir())
    one = read_traces(files, workers=1)
    for other in (read_traces(files[::-1], workers=3), read_traces(str(folder / "*.json.gz"))):
        for table in ("calls", "members", "clocks"):
            assert_frame_equal(getattr(one, table), getattr(other, table))
        assert_frame_equal(one.path(), other.path())
        assert one.late_ranks() == other.late_ranks()


def test_files_that_do_not_say_their_rank_are_numbered_by_their_names(tmp_path):
    for number, start in enumerate((10, 60)):
        builder = rank(number, start).header(distributedInfo={})
        builder.write(tmp_path / f"worker_{number + 4}.json")
    assert read_traces(tmp_path).rank_numbers == (4, 5)


def test_one_rank_alone_is_said_to_be_alone(tmp_path):
    rank(0, 10).write(tmp_path / "rank0.json")
    ranks = read_traces(tmp_path)
    assert ranks.late_ranks() == ()
    assert ranks.lacks_ranks


def test_calls_in_groups_of_one_rank_do_not_hide_the_others(tmp_path):
    """With tensor parallelism alone, the groups of data parallelism have one rank each."""
    for number in (0, 1):
        builder = TraceBuilder().header(distributedInfo={"rank": number, "world_size": 2})
        groups = (("1", 2, "[0, 1]"), ("2", 1, f"[{number}]"), ("2", 1, f"[{number}]"))
        for place, (group, size, ranks) in enumerate(groups):
            at, correlation = 10 + 200 * place + 40 * number, place + 1
            builder.call("cudaLaunchKernel", (at, at + 3), correlation=correlation)
            arguments = {
                "device": 0,
                "stream": 7,
                "correlation": correlation,
                "Collective name": "allreduce",
                "dtype": "Float",
                "In msg nelems": 64,
                "Group size": size,
                "Process Group Name": group,
                "Process Group Ranks": ranks,
            }
            where = {"ph": "X", "cat": "kernel", "pid": 0, "tid": 7, "ts": at + 5}
            end = 150 if size > 1 else at + 30
            name = "ncclDevKernel_AllReduce_Sum_f32"
            builder.event(**where, name=name, dur=end - at - 5, args=arguments)
        builder.write(tmp_path / f"trace_rank{number}.json")
    ranks = read_traces(tmp_path)
    assert sorted(ranks.calls["members"]) == [1, 1, 1, 1, 2]
    assert not ranks.lacks_ranks


def test_a_directory_without_traces_is_an_error(tmp_path):
    with pytest.raises(longpole.LongpoleError, match="no trace"):
        read_traces(tmp_path)


def test_times_that_count_from_different_moments_are_brought_together(tmp_path):
    for number, start in enumerate((10, 100)):
        builder = rank(number, start, baseTimeNanoseconds=1_000_000 * number)
        for event in builder._events:
            event["ts"] -= 1_000 * number
        builder.write(tmp_path / f"rank{number}.json")
    ranks = read_traces(tmp_path)
    assert ranks.clocks["offset_ns"].to_list() == [0, 1_000_000]
    assert ranks.calls["late_ns"].to_list() == [90_000]


def test_the_answer_is_the_same_as_json(folder, capsys, said):
    assert program.run(["ranks", str(folder), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["data"]["late_ranks"][0]["rank"] == 2
    assert program.run(["ranks", str(folder)]) == 0
    said.within(capsys.readouterr().out)


def test_other_json_files_of_the_folder_are_not_ranks(tmp_path, capsys, said):
    for number, start in enumerate((10, 60)):
        rank(number, start).header(distributedInfo={}).write(tmp_path / f"worker_{number}.json")
    tmp_path.joinpath("how.json").write_text('{"how": "recorded on two nodes", "ranks": 2}')
    tmp_path.joinpath("worker_0_rank0.json").write_text("[1, 2]")
    ranks = read_traces(tmp_path)
    assert ranks.rank_numbers == (0, 1)
    assert kinds(ranks)[-2:] == ["not a trace", "not a trace"]
    said.within(ranks.findings[-2].message)

    assert program.run(["ranks", str(tmp_path), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["status"], answer["warnings"]) == ("ok", [])


def test_a_rank_whose_file_is_no_trace_is_lost(folder):
    folder.joinpath("trace_rank1.json.gz").write_text("{}")
    assert "unreadable rank" in kinds(read_traces(folder))


def test_one_file_of_two_processes_is_said_to_be_read_as_one_rank(tmp_path, capsys, said):
    calls = [
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": process, "tid": 1}
        | {"ts": 10 * process, "dur": 5, "args": {"correlation": process}}
        for process in (1, 2)
    ]
    (tmp_path / "both.json").write_text(json.dumps({"traceEvents": calls}))
    program.run(["ranks", str(tmp_path / "both.json")])
    printed = " ".join(capsys.readouterr().out.split())
    said.within(printed)
    (tmp_path / "one.json").write_text(json.dumps({"traceEvents": calls[:1]}))
    program.run(["ranks", str(tmp_path / "one.json")])
    assert "read as one rank" not in capsys.readouterr().out


def test_ranks_of_another_recording_are_left_out_and_named(folder):
    late = rank(1, 20, baseTimeNanoseconds=3_600_000_000_000)
    late.write(folder / "a_rank1.json.gz")
    ranks = read_traces(folder)
    assert ranks.rank_numbers == (0, 1, 2)
    assert "trace_rank1" in ranks.ranks["path"][1]
    [finding] = [it for it in ranks.findings if it.kind == "other recording"]
    assert finding.message.endswith("a_rank1.json.gz is of another recording and ignored")


def test_two_recordings_of_the_same_ranks_are_an_error_with_the_files_of_one(folder, capsys):
    for number in range(3):
        later = rank(number, 20, baseTimeNanoseconds=5_000_000_000)
        later.write(folder / f"later_rank{number}.json.gz")
    assert program.run(["ranks", str(folder)]) == 3
    said = capsys.readouterr().err
    assert "traces of 2 recordings" in said
    assert f"such as {folder}/trace_rank0.json.gz {folder}/trace_rank1.json.gz" in said


def test_a_rank_recorded_an_hour_later_without_a_common_call_is_left_out(folder):
    builder = TraceBuilder().header(
        distributedInfo={"rank": 7, "world_size": 3}, baseTimeNanoseconds=3_600_000_000_000
    )
    builder.operator("aten::mm", (0, 90)).write(folder / "trace_rank7.json.gz")
    ranks = read_traces(folder)
    assert ranks.rank_numbers == (0, 1, 2)
    assert ranks.duration_ns == 130_000
    assert "other recording" in kinds(ranks)


def test_ranks_of_jobs_of_different_sizes_are_not_joined(folder):
    builder = TraceBuilder().header(distributedInfo={"rank": 5, "world_size": 8})
    builder.operator("aten::mm", (0, 90)).write(folder / "trace_rank5.json.gz")
    assert read_traces(folder).rank_numbers == (0, 1, 2)


def test_ranks_in_folders_of_their_own_are_read_by_a_pattern(folder, capsys):
    for number in range(3):
        own = folder / "run" / f"rank{number}"
        own.mkdir(parents=True)
        folder.joinpath(f"trace_rank{number}.json.gz").rename(own / "trace.json.gz")
    assert program.run(["ranks", str(folder / "run")]) == 3
    assert f"`longpole ranks '{folder}/run/*/*.json*'`" in capsys.readouterr().err
    assert read_traces(f"{folder}/run/*/*.json*").rank_numbers == (0, 1, 2)
    assert program.run([str(folder / "run")]) == 3
    assert f"such as `longpole {folder}/run/rank0`" in capsys.readouterr().err


def test_a_folder_of_programs_that_are_no_ranks_is_an_error(tmp_path, capsys, said):
    for name in ("before", "after", "other"):
        TraceBuilder().operator("aten::mm", (0, 9)).write(tmp_path / f"{name}.json.gz")
    tmp_path.joinpath("notes.txt").write_text("no trace")
    assert program.run(["ranks", str(tmp_path)]) == 3
    printed = capsys.readouterr().err
    said.within(printed)
    said.within(printed)
    assert str(tmp_path) in printed
    assert f"{tmp_path}: {tmp_path}: " not in printed
