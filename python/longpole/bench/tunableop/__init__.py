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

from longpole.bench.tunableop.check import Problem as Problem
from longpole.bench.tunableop.check import check as check
from longpole.bench.tunableop.coverage import Coverage as Coverage
from longpole.bench.tunableop.coverage import coverage as coverage
from longpole.bench.tunableop.difference import Speedup as Speedup
from longpole.bench.tunableop.difference import diff as diff
from longpole.bench.tunableop.difference import loaded as loaded
from longpole.bench.tunableop.difference import speedup as speedup
from longpole.bench.tunableop.edit import pin as pin
from longpole.bench.tunableop.edit import select as select
from longpole.bench.tunableop.edit import unpin as unpin
from longpole.bench.tunableop.environment import VARIABLES as VARIABLES
from longpole.bench.tunableop.environment import Installed as Installed
from longpole.bench.tunableop.environment import Phase as Phase
from longpole.bench.tunableop.environment import environment as environment
from longpole.bench.tunableop.environment import environment_warnings as environment_warnings
from longpole.bench.tunableop.environment import installed_validators as installed_validators
from longpole.bench.tunableop.environment import installed_version as installed_version
from longpole.bench.tunableop.inputs import Gemm as Gemm
from longpole.bench.tunableop.merge import Conflict as Conflict
from longpole.bench.tunableop.merge import Merged as Merged
from longpole.bench.tunableop.merge import merge as merge
from longpole.bench.tunableop.merge import merge_by_validators as merge_by_validators
from longpole.bench.tunableop.names import all_ordinals as all_ordinals
from longpole.bench.tunableop.names import files as files
from longpole.bench.tunableop.names import full_name as full_name
from longpole.bench.tunableop.names import name_warnings as name_warnings
from longpole.bench.tunableop.names import with_ordinal as with_ordinal
from longpole.bench.tunableop.records import TunableFile as TunableFile
from longpole.bench.tunableop.records import read as read
from longpole.bench.tunableop.tune import WORKER as WORKER
from longpole.bench.tunableop.tune import Failure as Failure
from longpole.bench.tunableop.tune import Tuning as Tuning
from longpole.bench.tunableop.tune import tune as tune
from longpole.bench.tunableop.tune_gemm import Attempt as Attempt
from longpole.bench.tunableop.tune_gemm import GemmTuning as GemmTuning
from longpole.bench.tunableop.tune_gemm import Limits as Limits
from longpole.bench.tunableop.tune_gemm import tune_gemm as tune_gemm
from longpole.bench.tunableop.untuned import Share as Share
from longpole.bench.tunableop.untuned import gather_untuned as gather_untuned
from longpole.bench.tunableop.untuned import split as split
