"""Searches of Optuna and Kernel Tuner, input files, configurations of Triton, and reuse."""

import json
import random
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from longpole.bench import read_results
from longpole.bench.tune import Effort, Space, find_strategy, read_t1
from longpole.cli.program import run

NEEDS_OPTUNA = pytest.mark.needs("optuna")
NEEDS_KERNEL_TUNER = pytest.mark.needs("kernel_tuner")

pytestmark = pytest.mark.usefixtures("empty_folder")


SLEEPS = """
constraints = ["not (tenths == 5 and how == 'sleep')"]
[parameters]
tenths = { range = [1, 5] }
how = ["sleep", "false"]
[candidate]
command = "{how} 0.0{tenths}"
"""


def searched(*options):
    Path("sleeps.toml").write_text(SLEEPS)
    common = ["--devices", "cpu", "--json", "--budget", "0.3", "--runs", "1"]
    return run(["tune", "sleeps.toml", *common, *options])


def found(capsys):
    return json.loads(capsys.readouterr().out)["data"]


def bowl(point):
    """Cost is least at (12, 6), and every seventh point fails."""
    if (point["a"] * 3 + point["b"] + 1) % 7 == 0:
        return None
    return 1e6 * (1 + 0.02 * ((point["a"] - 12) ** 2 + (point["b"] - 6) ** 2))


SPACE = Space({"a": range(20), "b": range(10)})


def searched_in_noise(name, effort):
    """Search the bowl with noise of 1 %; return how often each point ran, and the best one."""
    chance = random.Random(1)  # noqa: S311 - noise, not a secret
    n_runs, costs = Counter(), {}

    def evaluate(points, number):
        for point in points:
            place = (point["a"], point["b"])
            cost = bowl(point)
            n_runs[place] += max(0, number - n_runs[place])
            costs[place] = cost and cost * chance.uniform(0.99, 1.01)
        return [costs[point["a"], point["b"]] for point in points]

    find_strategy(name)(SPACE, evaluate, effort)
    best = min((cost, place) for place, cost in costs.items() if cost is not None)[1]
    return n_runs, dict(zip(("a", "b"), best, strict=True))


@pytest.mark.parametrize(
    ("name", "most"),
    [
        pytest.param("optuna", 1.06, marks=NEEDS_OPTUNA),
        pytest.param("kernel-tuner:genetic_algorithm", 1.06, marks=NEEDS_KERNEL_TUNER),
        # Measured: within 8 % of the best cost for five of six seeds of the noise.
        pytest.param("kernel-tuner:greedy_ils", 1.1, marks=NEEDS_KERNEL_TUNER),
        pytest.param("kernel-tuner:simulated_annealing", 1.06, marks=NEEDS_KERNEL_TUNER),
    ],
)
def test_a_strategy_of_another_package_finds_a_good_candidate(name, most):
    effort = Effort(n_trials=40, n_runs=1)
    (n_runs, best), again = (searched_in_noise(name, effort) for _ in range(2))
    assert (n_runs, best) == again  # so that a killed search can be resumed
    assert sum(n_runs.values()) <= 40
    assert bowl(best) < most * min(filter(None, map(bowl, SPACE)))


def test_halving_runs_less_than_all_candidates_in_full_and_finds_the_best():
    n_runs, best = searched_in_noise("halving", Effort())
    assert sum(n_runs.values()) < 0.4 * len(list(SPACE)) * Effort().n_runs
    assert bowl(best) < 1.03 * min(filter(None, map(bowl, SPACE)))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("optuna", marks=NEEDS_OPTUNA),
        pytest.param("kernel-tuner:random_sample", marks=NEEDS_KERNEL_TUNER),
    ],
)
def test_another_package_drives_a_real_search(capsys, name):
    assert searched("--strategy", name, "--trials", "6") == 0
    data = found(capsys)
    assert data["strategy"] == name
    assert 6 <= len(data["candidates"]) <= 7  # the baseline is tried besides
    assert all(each["label"] != "tenths=5 how=sleep" for each in data["candidates"])
    assert data["winner"]["point"]["how"] == "sleep"


def test_a_strategy_that_there_is_not_is_refused(capsys):
    assert searched("--strategy", "magic") == 2
    assert "no strategy 'magic'" in capsys.readouterr().err
    with pytest.raises(ValueError, match="no strategy"):
        find_strategy("kernel-tuner")


def test_runs_of_another_search_are_reused_and_not_made_again(capsys):
    assert searched("--strategy", "exhaustive", "-o", "first.jsonl") == 0
    first = found(capsys)
    assert searched("--strategy", "exhaustive", "-o", "b.jsonl", "--reuse", "first.jsonl") == 0
    second = found(capsys)
    assert second["n_known"] == len({record.id for record in read_results("first.jsonl").records})
    assert [each["values"] for each in second["candidates"]] == [
        each["values"] for each in first["candidates"]
    ]


