"""The installed MindSpore takes our options, and what it records on a CPU is read.

A MindSpore made for a test accepts any keyword; the real one drops those that it does not know.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.needs("mindspore")

TAKES = """
import json, sys, warnings
import mindspore
from mindspore.profiler.common.profiler_parameters import ProfilerParameters
from longpole.formats.mindspore.options import options_of
from longpole.mindspore import ProfilerOptions

answers = []
for device, asked in json.loads(sys.argv[1]):
    options = options_of(ProfilerOptions.validate(device, **asked), mindspore.profiler)
    options["output_path"] = "data"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        taken = ProfilerParameters(**options)
    answers.append({
        "unknown": sorted(set(options) - set(ProfilerParameters.PARAMS)),
        "changed": sorted(
            name for name, value in options.items()
            if name in ProfilerParameters.PARAMS and name != "activities"
            and getattr(taken, name) != value
        ),
        "taken": taken.npu_profiler_params,
        "warned": [str(each.message) for each in caught],
    })
print("ANSWERS" + json.dumps(answers, default=str))
"""

RECORDS = """
import json, sys
import mindspore, numpy
from longpole.mindspore import Profiler

mindspore.set_device("CPU")
profiler = Profiler(backend="mindspore", output_path=sys.argv[1], environment={})
ones = mindspore.Tensor(numpy.ones((8, 8), numpy.float32))
mindspore.ops.matmul(ones, ones).sum().asnumpy()
recording = profiler.analyse()
findings = [each.code for each in recording.findings]
print("ANSWERS" + json.dumps([str(recording.folder), str(recording.info), findings]))
"""


def ran(program, argument):
    """Run a program in a process of its own, since importing MindSpore warns; return its answer."""
    done = subprocess.run(
        [sys.executable, "-c", program, argument],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.rpartition("ANSWERS")[2])


METRICS = {
    1: "PipeUtilization",
    2: "Memory",
    3: "MemoryL0",
    4: "ResourceConflictRatio",
    5: "MemoryUB",
    6: "L2Cache",
    0: "ArithmeticUtilization",
}


def test_every_option_reaches_mindspore_as_it_was_asked():
    asked = [("cpu", {}), ("ascend", {}), ("ascend", {"profiler_level": "Level0"})]
    asked += [
        ("ascend", {"profiler_level": "Level2", "aicore_metrics": number}) for number in METRICS
    ]
    flags = ("profile_memory", "l2_cache", "parallel_strategy", "host_stack")
    asked += [("ascend", {name: value}) for name in flags for value in (True, False)]
    asked += [("ascend", {"op_time": False, "profile_framework": "all"})]
    asked += [("ascend", {"profile_framework": None})]
    answers = ran(TAKES, json.dumps(asked))
    for question, answer in zip(asked, answers, strict=True):
        assert (answer["unknown"], answer["changed"], answer["warned"]) == ([], [], []), question
    of_metrics = answers[3 : 3 + len(METRICS)]
    assert len({answer["taken"]["aicore_metrics"] for answer in of_metrics}) == len(METRICS)
    for (_, options), answer in zip(asked[10:18], answers[10:18], strict=True):
        [(name, value)] = options.items()
        assert answer["taken"][{"host_stack": "with_stack"}.get(name, name)] is value
    assert [(each["taken"]["cpu_trace"], each["taken"]["npu_trace"]) for each in answers[18:]] == [
        (True, False),
        (False, True),
    ]


def test_a_recording_of_the_cpu_is_written_and_described(tmp_path):
    folder, info, findings = ran(RECORDS, str(tmp_path / "data"))
    assert findings == []
    written = json.loads((tmp_path / "data/profiler" / info.rpartition("/")[2]).read_text())
    assert written["context_mode"] in {"graph", "pynative"}
    [view] = (tmp_path / "data/profiler").rglob("trace_view.json")
    assert folder in str(view)
    assert json.loads(view.read_text())
