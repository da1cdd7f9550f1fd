"""What was measured, as records: on disk, in memory, and under a name as a baseline."""

from longpole.bench.records.baselines import save_baseline
from longpole.bench.records.choice import best_records, final_records
from longpole.bench.records.environment import fingerprint_changes
from longpole.bench.records.record import Measurement, Outcome, Record
from longpole.bench.records.store import read_results

__all__ = [
    "Measurement",
    "Outcome",
    "Record",
    "best_records",
    "final_records",
    "fingerprint_changes",
    "read_results",
    "save_baseline",
]
