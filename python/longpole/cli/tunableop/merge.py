"""`longpole tunableop merge`: merge results files."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import TYPE_CHECKING

import click

from longpole.cli.ask.files import OutputPath
from longpole.cli.ask.options import Options, answer_options, answers, force_option
from longpole.files import check_free

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.bench.tunableop.merge import Policy

__all__ = ["merge"]


@click.command()
@answers("longpole.cli.answer.tunable_data:MergedFiles")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "-o",
    "--output",
    type=OutputPath(),
    required=True,
    metavar="FILE",
    help="File to write the result to.",
)
@click.option(
    "--conflict",
    type=click.Choice(("fastest", "first", "error")),
    default="fastest",
    show_default=True,
    help="What to do if files have different solutions for a GEMM.",
)
@click.option(
    "--split-validators", is_flag=True, help="Write one file for each set of validators: 0, 1, ..."
)
@force_option
@answer_options
def merge(
    *,
    files: tuple[str, ...],
    output: str,
    conflict: Policy,
    split_validators: bool,
    force: bool,
    options: Options,
) -> int:
    """Merge results files without losing rows.

    FILE can contain %d for the ordinals of all devices. Files with different validators are
    refused, or with --split-validators written to separate files. The result does not
    depend on the order of the files, except with --conflict first.

    \b
    Examples:
      longpole tunableop merge run1.csv run2.csv -o tunableop_results0.csv
      longpole tunableop merge tunableop_results%d.csv -o all0.csv
    """
    from longpole.bench import tunableop
    from longpole.bench.tunableop.records import require_rows
    from longpole.cli.answer.tunableop import merge_answer

    sources = [tunableop.read(path) for file in files for path in _expanded(file)]
    require_rows(sources)
    if split_validators:
        parts = tunableop.merge_by_validators(sources, conflict=conflict)
        names = [tunableop.with_ordinal(output, number) for number in range(len(parts))]
    else:
        parts, names = [tunableop.merge(sources, conflict=conflict)], [output]
    for name in names:
        check_free(Path(name), force=force, inputs=[Path(each.name) for each in sources])
    for name, part in zip(names, parts, strict=True):
        part.file.write(name, force=force)
    answer = merge_answer(list(zip(names, parts, strict=True)))
    return options.emit(answer)


def _expanded(name: str) -> Sequence[str | Path]:
    from longpole.bench import tunableop

    if "%d" not in name:
        return [name]
    found = tunableop.all_ordinals(name)
    if not found:
        raise FileNotFoundError(errno.ENOENT, "no file of any ordinal", name)
    return found
