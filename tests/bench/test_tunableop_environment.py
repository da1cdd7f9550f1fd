"""Names of files, variables of the environment, and the functions of torch.cuda.tunable."""

import re
import sys
import types
from importlib import import_module
from pathlib import Path

import pytest

from longpole.bench import tunableop
from longpole.bench.tunableop import environment, environment_warnings, files, names, tunable
from longpole.errors import ResultsError

HEADER = b"Validator,PT_VERSION,2.9.1\n"
ROW = b"GemmTunableOp_Half_TN,tn_2_8_8_ld_8_8_2,Gemm_Hipblaslt_1,0.25\n"
KEY = ("GemmTunableOp_Half_TN", "tn_2_8_8_ld_8_8_2")
PREFIX = "PYTORCH_TUNABLEOP_"


@pytest.fixture(autouse=True)
def _fresh(monkeypatch, tmp_path, request):
    monkeypatch.chdir(tmp_path)
    if request.node.get_closest_marker("needs") is None:  # torch can be imported only once
        monkeypatch.delitem(sys.modules, "torch", raising=False)
    tunable.reset()
    yield
    tunable.reset()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tunableop_results.csv", "tunableop_results7.csv"),
        ("out%d/results.csv", "out7/results.csv"),
        ("a.b.csv", "a.b7.csv"),
        ("results", "results7"),
        ("./v2.1/results.csv", "./v2.1/results7.csv"),
    ],
)
def test_the_ordinal_goes_where_torch_puts_it(name, expected):
    assert names.with_ordinal(name, 7) == expected


def test_a_process_reads_a_file_for_each_device_that_it_sees():
    def ordinals(**environ):
        return [(file.ordinal, file.device, str(file.results)) for file in files(environ=environ)]

    assert ordinals() == [(0, None, "tunableop_results0.csv")]
    assert ordinals(CUDA_VISIBLE_DEVICES="6,7", PYTORCH_TUNABLEOP_FILENAME="r%d.csv") == [
        (0, "6", "r0.csv"),
        (1, "7", "r1.csv"),
    ]
    assert ordinals(HIP_VISIBLE_DEVICES="3") == [(0, "3", "tunableop_results0.csv")]
    assert ordinals(ROCR_VISIBLE_DEVICES="GPU-aa") == [(0, "GPU-aa", "tunableop_results0.csv")]
    assert ordinals(CUDA_VISIBLE_DEVICES="") == []
    assert [file.ordinal for file in files(environ={}, n_devices=3)] == [0, 1, 2]


def test_processes_that_see_one_device_each_share_a_file():
    found = [
        file
        for process, device in enumerate("01")
        for file in files(environ={"CUDA_VISIBLE_DEVICES": device}, process=process)
    ]
    [warning] = names.name_warnings(found)
    assert warning.startswith("processes 0, 1 (devices 0, 1) all use tunableop_results0.csv")
    whole = files(environ={"CUDA_VISIBLE_DEVICES": "0,1"})
    assert names.name_warnings(whole) == []
    [warning] = names.name_warnings(whole, "runs.v2/results")
    assert "name of a folder" in warning


def warnings_of(version="2.9.1", **given):
    return environment_warnings({PREFIX + name: value for name, value in given.items()}, version)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"ENABLED": "1"}, None),
        ({"ENABLED": "1", "TUNING": "0", "RECORD_UNTUNED": "1"}, None),
        ({"TUNING": "1"}, "ENABLED is not 1"),
        ({"ENABLED": "1", "VEROBSE": "1"}, f"did you mean {PREFIX}VERBOSE?"),
        ({"ENABLED": "1", "RECORD_UNTUNED": "1"}, "records nothing while"),
        ({"ENABLED": "1", "TUNING": "0", "UNTUNED_FILENAME": "u.csv"}, "does nothing without"),
        ({"ENABLED": "1", "TUNING": "0", "MAX_TUNING_ITERATIONS": "9"}, "TUNING is 0"),
        ({"ENABLED": "true"}, "is invalid; expected"),
        ({"ENABLED": "1", "VERBOSE": "4"}, "3 full trace"),
        ({"ENABLED": "1", "WILDCARD_FALLBACK": "1"}, "does nothing before torch 2.15"),
        ({"ENABLED": "1", "NUMERICAL_CHECK": "1e-5_1e-5"}, "is invalid"),
        ({"ENABLED": "1", "FILENAME": "nowhere/r.csv"}, "folder that is not there"),
        ({"ENABLED": "1", "VERBOSE_FILENAME": "out"}, "VERBOSE is 0"),
        (
            {"ENABLED": "1", "MAX_TUNING_DURATION_MS": "0", "MAX_TUNING_ITERATIONS": "0"},
            "every solution is run once",
        ),
    ],
)
def test_combinations_that_do_nothing_are_warned_about(given, expected):
    found = warnings_of(**given)
    if expected is None:
        assert found == []
    else:
        assert any(expected in warning for warning in found), found


