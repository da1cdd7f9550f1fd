"""Scripts of operators that torch recorded run with torch, and repeat the recorded call."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import longpole
from longpole.formats.convert.operator_script import operator_script

pytestmark = pytest.mark.needs("torch")

CALLS = {
    "add": "x + y",
    "mul": "x * 0.5",
    "div": "x / y",
    "addmm": "torch.addmm(row, x, x.t())",
    "mm": "x @ x.t()",
    "bmm": "torch.bmm(batch, batch.transpose(1, 2))",
    "matmul": "batch @ x.t()",
    "linear": "F.linear(batch, x, row)",
    "conv2d": "F.conv2d(image, weight, stride=2, padding=1)",
    "max_pool2d": "F.max_pool2d(image, 2)",
    "avg_pool2d": "F.avg_pool2d(image, 2)",
    "batch_norm": "F.batch_norm(image, channel, channel, training=False)",
    "layer_norm": "F.layer_norm(x, [24], wide, wide)",
    "group_norm": "F.group_norm(image, 2)",
    "softmax": "torch.softmax(x, dim=-1)",
    "_log_softmax": "torch.log_softmax(x, dim=1)",
    "gelu": "F.gelu(x)",
    "relu": "torch.relu(x)",
    "sigmoid": "torch.sigmoid(x)",
    "dropout": "F.dropout(x, 0.1)",
    "embedding": "F.embedding(numbers, x)",
    "sum": "x.sum(dim=1, keepdim=True)",
    "mean": "batch.mean(dim=[0, 2])",
    "argmax": "x.argmax(dim=0)",
    "topk": "torch.topk(x, 3)",
    "sort": "torch.sort(x, dim=1, descending=True)",
    "cumsum": "torch.cumsum(x, dim=0)",
    "where": "torch.where(x > 0, x, y)",
    "clamp": "torch.clamp(x, -1.0, 1.0)",
    "transpose": "batch.transpose(0, 2)",
    "permute": "image.permute(0, 2, 3, 1)",
    "cat": "torch.cat([x, y], dim=1)",
    "stack": "torch.stack([x, y])",
    "index_select": "x.index_select(1, numbers)",
    "gather": "torch.gather(x, 1, numbers.view(1, 4))",
    "scaled_dot_product_attention": "F.scaled_dot_product_attention(heads, heads, heads)",
}
RECORDS = """
import json, sys, torch
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile

torch.manual_seed(0)
x, y, row, wide = torch.randn(16, 24), torch.randn(16, 24), torch.randn(16), torch.randn(24)
batch, image, heads = torch.randn(3, 8, 24), torch.randn(2, 4, 12, 12), torch.randn(2, 2, 8, 16)
weight, channel, numbers = torch.randn(6, 4, 3, 3), torch.rand(4) + 1, torch.tensor([0, 3, 5, 1])
with torch.no_grad(), profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
    for call in json.loads(sys.argv[1]):
        eval(call)
profiler.export_chrome_trace(sys.argv[2])
"""
RUNS = """
import contextlib, io, json, runpy, sys, traceback

answers = {}
for path in sys.argv[1:]:
    told = io.StringIO()
    sys.argv = [path]
    with contextlib.redirect_stdout(told):
        try:
            runpy.run_path(path, run_name="__main__")
        except (Exception, SystemExit):
            print(traceback.format_exc()[-2000:])
    answers[path] = told.getvalue()
print("ANSWERS" + json.dumps(answers))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Record the calls, write a script of each, run all; return what they print by operator."""
    folder = tmp_path_factory.mktemp("scripts")
    path = folder / "trace.json"
    _python(RECORDS, json.dumps(list(CALLS.values())), path)
    trace = longpole.read_trace(path)
    scripts = {}
    for name in CALLS:
        rows = trace.events.filter(kind="operator", name=f"aten::{name}").sort("start_ns")
        scripts[name] = folder / f"{name}.py"
        scripts[name].write_text(operator_script(trace, rows["event"][0]).text)
    told = json.loads(_python(RUNS, *scripts.values()).partition("ANSWERS")[2])
    return {name: told[str(script)] for name, script in scripts.items()}


def _python(code, *arguments):
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", CALLS)
def test_a_script_of_a_recorded_operator_runs(name, answers):
    assert answers[name].startswith(f"aten::{name} on cpu"), answers[name]
