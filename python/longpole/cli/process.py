"""Whether this process is the command; `import longpole` asks it, so it imports little."""

import os
import sys

_NAMES = ("longpole", "longpole.exe", "longpole-script.py")


def is_command() -> bool:
    """Whether this process is `longpole` or `python -m longpole`, not a program that imports it."""
    program = sys.argv[0] if sys.argv else ""
    if program == "-m":  # while the package is imported
        before = dict(zip(sys.orig_argv[1:], sys.orig_argv, strict=False))
        return before.get("longpole") == "-m"
    return os.path.basename(program) in _NAMES or _is_main_module(program)  # noqa: PTH119 - runs before imports of the package


def _is_main_module(program: str) -> bool:
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
    return program == os.path.join(own, "__main__.py")  # noqa: PTH118
