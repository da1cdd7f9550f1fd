"""Record the traces that `longpole demo` writes: what the simulator makes of three programs.

    python tests/oracles/examples.py [--write]

Prints what differs and ends with 1; with `--write` the packaged files are made anew.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from oracles.simulator import Scale, simulate
from oracles.simulator.ranks import write_ranks
from oracles.simulator.ranks_programs import random_ranks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oracles.simulator import Change

PACKAGED: Final = Path(__file__).parents[2] / "python/longpole/examples"
SLOW_LOADER: Final = (Scale("data_loading", by=40),)


def examples() -> dict[str, bytes]:
    """Make every example, by the name of its file, uncompressed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_training(folder / "trace.json", SLOW_LOADER)
        _write_training(folder / "after.json", ())
        run = random_ranks(6, n_ranks=4, n_stragglers=1, pattern="data", n_steps=3)
        write_ranks(run.job, run.job.times_ns(), run.clocks, folder)
        return {f"{path.name}.gz": path.read_bytes() for path in sorted(folder.iterdir())}


def _write_training(path: Path, changes: Sequence[Change]) -> None:
    """Write six steps of training, in which the main thread loads the data."""
    run = simulate(
        "training",
        steps=6,
        layers=3,
        kernel_scale=6,
        changes=changes,
        python_frames=True,
        shapes=True,
    )
    run.write(path, sync_records=False)


def main() -> int:
    """Check the packaged files, or write them."""
    made = examples()
    if "--write" in sys.argv:
        PACKAGED.mkdir(exist_ok=True)
        for name, text in made.items():
            PACKAGED.joinpath(name).write_bytes(gzip.compress(text, mtime=0))
    packaged = {path.name: gzip.decompress(path.read_bytes()) for path in PACKAGED.glob("*.gz")}
    if packaged != made:
        print(f"{PACKAGED} is not what the simulator writes: --write it")
    return int(packaged != made)


if __name__ == "__main__":
    sys.exit(main())
