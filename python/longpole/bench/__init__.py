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
('gemm', 250000)
"""

from longpole.bench.baselines import save_baseline
from longpole.bench.choice import best_records, final_records
from longpole.bench.clocks import CpuClock, FakeClock, TorchClock
from longpole.bench.compare import Comparison, Difference, Verdict, compare
from longpole.bench.environment import fingerprint_changes
from longpole.bench.extraction import Extraction, Extractor, MeasuredRow, extract, formats
from longpole.bench.job import Job, read_jobs
from longpole.bench.legacy import ProfileResult, extract_profile_result
from longpole.bench.policy import Policy
from longpole.bench.record import Measurement, Outcome, Record
from longpole.bench.runner import Runner, Status
from longpole.bench.store import read_results
from longpole.bench.timing import Effort, Timing, measure, measure_in_turns

__all__ = [
    "Comparison",
    "CpuClock",
    "Difference",
    "Effort",
    "Extraction",
    "Extractor",
    "FakeClock",
    "Job",
    "MeasuredRow",
    "Measurement",
    "Outcome",
    "Policy",
    "ProfileResult",
    "Record",
    "Runner",
    "Status",
    "Timing",
    "TorchClock",
    "Verdict",
    "best_records",
    "compare",
    "extract",
    "extract_profile_result",
    "final_records",
    "fingerprint_changes",
    "formats",
    "measure",
    "measure_in_turns",
    "read_jobs",
    "read_results",
    "save_baseline",
]
