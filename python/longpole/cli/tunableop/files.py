"""`longpole tunableop files`: show which files a process reads and writes."""

from __future__ import annotations

import os

import click

from longpole.cli.answer import exit_codes
from longpole.cli.ask.numbers import MOST_DEVICES
from longpole.cli.ask.options import Options, answer_options, answers
from longpole.wording import count

__all__ = ["files"]


@click.command()
@answers("longpole.cli.answer.tunable_data:Files")
@click.option("--name", metavar="FILE", help="The results file, as given to torch.")
@click.option("--untuned", metavar="FILE", help="The untuned file, as given to torch.")
@click.option(
    "--visible",
    multiple=True,
    metavar="LIST",
    help="The value of the visibility variable of a process. Repeatable, for several processes.",
)
@click.option(
    "--n-devices",
    "devices",
    type=click.IntRange(0, MOST_DEVICES),
    metavar="N",
    help="How many devices the machine has.",
)
@answer_options
def files(
    *,
    name: str | None,
    untuned: str | None,
    visible: tuple[str, ...],
    devices: int | None,
    options: Options,
) -> int:
    """Show which files a process reads and writes, for each device that it sees.

    The ordinal replaces %d or comes before the last dot, and counts the devices that the
    process sees. Without --visible, the answer uses the visibility variables and
    PYTORCH_TUNABLEOP_FILENAME of this process. The exit code is 1 if processes would share
    a file.

    \b
    Examples:
      longpole tunableop files --n-devices 8
      longpole tunableop files --visible 0 --visible 1
    """
    from longpole.bench.tunableop import files as files_of
    from longpole.bench.tunableop import name_warnings
    from longpole.bench.tunableop.names import ProcessFile
    from longpole.cli.answer.tunable_data import Files
    from longpole.cli.answer.tunableop import rows_answer

    environs = _environs(visible)
    found = [
        file
        for process, environ in enumerate(environs)
        for file in files_of(
            results=name, untuned=untuned, n_devices=devices, environ=environ, process=process
        )
    ]
    warnings = name_warnings(found, *filter(None, (name, untuned)))
    code = exit_codes.FINDINGS if warnings else exit_codes.OK
    headline = f"{count(len(found), 'device')} in {count(len(environs), 'process', 'processes')}"
    answer = rows_answer(
        "files",
        None,
        headline,
        Files(rows=found),
        ProcessFile,
        *("process", "ordinal", "device", "results", "exists", "untuned"),
        notes=warnings,
        exit_code=code,
    )
    return options.emit(answer)


def _environs(visible: tuple[str, ...]) -> list[dict[str, str]]:
    """Return the environment of each process; by default that of the current one."""
    if not visible:
        return [dict(os.environ)]
    others = {name: text for name, text in os.environ.items() if name != "HIP_VISIBLE_DEVICES"}
    return [{**others, "CUDA_VISIBLE_DEVICES": text} for text in visible]
