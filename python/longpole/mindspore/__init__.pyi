"""Written by tests/oracles/pages.py."""

from longpole.mindspore.findings import FileFinding as FileFinding
from longpole.mindspore.findings import ProfileError as ProfileError
from longpole.mindspore.findings import RankError as RankError
from longpole.mindspore.host_info import HostInfo as HostInfo
from longpole.mindspore.host_info import read_host_info as read_host_info
from longpole.mindspore.offline import Analysis as Analysis
from longpole.mindspore.offline import offline_analyse as offline_analyse
from longpole.mindspore.operators import OpAnalysis as OpAnalysis
from longpole.mindspore.operators import OpRow as OpRow
from longpole.mindspore.operators import op_analyse as op_analyse
from longpole.mindspore.option_table import OptionFinding as OptionFinding
from longpole.mindspore.option_table import OptionStateError as OptionStateError
from longpole.mindspore.option_table import OptionTypeError as OptionTypeError
from longpole.mindspore.option_table import OptionValueError as OptionValueError
from longpole.mindspore.options import ProfilerOptions as ProfilerOptions
from longpole.mindspore.profiler import Profiler as Profiler
from longpole.mindspore.profiler import ProfilerStateError as ProfilerStateError
from longpole.mindspore.profiler import Recording as Recording
from longpole.mindspore.rank_analysis import RankAnalysis as RankAnalysis
from longpole.mindspore.step_trace import StepPoints as StepPoints
from longpole.mindspore.step_trace import StepTrace as StepTrace
from longpole.mindspore.step_trace import read_step_trace as read_step_trace
from longpole.mindspore.timeline import timeline_events as timeline_events
