r"""Read, check, merge, split and edit the files of PyTorch's TunableOp, and drive its tuning.

TunableOp measures every GEMM solution of rocBLAS, hipBLASLt or cuBLASLt for the shapes of a
program and keeps the fastest in CSV files. Nothing here needs torch or a GPU, except tuning
itself.

Examples
--------
>>> from longpole.bench import tunableop
>>> file = tunableop.read(b"Validator,PT_VERSION,2.9.1\n"
...                       b"GemmTunableOp_float_TN,tn_2_1_4_ld_4_4_2,Gemm_Hipblaslt_9,0.05\n")
>>> file.results.select("matmul_m", "matmul_n", "k", "solution").row(0)
(1, 2, 4, 'Gemm_Hipblaslt_9')
"""

from longpole.bench.tunableop.check import check
from longpole.bench.tunableop.difference import Speedup, diff, loaded, speedup
from longpole.bench.tunableop.edit import pin, select, unpin
from longpole.bench.tunableop.merge import Conflict, Merged, merge, merge_by_validators
from longpole.bench.tunableop.names import all_ordinals, files, full_name, with_ordinal
from longpole.bench.tunableop.problems import Problem
from longpole.bench.tunableop.records import TunableFile, read
from longpole.bench.tunableop.signature import Gemm
from longpole.bench.tunableop.untuned import Share, gather_untuned, split

__all__ = [
    "Conflict",
    "Gemm",
    "Merged",
    "Problem",
    "Share",
    "Speedup",
    "TunableFile",
    "all_ordinals",
    "check",
    "diff",
    "files",
    "full_name",
    "gather_untuned",
    "loaded",
    "merge",
    "merge_by_validators",
    "pin",
    "read",
    "select",
    "speedup",
    "split",
    "unpin",
    "with_ordinal",
]
