"""The command `longpole`.

Each command is a file of this folder, or of a folder such as `bench/`. It is listed in `program.py`
and imported when it is called, so that `longpole --help` does not wait for polars.
"""

from __future__ import annotations

# As `typing` says it, which would be a third of the time of `import longpole`.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import NoReturn


def main() -> None:
    """Run the command line and end the process with its exit code."""
    from longpole.cli.interrupts import delay_interrupts, stop_at_interrupts

    delay_interrupts()  # before slow imports
    try:
        try:
            from longpole.cli.program import main

            main()
        finally:  # until it returns, a delayed interrupt is raised here
            if stop_at_interrupts():
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        _end_interrupted()


def _end_interrupted() -> NoReturn:
    from longpole.cli.answer import exit_codes

    raise SystemExit(exit_codes.INTERRUPTED) from None
