"""The profiler's states, its files and its backends; with torch, where it is installed."""

from __future__ import annotations

import json
import stat
import sys
from enum import Enum
from types import ModuleType

import pytest

import longpole
from longpole.mindspore import (
    OptionStateError,
    OptionTypeError,
    OptionValueError,
    Profiler,
    ProfilerStateError,
)
from longpole.testing import TraceBuilder
from mindspore_files import cpu_profile


class FakeBackend:
    """Writes what it was asked to do, and a trace of one operator."""

    name = "fake"
    mode = "pynative"
    ignored = frozenset(("sync_enable",))

    def __init__(self):
        self.calls = []

    def device(self):
        return "gpu"

    def rank(self):
        return None

    def start(self, options, folder):  # noqa: ARG002 (protocol)
        self.calls.append("start")

    def step(self):
        self.calls.append("step")

    def stop(self):
        self.calls.append("stop")

    def write(self, path):
        self.calls.append("write")
        return TraceBuilder().operator("aten::mm", (0, 20)).write(path)


@pytest.fixture
def backend():
    return FakeBackend()


@pytest.fixture
def profiler(backend, tmp_path):
    return Profiler(
        backend=backend, output_path=tmp_path / "data", start_profile=False, environment={}
    )


def test_it_starts_when_it_is_made(backend, tmp_path):
    recording = Profiler(backend=backend, output_path=tmp_path, environment={}).analyse()
    assert backend.calls == ["start", "stop", "write"]
    assert longpole.read_trace(recording.traces[0]).events.height == 1


def test_it_starts_and_stops_again_with_a_trace_for_each(profiler, backend):
    for _ in range(2):
        profiler.start()
        profiler.step()
        profiler.stop()
    profiler.step()
    recording = profiler.analyse()
    assert backend.calls == ["start", "step", "stop", "write"] * 2
    assert [path.name for path in recording.traces] == ["trace_0_0.json", "trace_0_1.json"]
    assert profiler.analyse() is recording


def test_a_second_start_and_a_stop_too_many_are_errors(profiler):
    with pytest.raises(ProfilerStateError, match="has not started, so can not stop"):
        profiler.stop()
    profiler.start()
    with pytest.raises(RuntimeError, match="has already started"):
        profiler.start()
    profiler.stop()
    with pytest.raises(RuntimeError):
        profiler.stop()


def test_an_analysis_of_nothing_is_an_error(profiler):
    with pytest.raises(ProfilerStateError, match="nothing was recorded"):
        profiler.analyse()


def test_files_and_folders_are_the_owners_alone(profiler):
    profiler.start()
    folder = profiler.analyse().folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_a_folder_with_files_is_left_alone_and_warned_of(profiler, tmp_path, caplog):
    (tmp_path / "data/profiler").mkdir(parents=True)
    (tmp_path / "data/profiler/kept.json").write_text("1")
    profiler.start()
    recording = profiler.analyse()
    assert recording.folder == tmp_path / "data/profiler_2"
    assert [each.code for each in recording.findings] == ["folder_exists"]
    assert "has files already" in caplog.text
    assert (tmp_path / "data/profiler/kept.json").read_text() == "1"


def test_when_and_where_is_written_down(backend, tmp_path):
    variables = {"RANK_ID": "5", "RANK_SIZE": "8", "DEVICE_ID": "3"}
    made = Profiler(backend=backend, output_path=tmp_path, environment=variables)
    info = made.analyse().info
    assert info.name == "profiler_info_3.json"  # of a GPU, the rank is that of the device
    shown = json.loads(info.read_text())
    assert (shown["rank_id"], shown["rank_size"], shown["context_mode"]) == ("3", 8, "pynative")
    assert {"profiling_start_time", "profiling_stop_time", "analyse_end_time"} <= shown.keys()


def test_where_msprof_records_every_method_returns_at_once(tmp_path):
    made = Profiler(output_path=tmp_path, environment={"PROFILER_SAMPLECONFIG": "x"})
    made.start()
    made.start()
    made.stop()
    assert made.analyse() is None
    assert not list(tmp_path.iterdir())


