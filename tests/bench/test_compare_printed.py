"""Outputs of other tools, as `compare` takes them."""

from __future__ import annotations

import json

import pytest

from longpole.bench import compare
from longpole.errors import ResultsError


def hyperfine(path, times, codes=None):
    result = {"command": "make", "times": times, "exit_codes": codes or [0] * len(times)}
    path.write_text(json.dumps({"results": [result]}, indent=2))
    return path


def test_each_time_of_hyperfine_is_a_run(tmp_path):
    base = hyperfine(tmp_path / "base.json", [1.0, 1.01, 0.99, 1.02, 1.0, 0.98, 1.01])
    new = hyperfine(
        tmp_path / "new.json", [1.5, 1.51, 1.49, 1.52, 1.5, 1.48, 1.51, 0.1], [0] * 7 + [1]
    )
    (difference,) = compare(base, new).differences
    assert (difference.key, difference.verdict) == ("make", "slower")
    assert (difference.base.n_runs, difference.new.n_runs) == (7, 7)


def test_the_values_of_a_process_are_no_runs(tmp_path):
    def pyperf(name, seconds):
        runs = [{"values": [seconds * (1 + each / 1000)] * 5} for each in range(7)]
        document = {"benchmarks": [{"runs": runs}], "metadata": {"name": "sort"}, "version": "1.0"}
        (tmp_path / name).write_text(json.dumps(document))
        return tmp_path / name

    (difference,) = compare(pyperf("base.json", 0.01), pyperf("new.json", 0.005)).differences
    assert (difference.verdict, difference.base.n_runs) == ("faster", 7)
    assert difference.base.n_samples == 35


def test_documents_of_several_processes_are_appended_and_one_says_nothing(tmp_path):
    def google(name, n_documents):
        benchmark = {"name": "BM", "run_type": "iteration", "real_time": 387.5, "time_unit": "ns"}
        document = json.dumps({"context": {}, "benchmarks": [benchmark] * 9}, indent=2)
        (tmp_path / name).write_text("\n".join([document] * n_documents))
        return tmp_path / name

    (one,) = compare(google("one", 1), google("other", 1)).differences
    assert (one.verdict, one.base.n_runs) == ("inconclusive", 1)
    (several,) = compare(google("base", 8), google("new", 8)).differences
    assert (several.verdict, several.base.n_runs) == ("same", 8)


def test_a_mean_is_not_compared_with_samples(tmp_path):
    samples = hyperfine(tmp_path / "base.json", [1.0] * 7)
    median = tmp_path / "median.json"
    median.write_text(json.dumps({"results": [{"command": "make", "median": 1.0}]}))
    (difference,) = compare(samples, median).differences
    assert difference.verdict == "inconclusive"
    assert "median clock" in difference.reason


def test_a_file_of_nothing_is_refused(tmp_path):
    (tmp_path / "log").write_text("warming up\ndone\n")
    with pytest.raises(ResultsError, match="no record of a measurement"):
        compare(tmp_path / "log", tmp_path / "log")
