"""What the command tells the shell. `docs/exit-codes.md` says the same in more words."""

from typing import Final

OK: Final = 0
FINDINGS: Final = 1
USAGE: Final = 2
UNREADABLE: Final = 3
INCONCLUSIVE: Final = 4
MISSING: Final = 5
INTERNAL: Final = 70
INTERRUPTED: Final = 130