def test_what_depends_on_the_version_is_left_out_without_one():
    assert warnings_of("2.15.0", ENABLED="1", NUMERICAL_CHECK="1e-5_1e-5") == []
    assert any("NUMERICAL_CHECK" in each for each in warnings_of("2.15.0", NUMERICAL_CHECK="1"))


@pytest.mark.parametrize("phase", ["collect", "tune", "use"])
def test_the_variables_of_a_phase_are_sound(phase):
    assert environment_warnings(environment(phase), "2.15.0") == []


class TestTunable:
    """The functions of torch.cuda.tunable without torch."""

    def test_settings_are_kept_and_have_the_defaults_of_torch(self):
        assert not tunable.is_enabled()
        assert tunable.tuning_is_enabled()
        assert not tunable.record_untuned_is_enabled()
        assert tunable.get_max_tuning_duration() == 30
        assert tunable.get_max_tuning_iterations() == 100
        assert tunable.get_rotating_buffer_size() == -1
        assert tunable.get_filename() == "tunableop_results0.csv"
        tunable.enable()
        tunable.set_max_tuning_iterations(7)
        tunable.set_filename("mine.csv", insert_device_ordinal=True)
        assert tunable.is_enabled()
        assert tunable.get_max_tuning_iterations() == 7
        assert tunable.get_filename() == "mine0.csv"
        tunable.set_filename("mine.csv")
        assert tunable.get_filename() == "mine.csv"

    def test_the_environment_wins_and_is_read_once(self, monkeypatch):
        monkeypatch.setenv(f"{PREFIX}MAX_TUNING_DURATION_MS", "5")
        tunable.set_max_tuning_duration(50)
        assert tunable.get_max_tuning_duration() == 5
        monkeypatch.setenv(f"{PREFIX}MAX_TUNING_DURATION_MS", "6")
        assert tunable.get_max_tuning_duration() == 5

    def test_a_tuned_gemm_is_used_else_tuned_else_recorded(self, tmp_path):
        other = (KEY[0], "tn_3_8_8_ld_8_8_3")
        assert tunable.decide(KEY) == "off"
        tunable.enable()
        assert tunable.decide(KEY) == "tune"
        (tmp_path / "r.csv").write_bytes(HEADER + ROW)
        assert tunable.read_file("r.csv")
        assert (tunable.decide(KEY), tunable.decide(other)) == ("use", "tune")
        tunable.tuning_enable(val=False)
        assert tunable.decide(other) == "default"
        tunable.record_untuned_enable()
        assert (tunable.decide(KEY), tunable.decide(other)) == ("use", "record")

    def test_a_row_with_wildcards_is_used_when_that_is_on_and_tuning_is_off(self, tmp_path):
        (tmp_path / "r.csv").write_bytes(HEADER + ROW.replace(b"_2_8_8", b"_*_8_8"))
        tunable.read_file("r.csv")
        tunable.enable()
        other = (KEY[0], "tn_9_8_8_ld_8_8_2")
        tunable.wildcard_fallback_enable()
        assert tunable.decide(other) == "tune"
        tunable.tuning_enable(val=False)
        assert tunable.decide(other) == "use"
        tunable.wildcard_fallback_enable(val=False)
        assert tunable.decide(other) == "default"

    def test_results_are_read_listed_and_written(self, tmp_path):
        (tmp_path / "r.csv").write_bytes(HEADER + ROW + ROW.replace(b"0.25", b"0.5"))
        assert not tunable.read_file("absent.csv")
        assert tunable.read_file("r.csv")
        assert tunable.get_results() == ((*KEY, "Gemm_Hipblaslt_1", 0.25),)
        assert tunable.get_validators() == (("PT_VERSION", "2.9.1"),)
        (tmp_path / "other.csv").write_bytes(b"mine")
        with pytest.raises(FileExistsError):
            tunable.write_file("other.csv")
        assert tunable.write_file("new.csv")
        assert (tmp_path / "new.csv").read_bytes() == HEADER + ROW
        tunable.write_file_on_exit(val=True)

    def test_limits_below_zero_are_no_limit_as_in_torch(self, monkeypatch):
        tunable.set_max_tuning_duration(-5)
        tunable.set_max_tuning_iterations(-1)
        assert (tunable.get_max_tuning_duration(), tunable.get_max_tuning_iterations()) == (0, 0)
        with pytest.raises(ValueError, match="tolerances must be positive, not atol=0"):
            tunable.set_numerical_check_tolerances(True, atol=0)
        tunable.reset()
        monkeypatch.setenv(f"{PREFIX}MAX_TUNING_DURATION_MS", "-3")
        assert tunable.get_max_tuning_duration() == 0

    def test_all_rows_of_a_file_count_or_none(self, tmp_path):
        (tmp_path / "bare.csv").write_bytes(ROW)
        (tmp_path / "empty.csv").write_bytes(HEADER)
        (tmp_path / "other.csv").write_bytes(HEADER + b"Validator,GCN_ARCH_NAME,gfx942\n" + ROW)
        assert not tunable.read_file("bare.csv")
        assert tunable.read_file("empty.csv")
        assert tunable.get_results() == ()
        assert not tunable.read_file("other.csv")
        assert tunable.get_results() == ()

    def test_files_add_up_and_the_first_row_of_a_gemm_counts(self, tmp_path):
        more = ROW.replace(b"_2_8_8", b"_3_8_8")
        (tmp_path / "r.csv").write_bytes(HEADER + ROW)
        (tmp_path / "s.csv").write_bytes(HEADER + ROW.replace(b"0.25", b"0.5") + more)
        assert tunable.read_file("r.csv")
        assert tunable.read_file("s.csv")
        assert [time_ms for *_, time_ms in tunable.get_results()] == [0.25, 0.25]
        assert tunable.get_validators() == (("PT_VERSION", "2.9.1"),)

    def test_tuning_needs_both_switches(self, tmp_path):
        (tmp_path / "u0.csv").write_bytes(",".join(KEY).encode() + b"\n")
        for tune in (
            tunable.tune_gemm_in_file,
            lambda name: tunable.mgpu_tune_gemm_in_file(name, 1),
        ):
            with pytest.raises(ResultsError, match="call enable"):
                tune("u0.csv")

    def test_a_mask_of_dimensions_needs_torch_itself(self):
        with pytest.raises(NotImplementedError, match=r"2\.15"), tunable.dynamic_dims_mask(M=True):
            pass

    def test_calls_are_passed_on_to_torch_where_it_is_loaded(self, monkeypatch):
        calls = []
        backend = types.SimpleNamespace(
            enable=lambda val: calls.append(("enable", val)),
            is_enabled=lambda: True,
            get_filename=lambda: "torch0.csv",
            get_results=lambda: (("op", "params", "Default", 0.5),),
            get_validators=lambda: (("PT_VERSION", "9.9.9"),),
        )
        torch = types.SimpleNamespace(
            _C=types.SimpleNamespace(_cuda_tunableop_enable=None),
            cuda=types.SimpleNamespace(tunable=backend),
        )
        monkeypatch.setitem(sys.modules, "torch", torch)
        tunable.enable()
        assert calls == [("enable", True)]
        assert tunable.get_filename() == "torch0.csv"
        assert tunable.get_results() == (("op", "params", "Default", 0.5),)
        assert tunable.get_validators() == (("PT_VERSION", "9.9.9"),)
        tunable.set_max_tuning_duration(4)  # this torch does not have it
        assert tunable.get_max_tuning_duration() == 4


