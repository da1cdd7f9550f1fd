"""Exit codes of the command line, explained in `docs/exit-codes.md`."""

from typing import Final

OK: Final = 0
FINDINGS: Final = 1
USAGE: Final = 2
UNREADABLE: Final = 3
INCONCLUSIVE: Final = 4
MISSING: Final = 5
INTERNAL: Final = 70
INTERRUPTED: Final = 130