def test_the_environment_and_options_may_forbid_a_profiler(backend):
    with pytest.raises(OptionStateError):
        Profiler(backend=backend, environment={"PROFILING_MODE": "1"})
    with pytest.raises(OptionTypeError):
        Profiler(backend=backend, environment={}, start_profile="yes")


def test_warnings_of_options_are_logged(backend, caplog, said):
    made = Profiler(backend=backend, environment={}, start_profile=False, pcie=True)
    said.within(caplog.text)
    assert [each.option for each in made.options.findings] == ["pcie"]


def test_options_without_effect_are_warned_of(backend, caplog, tmp_path, said):
    options = {"sync_enable": False, "op_time": False, "output_path": tmp_path}
    recording = Profiler(backend=backend, environment={}, **options).analyse()
    said.within(caplog.text)
    assert "no_effect" in {each.code for each in recording.findings}


def test_an_earlier_profile_can_be_analysed(profiler, tmp_path):
    folder = cpu_profile(tmp_path / "earlier")
    assert profiler.analyse(folder).ranks[0].operators
    assert profiler.analyse(folder, mode="async").result(60).ranks
    assert profiler.analyse(folder, mode="later").ranks  # a warning, as in MindSpore
    assert Profiler.offline_analyse(folder).ranks
    with pytest.raises(TypeError):
        profiler.analyse(folder, step_list="1")


def test_operators_of_a_trace_are_asked_elsewhere(profiler):
    profiler.start()
    profiler.stop()
    with pytest.raises(ProfilerStateError, match="longpole table TRACE operators"):
        profiler.op_analyse("MatMul")


@pytest.fixture
def fake_mindspore(monkeypatch, tmp_path):
    """Install a module `mindspore` whose profiler writes the files of a CPU."""
    calls = []

    class Original:
        def __init__(self, **options):
            self.options = options
            calls.append(("made", options))

        def start(self):
            calls.append("start")

        def stop(self):
            calls.append("stop")

        def analyse(self):
            calls.append("analyse")
            cpu_profile(type(tmp_path)(self.options["output_path"]))

    module = ModuleType("mindspore")
    module.GRAPH_MODE = 0
    module.Profiler = Original
    module.get_context = {"mode": 0, "device_target": "CPU"}.get
    monkeypatch.setitem(sys.modules, "mindspore", module)
    return calls


def test_mindspores_own_profiler_records_where_the_program_uses_it(fake_mindspore, tmp_path):
    made = Profiler(output_path=tmp_path / "data", environment={}, timeline_limit=7)
    recording = made.analyse()
    (_, options), *others = fake_mindspore
    assert others == ["start", "stop", "analyse"]
    assert options["timeline_limit"] == 7
    assert options["start_profile"] is False
    assert "profile_memory" not in options  # the CPU does not have it
    assert recording.traces == ()
    assert json.loads(recording.info.read_text())["context_mode"] == "graph"
    assert made.op_analyse("Mul").rows[0].n_runs == 3


def ascend(monkeypatch, fake_mindspore, **enumerations):
    """Make the fake MindSpore one with an Ascend device and with some enumerations."""
    module = sys.modules["mindspore"]
    module.get_context = {"mode": 0, "device_target": "Ascend"}.get
    module.profiler = ModuleType("mindspore.profiler")
    for name, members in enumerations.items():
        monkeypatch.setattr(module.profiler, name, Enum(name, members), raising=False)
    return module.profiler, fake_mindspore


LEVELS = "Level0 Level1 Level2"


def test_mindspore_gets_the_level_as_a_member_of_its_enumeration(
    monkeypatch, fake_mindspore, tmp_path
):
    types, calls = ascend(monkeypatch, fake_mindspore, ProfilerLevel=LEVELS)
    Profiler(output_path=tmp_path, environment={}, profiler_level="Level2", aicore_metrics=3)
    (_, options), *_ = calls
    assert options["profiler_level"] is types.ProfilerLevel.Level2
    assert (options["aicore_metrics"], options["host_stack"]) == (3, True)