# `__all__` of torch 2.7 and 2.15.
TORCH_NAMES = """
    enable is_enabled tuning_enable tuning_is_enabled record_untuned_enable
    record_untuned_is_enabled set_max_tuning_duration get_max_tuning_duration
    set_max_tuning_iterations get_max_tuning_iterations set_filename get_filename get_results
    get_validators write_file_on_exit write_file read_file tune_gemm_in_file
    mgpu_tune_gemm_in_file set_rotating_buffer_size get_rotating_buffer_size
    wildcard_fallback_enable wildcard_fallback_is_enabled set_cublaslt_requested_algo_count
    get_cublaslt_requested_algo_count dynamic_dims_mask set_numerical_check_tolerances
""".split()  # noqa: SIM905


def documented():
    """Return the functions with a row of their own; the docs say that all others are passed on."""
    docs = Path(__file__).parents[2] / "docs" / "tunableop.md"
    text = docs.read_text(encoding="utf-8")
    assert "| all others | passed on |" in text
    rows = re.findall(r"^\| `.+", text.partition("| function |")[2], re.MULTILINE)
    rows = [row for row in rows if row.split("`")[1].islower()]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row.split(" | ")[0])}


def test_every_function_of_torch_is_here_and_in_the_table_of_the_docs():
    assert set(TORCH_NAMES) - set(tunable.__all__) == set()
    assert documented() <= set(TORCH_NAMES)


