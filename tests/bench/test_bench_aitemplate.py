"""AITemplate's runners, as its compiler calls them."""

import time
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import pytest

from longpole.bench.compatible import aitemplate
from longpole.bench.compatible.aitemplate import ProfileResult, ProfilerRunner, Runner

TWO = "echo OP:a,TIME:2.5,WS:64; echo OP:b,TIME:1.5,WS:0"


class Delegate:
    def __init__(self):
        self.seen = []

    def postprocess_results(self):
        self.seen.append("postprocess")


def shell(script):
    return ["/bin/sh", "-c", script]


def collect(result, delegate):
    delegate.seen.append(result)


def test_callbacks_come_as_profilers_end_and_before_the_postprocessing():
    delegate = Delegate()
    runner = ProfilerRunner(["0", "1"], delegate)
    runner.push(shell("sleep 0.5; echo OP:slow,TIME:3,WS:1"), collect)
    runner.push(shell(TWO), collect)
    while not delegate.seen:
        time.sleep(0.01)
    assert delegate.seen == [ProfileResult("b", 1.5, 0)]  # before `join`
    runner.join()
    assert delegate.seen[1:] == [ProfileResult("slow", 3.0, 1), "postprocess"]


@pytest.mark.parametrize("devices", [None, []])
def test_no_devices_mean_device_0(devices):
    delegate = Delegate()
    runner = ProfilerRunner(devices, delegate)
    runner.push(shell("echo OP:on_$CUDA_VISIBLE_DEVICES,TIME:1,WS:0"), collect)
    runner.join()
    assert delegate.seen[0].op_config == "on_0"


def test_a_profiler_without_result_does_not_keep_the_others_from_the_postprocessing(caplog, said):
    delegate = Delegate()
    runner = ProfilerRunner(["0"], delegate)
    runner.push(shell("echo OP:a,TIME:0.1,WS:0; kill -SEGV $$"), collect)
    runner.push(shell(TWO), collect)
    runner.join()
    assert delegate.seen == [ProfileResult("b", 1.5, 0), "postprocess"]
    said.within(caplog.text)
    assert "SIGSEGV" in caplog.text


def test_strictly_a_profiler_without_result_is_named_and_nothing_is_postprocessed():
    delegate = Delegate()
    runner = ProfilerRunner(["0"], delegate, strict=True)
    runner.push(shell("echo OP:a,TIME:0.1,WS:0; kill -SEGV $$"), collect)
    runner.push(shell(TWO), collect)
    with pytest.raises(RuntimeError, match=r"Failed to extract profiler result for .*SIGSEGV"):
        runner.join()
    assert delegate.seen == [ProfileResult("b", 1.5, 0)]


def test_the_time_limit_names_what_was_cancelled_and_the_others_are_handed_on():
    delegate = Delegate()
    runner = ProfilerRunner(["0"], delegate, timeout=1)
    runner.push(shell(TWO), collect)
    runner.push(shell("sleep 600"), collect)
    runner.push(["never", "begun"], collect)
    with pytest.raises(RuntimeError, match=r"timed out after 1 sec.*Cancelled.*600.*never"):
        runner.join()
    assert delegate.seen == [ProfileResult("b", 1.5, 0)]


@pytest.mark.parametrize("strict", [False, True])
def test_a_callback_that_raises_does_not_end_the_rest(strict):
    def fail(_result, _delegate):
        raise KeyError("mine")  # noqa: EM101

    delegate = Delegate()
    runner = ProfilerRunner(["0"], delegate, strict=strict)
    runner.push(shell(TWO), fail)
    runner.push(shell(TWO), collect)
    if strict:
        with pytest.raises(KeyError, match="mine"):
            runner.join()
    else:
        runner.join()
    assert delegate.seen == [ProfileResult("b", 1.5, 0), *([] if strict else ["postprocess"])]


def test_a_profiler_runner_can_be_used_again():
    delegate = Delegate()
    runner = ProfilerRunner(["0"], delegate)
    for _ in range(2):
        runner.push(shell(TWO), collect)
        runner.join()
    assert delegate.seen == [ProfileResult("b", 1.5, 0), "postprocess"] * 2


def test_the_older_runner_gives_the_best_or_what_was_asked_for():
    runner = Runner([0], "conv2d", timeout=5)
    runner.push("best", shell(TWO))
    runner.push(7, shell(TWO), return_ops=["a", "z"])
    runner.push(7, shell("exit 1"))
    runner.push("none", shell("true"))
    assert runner.pull() == [
        ("best", ProfileResult("b", 1.5, 0)),
        (7, [ProfileResult("a", 2.5, 64)]),
    ]
    assert runner.pull() == []


