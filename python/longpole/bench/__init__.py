"""Measure programs and functions, and compare the measurements.

A `Runner` runs `Job`s and returns a `Record` for each. It never hangs, never leaves a process
running, never lets a failed job win, and loses no record when interrupted. `measure` times a
function, `compare` reports what became faster or slower.

Examples
--------
>>> from longpole.bench import Job, Runner
>>> with Runner(["cpu"]) as runner:
...     (record,) = runner.run([Job("echo OP:gemm,TIME:0.25,WS:0")])
>>> record.best.name, record.best.time_ns
('gemm', 250000)
"""

from longpole.bench.compare import Comparison, Difference, Verdict, compare
from longpole.bench.compatible import ProfileResult, extract_profile_result
from longpole.bench.extraction import (
    Extraction,
    Extractor,
    MeasuredRow,
    OmittedRows,
    extract,
    formats,
)
from longpole.bench.records import (
    Measurement,
    Omitted,
    Outcome,
    Record,
    ResultsFile,
    best_records,
    final_records,
    fingerprint_changes,
    read_results,
    save_baseline,
)
from longpole.bench.run import Job, Policy, Runner, Status, read_jobs
from longpole.bench.time import (
    Candidates,
    CpuClock,
    CuptiClock,
    Effort,
    FakeClock,
    Timing,
    TorchClock,
    measure,
    measure_in_turns,
)
from longpole.bench.tunableop import tune_gemm

__all__ = [
    "Candidates",
    "Comparison",
    "CpuClock",
    "CuptiClock",
    "Difference",
    "Effort",
    "Extraction",
    "Extractor",
    "FakeClock",
    "Job",
    "MeasuredRow",
    "Measurement",
    "Omitted",
    "OmittedRows",
    "Outcome",
    "Policy",
    "ProfileResult",
    "Record",
    "ResultsFile",
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
    "tune_gemm",
]
