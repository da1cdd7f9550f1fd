"""Draw the picture of README.md: the critical path of a recording, above what ran meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import longpole
from longpole.plot.lanes import lanes
from longpole.plot.picture import picture
from longpole.words.wording import duration

_RECORDING: Final = Path(__file__).parents[1] / "recordings/decode.before.json.gz"


def path_picture() -> str:
    """Draw the critical path of a step, the GPU and the operators on the host, as SVG."""
    trace = longpole.read_trace(_RECORDING).without_profiler()
    window = longpole.choose_window(trace)
    assert window is not None
    drawn = lanes(trace, window, trace.critical_path(step=window.step))
    assert drawn is not None
    title = f"One step of a decoding loop, {duration(drawn.length_ns)}: host and GPU take turns"
    return picture(drawn, title)
