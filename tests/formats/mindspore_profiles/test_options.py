"""MindSpore's options: defaults, devices, what is repaired and what is an error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from longpole.formats.mindspore.option_table import OPTIONS
from longpole.mindspore import (
    OptionStateError,
    OptionTypeError,
    OptionValueError,
    ProfilerOptions,
)

SUPPORT = """
    output_path               cpu gpu ascend
    start_profile             cpu gpu ascend
    op_time                   cpu gpu ascend
    profile_framework         cpu gpu ascend
    timeline_limit            cpu gpu ascend
    data_process                  gpu ascend
    sync_enable                   gpu
    profiler_level                    ascend
    profile_communication             ascend
    profile_memory                    ascend
    parallel_strategy                 ascend
    aicore_metrics                    ascend
    l2_cache                          ascend
    hbm_ddr                           ascend
    pcie                              ascend
    host_stack                        ascend
    data_simplification               ascend
    ascend_job_id                     ascend
    start                     cpu gpu ascend
"""
SUPPORTED = {name: set(devices) for name, *devices in map(str.split, SUPPORT.split("\n")[1:-1])}


@pytest.mark.parametrize("device", ["cpu", "gpu", "ascend"])
def test_each_device_has_its_options_and_others_are_warned_of(device):
    for name, devices in SUPPORTED.items():
        given = {name: OPTIONS[name].default}
        found = ProfilerOptions.check(device, **given)
        codes = [each.code for each in found.findings]
        assert codes == ([] if device in devices else ["invalid_option"]), name
    assert SUPPORTED.keys() == OPTIONS.keys()


def test_defaults_are_those_of_mindspore():
    found = ProfilerOptions.validate("ascend")
    for name in OPTIONS.keys() - {"start"}:
        default = OPTIONS[name].default
        assert getattr(found, name) == (Path("data") if name == "output_path" else default)


REPAIRED = [
    ("cpu", "op_time", 1, True),
    ("cpu", "profile_framework", "cpu", "all"),
    ("cpu", "timeline_limit", True, 500),
    ("cpu", "timeline_limit", 2.5, 500),
    ("cpu", "timeline_limit", 0, 500),
    ("gpu", "data_process", None, True),
    ("gpu", "sync_enable", "yes", True),
    ("ascend", "profiler_level", "high", "Level0"),
    ("ascend", "profile_communication", 1, False),
    ("ascend", "profile_memory", "on", False),
    ("ascend", "parallel_strategy", 0, True),
    ("ascend", "aicore_metrics", 7, 0),
    ("ascend", "aicore_metrics", True, 0),
    ("ascend", "l2_cache", 1, False),
    ("ascend", "hbm_ddr", 1, False),
    ("ascend", "pcie", [], False),
    ("ascend", "host_stack", 1, True),
    ("ascend", "data_simplification", 1, True),
]


@pytest.mark.parametrize(("device", "name", "value", "used"), REPAIRED)
def test_a_value_that_cannot_be_is_repaired_with_a_warning(device, name, value, used):
    found = ProfilerOptions.validate(device, **{name: value})
    [finding] = found.findings
    assert (finding.code, finding.severity, finding.option) == ("bad_value", "warning", name)
    assert getattr(found, name) == finding.used == used


def test_levels_switch_off_what_they_do_not_have():
    zero = ProfilerOptions.validate("ascend", profiler_level="Level0", aicore_metrics=3)
    assert (zero.data_process, zero.aicore_metrics) == (False, -1)
    none = ProfilerOptions.validate("ascend", profiler_level="LevelNone", aicore_metrics=3)
    assert (none.profiler_level, none.aicore_metrics) == ("LevelNone", -1)
    for made in (zero, none):
        assert [(it.code, it.option, it.used) for it in made.findings] == [
            ("level_without_it", "aicore_metrics", -1)
        ]
    one = ProfilerOptions.validate("ascend", profiler_level="Level1", aicore_metrics=3)
    assert (one.data_process, one.aicore_metrics, one.findings) == (False, 3, ())
    asked = ProfilerOptions.validate("ascend", profiler_level="Level1", data_process=True)
    assert [(it.option, it.used) for it in asked.findings] == [("data_process", False)]
    same = ProfilerOptions.validate("ascend", profiler_level="Level0", data_process=False)
    assert same.findings == ()
    # MindSpore takes Level0 in name alone where the level is of another type.
    assert ProfilerOptions.validate("ascend", profiler_level=0).data_process is False


def test_without_op_time_some_options_mean_nothing():
    found = ProfilerOptions.validate("ascend", op_time=False, l2_cache=True, profile_memory=True)
    assert [(each.code, each.option) for each in found.findings] == [
        ("needs_op_time", "profile_memory")
    ]


def test_errors_are_of_mindspores_class_and_findings_too():
    cases = [
        ("cpu", {"start_profile": 1}, OptionTypeError, TypeError),
        ("ascend", {"ascend_job_id": "/none/JOB1"}, OptionValueError, ValueError),
        ("ascend", {"output_path": "/" + "x" * 2100}, OptionValueError, ValueError),
        ("tpu", {}, OptionStateError, RuntimeError),
    ]
    for device, options, error, base in cases:
        assert issubclass(error, base)
        with pytest.raises(error):
            ProfilerOptions.validate(device, **options)
        [finding] = ProfilerOptions.check(device, **options).findings
        assert (finding.severity, finding.raises) == ("error", error)
    with pytest.raises(OptionStateError):
        ProfilerOptions.validate(None)
    with pytest.raises(RuntimeError, match="PROFILING_MODE"):
        ProfilerOptions.validate(environment={"PROFILING_MODE": "true"})


def test_a_job_gives_the_folder_it_is_in(tmp_path):
    (tmp_path / "JOB1").mkdir()
    found = ProfilerOptions.validate("ascend", ascend_job_id=str(tmp_path / "JOB1"))
    assert found.output_path == tmp_path


def test_the_folder_asked_for_wins_over_the_environment():
    environment = {"MS_DIAGNOSTIC_DATA_PATH": "/logs"}
    assert ProfilerOptions.validate(environment=environment).output_path == Path("/logs")
    found = ProfilerOptions.validate(environment=environment, output_path="here")
    assert found.output_path == Path("here")
    assert [each.code for each in found.findings] == ["output_path"]


def test_the_run_configuration_wins_over_arguments():
    config = json.dumps({"start": True, "timeline_limit": 7, "pid": 3, "pcie": True})
    environment = {"MS_PROFILER_RUN_CONFIG": config}
    found = ProfilerOptions.validate(environment=environment, timeline_limit=9)
    assert (found.timeline_limit, found.findings) == (7, ())
    one = {"MS_PROFILER_RUN_CONFIG": json.dumps({"start": 1, "timeline_limit": 7})}
    assert ProfilerOptions.validate(environment=one).timeline_limit == 7
    off = {"MS_PROFILER_RUN_CONFIG": json.dumps({"start": False, "timeline_limit": 7})}
    assert ProfilerOptions.validate(environment=off, timeline_limit=9).timeline_limit == 9


def test_the_options_of_a_later_mindspore_are_named_as_not_used():
    found = ProfilerOptions.validate(environment={"MS_PROFILER_OPTIONS": '{"start": true}'})
    assert [(each.code, each.option) for each in found.findings] == [
        ("unused_variable", "MS_PROFILER_OPTIONS")
    ]


def test_ranks_and_points_come_from_the_environment():
    variables = {"RANK_ID": "3", "RANK_SIZE": "8", "DEVICE_ID": "1", "PROFILING_FP_START": "f"}
    settings = ProfilerOptions.validate(environment=variables).environment
    assert (settings.rank("cpu"), settings.rank("gpu"), settings.rank_size) == (3, 1, 8)
    text = ProfilerOptions.validate("ascend", environment=variables).msprof_options()
    assert json.loads(text)["fp_point"] == "f"
    for bad in ("x", "-1", "9" * 30, "²"):
        found = ProfilerOptions.validate(environment={"RANK_ID": bad})
        assert [each.option for each in found.findings] == ["RANK_ID"]
        assert found.environment.rank("cpu") == 0


def test_the_options_for_msprof_follow_op_time():
    options = {"profile_memory": True, "profile_communication": True, "pcie": True}
    on = ProfilerOptions.validate("ascend", **options)
    text = json.loads(on.msprof_options())
    assert (text["hccl"], text["profile_memory"], text["pcie"]) == ("on", "on", "on")
    assert text["aic_metrics"] == "ArithmeticUtilization"
    off = ProfilerOptions.validate("ascend", op_time=False, data_process=False, **options)
    text = json.loads(off.msprof_options())
    assert (text["hccl"], text["aicpu"], text["task_trace"]) == ("off", "off", "off")


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.integers())
)


@for_all(
    st.sampled_from(["cpu", "gpu", "ascend", "GPU", "npu"]),
    st.dictionaries(st.sampled_from([*OPTIONS, "nope", "env_enable"]), VALUES),
    st.dictionaries(
        st.sampled_from(["RANK_ID", "MS_PROFILER_RUN_CONFIG", "DEVICE_ID", "PROFILING_MODE"]),
        st.text(),
    ),
)
def test_nothing_is_raised_but_what_is_documented(device, options, environment):
    checked = ProfilerOptions.check(device, environment=environment, **options)
    errors = [each for each in checked.findings if each.severity == "error"]
    try:
        ProfilerOptions.validate(device, environment=environment, **options)
    except (OptionTypeError, OptionValueError, OptionStateError) as error:
        raised = [type(error)]
    else:
        raised = []
    assert raised == [each.raises for each in errors[:1]]
    reported = {each.option for each in checked.findings}
    assert {"nope", "env_enable"} & set(options) <= reported or checked.environment.run_options
    for name in OPTIONS.keys() - {"start"}:
        assert OPTIONS[name].check(getattr(checked, name)) is None


def test_msprof_is_told_that_no_level_was_asked_for():
    levels = [None, "Level1"]
    made = [ProfilerOptions.validate("ascend", profiler_level=level) for level in levels]
    rows = [json.loads(each.msprof_options())["profiler_level"] for each in made]
    assert rows == ["off", "Level1"]