def test_a_level_that_the_installed_mindspore_has_not_is_an_error(
    monkeypatch, fake_mindspore, tmp_path
):
    types, calls = ascend(monkeypatch, fake_mindspore, ProfilerLevel=f"LevelNone {LEVELS}")
    Profiler(output_path=tmp_path, environment={}, profiler_level="LevelNone")
    assert calls[0][1]["profiler_level"] is types.ProfilerLevel.LevelNone
    ascend(monkeypatch, fake_mindspore, ProfilerLevel=LEVELS)
    with pytest.raises(OptionValueError, match="has no profiler_level LevelNone; it has Level0"):
        Profiler(output_path=tmp_path, environment={}, profiler_level="LevelNone")


SINCE_2_5 = {
    *("output_path", "start_profile", "profiler_level", "activities", "aic_metrics", "with_stack"),
    *("profile_memory", "data_process", "parallel_strategy", "l2_cache", "hbm_ddr", "pcie"),
    *("sync_enable", "data_simplification"),
}
"""Options of MindSpore 2.10 that we use; it drops others without an error."""


@pytest.mark.parametrize(("number", "metrics"), [(1, "PipeUtilization"), (-1, "AiCoreNone")])
def test_mindspore_from_2_5_on_gets_its_own_options(
    monkeypatch, fake_mindspore, tmp_path, number, metrics
):
    types, calls = ascend(
        monkeypatch,
        fake_mindspore,
        ProfilerLevel=LEVELS,
        AicoreMetrics="AiCoreNone PipeUtilization",
        ProfilerActivity="CPU NPU",
    )
    asked = {"aicore_metrics": number, "host_stack": False, "profile_framework": None}
    asked["profiler_level"] = "Level1"
    made = Profiler(output_path=tmp_path, environment={}, timeline_limit=7, **asked)
    (_, options), *_ = calls
    assert options.keys() <= SINCE_2_5
    assert options["aic_metrics"] is types.AicoreMetrics[metrics]
    assert options["with_stack"] is False
    assert options["activities"] == [types.ProfilerActivity.NPU]
    findings = {(each.code, each.option) for each in made.analyse().findings}
    assert findings == {("no_effect", "timeline_limit")}


def test_a_mindspore_without_levels_gets_none_and_a_finding_says_so(
    monkeypatch, fake_mindspore, tmp_path
):
    _, calls = ascend(monkeypatch, fake_mindspore)
    made = Profiler(output_path=tmp_path, environment={}, profiler_level="Level1")
    (_, options), *_ = calls
    assert "profiler_level" not in options
    assert ("no_effect", "profiler_level") in {
        (each.code, each.option) for each in made.analyse().findings
    }


def test_without_a_library_the_error_says_which_extra_brings_one(monkeypatch):
    monkeypatch.setattr("longpole.formats.mindspore.backends.find_spec", lambda _: None)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.delitem(sys.modules, "mindspore", raising=False)
    with pytest.raises(longpole.MissingDependencyError, match=r"longpole\[torch\]"):
        Profiler(environment={})
    with pytest.raises(ValueError, match="'torch' or 'mindspore'"):
        Profiler(backend="tensorflow", environment={})


@pytest.mark.needs("torch")
def test_torch_records_steps_and_operators(tmp_path):
    import torch

    options = {"output_path": tmp_path, "environment": {}, "start_profile": False}
    options["torch_options"] = {"with_stack": True}
    with Profiler(backend="torch", device="cpu", **options) as profiler:
        for _ in range(3):
            torch.ones(8, 8) @ torch.ones(8, 8)
            profiler.step()
    trace = longpole.read_trace(profiler.analyse().traces[0])
    names = trace.events["name"].cast(str).to_list()
    assert "aten::mm" in names
    assert "python" in trace.events["kind"].cast(str).to_list()
    assert {"ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2"} <= set(names)
