"""Damages inputs of every reader and asks every command, table and tool about them.

    PYTHONPATH=tests python -m oracles.walker N [--seed S] [--reader NAME] [--also FOLDER]

asks about N damaged inputs in processes with limits of time and memory, and prints how many inputs
of each reader and questions of each kind there were, and each question that ended with an error of
longpole's own, took more than ten seconds of CPU time or more than a gigabyte.
"""

from oracles.walker.sources import Source, write_sources
from oracles.walker.walk import Escape, Walk

__all__ = ["Escape", "Source", "Walk", "write_sources"]
