"""Records of measurements: on disk, in memory, and as named baselines."""

from longpole.bench.records.baselines import save_baseline
from longpole.bench.records.environment import fingerprint_changes
from longpole.bench.records.reading import ResultsFile, best_records, final_records, read_results
from longpole.bench.records.record import Measurement, Omitted, Outcome, Record

__all__ = [
    "Measurement",
    "Omitted",
    "Outcome",
    "Record",
    "ResultsFile",
    "best_records",
    "final_records",
    "fingerprint_changes",
    "read_results",
    "save_baseline",
]
