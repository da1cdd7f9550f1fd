"""Searches of Optuna and Kernel Tuner, their input files and Triton's, reuse and simulation."""

import json
import random
from pathlib import Path
from types import SimpleNamespace

import pytest

from longpole.bench import read_results
from longpole.bench.records.record import Outcome, Record
from longpole.bench.tune import (
    Effort,
    Objective,
    Space,
    find_strategy,
    read_t1,
    read_triton,
    simulate,
    write_triton,
)
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


def runs_of(space, cost_of, n_runs=5):
    chance = random.Random(1)  # noqa: S311 - noise, not a secret
    for point in space:
        for number in range(n_runs):
            label = " ".join(f"{name}={value}" for name, value in point.items())
            cost = cost_of(point)
            is_ok = cost is not None
            yield Record(
                id=f"{label}#{number}",
                key=label,
                outcome=Outcome.OK if is_ok else Outcome.SIGNAL,
                tags={"point": dict(point)},
                seconds=0.1,
                samples_ns=(cost * chance.uniform(0.99, 1.01),) if is_ok else (),
            )


def bowl(point):
    """Cost is least at (12, 6), and every seventh point fails."""
    if (point["a"] * 3 + point["b"] + 1) % 7 == 0:
        return None
    return 1e6 * (1 + 0.02 * ((point["a"] - 12) ** 2 + (point["b"] - 6) ** 2))


SPACE = Space({"a": range(20), "b": range(10)})


def test_a_simulation_compares_strategies_on_recorded_noise():
    names = ["exhaustive", "random", "halving"]
    result = simulate(runs_of(SPACE, bowl), Objective(), names, Effort(n_trials=None), gate=0.03)
    by_name = {each.strategy: each for each in result.strategies}
    assert (result.n_candidates, result.best) == (200, "a=12 b=6")
    assert result.n_failed == sum(bowl(point) is None for point in SPACE)
    assert by_name["exhaustive"].n_found >= 18
    assert by_name["exhaustive"].measuring_share == pytest.approx(1, abs=0.05)
    assert by_name["halving"].n_found >= 15
    assert by_name["halving"].measuring_share < 0.4


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("optuna", marks=NEEDS_OPTUNA),
        pytest.param("kernel-tuner:genetic_algorithm", marks=NEEDS_KERNEL_TUNER),
        pytest.param("kernel-tuner:greedy_ils", marks=NEEDS_KERNEL_TUNER),
        pytest.param("kernel-tuner:simulated_annealing", marks=NEEDS_KERNEL_TUNER),
    ],
)
def test_a_strategy_of_another_package_finds_a_good_candidate(name):
    effort = Effort(n_trials=40, n_runs=1)
    results = [simulate(runs_of(SPACE, bowl), Objective(), [name], effort) for _ in range(2)]
    assert results[0] == results[1]  # so that a killed search can be resumed
    (other,) = results[0].strategies
    assert other.n_runs <= 40
    assert other.regret < 0.06


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


def test_a_simulation_needs_runs_of_a_search(capsys):
    Path("sleeps.toml").write_text(SLEEPS)
    Path("other.jsonl").write_text('{"tune_params_keys": ["b"], "cache": {}}\n')
    assert run(["tune", "sleeps.toml", "--simulate", "other.jsonl"]) == 2
    assert "other.jsonl contains no run of a search" in capsys.readouterr().err


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


KERNEL = """
import triton

@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 64, "GROUP": 8}, num_warps=4, num_stages=2),
        triton.Config({"BLOCK": 128, "GROUP": 8}, num_warps=8),  # grün
    ],
    key=["n"],
)
@triton.jit
def gemm(a, n, BLOCK: "tl.constexpr"):
    pass  # ü


@triton.jit
def other(a):
    pass
"""


def test_triton_configurations_are_read_from_source_and_written_back():
    Path("kernels.py").write_text(KERNEL)
    points = list(read_triton("kernels.py", "gemm"))
    assert points == [
        {"BLOCK": 64, "GROUP": 8, "num_warps": 4, "num_stages": 2},
        {"BLOCK": 128, "GROUP": 8, "num_warps": 8},
    ]
    write_triton("out.py", points[1:], source="kernels.py", kernel="gemm")
    text = Path("out.py").read_text()
    assert list(read_triton("out.py")) == points[1:]
    before, _, after = KERNEL.partition("configs=[")
    assert text.startswith(before)
    assert text.endswith(after.partition("    ],")[2])
    write_triton("configs.json", points)
    assert json.loads(Path("configs.json").read_text())[1] == {
        "kwargs": {"BLOCK": 128, "GROUP": 8},
        "num_warps": 8,
    }
    assert list(read_triton("configs.json")) == points


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("configs=[", "configs=make_configs() or ["), "not a literal list"),
        (('"BLOCK": 64', '"BLOCK": size'), "not made of plain values"),
        (("@triton.autotune(", "@other("), "one kernel under triton.autotune"),
    ],
)
def test_triton_configurations_that_only_running_would_tell_are_refused(change, said):
    Path("kernels.py").write_text(KERNEL.replace(*change))
    with pytest.raises(ValueError, match=said):
        read_triton("kernels.py", "gemm")


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


def test_the_best_triton_configuration_is_found_and_written_back(capsys):
    source = KERNEL.replace(', "GROUP": 8', "").replace(", num_stages=2", "")
    Path("source.py").write_text(source)
    Path("launches.py").write_text(LAUNCH)
    Path("task.toml").write_text("""
        parameters = "source.py:gemm"
        [candidate]
        function = "launches:launch"
        configs = "launches:gemm"
    """)
    options = ["--json", "--budget", "0.7", "--runs", "1", "--write-configs", "best.py"]
    assert run(["tune", "task.toml", *options]) == 0
    assert found(capsys)["winner"]["point"] == {"BLOCK": 128, "num_warps": 8}
    assert list(read_triton("best.py")) == [{"BLOCK": 128, "num_warps": 8}]


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
