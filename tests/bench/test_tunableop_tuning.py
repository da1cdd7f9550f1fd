"""Offline tuning on GPUs that are not there, with a worker that fails in every way."""

import os
import sys
import types
from pathlib import Path

import pytest

from longpole.bench import tunableop
from longpole.bench.tunableop import check, worker
from longpole.bench.tunableop.tune import tune, work_folder
from longpole.errors import DeviceError, ResultsError

pytestmark = pytest.mark.usefixtures("empty_folder")

WORKER = Path(__file__).with_name("fake_tunable_worker.py")


def record(sizes, n_files=3):
    """Write untuned files in which some GEMMs stand twice, as those of several ranks do."""
    rows = [f"GemmTunableOp_Half_TN,tn_{m}_8_8_ld_8_8_{m}\n" for m in sizes]
    for number in range(n_files):
        text = "".join(rows[number::2] + rows[:3])
        Path(f"untuned{number}.csv").write_text(text, encoding="utf-8")


def fake(*, n, **options):
    worker = [sys.executable, str(WORKER), str(Path.cwd())]
    settings = {"timeout_s": 2, "batch_size": 5, "worker": worker, **options}
    return tune("untuned?.csv", gpus=[f"fake:{n}"], **settings)


def tuned(file):
    return set(file.results["m"].to_list())


@pytest.mark.parametrize("n_gpus", [pytest.param(4, marks=pytest.mark.slow), 12])
def test_workers_that_fail_cost_their_gemm_and_nothing_else(n_gpus, said):
    record(range(1, 41))
    done = fake(n=n_gpus)
    assert tuned(done.file) == set(range(1, 41)) - {13, 17, 19}
    failed = {failure.parameters.split("_")[1]: failure.reason for failure in done.failures}
    assert sorted(failed) == ["13", "17", "19"]
    assert failed["13"].startswith("signal: ")
    assert failed["17"].startswith("timeout: timed out after 2 s")
    said(failed["19"])
    assert [path.name for path in done.outputs] == [
        f"tunableop_results_full{ordinal}.csv" for ordinal in range(n_gpus)
    ]
    assert {path.read_bytes() for path in done.outputs} == {done.file.text}
    assert {problem.code for problem in check(done.outputs[0])} == {"unknown_solution"}
    times = dict(done.file.results.select("m", "time_ns").iter_rows())
    assert times == pytest.approx({m: m * 1000.0 for m in times})


def test_each_device_works_and_the_devices_are_told_apart():
    record(range(1, 13))
    done = fake(n=4, batch_size=1)
    devices = set(done.file.results["solution"])
    assert devices == {f"Gemm_Fake_{n}" for n in range(4)}


def test_a_run_goes_on_where_it_was_interrupted():
    record(range(1, 11))

    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fake(n=2, batch_size=2, on_record=interrupt)
    assert not list(Path.cwd().glob("*_full*"))
    with pytest.raises(FileExistsError, match="contains an earlier run"):
        fake(n=2)
    done = fake(n=2, resume=True)
    assert 0 < done.n_known < 10
    assert tuned(done.file) == set(range(1, 11))
    again = fake(n=2, resume=True, force=True)
    assert (again.n_known, again.file.text) == (10, done.file.text)


def test_a_run_that_ended_without_a_result_is_not_in_the_way_of_the_next():
    record([13])
    with pytest.raises(ResultsError, match="nothing was tuned"):
        fake(n=1)
    record([1, 2])
    assert tuned(fake(n=1).file) == {1, 2}
    folder = work_folder("tunableop_results.csv")
    assert "tn_13_" not in "".join(each.read_text() for each in folder.glob("batch*.untuned.csv"))


def test_gemms_that_are_known_are_not_tuned_again_and_stay_in_the_file():
    record([1, 2, 3])
    header = "Validator,PT_VERSION,2.10.0\nValidator,GCN_ARCH_NAME,fake\n"
    row = "GemmTunableOp_Half_TN,tn_{0}_8_8_ld_8_8_{0},Gemm_Old_7,0.5\n"
    known = (header + row.format(2) + row.format(99)).encode()
    done = fake(n=1, reuse=[known])
    assert (done.n_gemms, done.n_known, done.failures) == (3, 1, [])
    assert dict(done.file.results.select("m", "solution").iter_rows()) == {
        1: "Gemm_Fake_0",
        3: "Gemm_Fake_0",
        2: "Gemm_Old_7",
        99: "Gemm_Old_7",
    }
    everything = fake(n=1, reuse=[done.file], filename="again.csv")
    assert (everything.n_known, everything.file.text) == (3, done.file.text)
    halves = [header.encode() + row.format(m).encode() for m in (1, 2)]
    both = fake(n=1, reuse=halves, filename="both.csv")
    assert (both.n_known, both.file.count("result")) == (2, 3)