def test_runs_on_another_device_are_not_reused(capsys):
    assert searched("--strategy", "exhaustive", "-o", "first.jsonl") == 0
    found(capsys)
    other = Path("first.jsonl").read_text().replace('"driver": null', '"driver": "999"')
    assert other != Path("first.jsonl").read_text()
    Path("other.jsonl").write_text(other)
    assert searched("--strategy", "exhaustive", "-o", "b.jsonl", "--reuse", "other.jsonl") == 0
    assert found(capsys)["n_known"] == 0


T1 = {
    "ConfigurationSpace": {
        "TuningParameters": [
            {"Name": "block", "Type": "int", "Values": "[16, 32, 64]"},
            {"Name": "unroll", "Type": "int", "Values": "list(range(1, 4))"},
            {"Name": "mode", "Type": "string", "Values": "['a', 'b']"},
        ],
        "Conditions": [{"Parameters": ["block", "unroll"], "Expression": "block * unroll <= 64"}],
    }
}


def test_the_space_of_an_input_file_of_kernel_tuner_is_read_without_running_code():
    Path("t1.json").write_text(json.dumps(T1))
    space = read_t1("t1.json")
    assert space.n_combinations == 18
    assert len(list(space)) == 12
    bad = json.loads(json.dumps(T1))
    bad["ConfigurationSpace"]["TuningParameters"][0]["Values"] = "__import__('os').listdir()"
    Path("bad.json").write_text(json.dumps(bad))
    with pytest.raises(ValueError, match="neither a list nor a range"):
        read_t1("bad.json")


def test_a_task_takes_its_parameters_from_an_input_file(capsys):
    Path("t1.json").write_text(json.dumps(T1))
    Path("t1.toml").write_text(
        "parameters = 't1.json'\n[candidate]\ncommand = 'sleep 0.0{unroll}'\n"
    )
    options = ["--devices", "cpu", "--json", "--budget", "0.3", "--runs", "1", "--trials", "3"]
    assert run(["tune", "t1.toml", *options]) == 0
    assert found(capsys)["n_points"] == 18


LAUNCH = '''
import time
from types import SimpleNamespace

def config(block, warps):
    return SimpleNamespace(kwargs={"BLOCK": block}, num_warps=warps)

class Autotuner:
    """As much of Triton's as counts: with one configuration it uses that, without a search."""
    def __init__(self): self.configs = [config(64, 4), config(128, 8)]
    def run(self):
        assert len(self.configs) == 1, "a search would be timed"
        time.sleep({64: 0.004, 128: 0.001}[self.configs[0].kwargs["BLOCK"]])

gemm = Autotuner()
def launch(): gemm.run()
'''


def test_the_best_triton_configuration_is_found(capsys):
    Path("launches.py").write_text(LAUNCH)
    Path("task.toml").write_text("""
        constraints = ["(BLOCK == 64) == (num_warps == 4)"]
        [parameters]
        BLOCK = [64, 128]
        num_warps = [4, 8]
        [candidate]
        function = "launches:launch"
        configs = "launches:gemm"
    """)
    assert run(["tune", "task.toml", "--json", "--budget", "0.7", "--runs", "1"]) == 0
    assert found(capsys)["winner"]["point"] == {"BLOCK": 128, "num_warps": 8}


@pytest.mark.needs("plotly")
def test_figures_of_a_search_mark_the_winner_and_what_is_tied():
    from longpole import plot

    data = SimpleNamespace(
        metric="time",
        unit="ns",
        goal="min",
        screening_s=3.0,
        curve=[SimpleNamespace(n_runs=1, measuring_s=1.0, label="a=1 b=x", value=2e6)],
        candidates=[
            SimpleNamespace(label=f"a={a} b={b}", point={"a": a, "b": b}, value=value)
            for a, b, value in [(2, "x", 1e6), (1, "x", 2e6), (2, "<y>", None), (1, "<y>", 1.01e6)]
        ],
    )
    data.finalists = [
        SimpleNamespace(label="a=2 b=x", point={"a": 2, "b": "x"}, is_tied=True),
        SimpleNamespace(label="a=1 b=<y>", point={"a": 1, "b": "<y>"}, is_tied=True),
        SimpleNamespace(label="a=1 b=x", point={"a": 1, "b": "x"}, is_tied=False),
    ]
    data.winner = data.finalists[0]
    heat, marks = plot.heat_map(data, "a", "b").data
    assert list(heat.x) == ["1", "2"]
    assert [list(row) for row in heat.z] == [[2.0, 1.0], [1.01, None]]
    assert list(zip(marks.x, marks.y, marks.text, strict=True)) == [
        ("2", "x", "winner"),
        ("1", "&lt;y>", "tied"),
    ]
    (curve,) = plot.best_so_far(data).data
    assert (list(curve.x), list(curve.y)) == ([1.0, 3.0], [2.0, 2.0])
    (lines,) = plot.parallel_coordinates(data).data
    assert [dimension.label for dimension in lines.dimensions] == ["a", "b", "time, ms", "verdict"]
    assert list(lines.dimensions[3]["values"]) == [2, 0, 1]
    with pytest.raises(ValueError, match="'c' is not a parameter"):
        plot.heat_map(data, "a", "c")
