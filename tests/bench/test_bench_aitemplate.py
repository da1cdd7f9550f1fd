"""AITemplate's runners, as its compiler calls them."""

import time

import pytest

from longpole.bench.compatible.aitemplate import ProfileResult, ProfilerRunner, Runner

TWO = "echo OP:a,TIME:2.5,WS:64; echo OP:b,TIME:1.5,WS:0"


@pytest.fixture(autouse=True)
def _own_locks(tmp_path, monkeypatch):
    monkeypatch.setenv("LONGPOLE_LOCK_DIR", str(tmp_path / "locks"))


class Delegate:
    def __init__(self):
        self.seen = []

    def postprocess_results(self):
        self.seen.append("postprocess")


def shell(script):
    return ["/bin/sh", "-c", script]


def collect(result, delegate):
    delegate.seen.append(result)


def test_results_come_before_the_postprocessing_in_the_order_of_the_pushes():
    delegate = Delegate()
    runner = ProfilerRunner(["0", "1"], delegate)
    runner.push(shell("sleep 0.2; echo OP:slow,TIME:3,WS:1"), collect)
    runner.push(shell(TWO), collect)
    runner.join()
    slow, best = ProfileResult("slow", 3.0, 1), ProfileResult("b", 1.5, 0)
    assert delegate.seen == [slow, best, "postprocess"]


@pytest.mark.parametrize("devices", [None, []])
def test_no_devices_mean_device_0(devices):
    delegate = Delegate()
    runner = ProfilerRunner(devices, delegate)
    runner.push(shell("echo OP:on_$CUDA_VISIBLE_DEVICES,TIME:1,WS:0"), collect)
    runner.join()
    assert delegate.seen[0].op_config == "on_0"


def test_a_profiler_without_result_is_named_and_nothing_is_postprocessed():
    delegate = Delegate()
    runner = ProfilerRunner(["0"], delegate)
    runner.push(shell("echo OP:a,TIME:0.1,WS:0; kill -SEGV $$"), collect)
    runner.push(shell(TWO), collect)
    with pytest.raises(RuntimeError, match=r"Failed to extract profiler result for .*SIGSEGV"):
        runner.join()
    assert delegate.seen == [ProfileResult("b", 1.5, 0)]


def test_the_time_limit_names_what_was_cancelled():
    delegate = Delegate()
    runner = ProfilerRunner(["0"], delegate, timeout=0.5)
    runner.push(shell("sleep 99"), collect)
    runner.push(["never", "begun"], collect)
    started = time.monotonic()
    with pytest.raises(RuntimeError, match=r"timed out after 0.5 sec.*Cancelled.*99.*never"):
        runner.join()
    assert time.monotonic() - started < 2
    assert delegate.seen == []


def test_what_a_callback_raises_reaches_the_caller():
    def fail(_result, _delegate):
        raise KeyError

    delegate = Delegate()
    runner = ProfilerRunner(["0"], delegate)
    runner.push(shell(TWO), fail)
    with pytest.raises(KeyError):
        runner.join()
    assert delegate.seen == []


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


def test_names_are_a_list():
    with pytest.raises(TypeError, match="list of names"):
        Runner([0], "conv2d").push("x", "true", return_ops="ab")
