"""The recorder: which steps it times and records, what it writes, and what may go wrong.

A profiler that writes a small trace stands in for that of torch where torch is not needed.
"""

import json
import subprocess
import sys
import textwrap
import warnings
from contextlib import ExitStack

import pytest

import longpole
from longpole.recording import recorder as module
from longpole.testing import TraceBuilder
from processes import started


class Profiler:
    """Notes what is asked of it, and writes a trace of the steps that it saw."""

    def __init__(self, rank=0, n_ranks=1):
        self.calls = []
        self.of_ranks = (rank, n_ranks)
        self.n_steps = 0

    def start(self, plan, path):
        assert plan.n_steps > plan.steps
        self.calls.append("start")
        self.path = path

    def step(self):
        self.calls.append("step")
        self.n_steps += 1

    def stop(self):
        self.calls.append("stop")
        builder = TraceBuilder()
        n_recorded = self.n_steps - module.PROFILER_WARM_UP
        for number in range(n_recorded):
            begin = 100 * number
            builder = builder.step(number, (begin, begin + 100)).launch(
                "gemm", call=(begin + 1, begin + 3), work=(begin + 5, begin + 90)
            )
        if n_recorded > 0:
            builder.write(self.path)

    def synchronize(self):
        self.calls.append("synchronize")

    def rank(self):
        return self.of_ranks


@pytest.fixture
def profiler(monkeypatch):
    made = Profiler()
    monkeypatch.setattr(module, "_profiler", lambda: made)
    return made


def run(path, n_steps, **settings):
    settings = {"steps": 2, "warm_up": 1, "timed_steps": 3, "show": False} | settings
    with longpole.record(path, **settings) as recorder:
        for _ in range(n_steps):
            recorder.step()
    return recorder


def test_steps_are_timed_then_recorded_then_timed(profiler, tmp_path):
    recorder = run(tmp_path / "trace.json.gz", 100)
    timing = ["synchronize", "synchronize"] * 2
    recording = ["start", "step", "step", "step", "step", "stop"]
    assert profiler.calls == [*timing, *recording, *timing]
    assert [len(times) for times in recorder.step_time_ns.values()] == [2, 2]
    assert recorder.path == tmp_path / "trace.json.gz"
    assert recorder.read().steps.height == 2


@pytest.mark.usefixtures("profiler")
def test_the_times_stand_in_the_trace(tmp_path):
    recorder = run(tmp_path / "trace.json", 100)
    document = json.loads((tmp_path / "trace.json").read_text())
    assert document["longpole"] == {"step_time_ns": recorder.step_time_ns}
    assert longpole.read_trace(tmp_path / "trace.json").status == "ok"


@pytest.mark.usefixtures("profiler")
def test_a_recorder_leaves_nothing_but_the_trace(tmp_path):
    run(tmp_path / "trace.json.gz", 100)
    assert [file.name for file in tmp_path.iterdir()] == ["trace.json.gz"]


@pytest.mark.usefixtures("profiler")
def test_a_loader_is_passed_on_and_each_batch_is_a_step(tmp_path):
    with longpole.record(tmp_path / "t.json", steps=1, timed_steps=1, show=False) as recorder:
        assert list(recorder(range(40))) == list(range(40))
    assert recorder.path is not None


@pytest.mark.usefixtures("profiler")
def test_a_function_is_called_until_the_trace_is_complete(tmp_path):
    calls = []
    recorder = longpole.record(
        lambda: calls.append(1), tmp_path, steps=2, warm_up=1, timed_steps=3, show=False
    )
    assert recorder.path == tmp_path / "trace.json.gz"
    assert len(calls) == 1 + 6 + (module.PROFILER_WARM_UP + 2) + 6


@pytest.mark.usefixtures("profiler")
def test_an_error_of_the_program_passes_and_what_was_recorded_is_kept(tmp_path):
    path = tmp_path / "trace.json"
    recorder = longpole.record(path, steps=5, warm_up=0, timed_steps=1, show=False)
    with pytest.raises(ZeroDivisionError):
        fail_at(2 + module.PROFILER_WARM_UP + 2, recorder)
    assert longpole.read_trace(path).steps.height == 2
    assert len(recorder.step_time_ns["before"]) == 2
    assert recorder.step_time_ns["after"] == []


