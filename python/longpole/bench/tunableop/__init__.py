r"""Read, check, merge, split and edit PyTorch's TunableOp files, and drive its tuning.

TunableOp measures every GEMM solution of rocBLAS, hipBLASLt or cuBLASLt for the shapes of a program
and stores the fastest in CSV files. Nothing here needs torch or a GPU, except tuning itself.

Examples
--------
>>> from longpole.bench import tunableop
>>> file = tunableop.read(b"Validator,PT_VERSION,2.9.1\n"
...                       b"GemmTunableOp_float_TN,tn_2_1_4_ld_4_4_2,Gemm_Hipblaslt_9,0.05\n")
>>> file.results.select("matmul_m", "matmul_n", "k", "solution").row(0)
(1, 2, 4, 'Gemm_Hipblaslt_9')
"""

from longpole.bench.tunableop.check import Problem, check
from longpole.bench.tunableop.coverage import Coverage, coverage
from longpole.bench.tunableop.difference import Speedup, diff, loaded, speedup
from longpole.bench.tunableop.edit import pin, select, unpin
from longpole.bench.tunableop.environment import (
    VARIABLES,
    Installed,
    Phase,
    environment,
    environment_warnings,
    installed_validators,
    installed_version,
)
from longpole.bench.tunableop.inputs import Gemm
from longpole.bench.tunableop.merge import Conflict, Merged, merge, merge_by_validators
from longpole.bench.tunableop.names import (
    all_ordinals,
    files,
    full_name,
    name_warnings,
    with_ordinal,
)
from longpole.bench.tunableop.records import TunableFile, read
from longpole.bench.tunableop.tune import WORKER, Failure, Tuning, tune
from longpole.bench.tunableop.tune_gemm import Attempt, GemmTuning, Limits, tune_gemm
from longpole.bench.tunableop.untuned import Share, gather_untuned, split

__all__ = [
    "VARIABLES",
    "WORKER",
    "Attempt",
    "Conflict",
    "Coverage",
    "Failure",
    "Gemm",
    "GemmTuning",
    "Installed",
    "Limits",
    "Merged",
    "Phase",
    "Problem",
    "Share",
    "Speedup",
    "TunableFile",
    "Tuning",
    "all_ordinals",
    "check",
    "coverage",
    "diff",
    "environment",
    "environment_warnings",
    "files",
    "full_name",
    "gather_untuned",
    "installed_validators",
    "installed_version",
    "loaded",
    "merge",
    "merge_by_validators",
    "name_warnings",
    "pin",
    "read",
    "select",
    "speedup",
    "split",
    "tune",
    "tune_gemm",
    "unpin",
    "with_ordinal",
]
