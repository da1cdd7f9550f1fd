"""Data pipelines: queues, CPU use, batches and the rules for bottlenecks."""

from __future__ import annotations

import json

import pytest

from longpole.formats.mindspore.findings import Findings
from longpole.formats.mindspore.layouts import find_ranks
from longpole.formats.mindspore.minddata import read_data_pipeline
from longpole.mindspore import ProfileError
from mindspore_files import given, pipeline, write


def test_a_batch_takes_the_time_to_the_next():
    [files] = find_ranks(given("ms200_minddata"))
    batches = read_data_pipeline(files, Findings()).batches
    lines = files.need("dataset_iterator_profiling").read_text().splitlines()
    stamps = [int(line.split()[4]) for line in lines if line.startswith("1 ")]
    # MindSpore says 15.833: the mean of these and of the waits for a batch together.
    assert batches.batch_ms == pytest.approx((stamps[-1] - stamps[0]) / (len(stamps) - 1))
    assert batches.n_batches == len(stamps) - 1


FULL, HALF, EMPTY = [10] * 10, [5] * 10, [0] * 10


def bottleneck(folder, ops, cpu):
    [files] = find_ranks(pipeline(folder, ops, cpu))
    return read_data_pipeline(files, Findings()).bottleneck


def test_an_operator_whose_workers_are_busy_is_the_bottleneck(tmp_path, said):
    ops = [(0, "BatchOp", 1, [1], FULL), (1, "MapOp", 2, [2], HALF), (2, "TFOp", 1, [], FULL)]
    found = bottleneck(tmp_path, ops, {0: 50, 1: 180, 2: 50})
    assert found.operator == "Map(id=1)"
    said(found.suggestion)
    assert found.cpu == ("Map(id=1): 90% of a core per worker; more than 2 may help",)


def test_an_operator_that_waits_for_an_empty_queue_is_to_prefetch(tmp_path):
    ops = [(0, "BatchOp", 1, [1], FULL), (1, "ZipOp", 1, [2], None), (2, "MapOp", 1, [], EMPTY)]
    found = bottleneck(tmp_path, ops, {0: 5, 1: 0, 2: 50})
    assert found.operator == "Batch(id=0)"
    assert "prefetch_size" in found.suggestion
    assert found.queues == ("Map(id=2): its output queue is 0% full; more workers may help",)


def test_the_device_waits_where_its_queue_is_empty(tmp_path):
    ops = [(0, "DeviceQueueOp", 1, [1], None), (1, "MapOp", 1, [], [0] * 7 + [9] * 3)]
    found = bottleneck(tmp_path, ops, {0: 50, 1: 50})
    assert found.operator is None
    assert found.queues[0].startswith("DeviceQueue(id=0): its input queue is empty 70% of the time")


def test_an_operator_slower_than_its_child_is_named(tmp_path):
    ops = [(0, "BatchOp", 1, [1], FULL), (1, "MapOp", 1, [2], [1] * 10), (2, "TFOp", 1, [], FULL)]
    found = bottleneck(tmp_path, ops, {0: 50, 1: 50, 2: 50})
    sentence = "its input queue is 100% full and its output queue 10%: it is slower than TF(id=2)"
    assert found.queues == (f"Map(id=1): {sentence}",)


def test_few_samples_say_nothing_of_bottlenecks():
    [files] = find_ranks(given("ms200_cpu_graph"))
    findings = Findings()
    assert read_data_pipeline(files, findings).bottleneck is None
    assert [each.code for each in findings.all()] == ["few_samples"]


def test_cpu_use_that_is_missing_is_unknown(tmp_path):
    ops = [(0, "BatchOp", 1, [1], FULL), (1, "MapOp", 2, [], FULL)]
    [files] = find_ranks(pipeline(tmp_path, ops, {0: 50}))
    findings = Findings()
    found = read_data_pipeline(files, findings)
    assert (found.bottleneck, found.operators[1].cpu_share) == (None, None)
    assert [each.code for each in findings.all()] == ["counts_differ"]


def test_samples_of_different_lengths_are_averaged_each(tmp_path):
    pipeline(tmp_path, [(0, "MapOp", 1, [], FULL)])
    use = {"sys_utilization": [10, 20], "user_utilization": [30, 30, 60]}
    rows = [{"op_id": 0, "metrics": use}]
    path = tmp_path / "minddata_cpu_utilization_0.json"
    path.write_text(json.dumps({"cpu_processor_num": 1, "op_info": rows}))
    [files] = find_ranks(tmp_path)
    findings = Findings()
    found = read_data_pipeline(files, findings)
    assert found.operators[0].cpu_share == pytest.approx(0.55)
    assert [each.code for each in findings.all()] == ["lengths_differ"]


def test_a_circle_of_operators_ends(tmp_path):
    ops = [(0, "MapOp", 1, [1], FULL), (1, "ZipOp", 1, [0, 1], None)]
    assert bottleneck(tmp_path, ops, {0: 1, 1: 1}).operator is None


def test_a_file_that_is_none_of_a_pipeline_is_an_error(tmp_path):
    write(tmp_path / "pipeline_profiling_0.json", '{"op_info": [3]}')
    [files] = find_ranks(tmp_path)
    with pytest.raises(ProfileError, match="an operator is not as MindSpore writes it"):
        read_data_pipeline(files, Findings())


def test_queues_and_cpu_use_are_those_of_mindspores_summary():
    folder = given("ms200_minddata")
    [files] = find_ranks(folder)
    found = read_data_pipeline(files, Findings())
    theirs = json.loads((folder / "minddata_pipeline_summary_0.json").read_text())
    assert [op.label for op in found.operators] == theirs["pipeline_ops"]
    assert [op.n_workers for op in found.operators] == theirs["num_workers"]
    assert [list(op.children) for op in found.operators] == theirs["children_ids"]
    assert [-1 if op.parent is None else op.parent for op in found.operators] == theirs["parent_id"]
    shares = {
        "queue_average_size": [op.queue_mean for op in found.operators],
        "queue_utilization_pct": [percent(op.queue_share) for op in found.operators],
        "queue_empty_freq_pct": [percent(op.empty_share) for op in found.operators],
        "avg_cpu_pct": [percent(op.cpu_share) for op in found.operators],
    }
    for name, values in shares.items():
        shown = [-1 if value is None else value for value in values]
        assert shown == pytest.approx(theirs[name], abs=0.01), name


def percent(share):
    return None if share is None else 100 * share
