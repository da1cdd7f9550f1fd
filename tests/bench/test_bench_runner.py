"""The runner, from the user's seat."""

import random
import shlex
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest

from longpole.bench import (
    Job,
    Measurement,
    Outcome,
    Policy,
    Record,
    Runner,
    best_records,
    final_records,
    read_results,
)
from longpole.devices import Device, Found, unlisted
from longpole.devices.driverless import FakeProvider
from longpole.errors import LongpoleError

QUICK = Policy(timeout_s=10, grace_s=0.3, launch_delay_s=0.05)


def shell(script, key="", **fields):
    return Job(["/bin/sh", "-c", script], key=key or script, **fields)


def prints(time_ms, key="gemm", op="op"):
    return shell(f"echo OP:{op},TIME:{time_ms},WS:0", key)


def outcomes(records):
    return [record.outcome for record in records]


def test_records_come_in_the_order_of_the_jobs():
    jobs = [shell(f"sleep {delay}; echo OP:{delay},TIME:1,WS:0") for delay in (0.3, 0.1, 0.0)]
    with Runner(["fake:3"]) as runner:
        records = runner.run(jobs)
    assert [record.best.name for record in records] == ["0.3", "0.1", "0.0"]


def test_a_key_that_comes_again_is_a_repetition():
    with Runner(["fake:2"]) as runner:
        records = runner.run([prints(3), prints(2), prints(4)])
    assert [record.id for record in records] == ["gemm", "gemm#2", "gemm#3"]
    assert {record.key for record in records} == {"gemm"}
    assert best_records(records)["gemm"].best.time_ns == 2e6


def test_the_choice_does_not_hang_on_the_order_of_completion():
    def record(number, time_ns, name="op", outcome=Outcome.OK):
        best = Measurement(name, time_ns)
        return Record(f"j{number}", f"k{number % 3}", outcome, results=(best,), best=best)

    records = [record(number, float(1 + number % 4)) for number in range(24)]
    records += [record(30, 1.0, "a"), record(31, 0.5, outcome=Outcome.SIGNAL), record(32, 0.0)]
    expected = None
    for seed in range(50):
        shuffled = random.Random(seed).sample(records, len(records))  # noqa: S311
        chosen = {key: best.id for key, best in best_records(shuffled).items()}
        expected = expected or chosen
        assert chosen == expected
    assert expected["k0"] == "j30"


def test_a_run_that_failed_keeps_its_results_and_never_wins(tmp_path):
    jobs = [shell("echo OP:fast,TIME:0.1,WS:0; exit 3", "gemm"), prints(5)]
    with Runner(["fake:1"], results=tmp_path / "r.jsonl") as runner:
        failed, sound = runner.run(jobs)
    assert (failed.outcome, failed.exit_code, failed.best) == (Outcome.NONZERO, 3, None)
    assert failed.results[0].time_ns == 0.1e6
    assert best_records([failed, sound])["gemm"].id == "gemm#2"


def test_a_callback_that_raises_ends_the_run_and_is_raised(tmp_path):
    def refuse(record):
        raise KeyError(record.id)

    jobs = [prints(1, "first"), *(shell("sleep 600") for _ in range(20))]
    with Runner(["fake:2"], results=tmp_path / "r.jsonl", policy=QUICK) as runner:
        with pytest.raises(KeyError, match="first"):
            runner.run(jobs, refuse)
        assert outcomes(runner.run([prints(2, "after")])) == [Outcome.OK]
    written = [(each.key, each.outcome) for each in read_results(tmp_path / "r.jsonl").records]
    assert written[0] == ("first", Outcome.OK)
    assert ("after", Outcome.OK) in written


def test_a_job_that_hangs_is_ended_and_the_next_runs(said):
    with Runner(["fake:1"], policy=QUICK) as runner:
        hung, after = runner.run([shell("sleep 30", timeout_s=0.2), prints(1)])
    assert hung.outcome is Outcome.TIMEOUT
    said.within(hung.message)
    assert after.outcome is Outcome.OK


@pytest.mark.real_time
def test_the_limit_for_all_ends_what_runs_and_what_waits(said):
    policy = Policy(total_timeout_s=0.5, grace_s=0.2)
    with Runner(["fake:1"], policy=policy) as runner:
        records = runner.run([prints(1), shell("sleep 600"), prints(2)])
    assert outcomes(records) == [Outcome.OK, Outcome.CANCELLED, Outcome.CANCELLED]
    said.within(records[1].message)


