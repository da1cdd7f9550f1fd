"""The command `longpole`.

Each command is a file of this folder, or of a folder such as `bench/`. It is found by its first
line and imported when it is called, so that `longpole --help` does not wait for polars.
"""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command line and end the process with its exit code."""
    from longpole.cli.interrupts import delay_interrupts, stop_at_interrupts

    delay_interrupts()  # before slow imports
    try:
        from longpole.cli.program import main

        main()
    except KeyboardInterrupt:
        from longpole.cli.answer import exit_codes

        raise SystemExit(exit_codes.INTERRUPTED) from None
    finally:
        stop_at_interrupts()
