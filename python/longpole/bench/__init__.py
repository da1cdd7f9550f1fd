"""Measure programs and functions, and compare what was measured.

A `Runner` takes `Job`s and gives a `Record` for each: never a hang, never a
process left behind, never a failure that wins, and nothing lost when it is
interrupted. `measure` times a function, `compare` says what became faster or
slower.

Examples
--------
>>> from longpole.bench import Job, Runner
>>> with Runner(["cpu"]) as runner:
...     (record,) = runner.run([Job("echo OP:gemm,TIME:0.25,WS:0")])
>>> record.best.name, record.best.time_ns
('gemm', 250000.0)
"""

from longpole.bench.baselines import save_baseline
from longpole.bench.choice import best_records, final_records
from longpole.bench.clocks import CpuClock, FakeClock, TorchClock
from longpole.bench.compare import Comparison, Difference, Verdict, compare
from longpole.bench.environment import fingerprint_changes
from longpole.bench.job import Job, read_jobs
from longpole.bench.policy import Policy
from longpole.bench.record import Measurement, Outcome, Record
from longpole.bench.rows import open_extractor
from longpole.bench.runner import Runner, Status
from longpole.bench.store import read_results
from longpole.bench.timing import Effort, Timing, measure, measure_in_turns

__all__ = [
    "Comparison",
    "CpuClock",
    "Difference",
    "Effort",
    "FakeClock",
    "Job",
    "Measurement",
    "Outcome",
    "Policy",
    "Record",
    "Runner",
    "Status",
    "Timing",
    "TorchClock",
    "Verdict",
    "best_records",
    "compare",
    "final_records",
    "fingerprint_changes",
    "measure",
    "measure_in_turns",
    "open_extractor",
    "read_jobs",
    "read_results",
    "save_baseline",
]
