"""The chain of work and waits that determines when a window ends.

`docs/path-rules.md` has every rule. In short: the path is followed back from the end of a window,
always along what finished last; a wait is replaced by what it waited for; the segments tile the
window to the nanosecond.
"""

from longpole.engine.critical_path.changes import Change, Drop, RemoveWait, Scale
from longpole.engine.critical_path.path import CriticalPath, WhatIf

__all__ = ["Change", "CriticalPath", "Drop", "RemoveWait", "Scale", "WhatIf"]
