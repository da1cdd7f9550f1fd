"""Run benchmarks on devices, and believe their results.

A `Runner` takes `Job`s and gives a `Record` for each: never a hang, never a
process left behind, never a failure that wins, and nothing lost when it is
interrupted.

Examples
--------
>>> from longpole.bench import Job, Runner
>>> with Runner(["cpu"]) as runner:
...     (record,) = runner.run([Job("echo OP:gemm,TIME:0.25,WS:0")])
>>> record.best.name, record.best.time_ns
('gemm', 250000.0)
"""

from longpole.bench.choice import best_records, final_records
from longpole.bench.environment import fingerprint_changes
from longpole.bench.job import Job, read_jobs
from longpole.bench.policy import Policy
from longpole.bench.record import Measurement, Outcome, Record
from longpole.bench.rows import open_extractor
from longpole.bench.runner import Runner, Status
from longpole.bench.store import read_results

__all__ = [
    "Job",
    "Measurement",
    "Outcome",
    "Policy",
    "Record",
    "Runner",
    "Status",
    "best_records",
    "final_records",
    "fingerprint_changes",
    "open_extractor",
    "read_jobs",
    "read_results",
]
