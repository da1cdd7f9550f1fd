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

from typing import TYPE_CHECKING

from longpole.words.public_names import imported_on_use

if TYPE_CHECKING:
    from longpole.bench.comparison.compare import compare as compare
    from longpole.bench.comparison.differences import Comparison as Comparison
    from longpole.bench.comparison.differences import Difference as Difference
    from longpole.bench.comparison.differences import Verdict as Verdict
    from longpole.bench.compatible.aitemplate import ProfileResult as ProfileResult
    from longpole.bench.compatible.aitemplate import (
        extract_profile_result as extract_profile_result,
    )
    from longpole.bench.extraction import Extraction as Extraction
    from longpole.bench.extraction import Extractor as Extractor
    from longpole.bench.extraction import MeasuredRow as MeasuredRow
    from longpole.bench.extraction import OmittedRows as OmittedRows
    from longpole.bench.extraction import extract as extract
    from longpole.bench.extraction import formats as formats
    from longpole.bench.records.baselines import save_baseline as save_baseline
    from longpole.bench.records.environment import fingerprint_changes as fingerprint_changes
    from longpole.bench.records.reading import ResultsFile as ResultsFile
    from longpole.bench.records.reading import best_records as best_records
    from longpole.bench.records.reading import final_records as final_records
    from longpole.bench.records.reading import read_results as read_results
    from longpole.bench.records.record import Measurement as Measurement
    from longpole.bench.records.record import Omitted as Omitted
    from longpole.bench.records.record import Outcome as Outcome
    from longpole.bench.records.record import Record as Record
    from longpole.bench.run.job import Job as Job
    from longpole.bench.run.job import Policy as Policy
    from longpole.bench.run.job import read_jobs as read_jobs
    from longpole.bench.run.runner import Runner as Runner
    from longpole.bench.run.runner import Status as Status
    from longpole.bench.time.candidates import Candidates as Candidates
    from longpole.bench.time.clocks import CpuClock as CpuClock
    from longpole.bench.time.clocks import FakeClock as FakeClock
    from longpole.bench.time.measure import measure as measure
    from longpole.bench.time.measure import measure_in_turns as measure_in_turns
    from longpole.bench.time.timing import Effort as Effort
    from longpole.bench.time.timing import Timing as Timing
    from longpole.bench.time.torch_clock import CuptiClock as CuptiClock
    from longpole.bench.time.torch_clock import TorchClock as TorchClock
    from longpole.bench.tunableop.tune_gemm import tune_gemm as tune_gemm

# Imported on first use, so that a process that times functions starts quickly.
_NAMES = {
    "comparison.compare": ("Comparison", "Difference", "Verdict", "compare"),
    "compatible.aitemplate": ("ProfileResult", "extract_profile_result"),
    "extraction": (
        *("Extraction", "Extractor", "MeasuredRow", "OmittedRows", "extract", "formats"),
    ),
    "records.baselines": ("save_baseline",),
    "records.environment": ("fingerprint_changes",),
    "records.reading": ("ResultsFile", "best_records", "final_records", "read_results"),
    "records.record": ("Measurement", "Omitted", "Outcome", "Record"),
    "run.job": ("Job", "Policy", "read_jobs"),
    "run.runner": ("Runner", "Status"),
    "time.candidates": ("Candidates",),
    "time.clocks": ("CpuClock", "FakeClock"),
    "time.measure": ("measure", "measure_in_turns"),
    "time.timing": ("Effort", "Timing"),
    "time.torch_clock": ("CuptiClock", "TorchClock"),
    "tunableop.tune_gemm": ("tune_gemm",),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}
__all__ = list(_MODULES)


__getattr__, __dir__ = imported_on_use(__name__, _MODULES)