def test_a_failure_is_tried_again_as_often_as_asked(tmp_path):
    flaky = shell(f"test -e {tmp_path}/mark || {{ touch {tmp_path}/mark; exit 1; }}", format="none")
    with Runner(["fake:1"], results=tmp_path / "r.jsonl", policy=Policy(retries=2)) as runner:
        second, hopeless = runner.run([flaky, shell("exit 1", "hopeless")])
    assert (second.outcome, second.attempt) == (Outcome.OK, 2)
    assert (hopeless.outcome, hopeless.attempt) == (Outcome.NONZERO, 3)
    attempts = [(each.id, each.attempt, each.is_final) for each in _read(tmp_path)]
    assert attempts[:2] == [(flaky.key, 1, False), (flaky.key, 2, True)]
    assert len(attempts) == 5


@pytest.mark.real_time
def test_a_file_that_is_being_written_is_tried_again(tmp_path):
    program = tmp_path / "prof"
    program.write_bytes(Path("/bin/true").read_bytes())
    program.chmod(0o755)
    policy = Policy(launch_attempts=600, launch_delay_s=0.1)
    with program.open("ab") as writer, Runner(["fake:1"], policy=policy) as runner:
        future = runner.submit(Job([str(program)], format="none"))
        time.sleep(2)
        writer.close()
        record = future.result()
    assert record.outcome is Outcome.OK
    assert record.attempt > 1


def test_a_program_that_is_not_there_is_not_tried_again():
    with Runner(["fake:1"], policy=Policy(retries=5)) as runner:
        (record,) = runner.run([Job(["/nonexistent/profiler"])])
    assert (record.outcome, record.attempt) == (Outcome.NOT_STARTED, 1)


LOST = 'test "$LONGPOLE_FAKE_DEVICE" = {} && {{ echo GPU has fallen off the bus >&2; exit 1; }};'


def test_a_lost_device_is_named_and_its_jobs_move():
    jobs = [shell(LOST.format(0) + "sleep 0.02; echo OP:a,TIME:1,WS:0", f"j{i}") for i in range(6)]
    with Runner(["fake:2"]) as runner:
        records = runner.run(jobs)
    assert set(outcomes(records)) == {Outcome.OK}
    assert runner.quarantined == {"FAKE-0000": "GPU has fallen off the bus"}


def test_a_job_that_blames_every_device_is_blamed_itself():
    broken = shell("echo no CUDA-capable device is detected >&2; exit 1", "broken")
    with Runner(["fake:3"]) as runner:
        records = runner.run([broken, *(prints(i + 1, f"j{i}") for i in range(5))])
    assert records[0].outcome is Outcome.DEVICE_ERROR
    assert set(outcomes(records[1:])) == {Outcome.OK}
    assert len(runner.quarantined) == 1


def test_without_a_device_every_job_is_answered(tmp_path, said):
    jobs = [shell("echo GPU is lost >&2; exit 1", f"j{i}") for i in range(4)]
    with Runner(["fake:1"], results=tmp_path / "r.jsonl") as runner:
        records = runner.run(jobs)
        assert set(outcomes(records)) == {Outcome.DEVICE_ERROR}
        said.within(records[3].message)
        assert runner.submit(prints(1)).result().outcome is Outcome.DEVICE_ERROR
    assert len(_read(tmp_path)) == 1


def test_a_device_that_does_not_answer_is_given_no_job(tmp_path):
    provider = FakeProvider(count=2, lost={0})
    jobs = [shell(f"echo {i} >> {tmp_path}/runs", f"j{i}", format="none") for i in range(4)]
    with Runner(Found(dict.fromkeys(provider.list_devices(), provider))) as runner:
        records = runner.run(jobs)
    assert {(each.outcome, each.device) for each in records} == {(Outcome.OK, "FAKE-0001")}
    assert runner.quarantined == {"FAKE-0000": "device FAKE-0000 is lost"}
    assert sorted((tmp_path / "runs").read_text().split()) == ["0", "1", "2", "3"]