@pytest.mark.parametrize(
    ("operator", "parameters", "is_skipped"),
    [
        ("GemmTunableOp_Half_TN", "tn_19_1_8_ld_8_8_19", True),
        ("GemmTunableOp_Half_NN", "nn_19_1_8_ld_19_8_19", False),
        ("GemmTunableOp_Half_NT", "nt_19_8_1_ld_19_8_19", True),
        ("GemmStridedBatchedTunableOp_Half_NN", "nn_19_1_8_B_2_ld_19_8_19", True),
        ("GemmTunableOp_Half_TN", "tn_19_2_8_ld_8_8_19", False),
    ],
)
def test_gemms_that_torch_tunes_only_online_are_named_as_such(
    monkeypatch, operator, parameters, is_skipped
):
    Path("untuned0.csv").write_text(
        f"{operator},{parameters}\nGemmTunableOp_Half_TN,tn_2_8_8_ld_8_8_2\n", encoding="utf-8"
    )
    worker = (sys.executable, str(WORKER), str(Path.cwd()))
    monkeypatch.setattr(sys.modules[tune.__module__], "WORKER", worker)
    [failed] = fake(n=1, worker=worker).failures
    said = "torch does not tune this GEMM offline, because m, n or k is 1"
    assert failed.reason.startswith(said) == is_skipped


def test_known_results_of_another_version_are_refused():
    record([1, 2])
    known = b"Validator,PT_VERSION,2.9.0\nGemmTunableOp_Half_TN,tn_2_8_8_ld_8_8_2,Default,1\n"
    with pytest.raises(ResultsError, match="PT_VERSION"):
        fake(n=1, reuse=[known])


def test_output_is_never_written_over_and_nothing_begins_in_vain():
    record([1, 2])
    Path("tunableop_results_full1.csv").write_text("mine", encoding="utf-8")
    with pytest.raises(FileExistsError, match="full1"):
        fake(n=2)
    assert Path("tunableop_results_full1.csv").read_text(encoding="utf-8") == "mine"
    assert not work_folder("tunableop_results.csv").exists()


def test_results_of_two_versions_are_not_mixed_by_a_resume():
    record([1, 2, 3, 4])
    folder = work_folder("tunableop_results.csv")
    folder.mkdir()
    (folder / "batch0001.untuned.csv").write_text("", encoding="utf-8")
    (folder / "batch0001.results.csv").write_text(
        "Validator,PT_VERSION,2.9.0\nGemmTunableOp_Half_TN,tn_1_8_8_ld_8_8_1,Default,1\n",
        encoding="utf-8",
    )
    with pytest.raises(ResultsError, match="PT_VERSION"):
        fake(n=1, resume=True)


def test_a_pattern_must_have_a_wildcard_and_find_something():
    with pytest.raises(ValueError, match="must hold"):
        tune("untuned0.csv", gpus=["fake:1"])
    with pytest.raises(ResultsError, match="0 files found"):
        tune("nothing*.csv", gpus=["fake:1"])


def test_the_number_of_gpus_must_be_there():
    record([1])
    for wrong in (0, 99):
        with pytest.raises(ValueError, match=f"can be used, not {wrong}"):
            tune("untuned?.csv", gpus=wrong)


def test_a_worker_that_cannot_tune_ends_the_run_with_its_own_words():
    record([1, 2, 3])
    refuse = ["sh", "-c", "echo 'error: no backend here' >&2; exit 5"]
    with pytest.raises(DeviceError, match=r"cannot tune here: .*no backend here"):
        fake(n=2, worker=refuse)


def test_a_worker_that_always_dies_is_not_started_for_each_gemm():
    record(range(1, 101))
    with pytest.raises(ResultsError, match="nothing was tuned"):
        fake(n=1, worker=["sh", "-c", "exit 1"])
    assert len(list(work_folder("tunableop_results.csv").glob("*.untuned.csv"))) < 40


def test_without_torch_the_worker_says_so():
    record([1])
    if tunableop.installed_version() is not None:
        pytest.skip("torch is installed")
    with pytest.raises(DeviceError, match="needs torch"):
        tune("untuned?.csv", gpus=["fake:1"])


@pytest.mark.parametrize("has_write_file", [True, False])
def test_the_worker_drives_the_functions_of_torch(has_write_file, monkeypatch, tmp_path):
    """Up to 2.9 torch writes all results when it is told to, later each one at once."""
    record([1, 2], n_files=1)
    rows, calls = [], []

    def tune_one(name):
        [line] = Path(name).read_text(encoding="utf-8").splitlines()
        rows.append(f"{line},Default,0.5\n")
        if not has_write_file:
            Path(calls[-1][1]).write_text("".join(rows), encoding="utf-8")

    backend = types.SimpleNamespace(
        enable=lambda: calls.append(("enable",)),
        tuning_enable=lambda: calls.append(("tuning_enable",)),
        set_filename=lambda name, **options: calls.append(("set_filename", name, options)),
        tune_gemm_in_file=tune_one,
    )
    if has_write_file:
        backend.write_file = lambda name: Path(name).write_text("".join(rows), encoding="utf-8")
    torch = types.SimpleNamespace(
        __version__="2.15.0",
        cuda=types.SimpleNamespace(is_available=lambda: True),
        version=types.SimpleNamespace(hip=None),
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch.cuda.tunable", backend)
    monkeypatch.setenv("PYTORCH_TUNABLEOP_FILENAME", "elsewhere.csv")
    results = tmp_path / "out.csv"
    assert worker.main(["untuned0.csv", str(results)]) == 0
    if has_write_file:
        assert calls[-1] == ("set_filename", str(results), {"insert_device_ordinal": False})
    assert results.read_text(encoding="utf-8") == "".join(rows)
    assert "PYTORCH_TUNABLEOP_FILENAME" not in os.environ
    assert not list(tmp_path.glob("*.part"))
    torch.__version__ = "2.13.1"
    assert worker.main(["untuned0.csv", str(results)]) == worker.REFUSED
