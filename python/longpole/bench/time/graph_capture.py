"""Capture of calls in a CUDA graph with torch, and recovery after a capture that failed.

A capture fails when the function waits for the device. torch then leaves its random generator in
capture mode, and the stream of the capture stays the current one: every later `torch.randn` of
the process would fail. So each function is called once before the capture with torch's check for
synchronizing calls, which fails at the call and changes nothing. That check misses some calls,
such as `torch.cuda.synchronize`. After a capture that fails all the same, the stream is restored
and a capture that succeeds takes the generator out of capture mode.
"""

from __future__ import annotations

import linecache
import traceback
import warnings
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from longpole.errors import DeviceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["CaptureError", "captured"]

_SYNCHRONIZES: Final = "called a synchronizing"
_LONGPOLE: Final = str(Path(__file__).parents[2])
_HINT: Final = "hint: --cache hot and --cache cold can time it"


class CaptureError(DeviceError):
    """The calls of the function cannot be captured in a CUDA graph."""


def captured(torch: Any, function: Callable[[], object], n_calls: int) -> Callable[[], object]:
    """Capture `n_calls` calls in a graph, and return the function that replays it.

    Raises
    ------
    CaptureError
        The calls cannot be captured. torch works as before.
    """
    _refuse_synchronizing(torch, function)
    stream, graph = torch.cuda.current_stream(), torch.cuda.CUDAGraph()
    raised: BaseException | None = None
    try:
        with torch.cuda.graph(graph):
            try:
                for _ in range(n_calls):
                    function()
            except BaseException as error:
                raised = error
                raise
    except (Exception, SystemExit) as error:
        if error is raised:  # the graph was closed: it is the function's own
            raise
        torch.cuda.set_stream(stream)
        _leave_capture_mode(torch)
        cause = raised or error
        place = _place_of(cause, torch)
        message = f"{place} cannot be captured in a CUDA graph: {_first_line(cause)}\n{_HINT}"
        raise CaptureError(message) from cause
    replay: Callable[[], object] = graph.replay
    return replay


def _refuse_synchronizing(torch: Any, function: Callable[[], object]) -> None:
    """Call the function once with torch's check for synchronizing calls."""
    with _synchronizing_calls_fail(torch):
        try:
            function()
        except RuntimeError as error:
            if _SYNCHRONIZES not in str(error):
                raise
            place = _place_of(error, torch)
            message = f"{place} waits for the device, which a CUDA graph cannot do\n{_HINT}"
            raise CaptureError(message) from error


@contextmanager
def _synchronizing_calls_fail(torch: Any) -> Iterator[None]:
    mode = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that the check misses some calls
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(mode)


def _leave_capture_mode(torch: Any) -> None:
    """Capture one kernel: the end of a capture resets the random generator."""
    with suppress(Exception), torch.cuda.graph(torch.cuda.CUDAGraph()):
        torch.cuda._sleep(1)  # noqa: SLF001 - the public API has no kernel without tensors


def _place_of(error: BaseException, torch: Any) -> str:
    """Return file, line and source of the innermost frame outside torch and longpole."""
    libraries = (str(Path(torch.__file__).parent), _LONGPOLE)
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(libraries)
    ]
    if not frames:
        return "the function"
    frame = frames[-1]
    source = linecache.getline(frame.filename, frame.lineno or 0).strip()
    place = f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}"
    return f"{place} (`{source}`)" if source else place


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
