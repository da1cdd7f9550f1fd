"""The conditions of a run: a machine, and what is different this time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .changes import Changes
    from .kinds import Kind
    from .machine import Machine, Place, Role


@dataclass(frozen=True, slots=True)
class Conditions:
    """What decides how long things take, and whether they wait."""

    machine: Machine
    changes: Changes

    def takes_ns(self, nominal_ns: int, kind: Kind, name: str, place: Place, role: Role) -> int:
        """Return how long something takes: its nominal time with its noise, then the changes."""
        drawn_ns = self.machine.draw_ns(nominal_ns, place, role)
        return self.changes.scaled_ns(drawn_ns, kind, name)

    def waits(self, kind: Kind, name: str) -> bool:
        """Whether something of this kind and name still waits for what it waits for."""
        return self.changes.waits(kind, name)
