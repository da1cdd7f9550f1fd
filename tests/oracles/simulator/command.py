"""The command of `benches/workloads.py`: writes the trace of a simulated program."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .large import write_large
from .run import PROGRAMS, simulate

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Write what the command line asks for."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.megabytes is None:
        _write_run(options)
    elif options.program == "training":
        _write_large(options)
    else:
        parser.error("only training steps are repeated to a size")
    return 0


def _write_run(options: argparse.Namespace) -> None:
    given: dict[str, Any] = {} if options.steps is None else {"steps": options.steps}
    run = simulate(
        options.program,
        seed=options.seed,
        python_frames=options.python_frames,
        shapes=options.shapes,
        **given,
    )
    order = run.write(options.output, sync_records=options.sync_records)
    if options.truth is not None:
        text = json.dumps(run.truth.to_json(order), separators=(",", ":"))
        options.truth.write_text(text + "\n", encoding="utf-8")
    sys.stderr.write(f"{options.output}: {len(order)} events\n")


def _write_large(options: argparse.Namespace) -> None:
    n_events = write_large(
        options.output,
        options.megabytes,
        seed=options.seed,
        python_frames=options.python_frames,
        sync_records=options.sync_records,
    )
    sys.stderr.write(f"{options.output}: {n_events} events\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Write the trace of a simulated program.")
    parser.add_argument("program", choices=sorted(PROGRAMS))
    parser.add_argument("-o", "--output", type=Path, required=True, help="gzip if it ends in .gz")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, help="steps or requests of the program")
    parser.add_argument("--megabytes", type=float, help="repeat the steps up to this size")
    parser.add_argument("--truth", type=Path, help="where to write what is true of the run")
    parser.add_argument("--python-frames", action="store_true", help="with Python functions")
    parser.add_argument("--shapes", action="store_true", help="with the shapes of tensors")
    parser.add_argument(
        "--sync-records", action="store_true", help="with cuda_sync events, as few traces have"
    )
    return parser
