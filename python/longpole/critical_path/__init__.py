"""The chain of work and waiting that decided when a part of a trace was over.

`docs/path-rules.md` gives every rule. In short: from the end of a window the path is
walked back, always along what finished last; a wait is replaced by what was waited for;
the segments tile the window to the nanosecond.
"""

from longpole.critical_path.changes import Change, Drop, RemoveWait, Scale
from longpole.critical_path.path import CriticalPath, WhatIf

__all__ = ["Change", "CriticalPath", "Drop", "RemoveWait", "Scale", "WhatIf"]
