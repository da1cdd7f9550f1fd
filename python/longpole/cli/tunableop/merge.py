"""`longpole tunableop merge`, `split` and `untuned`: join files, and divide them."""

from __future__ import annotations

import errno
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from longpole.cli.ask.files import OutputPath
from longpole.cli.ask.numbers import MOST_DEVICES
from longpole.cli.ask.options import Options, answer_options, answers, force_option
from longpole.files.writing import check_free
from longpole.words.wording import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from longpole.bench.tunableop import Merged
    from longpole.bench.tunableop.merge import Policy
    from longpole.cli.answer.emit import Answer

from longpole.cli.tunableop.rows import MOST_ROWS, rows_answer

__all__ = ["merge", "split", "untuned"]


@click.command()
@answers("longpole.cli.tunableop.data:MergedFiles")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "-o",
    "--output",
    type=OutputPath(),
    required=True,
    metavar="FILE",
    help="File to write.",
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
    answer = _merge_answer(list(zip(names, parts, strict=True)))
    return options.emit(answer)


def _expanded(name: str) -> Sequence[str | Path]:
    from longpole.bench import tunableop

    if "%d" not in name:
        return [name]
    found = tunableop.all_ordinals(name)
    if not found:
        raise FileNotFoundError(errno.ENOENT, "no file matches, with any ordinal for %d", name)
    return found


@click.command()
@answers("longpole.cli.tunableop.data:PartRow", has_rows=True)
@click.argument("file", metavar="FILE")
@click.option(
    "--parts",
    "gpus",
    type=click.IntRange(1, MOST_DEVICES),
    required=True,
    metavar="N",
    help="Number of parts.",
)
@click.option(
    "-o",
    "--output",
    type=OutputPath(),
    metavar="NAME",
    help="Name of the parts, to which the ordinal is added.",
)
@force_option
@answer_options
def split(*, file: str, gpus: int, output: str | None, force: bool, options: Options) -> int:
    """Split a file into parts of about the same cost, 2 m n k for each GEMM.

    Every part has the validators of the file. Without -o, the parts are named FILE_part0.csv
    and so on.

    \b
    Examples:
      longpole tunableop split tunableop_untuned0.csv --parts 4
    """
    from longpole.bench import tunableop
    from longpole.bench.tunableop.records import require_rows
    from longpole.cli.tunableop.data import PartRow

    source = tunableop.read(file)
    require_rows([source])
    shares = tunableop.split(source, gpus)
    path = Path(file)
    name = output or str(path.with_name(f"{path.stem}_part%d{path.suffix}"))
    names = [tunableop.with_ordinal(name, number) for number in range(gpus)]
    for name in names:
        check_free(Path(name), force=force, inputs=[path])
    for part, share in zip(names, shares, strict=True):
        share.file.write(part, force=force)
    rows = [
        PartRow(file=part, gemms=share.n_rows, flops=share.flops)
        for part, share in zip(names, shares, strict=True)
    ]
    answer = rows_answer("split", file, f"{file} in {gpus} parts:", {"rows": rows}, PartRow)
    return options.emit(answer)


@click.command()
@answers("longpole.cli.tunableop.data:UntunedRow", has_rows=True)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--without",
    multiple=True,
    metavar="RESULTS",
    help="Leave out GEMMs that have a row in this results file.",
)
@click.option("-o", "--output", type=OutputPath(), metavar="FILE", help="File to write.")
@force_option
@answer_options
def untuned(
    *,
    files: tuple[str, ...],
    without: tuple[str, ...],
    output: str | None,
    force: bool,
    options: Options,
) -> int:
    """Merge recorded GEMMs without duplicates, in a stable order.

    GEMMs of results files are included, to tune them again.

    \b
    Examples:
      longpole tunableop untuned tunableop_untuned*.csv -o all_untuned0.csv
      longpole tunableop untuned tunableop_untuned*.csv --without tuned0.csv -o new0.csv
    """
    import polars as pl

    from longpole.bench import tunableop
    from longpole.bench.tunableop.records import check_rows, require_rows
    from longpole.cli.tunableop.data import KeyRow, UntunedRow
    from longpole.words.data import names_of

    sources = [tunableop.read(file) for file in files]
    known = [tunableop.read(file) for file in without]
    require_rows(sources)
    check_rows(known)
    found = tunableop.gather_untuned(sources, without=known)
    if output:
        found.write(output, force=force, inputs=[*files, *without])
    columns = names_of(UntunedRow)
    rows = pl.concat(part.select(columns) for part in found.parts(columns))
    written = f"; written to {output}" if output else ""
    left = f" without a row in {', '.join(without)}" if without else ""
    headline = f"{count(rows.height, 'GEMM')} in {count(len(files), 'file')}{left}{written}"
    answer = rows_answer(
        "untuned",
        None,
        headline,
        {"rows": rows},
        UntunedRow,
        *names_of(KeyRow),
        most=MOST_ROWS,
    )
    return options.emit(answer)


def _merge_answer(written: Sequence[tuple[str, Merged]]) -> Answer:
    """Report what was written, and which solutions were dropped."""
    from longpole.cli.tunableop.data import MergedFiles, MergedRow

    rows = [
        MergedRow(
            file=path,
            validators=" ".join(f"{key}={value}" for key, value in merged.validators),
            gemms=merged.n_gemms,
            dropped=merged.n_dropped,
            conflicts=len(merged.conflicts),
        )
        for path, merged in written
    ]

    def conflicts() -> Iterator[str]:
        return (str(conflict) for _, merged in written for conflict in merged.conflicts)

    shown = [f"kept the first of: {conflict}" for conflict in islice(conflicts(), MOST_ROWS)]
    data = MergedFiles(conflicts=shown, rows=rows)
    columns = ("file", "gemms", "dropped", "conflicts")
    document, code = rows_answer("merge", None, "Merged:", data, MergedRow, *columns, notes=shown)
    whole = _Deferred(lambda: MergedFiles(conflicts=list(conflicts()), rows=rows))
    return replace(document, data=whole), code


@dataclass(frozen=True, slots=True)
class _Deferred:
    """Data that only some formats need, and that may be large."""

    make: Callable[[], Any]

    def __data__(self) -> Any:
        return self.make()
