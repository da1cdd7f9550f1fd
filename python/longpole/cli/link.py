"""`longpole link`: add the times of a Kineto trace to the execution trace of the same run."""

from __future__ import annotations

from typing import Any

import click

from longpole.cli.answer.usage import require
from longpole.cli.ask.files import OutputPath
from longpole.cli.ask.numbers import NUMBER
from longpole.cli.ask.options import Options, answers, force_option, shared_options

__all__ = ["link", "pair_options"]


def pair_options(command: Any) -> Any:
    """Add the two files to a command, under longpole's and Chakra's names."""
    for option in (
        click.option("--iteration", type=NUMBER, help="Which of the matching iterations to use."),
        click.option(
            "--kineto",
            "--kineto-file",
            "--chakra-device-trace",
            "kineto",
            required=True,
            type=click.Path(readable=False),
            help="The Kineto trace.",
        ),
        click.option(
            "--et",
            "--pytorch-et-file",
            "--chakra-host-trace",
            "execution",
            required=True,
            type=click.Path(readable=False),
            metavar="FILE",
            help="Execution trace of the same run.",
        ),
    ):
        command = option(command)
    return command


@click.command()
@answers("longpole.cli.answer.link:Linked")
@pair_options
@click.option("-o", "--output", "--output-file", type=OutputPath(), help="Write an ET+ file.")
@click.option(
    "--compat", type=click.Choice(["chakra"]), help="Write the same file as the linker of Chakra."
)
@click.option("--parquet", type=OutputPath(is_folder=True), help="Write the tables to this folder.")
@click.option("--rank", type=NUMBER, help="Fail if the trace is of another rank.")
@click.option("--explain", is_flag=True, help="List every dependency on GPU activities.")
@force_option
@shared_options
def link(
    *,
    execution: str,
    kineto: str,
    iteration: int | None,
    output: str | None,
    compat: Any,
    parquet: str | None,
    rank: int | None,
    explain: bool,
    force: bool,
    options: Options,
) -> int:
    """Add the times of a Kineto trace to the execution trace of the same run.

    Prints what was linked, what was not, and how well the dependencies explain the measured
    time. The exit code is 3 if the files do not belong together.

    \b
    Examples:
      longpole link --et et.json --kineto kineto.json -o et_plus.json
      longpole link --et et.json --kineto kineto.json --explain
    """
    from longpole.cli.answer.link import link_answer
    from longpole.convert import chakra
    from longpole.convert.execution_trace import link_execution_trace
    from longpole.read import read_trace

    trace = read_trace(kineto, vocabulary=options.vocabulary, threads=options.threads)
    is_of_rank = rank is None or trace.rank in {None, rank}
    require(is_of_rank, f"the Kineto trace is of rank {trace.rank}, not {rank}")
    linked = link_execution_trace(execution, trace, iteration=iteration)
    if output:
        chakra.write_et_plus(linked, output, compatible=compat, overwrite=force)
    if parquet:
        chakra.write_parquet(linked, parquet, overwrite=force)
    answer = link_answer(execution, kineto, linked, explain=explain)
    return options.emit(answer)