def test_the_older_runner_limits_each_task():
    runner = Runner([0], "conv2d", timeout=0.3)
    runner.push("hangs", "sleep 99")
    runner.push("works", shell(TWO))
    assert [idx for idx, _ in runner.pull()] == ["works"]


def test_a_reset_runner_knows_nothing_of_earlier_tasks():
    runner = Runner(["cpu"], "gemm")
    runner.push("joined", shell("echo OP:a,TIME:1,WS:0"))
    runner.join()
    runner.push("pushed", shell("echo OP:b,TIME:1,WS:0"))
    runner.reset()
    assert runner.pull() == []
    runner.push("next", shell("echo OP:c,TIME:1,WS:0"))
    assert [idx for idx, _ in runner.pull()] == ["next"]


def test_names_are_a_list():
    with pytest.raises(TypeError, match="list of names"):
        Runner([0], "conv2d").push("x", "true", return_ops="ab")


def test_the_older_runner_is_joined_and_then_pulled():
    runner = Runner([0], "softmax", timeout=5)
    runner.push("best", shell(TWO))
    runner.join()
    runner.push("later", shell("echo TIME:1.5 WS:4"))
    assert runner.pull() == [
        ("best", ProfileResult("b", 1.5, 0)),
        ("later", ProfileResult("", 1.5, 4)),
    ]


def test_only_rows_of_aitemplate_are_results(caplog):
    runner = Runner([0], "conv2d", timeout=5)
    runner.push("other", shell("echo 'Runtime: 1.5 ms'; echo 'us: 3'"))
    assert runner.pull() == []
    assert "no_result" in caplog.text


def test_names_of_the_module_are_there_or_refused_with_the_reason():
    assert aitemplate.PROF_RUNTIME_PATTERN.findall("OP:a,TIME:1,WS:2") == [("a", "1", "2")]
    assert aitemplate.RUNTIME_PATTERN.findall("TIME:1") == ["1"]
    assert aitemplate.WORKSPACE_PATTERN.findall("WS:2") == ["2"]
    assert aitemplate.optimization_key(("a", "1.5", "0")) == 1.5
    assert aitemplate.update_inplace({"a": 1}, {"b": 2}) == {"a": 1, "b": 2}
    assert aitemplate.extract_profile_result("TIME:1\nWS:2") == (ProfileResult("", 1.0, 2), False)
    assert (
        aitemplate.PROFILER_RUN_MAX_ATTEMPTS,
        aitemplate.PROFILER_RUN_RETRY_DELAY_SECONDS,
    ) == (3, 5)
    refused = ["run_task", "process_task", "process_return", "BaseRunner", "Task", "detect_target"]
    page = Path(__file__).parents[2] / "docs" / "aitemplate.md"
    for name in refused:
        with pytest.raises(ImportError, match=f"does not provide AITemplate's {name}: "):
            getattr(aitemplate, name)
        assert f"`{name}`" in page.read_text()
    with pytest.raises(AttributeError):
        aitemplate.something_else  # noqa: B018


def test_callbacks_never_meet():
    inside, most = [], []

    def stay(_result, _delegate):
        inside.append(1)
        most.append(len(inside))
        time.sleep(1)
        inside.pop()

    runner = ProfilerRunner(["0", "1"], Delegate())
    for _ in range(2):
        runner.push(shell("sleep 0.5; " + TWO), stay)
    runner.join()
    assert most == [1, 1]


def test_results_come_in_the_order_of_the_pushes_and_the_exit_status_decides():
    runner = Runner([0, 1], "conv2d", timeout=20)
    runner.push("late", shell("sleep 1; echo OP:a,TIME:2.5,WS:0"))
    runner.push("crash", shell("echo OP:b,TIME:1.5,WS:0; kill -SEGV $$"))
    runner.push("warned", shell("echo careful >&2; echo OP:c,TIME:3.5,WS:0"))
    runner.push("unnamed", shell("echo TIME:1.5; echo WS:4"), return_ops=["a"])
    runner.push("missing", ["/nonexistent/profiler"])
    assert runner.pull() == [
        ("late", ProfileResult("a", 2.5, 0)),
        ("warned", ProfileResult("c", 3.5, 0)),
        ("unnamed", []),
    ]