def test_a_failure_on_a_device_that_is_lost_meanwhile_is_that_of_the_device(said):
    class Dying(FakeProvider):
        def read(self, device):
            reading = super().read(device)
            self.lost = {0}
            return reading

    provider = Dying()
    with Runner(Found(dict.fromkeys(provider.list_devices(), provider))) as runner:
        failed, stranded = runner.run([shell("exit 7"), prints(1)])
    assert failed.outcome is stranded.outcome is Outcome.DEVICE_ERROR
    said.within(failed.message)


def test_ids_are_unique_whatever_the_keys():
    with Runner(["fake:1"]) as runner:
        records = runner.run([prints(1, key) for key in ("a", "a#2", "a", "a")])
    assert [record.id for record in records] == ["a", "a#2", "a#3", "a#4"]


def test_what_a_job_leaves_behind_is_named_and_gone():
    with Runner(["fake:1"]) as runner:
        (record,) = runner.run([shell("setsid sleep 1234 & echo OP:a,TIME:1,WS:0; sleep 0.1")])
    assert record.outcome is Outcome.OK
    assert record.strays[0].endswith(" sleep")


def test_a_message_quotes_the_line_that_speaks_of_the_error(said):
    script = "echo 'a.c:1: error: x undeclared' >&2; echo 'a.c:1: note: once only' >&2; exit 1"
    with Runner(["fake:1"]) as runner:
        (record,) = runner.run([shell(script)])
    said(record.message)


def test_repeats_that_drift_are_marked_unstable(said):
    script = "for t in 1.0 1.2 1.4; do echo OP:a,TIME:$t,WS:0; done"
    with Runner(["fake:1"]) as runner:
        (record,) = runner.run([shell(script)])
    assert record.unstable
    said(record.message)


def test_two_runners_take_turns_on_a_device(tmp_path):
    log = tmp_path / "log"
    script = f"echo begin >> {log}; sleep 0.02; echo end >> {log}"

    def work():
        with Runner(["fake:1"]) as runner:
            runner.run([shell(script, format="none") for _ in range(5)])

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = log.read_text().split()
    assert len(lines) == 20
    assert all(left != right for left, right in pairwise(lines))


def test_a_runner_can_be_used_from_many_threads():
    found = []
    with Runner(["fake:4"]) as runner:

        def work(number):
            records = runner.run([prints(1, f"{number}-{i}") for i in range(10)])
            found.extend(record.key for record in records)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(set(found)) == 40


def test_a_runner_can_be_used_twice_but_not_after_its_end(tmp_path):
    with Runner(["fake:1"], results=tmp_path / "r.jsonl") as runner:
        runner.run([prints(1)])
        runner.run([prints(2)])
    assert [each.id for each in _read(tmp_path)] == ["gemm", "gemm#2"]
    with pytest.raises(RuntimeError, match="closed"):
        runner.submit(prints(3))


def test_resume_runs_only_the_rest(tmp_path):
    path = tmp_path / "r.jsonl"
    counted = [shell(f"echo {i} >> {tmp_path}/runs", f"j{i}", format="none") for i in range(4)]
    with Runner(["fake:1"], results=path) as runner:
        runner.run(counted[:2])
    with Runner(["fake:1"], results=path, resume=True) as runner:
        rows = []
        records = runner.run(counted, rows.append)
        assert runner.status().n_known == 2
    assert outcomes(records) == [Outcome.OK] * 4
    assert {record.id for record in rows} == {"j2", "j3"}
    assert (tmp_path / "runs").read_text().split() == ["0", "1", "2", "3"]


def test_resume_runs_again_what_has_changed_and_what_was_not_decided(tmp_path):
    path = tmp_path / "r.jsonl"
    with Runner(["fake:1"], results=path, policy=QUICK) as runner:
        runner.run([prints(1, "a"), prints(1, "b")])
        with pytest.raises(ZeroDivisionError):
            runner.run([prints(1, "c"), shell("sleep 9", "d")], lambda _: 1 / 0)
    jobs = [prints(1, "a"), prints(2, "b"), prints(1, "c"), shell("echo OP:d,TIME:1,WS:0", "d")]
    with Runner(["fake:1"], results=path, resume=True) as runner:
        assert outcomes(runner.run(jobs)) == [Outcome.OK] * 4
    times = {each.id: each.best.time_ns for each in final_records(_read(tmp_path)).values()}
    assert times == {"a": 1e6, "b": 2e6, "c": 1e6, "d": 1e6}