def fail_at(n_steps, recorder):
    """Run a program whose step number `n_steps` fails."""
    with recorder:
        for number in range(100):
            1 / (n_steps - number)
            recorder.step()


@pytest.mark.usefixtures("profiler")
def test_a_program_that_ends_too_early_is_told_how_many_steps_it_takes(tmp_path):
    with pytest.warns(longpole.RecordingWarning, match="ended after 4 steps.*takes 17 steps"):
        recorder = run(tmp_path / "trace.json", 4)
    assert recorder.path is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("profiler")
def test_a_second_recorder_records_nothing_and_says_so(tmp_path):
    with longpole.record(tmp_path / "one.json", steps=1, timed_steps=1, show=False) as first:
        with pytest.warns(longpole.RecordingWarning, match="another recorder is active"):
            run(tmp_path / "two.json", 50)
        for _ in range(50):
            first.step()
    assert [file.name for file in tmp_path.iterdir()] == ["one.json"]


@pytest.mark.usefixtures("profiler")
def test_a_full_disk_ends_the_recording_and_not_the_program(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.shutil, "copyfileobj", full)
    with pytest.warns(longpole.RecordingWarning, match="recording failed: .*No space left"):
        recorder = run(tmp_path / "trace.json", 100)
    assert recorder.is_done
    assert list(tmp_path.iterdir()) == []


def test_a_profiler_that_does_not_start_ends_the_recording(profiler, tmp_path, monkeypatch):
    def busy(*_):
        message = "the profiler is already enabled on this thread"
        raise RuntimeError(message)

    monkeypatch.setattr(profiler, "start", busy)
    with pytest.warns(longpole.RecordingWarning, match="recording failed: the profiler is already"):
        run(tmp_path / "trace.json", 100)


