"""The module, or the annotation of the program, in which an event ran."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from longpole.remedies.facts import Facts

_MODULE: Final = "nn.Module: "

# Annotations of PyTorch and its profiler, which name no part of the program.
_OF_TOOLS: Final = (
    "ProfilerStep#",
    "Optimizer.",
    "enumerate(DataLoader)",
    "DistributedDataParallel.",
    "nccl:",
    "gloo:",
    "PyTorch Profiler",
    "Torch-Compiled Region",
    "## Call CompiledFxGraph",
    "Pregraph bytecode",
    "TorchDynamo Cache Lookup",
    "AOTDispatcher",
    "CompiledFunction",
)

# Functions of the profiler, which are not part of the program.
_OF_PROFILER: Final = ("torch/profiler/", "torch/autograd/profiler")

# A longer annotation is the step or most of it, and names no part either.
_MOST_OF_STEP: Final = 0.9


def is_of_profiler(name: str) -> bool:
    """Whether a function is one of the profiler, which runs only while it records."""
    return any(part in name for part in _OF_PROFILER)


def module_of(facts: Facts, event: int) -> str | None:
    """Return the innermost module or annotation around the launch of an event; None if unknown."""
    for row, kind, name in facts.around(facts.once(_calls).get(event, event)):
        if kind == "python" and name.startswith(_MODULE):
            return name.removeprefix(_MODULE)
        if kind == "annotation" and _names_part(facts, row, name):
            return name
    return None


def _names_part(facts: Facts, annotation: int, name: str) -> bool:
    place = facts.place(annotation)
    is_part = place.end_ns - place.start_ns <= _MOST_OF_STEP * facts.mean_ns
    return is_part and bool(name) and not name.startswith(_OF_TOOLS)


def _calls(facts: Facts) -> dict[int, int]:
    """Return the call that launched each GPU activity."""
    works = (*facts.kernels, *facts.copies)
    return {work.event: work.call for work in works if work.call is not None}
