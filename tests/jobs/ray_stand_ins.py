"""Stand-ins for Ray, which is optional and slow to start."""

from __future__ import annotations

import pickle
from types import SimpleNamespace


class StuckRay:
    """Stands in for Ray: works at once, but never finishes what is stuck."""

    def __init__(self, *stuck):
        self.stuck = stuck
        self.cancelled = []
        self.exceptions = SimpleNamespace(RayTaskError=ZeroDivisionError, RayError=OSError)

    def is_initialized(self):
        return True

    def remote(self, **_):
        return lambda task: SimpleNamespace(remote=lambda work, item: (item, task(work, item)))

    def put(self, it):
        return it

    def wait(self, references, **_):
        done = [it for it in references if it[0] not in self.stuck]
        return done[:1], references

    def get(self, reference, **_):
        return reference[1]

    def cancel(self, reference, **_):
        self.cancelled.append(reference[0])


class PicklingRay(StuckRay):
    """Stands in for Ray: works at once, on pickled copies, as another process would."""

    def remote(self, **_):
        def submit(task):
            return SimpleNamespace(
                remote=lambda work, item: Finished(copied(task(copied(work), copied(item))))
            )

        return submit

    def wait(self, references, **_):
        return references[:1], references[1:]

    def get(self, reference, **_):
        return reference.result


class Finished:
    """A finished task."""

    def __init__(self, result):
        self.result = result


def copied(it):
    return pickle.loads(pickle.dumps(it))  # noqa: S301 - what was just made
