"""`longpole mindspore`: answers, files and errors."""

from __future__ import annotations

import json

from longpole.cli.program import run
from mindspore_files import cpu_profile, write


def test_the_answer_names_operators_and_their_times(tmp_path, capsys):
    assert run(["mindspore", str(cpu_profile(tmp_path))]) == 0
    text = capsys.readouterr().out
    assert "Mul" in text
    assert "300 µs" in text


def test_the_timeline_that_is_written_is_read_by_other_commands(tmp_path, capsys):
    profile, output = cpu_profile(tmp_path / "profile"), tmp_path / "out"
    assert run(["mindspore", str(profile), "-o", str(output)]) == 0
    for command in ("summary", "path", "check"):
        assert run([command, str(output / "timeline_0.json")]) in (0, 4), command
    assert "Mul-op0" in capsys.readouterr().out


def test_findings_are_warnings(tmp_path, capsys):
    cpu_profile(tmp_path)
    path = tmp_path / "cpu_framework_0.txt"
    path.write_text(path.read_text().rstrip("\n"))
    assert run(["mindspore", str(tmp_path)]) == 0
    assert "[cut_line]" in capsys.readouterr().err
    assert run(["mindspore", str(tmp_path), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    [document] = answer if isinstance(answer, list) else [answer]
    assert document["status"] == "partial"
    assert [each["code"] for each in document["warnings"]] == ["cut_line"]


def test_a_rank_that_fails_is_a_warning_beside_the_answer_of_the_others(tmp_path, capsys):
    cpu_profile(tmp_path, 0)
    cpu_profile(tmp_path, 3)
    (tmp_path / "step_trace_profiling_3.txt").write_text("")
    assert run(["mindspore", str(tmp_path)]) == 0
    text = capsys.readouterr()
    assert "rank 0" in text.out
    assert "rank 3: the step trace is empty: the rank is not analysed" in text.err
    assert "[empty_file]" in text.err


def test_a_folder_without_a_profile_ends_with_its_code(tmp_path, capsys):
    assert run(["mindspore", str(tmp_path)]) == 3
    assert "[no_profile]" in capsys.readouterr().err


def test_steps_that_do_not_follow_one_another_are_a_usage_error(tmp_path):
    assert run(["mindspore", str(cpu_profile(tmp_path)), "--step", "1", "--step", "3"]) == 2


def test_operations_without_a_unit_are_shown_as_the_file_has_them(tmp_path, capsys):
    columns = "full_kernel_name, FLOPs, FLOPS, FLOPS utilization"
    write(tmp_path / "flops_1.txt", columns, "a, 300, 7, 1", "b, 33, 7, 1")
    assert run(["mindspore", str(tmp_path)]) == 0
    text = capsys.readouterr()
    assert "its values are shown without conversion" in text.err
    assert "Operations of 2 operators: 333 in the unit of the file" in text.out
