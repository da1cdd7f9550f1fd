"""What `longpole bench time` says about times of a device: caches, launches, and its clock."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from longpole.bench import measure
from longpole.bench.records.record import Measurement, Outcome, Record
from longpole.bench.time import processes
from longpole.cli.bench.timings import timings_answer
from longpole.devices import Found
from longpole.devices.driverless import FakeProvider

TORCH = """
import sys
from straw_torch import StrawTorch
sys.modules["torch"] = StrawTorch()
"""

KERNELS = """
import torch
def short(): torch.kernel()
def long(): torch.gpu.kernel(300_000)
def sized(n): torch.gpu.kernel(n)
"""


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text(TORCH)
    (tmp_path / "gpu_kernels.py").write_text(KERNELS)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    provider = FakeProvider()
    (device,) = provider.list_devices()
    monkeypatch.setattr("longpole.bench.time.workers.select", lambda _: Found({device: provider}))


def campaign(*names, **how):
    return processes.Campaign(names, clock="torch", n_processes=2, budget_s=0.2, **how)


@pytest.mark.usefixtures("kernels")
def test_the_first_run_of_a_point_chooses_the_cache_state():
    points = [{"n": 5_000}, {"n": 500_000}]
    records = list(processes.time_in_processes(campaign("gpu_kernels:sized", points=points)))
    found = {(record.key, record.sampling["cache"]) for record in records}
    assert found == {("gpu_kernels:sized n=5000", "graph"), ("gpu_kernels:sized n=500000", "hot")}


@pytest.mark.usefixtures("kernels")
def test_functions_in_turns_have_one_cache_state():
    records = list(processes.time_in_processes(campaign("gpu_kernels:short", "gpu_kernels:long")))
    assert {record.sampling["cache"] for record in records} == {"graph"}


def record(key="k", run="1", **sampling):
    return Record(
        id=f"{key} {run}",
        key=key,
        outcome=Outcome.OK,
        best=Measurement(key, 1000.0),
        run=run,
        samples_ns=(1000.0,) * 5,
        sampling=sampling,
    )


def notes(records, *, cache="hot"):
    document, _ = timings_answer(campaign("k", cache=cache), records, [])
    blocks = [block for block in document.blocks() if type(block).__name__ == "Notes"]
    return [note for block in blocks for note in block.items]


def clocked(run, low, middle, high, *reasons):
    during = {"clock_min_mhz": low, "clock_mhz": middle, "clock_max_mhz": high}
    return record(run=run, during={**during, "throttle_reasons": list(reasons)})


def test_a_clock_that_moves_is_said_with_its_reason(said):
    records = [clocked("1", 1900, 1950, 1980), clocked("2", 1410, 1600, 1980, "sw_power_cap")]
    (note,) = notes(records)
    said(note)


def test_a_steady_clock_is_not_said():
    assert notes([clocked("1", 1965, 1980, 1980, "idle", "application_clocks")]) == []
    assert notes([record(during={"n_readings": 3})]) == []


def test_the_time_to_launch_is_that_of_the_host():
    records = [record(run=str(number), host_ns=1000.0 * number) for number in (30, 31, 35)]
    assert notes(records) == ["the host takes 31.0 µs to launch a call"]


def test_a_chosen_cache_state_is_said_and_a_given_one_is_not():
    (note,) = notes([record(cache="graph")], cache=None)
    assert note.startswith("the calls were captured in a CUDA graph because they are short")
    (note,) = notes([record(cache="hot")], cache=None)
    assert "with warm caches" in note
    assert notes([record(cache="graph")], cache="graph") == []


def test_many_functions_are_one_table_with_each_note_once():
    names = [f"k{number}" for number in range(6)]
    note = "the calls were captured in a CUDA graph because they are short"
    records = [record(key=name, cache="graph", host_ns=20_000.0) for name in names]
    plan = processes.Campaign(names, clock="torch", n_processes=1)
    differences = [comparison for _, comparison in processes.compare_points(plan, records)]
    document, _ = timings_answer(plan, records, differences)
    table, notes = document.blocks()
    assert [(row[0], row[1], row[3], row[4]) for row in table.rows] == [
        ("k0", 1000, 20_000, None),
        *((name, 1000, 20_000, "inconclusive") for name in names[1:]),
    ]
    assert notes.items[0].startswith(f"all: {note}")
    assert notes.items[1].startswith("5 functions: one run of each side does not show")
    assert len(notes.items) == 2


def test_the_hint_of_a_failure_is_a_line_of_its_own():
    failed = replace(record(), outcome=Outcome.RAISED, samples_ns=(), best=None)
    failed = replace(failed, message="CaptureError: it waits\nhint: --cache hot can time it")
    document, _ = timings_answer(campaign("k"), [failed], [])
    headline, below = document.blocks()
    assert headline.text == "k: CaptureError: it waits"
    assert below.items == ["hint: --cache hot can time it"]


def test_a_processor_time_says_that_a_gpu_was_still_busy(monkeypatch, said):
    stream = SimpleNamespace(query=lambda: False)
    cuda = SimpleNamespace(is_initialized=lambda: True, current_stream=lambda: stream)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    (note,) = measure(lambda: None).notes
    said.within(note)
    stream.query = lambda: True
    assert measure(lambda: None).notes == ()