def test_a_record_says_where_it_was_made(tmp_path):
    with Runner(["fake:1"], results=tmp_path / "r.jsonl") as runner:
        runner.run([shell("true", format="none", env={"A": "1"}, tags={"m": 64})])
    (record,) = _read(tmp_path)
    environment = record.environment
    assert environment["device"]["uuid"] == record.device == "FAKE-0000"
    assert environment["before"]["clock_mhz"] == 1500
    assert environment["changed"]["LONGPOLE_FAKE_DEVICE"] == "0"
    assert environment["changed"]["A"].keys() == {"digest"}
    assert {"host", "kernel", "python", "longpole", "libraries"} <= environment.keys()
    assert record.tags == {"m": 64}


def test_a_lock_that_was_prepared_is_no_lock(tmp_path):
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks" / "FAKE-0000.lock").symlink_to(tmp_path / "victim")
    with Runner(["fake:1"]) as runner:
        (record,) = runner.run([prints(1)])
    assert record.outcome is Outcome.DEVICE_ERROR
    assert not (tmp_path / "victim").exists()


def test_results_that_cannot_be_written_stop_everything(tmp_path, monkeypatch):
    with Runner(["fake:2"], results=tmp_path / "r.jsonl", policy=QUICK) as runner:

        def fail(_record):
            message = "no space"
            raise LongpoleError(message)

        monkeypatch.setattr(runner._store, "append", fail)
        with pytest.raises(LongpoleError, match="no space"):
            runner.run([prints(1), *(shell("sleep 600") for _ in range(9))])
        with pytest.raises(LongpoleError, match="no space"):
            runner.submit(prints(2))


def test_a_status_names_what_runs():
    with Runner(["fake:2"]) as runner:
        future = runner.submit(shell("sleep 0.5", "slow", format="none"))
        while not (status := runner.status()).running:
            time.sleep(0.01)
        future.result()
    assert (status.n_jobs, status.n_open) == (1, 1)
    assert [each.id for each in status.running.values()] == ["slow"]
    assert runner.status().outcomes == {"ok": 1}


def test_devices_may_be_named_without_a_driver():
    device = unlisted("7", environ={})
    assert device == Device(uuid="nvidia-7", vendor="nvidia", token="7", index=7)  # noqa: S106
    with Runner([device]) as runner:
        (record,) = runner.run([shell("echo OP:$CUDA_VISIBLE_DEVICES,TIME:1,WS:0")])
    assert record.best.name == "7"


def test_output_that_is_no_text_does_no_harm():
    script = f"import os; os.write(1, bytes(range(256)) + b'\\nOP:a,TIME:1,WS:0\\n' * 3)"  # noqa: F541
    with Runner(["fake:1"]) as runner:
        (record,) = runner.run([Job([sys.executable, "-c", script])])
    assert len(record.results) == 3


@pytest.mark.parametrize("name", ["timeout_s", "total_timeout_s"])
def test_a_limit_of_nothing_is_refused(name):
    with pytest.raises(ValueError, match="must be above 0"):
        Policy(**{name: 0})


@pytest.mark.parametrize("name", ["timeout_s", "grace_s", "drain_s", "launch_delay_s"])
@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), 1e300])
def test_a_time_that_is_none_is_refused(name, value):
    with pytest.raises(ValueError, match=name):
        Policy(**{name: value})


def _read(folder):
    return read_results(folder / "r.jsonl").records


# The fault scenarios that other runners fail: hangs, floods, forks, signals, full disks.


HERE = Path(__file__).parent
CHECKER = HERE.parents[2] / "shared" / "faults" / "check_runner.py"

pytestmark = pytest.mark.skipif(not CHECKER.exists(), reason=f"{CHECKER} is not here")


@pytest.mark.slow
@pytest.mark.parametrize("run", [1, 2, 3])
def test_every_scenario_passes(run):  # noqa: ARG001
    adapter = shlex.join([sys.executable, str(HERE.parent / "adapters" / "runner_adapter.py")])
    command = [sys.executable, str(CHECKER), "--cmd", adapter + " {spec}"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    failures = [line for line in answer.stdout.splitlines() if not line.startswith("PASS")]
    assert failures == ["40/40 passed"]
