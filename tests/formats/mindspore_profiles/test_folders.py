"""`longpole FOLDER` of a MindSpore profile: the trace, the tables of all ranks, the problems."""

from __future__ import annotations

import json

import pytest

from longpole.cli.program import run
from longpole.formats.mindspore.offline import offline_analyse
from longpole.words.data import plain
from mindspore_files import DATA, cpu_profile, write


def asked(capsys, *words):
    """Return the documents of an answer in JSON."""
    assert run([*map(str, words), "--json"]) in (0, 1, 4)
    found = json.loads(capsys.readouterr().out)
    return found if isinstance(found, list) else [found]


def test_the_summary_of_a_folder_is_followed_by_its_operators_and_their_times(tmp_path, capsys):
    assert run([str(cpu_profile(tmp_path))]) == 0
    text = capsys.readouterr().out
    assert text.index("The median step takes") < text.index("operators (")
    assert "Mul-op0" in text.split(": rank 0\n")[0]
    assert "300 µs" in text.split(": rank 0\n")[1]


def test_the_figures_are_those_of_the_function(tmp_path, capsys):
    summary, profile = asked(capsys, "summary", cpu_profile(tmp_path))
    assert (summary["schema"], profile["schema"]) == ("longpole.summary/1", "longpole.mindspore/1")
    assert profile["data"] == json.loads(json.dumps(plain(offline_analyse(tmp_path))))


GIVEN = ("ms200_cpu_graph", "ms200_minddata", "mindinsight_text", "ascend_level1_text")


@pytest.mark.parametrize("name", GIVEN)
def test_the_figures_of_a_given_profile_are_those_of_the_function(name, capsys):
    folder = DATA / name
    if not folder.is_dir():
        pytest.skip(f"needs ../shared/data/mindspore/{name}")
    *_, profile = asked(capsys, "summary", folder)
    assert profile["data"] == json.loads(json.dumps(plain(offline_analyse(folder))))
    assert profile["data"]["ranks"] or profile["data"]["devices"]


def test_problems_of_the_files_are_counted_and_check_lists_them(tmp_path, capsys, said):
    cpu_profile(tmp_path)
    path = tmp_path / "cpu_framework_0.txt"
    path.write_text(path.read_text().rstrip("\n"))
    assert run(["summary", str(tmp_path)]) == 0
    told = capsys.readouterr()
    said.within(told.out)
    assert "cut_line" not in told.err
    assert run(["check", str(tmp_path)]) == 0
    assert "cut_line\n" in capsys.readouterr().out
    assert run(["check", str(tmp_path), "--strict"]) == 1
    capsys.readouterr()
    for command in ("summary", "check"):
        [*_, document] = asked(capsys, command, tmp_path)
        assert document["status"] == "partial"
        assert [each["code"] for each in document["warnings"]] == ["cut_line"]


def test_a_rank_that_fails_is_named_beside_the_answer_of_the_others(tmp_path, capsys, said):
    cpu_profile(tmp_path, 0)
    cpu_profile(tmp_path, 3)
    (tmp_path / "step_trace_profiling_3.txt").write_text("")
    assert run(["check", str(tmp_path)]) == 1
    capsys.readouterr()
    assert run(["summary", str(tmp_path)]) == 1
    text = " ".join(capsys.readouterr().out.split())
    assert "rank 0" in text
    said.within(text)


def test_of_several_ranks_the_tables_are_shown_and_ranks_is_named(tmp_path, capsys, said):
    for rank in (0, 3):
        cpu_profile(tmp_path, rank)
    assert run(["summary", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "rank 0\n" in text
    assert "rank 3\n" in text
    said.within(text)


def test_a_folder_without_a_profile_is_read_as_traces_are(tmp_path, capsys):
    assert run(["summary", str(tmp_path)]) == 3
    assert "mindspore" not in capsys.readouterr().err.lower()


def test_operations_without_a_unit_are_shown_as_the_file_has_them(tmp_path, capsys, said):
    columns = "full_kernel_name, FLOPs, FLOPS, FLOPS utilization"
    write(tmp_path / "flops_1.txt", columns, "a, 300, 7, 1", "b, 33, 7, 1")
    assert run(["summary", str(tmp_path)]) == 0
    said.within(capsys.readouterr().out)
    assert run(["check", str(tmp_path)]) == 0
    said.within(capsys.readouterr().out)