def test_only_the_version_is_known_of_a_torch_that_sees_no_gpu(monkeypatch):
    # The package has a function of the same name as this module.
    installed = import_module("longpole.bench.tunableop.environment")
    torch = types.SimpleNamespace(cuda=types.SimpleNamespace(is_available=lambda: False))
    monkeypatch.setattr(installed, "installed_version", lambda: "2.9.1")
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert installed.installed_validators() == ({"PT_VERSION": "2.9.1"}, False)
    torch.cuda.is_available = lambda: True
    backend = types.SimpleNamespace(get_validators=lambda: (("PT_VERSION", "2.9.1"), ("A", "b")))
    monkeypatch.setitem(sys.modules, "torch.cuda.tunable", backend)
    assert installed.installed_validators() == ({"PT_VERSION": "2.9.1", "A": "b"}, True)
    monkeypatch.setattr(installed, "installed_version", lambda: None)
    assert installed.installed_validators() == ({}, False)


@pytest.mark.needs("torch")
def test_every_function_of_the_installed_torch_is_here():
    import torch

    assert set(torch.cuda.tunable.__all__) <= set(tunable.__all__)


@pytest.mark.needs("torch")
def test_the_version_is_the_one_that_torch_writes():
    import torch

    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU and gives no validators")
    validators = dict(torch.cuda.tunable.get_validators())
    assert validators["PT_VERSION"] == tunableop.installed_version()
    assert dict(tunable.get_validators()) == validators


def test_torch_replaces_the_first_place_of_the_results_file_and_none_of_the_untuned_file():
    (file,) = files(
        results="out%d/r%d.csv", untuned="u%d.csv", environ={"CUDA_VISIBLE_DEVICES": "4"}
    )
    assert file.results.as_posix() == "out0/r%d.csv"
    assert file.untuned.as_posix() == "u%d0.csv"


@pytest.mark.parametrize(
    ("variables", "version", "said"),
    [
        ({"UNTUNED_FILENAME": "u%d.csv", "RECORD_UNTUNED": "1", "TUNING": "0"}, "2.9.1", "keeps"),
        ({"WILDCARD_FALLBACK": "1"}, "2.15.0", "WILDCARD_FALLBACK=1 does nothing while"),
        ({"NUMERICAL_CHECK": "yes"}, "0.0", "NUMERICAL_CHECK='yes' is invalid"),
        ({"NUMERICAL_CHECK": "1"}, "2.10.0", "NUMERICAL_CHECK='1' is invalid"),
    ],
)
def test_variables_without_effect_are_named(variables, version, said):
    environ = {f"PYTORCH_TUNABLEOP_{name}": value for name, value in variables.items()}
    found = environment_warnings({"PYTORCH_TUNABLEOP_ENABLED": "1", **environ}, version)
    assert any(said in warning for warning in found), found


def test_variables_with_an_effect_are_not_warned_about():
    for given in ({"WILDCARD_FALLBACK": "1", "TUNING": "0"}, {"NUMERICAL_CHECK": "1e-5_1e-5"}):
        environ = {f"PYTORCH_TUNABLEOP_{name}": value for name, value in given.items()}
        assert environment_warnings({"PYTORCH_TUNABLEOP_ENABLED": "1", **environ}, "2.15.0") == []