class Kernels:
    """Profilers on disk, called as the compiler's operators call theirs: a file, then numbers."""

    def __init__(self, folder):
        self.folder = folder

    def add(self, name, script):
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    def command(self, name, *numbers):
        return [str(self.folder / name), *map(str, numbers)]


@pytest.fixture
def kernels(tmp_path):
    return Kernels(tmp_path)


def test_convolutions_search_the_batch_where_algorithms_change_places(kernels):
    """One runner for the whole search: push by keyword, join, pull, look up both by name."""
    kernels.add("conv", "echo OP:low,TIME:$((10 + $1)).5,WS:8; echo OP:high,TIME:40.5,WS:16")
    runner = Runner([0], "conv2d_0", timeout=180)
    low, high = 1, 64
    while low < high:
        middle = (low + high) // 2
        command = kernels.command("conv", middle, 28, 28, 64, 3, 3, 64, 1, 1, 1, 1)
        runner.push(idx="conv", cmd=command, return_ops=["low", "high"])
        runner.join()
        found = {each.op_config: each for each in runner.pull()[0][1]}
        if found["low"].duration < found["high"].duration:
            low = middle + 1
        else:
            high = middle
    assert low == 30


def test_one_file_with_all_convolutions_gives_the_fastest_by_comparing_results(kernels):
    kernels.add("conv", "echo OP:slow,TIME:3.5,WS:0; echo OP:quick,TIME:0.5,WS:4096")
    runner = Runner([0], "conv2d_0", timeout=180)
    runner.push("conv", kernels.command("conv", 1, 28, 28, 64))
    runner.join()
    result = runner.pull()
    assert len(result) == 1
    out = min(result, key=itemgetter(1))
    assert (out[1].op_config, out[1].workspace) == ("quick", 4096)


def test_softmax_has_a_file_for_each_algorithm_and_takes_the_shortest(kernels):
    for name, duration in (("block", 3.25), ("warp", 1.25), ("persistent", 2.25)):
        kernels.add(name, f"echo TIME:{duration}; echo WS:0")
    runner = Runner([0], "softmax_1")
    for name in ("block", "warp", "persistent"):
        runner.push(name, kernels.command(name, 8, 1024))
    runner.join()
    best = min(runner.pull(), key=lambda found: found[1].duration)
    assert (best[0], best[1].workspace) == ("warp", 0)


@pytest.mark.parametrize("op_name", ["topk_2", "nms_3", "efficient_nms_4"])
def test_top_k_and_nms_ask_for_the_workspace(kernels, op_name):
    kernels.add("profiler", "echo TIME:0.125; echo WS:$(($1 * 4))")
    runner = Runner([0], op_name)
    runner.push("profiler", kernels.command("profiler", 1000, 300))
    runner.join()
    result = runner.pull()
    assert len(result) == 1
    assert max(0, result[0][1].workspace) == 4000


class Gemms:
    """Groups instances as the compiler's delegate does: by key, unpacking results as tuples."""

    def __init__(self):
        self.instances = []
        self.best = {}

    def add_instance(self, instance):
        self.instances.append(instance)

    def postprocess_results(self):
        by_key = lambda instance: instance[1]  # noqa: E731
        for key, group in groupby(sorted(self.instances, key=by_key), key=by_key):
            (algorithm, _, workspace), _, split_k = min(group, key=lambda each: each[0][1])
            self.best[key] = (algorithm, workspace, split_k)


def test_gemms_share_a_runner_and_tell_split_k_by_their_callbacks(kernels):
    kernels.add(
        "gemm",
        "echo OP:tile64,TIME:$(($1 / $4)).5,WS:$4; echo OP:tile128,TIME:$(($1 / $4 + 1)).5,WS:0",
    )
    delegate = Gemms()
    runner = ProfilerRunner(["0", "1"], delegate, timeout=500)

    def callback_of(key, split_k):
        def process_result_callback(result, postprocessing_delegate):
            postprocessing_delegate.add_instance((result, key, split_k))

        return process_result_callback

    for m in (64, 256):
        for split_k in (1, 2, 4):
            command = kernels.command("gemm", m, 512, 1024)
            runner.push([*command, str(split_k)], callback_of(f"m{m}", split_k))
    runner.join()
    assert delegate.best == {"m64": ("tile64", 4, 4), "m256": ("tile64", 4, 4)}