def test_without_torch_the_program_goes_on(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_profiler", lambda: None)
    with pytest.warns(
        longpole.RecordingWarning, match="(?s)nothing is recorded.*pip install torch"
    ):
        recorder = run(tmp_path / "trace.json", 100)
    assert recorder.path is None


@pytest.mark.usefixtures("profiler")
def test_a_file_that_exists_is_refused_before_the_program_begins(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text("mine")
    with pytest.raises(FileExistsError):
        longpole.record(path)
    assert path.read_text() == "mine"
    run(path, 100, overwrite=True)
    assert longpole.read_trace(path).steps.height == 2


def test_each_rank_writes_a_file_of_its_own(monkeypatch, tmp_path):
    for rank in (0, 1):
        monkeypatch.setattr(module, "_profiler", lambda rank=rank: Profiler(rank, 2))
        run(tmp_path / "trace.json.gz", 100)
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "trace-rank0.json.gz",
        "trace-rank1.json.gz",
    ]


@pytest.mark.usefixtures("profiler")
def test_the_verdict_is_printed_when_the_trace_is_complete(tmp_path, capsys):
    run(tmp_path / "trace.json", 100, show=True)
    said = capsys.readouterr().err
    assert f"recorded 2 steps in {tmp_path / 'trace.json'}" in said
    assert "without the profiler" in said
    assert str(longpole.read_trace(tmp_path / "trace.json").verdict()) in said


@pytest.mark.usefixtures("profiler")
def test_timings_that_do_not_fit_the_recorded_steps_are_printed_as_that(tmp_path, capsys):
    # Each recorded step takes 100 us, as long as no timed one.
    run(tmp_path / "trace.json", 100, show=True)
    said = capsys.readouterr().err
    assert ("does not fit the recorded steps" in said) != ("A step takes " in said)
    misfit = longpole.read_trace(tmp_path / "trace.json").recording_cost()["misfit"]
    assert ("does not fit the recorded steps" in said) == bool(misfit)


@pytest.mark.parametrize("settings", [{"steps": 0}, {"timed_steps": 0}, {"warm_up": -1}])
def test_impossible_numbers_of_steps_are_refused(settings):
    with pytest.raises(ValueError, match="must be at least"):
        longpole.record("trace.json", **settings)


@pytest.mark.usefixtures("profiler")
def test_a_recorder_that_is_done_is_one_empty_call(tmp_path):
    recorder = run(tmp_path / "trace.json", 100)
    assert recorder.step is module._nothing


# With torch


def ran(folder, program):
    """Run a program with longpole and torch in a process of its own."""
    with warnings.catch_warnings():
        return subprocess.run(
            [sys.executable, "-W", "always", "-c", textwrap.dedent(program)],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )


LOOP = """
    import torch, longpole
    model = torch.nn.Linear(64, 64)
    def train(batch):
        model(batch).sum().backward()
    batches = [torch.randn(8, 64)] * 60
"""


@pytest.mark.needs("torch")
@pytest.mark.parametrize(
    "loop",
    [
        """
    with longpole.record("trace.json.gz", steps=3) as recorder:
        for batch in batches:
            train(batch)
            recorder.step()
        """,
        """
    with longpole.record("trace.json.gz", steps=3) as recorder:
        for batch in recorder(batches):
            train(batch)
        """,
        """
    longpole.record(lambda: train(batches[0]), "trace.json.gz", steps=3)
        """,
    ],
    ids=["loop", "iterator", "function"],
)
def test_torch_records_the_steps_with_marks_and_shapes(loop, tmp_path, said):
    done = ran(tmp_path, LOOP + loop)
    assert done.returncode == 0, done.stderr
    trace = longpole.read_trace(tmp_path / "trace.json.gz")
    assert (trace.status, trace.steps.height) == ("ok", 3)
    assert "input_dims" in {name.lower().replace(" ", "_") for name in trace.args("cpu_op").columns}
    said.within(done.stderr)


@pytest.mark.needs("torch")
def test_a_loop_that_sleeps_is_told_where_its_time_is_with_and_without_stacks(tmp_path, said):
    program = """
    import time
    torch.set_num_threads(1)
    def sleepy():
        train(batches[0])
        time.sleep(0.2)
    longpole.record(sleepy, "no.json.gz", steps=3)
    longpole.record(sleepy, "stacks.json.gz", steps=3, stacks=True)
    """
    done = ran(tmp_path, LOOP + program)
    without, stacks = done.stderr.split("recorded 3 steps in ")[1:]
    said.within(without)
    said.within(stacks)


@pytest.mark.needs("torch")
def test_an_error_in_the_program_of_torch_keeps_the_steps_before_it(tmp_path):
    program = """
    with longpole.record("t.json.gz", steps=5, warm_up=0, timed_steps=1) as recorder:
        for number, batch in enumerate(batches):
            train(batch)
            if number == 7:
                raise ZeroDivisionError("of the program")
            recorder.step()
    """
    done = ran(tmp_path, LOOP + program)
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith("ZeroDivisionError: of the program")
    assert longpole.read_trace(tmp_path / "t.json.gz").steps.height >= 2


@pytest.mark.needs("jax")
def test_jax_records_the_steps_with_marks(tmp_path):
    program = """
    import jax, longpole
    square = jax.jit(lambda x: (x @ x).sum())
    x = jax.numpy.ones((64, 64))
    longpole.record(lambda: square(x).block_until_ready(), "jax.json.gz", steps=3)
    """
    done = ran(tmp_path, program)
    assert done.returncode == 0, done.stderr
    trace = longpole.read_trace(tmp_path / "jax.json.gz")
    assert (trace.status, trace.format, trace.steps.height) == ("ok", "xprof-json", 3)


@pytest.mark.needs("torch")
def test_two_ranks_of_ddp_write_two_files(tmp_path):
    program = """
    import sys, torch, longpole
    from torch import distributed
    rank = int(sys.argv[1])
    distributed.init_process_group(
        "gloo", init_method="file://" + sys.argv[2] + "/meeting", rank=rank, world_size=2
    )
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
    def train():
        model(torch.randn(8, 64)).sum().backward()
    longpole.record(train, sys.argv[2] + "/trace.json.gz", steps=2)
    distributed.destroy_process_group()
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with ExitStack() as stack:
        ranks = [
            stack.enter_context(
                started([*command, str(rank), str(tmp_path)], stderr=subprocess.PIPE, text=True)
            )
            for rank in (0, 1)
        ]
        said = [rank.communicate(timeout=240)[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], said
    assert "recorded" in said[0]
    assert "recorded" not in said[1]
    found = longpole.read_traces(str(tmp_path / "trace-rank*.json.gz"))
    assert sorted(map(int, found.ranks["rank"])) == [0, 1]
