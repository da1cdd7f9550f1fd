"""Written by tests/oracles/pages.py."""

from longpole.formats.mindspore.findings import FileFinding as FileFinding
from longpole.formats.mindspore.findings import ProfileError as ProfileError
from longpole.formats.mindspore.findings import RankError as RankError
from longpole.formats.mindspore.host_info import HostInfo as HostInfo
from longpole.formats.mindspore.host_info import read_host_info as read_host_info
from longpole.formats.mindspore.offline import Analysis as Analysis
from longpole.formats.mindspore.offline import offline_analyse as offline_analyse
from longpole.formats.mindspore.operators import OpAnalysis as OpAnalysis
from longpole.formats.mindspore.operators import OpRow as OpRow
from longpole.formats.mindspore.operators import op_analyse as op_analyse
from longpole.formats.mindspore.option_table import OptionFinding as OptionFinding
from longpole.formats.mindspore.option_table import OptionStateError as OptionStateError
from longpole.formats.mindspore.option_table import OptionTypeError as OptionTypeError
from longpole.formats.mindspore.option_table import OptionValueError as OptionValueError
from longpole.formats.mindspore.options import ProfilerOptions as ProfilerOptions
from longpole.formats.mindspore.profiler import Profiler as Profiler
from longpole.formats.mindspore.profiler import ProfilerStateError as ProfilerStateError
from longpole.formats.mindspore.profiler import Recording as Recording
from longpole.formats.mindspore.rank_analysis import RankAnalysis as RankAnalysis
from longpole.formats.mindspore.step_trace import StepPoints as StepPoints
from longpole.formats.mindspore.step_trace import StepTrace as StepTrace
from longpole.formats.mindspore.step_trace import read_step_trace as read_step_trace
from longpole.formats.mindspore.timeline import timeline_events as timeline_events
