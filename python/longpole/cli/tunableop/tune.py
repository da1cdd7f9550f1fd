"""`longpole tunableop tune`: tune recorded GEMMs on several GPUs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from longpole.cli.answer import exit_codes
from longpole.cli.answer.problems import usage_errors
from longpole.cli.ask.files import OutputPath
from longpole.cli.ask.numbers import timeout_option
from longpole.cli.ask.options import (
    Options,
    answer_options,
    answers,
    force_option,
    resume_option,
    reuse_option,
)
from longpole.cli.ask.runner import devices_option
from longpole.words.wording import count, escape

if TYPE_CHECKING:
    from longpole.bench import Record
    from longpole.bench.tunableop import Tuning
    from longpole.cli.answer.emit import Answer

from longpole.cli.tunableop.rows import rows_answer


@click.command()
@answers("longpole.cli.tunableop.data:Tuned")
@click.argument("pattern", metavar="PATTERN")
@devices_option("all")
@click.option(
    "-o",
    "--output",
    type=OutputPath(),
    metavar="NAME",
    default="tunableop_results.csv",
    show_default=True,
    help="Name of the results files, without the ordinal.",
)
@click.option("--worker", metavar="COMMAND", help="Command that tunes a file.  [default: torch]")
@timeout_option("a batch", 1800)
@reuse_option
@resume_option
@force_option
@answer_options
def tune(
    *,
    pattern: str,
    devices: str | None,
    output: str,
    worker: str | None,
    timeout_s: float,
    reuse: tuple[str, ...],
    resume: bool,
    force: bool,
    options: Options,
) -> int:
    """Tune recorded GEMMs on several GPUs, with one worker per GPU.

    PATTERN is a quoted glob pattern of untuned files. The result is NAME_full0.csv,
    NAME_full1.csv and so on, one copy for each GPU. A crash or a hang loses one GEMM; the exit
    code is then 1. The command of --worker is called with the file of GEMMs to tune and the file
    to write.

    \b
    Examples:
      longpole tunableop tune "tunableop_untuned?.csv" --devices 0,1,2,3
      longpole tunableop tune "tunableop_untuned*.csv" --resume
      longpole tunableop tune "tunableop_untuned*.csv" --reuse tuned0.csv
    """
    from longpole.bench import tunableop

    with usage_errors():
        found = tunableop.tune(
            pattern,
            gpus=devices.split(",") if devices else None,
            filename=output,
            worker=worker or tunableop.WORKER,
            timeout_s=timeout_s,
            reuse=reuse,
            resume=resume,
            force=force,
            on_record=_tell,
        )
    return options.emit(_tuning_answer(found))


def _tell(record: Record) -> None:
    """Report on stderr that a batch has ended."""
    what = f"{record.outcome}: {record.message}" if record.message else str(record.outcome)
    took = "" if record.seconds is None else f" after {record.seconds:.1f} s"
    sys.stderr.write(escape(f"{record.id} on {record.device}{took}: {what}") + "\n")


def _tuning_answer(found: Tuning) -> Answer:
    """Report what was tuned and what failed; return 1 if there are failures."""
    from longpole.bench.tunableop.tune import Failure
    from longpole.cli.tunableop.data import Tuned

    n_failed = len(found.failures)
    n_tuned = found.n_gemms - n_failed
    before = f" ({found.n_known} before)" if found.n_known else ""
    headline = f"{n_tuned} of {count(found.n_gemms, 'GEMM')} tuned{before}" + (
        f", {n_failed} failed:" if n_failed else ""
    )
    outputs = [str(path) for path in found.outputs]
    written = outputs[0] if len(outputs) == 1 else f"{outputs[0]} to {outputs[-1]}"
    return rows_answer(
        "tune",
        None,
        headline,
        Tuned(outputs=outputs, n_gemms=found.n_gemms, n_tuned=n_tuned, rows=found.failures),
        Failure,
        notes=[f"written: {written}"],
        exit_code=exit_codes.FINDINGS if n_failed else exit_codes.OK,
    )
