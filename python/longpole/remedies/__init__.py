"""What to change in a program, and the resulting gain.

A remedy is one file of this folder and one line of `catalogue.CATALOGUE`: how to recognise it in a
trace, the changes of the dependency graph that model it, and its advice. User packages add their
own with an entry point of the group `longpole.remedies` that refers to a `Remedy`.
"""

from longpole.remedies.facts import Facts
from longpole.remedies.model import Found, Remedy

__all__ = ["Facts", "Found", "Remedy"]
