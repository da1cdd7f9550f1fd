"""What somebody can change in a program, and what that saves.

A remedy is one file of this folder and one line of `catalogue.CATALOGUE`: what it looks like in a
trace, which changes of the dependency graph stand for it, and what is said. A package of the user
adds its own with an entry point of the group `longpole.remedies` that names a `Remedy`.
"""

from longpole.remedies.facts import Facts
from longpole.remedies.model import Found, Remedy

__all__ = ["Facts", "Found", "Remedy"]
