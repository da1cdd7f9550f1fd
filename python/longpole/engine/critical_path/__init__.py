"""The chain of work and waits that determines when a window ends.

`docs/path-rules.md` has every rule. In short: the path is followed back from the end of a window,
always along what finished last; a wait is replaced by what it waited for; the segments tile the
window to the nanosecond.
"""

from longpole.engine.critical_path.changes import Change as Change
from longpole.engine.critical_path.changes import Drop as Drop
from longpole.engine.critical_path.changes import RemoveWait as RemoveWait
from longpole.engine.critical_path.changes import Scale as Scale
from longpole.engine.critical_path.path import CriticalPath as CriticalPath
from longpole.engine.critical_path.path import WhatIf as WhatIf
