"""`longpole tunableop edit`: merge files, change the solution of GEMMs, and split files."""

from __future__ import annotations

import errno
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from longpole.cli.answer.problems import require, usage_errors
from longpole.cli.ask.files import OutputPath
from longpole.cli.ask.numbers import MOST_DEVICES
from longpole.cli.ask.options import Options, answer_options, answers, force_option
from longpole.cli.table import where_option
from longpole.errors import ResultsError
from longpole.files.writing import check_free
from longpole.words.wording import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from longpole.bench.tunableop import Merged, TunableFile
    from longpole.bench.tunableop.inputs import Key
    from longpole.bench.tunableop.merge import Policy
    from longpole.cli.answer.emit import Answer

from longpole.cli.tunableop.rows import MOST_ROWS, rows_answer

_VALIDATORS: Final = "validators"
_NONE: Final = "none"


def _parse_parts(
    _context: click.Context, _parameter: click.Parameter, text: str | None
) -> int | str | None:
    if text in {None, _VALIDATORS}:
        return text
    if str(text).isdecimal() and len(str(text)) <= len(str(MOST_DEVICES)):
        number = int(str(text))
        if 1 <= number <= MOST_DEVICES:
            return number
    message = f"{text!r} is neither a number from 1 to {MOST_DEVICES} nor `{_VALIDATORS}`"
    raise click.BadParameter(message)


@click.command()
@answers("longpole.cli.tunableop.data:Edited")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@where_option
@click.option(
    "--to",
    metavar="SOLUTION|none",
    help="Solution of the GEMMs that --where chooses, such as Default; `none` removes them.",
)
@click.option(
    "--conflict",
    type=click.Choice(("fastest", "first", "error")),
    default="fastest",
    show_default=True,
    help="What to do if files have different solutions for a GEMM.",
)
@click.option(
    "--parts",
    metavar="N|validators",
    callback=_parse_parts,
    help="Write N files of about the same cost, or one for each set of validators: 0, 1, ...",
)
@click.option(
    "-o",
    "--output",
    type=OutputPath(),
    required=True,
    metavar="FILE",
    help="File to write; with --parts its name without the number.",
)
@force_option
@answer_options
def edit(
    *,
    files: tuple[str, ...],
    where: str | None,
    to: str | None,
    conflict: Policy,
    parts: int | str | None,
    output: str,
    force: bool,
    options: Options,
) -> int:
    """Merge files, change the solution of GEMMs, and split files, in this order.

    Several files, or one without other options, are merged without losing rows: the result has one
    row for each GEMM. FILE can contain %d for the ordinals of all devices. Files with different
    validators are refused, or written separately with --parts validators. The result does
    not depend on the order of the files, except with --conflict first.

    --where and --to make GEMMs use a named solution, or the default of torch, regardless of the
    measurements: these rows lose their time, because it was measured with another solution.
    With `none`, torch tunes or records them again. All other bytes stay the same.

    --parts N divides a file of results or untuned GEMMs by the cost 2 m n k of each GEMM.

    \b
    Examples:
      longpole tunableop edit run1.csv run2.csv -o tunableop_results0.csv
      longpole tunableop edit r0.csv --where "k > 4096" --to Default -o pinned0.csv
      longpole tunableop edit r0.csv --where "solution = 'Default'" --to none -o new0.csv
      longpole tunableop edit tunableop_untuned0.csv --parts 4 -o part.csv
    """
    from longpole.bench import tunableop
    from longpole.bench.tunableop.records import require_rows

    require(
        (where is None) == (to is None),
        "--where and --to go together: which GEMMs, and the solution that they get",
    )
    sources = [tunableop.read(path) for file in files for path in _expanded(file)]
    require_rows(sources)
    is_whole = len(sources) == 1 and (where is not None or isinstance(parts, int))
    found = [_Part.of(sources[0])] if is_whole else _merged(sources, conflict, parts)
    keys = _chosen(found, where) if where is not None else []
    with usage_errors():
        found = [part.changed(keys, to) for part in found]
    if isinstance(parts, int):
        found = found[0].split(parts)
    names = [tunableop.with_ordinal(output, n) for n in range(len(found))] if parts else [output]
    for name in names:
        check_free(Path(name), force=force, inputs=[Path(each.name) for each in sources])
    for name, part in zip(names, found, strict=True):
        part.file.write(name, force=force)
    return options.emit(_answer(files[0], names, found, keys, to))


@dataclass(frozen=True, slots=True)
class _Part:
    """A file to write."""

    file: TunableFile
    n_gemms: int | None = None
    """Number of rows, if known."""
    flops: int | None = None
    """Cost of its GEMMs, if known."""
    merged: Merged | None = None
    """Where it comes from, if files were merged."""

    @classmethod
    def of(cls, file: TunableFile) -> _Part:
        """Return a whole file."""
        return cls(file)

    def changed(self, keys: Sequence[Key], to: str | None) -> _Part:
        """Return the file with the solution of some GEMMs changed, or without them."""
        from longpole.bench import tunableop

        has = {(line.key) for line in self.file.lines if line.solution is not None} if keys else ()
        mine = [key for key in keys if key in has]
        if not mine or to is None:
            return self
        edited = (
            tunableop.unpin(self.file, mine) if to == _NONE else tunableop.pin(self.file, mine, to)
        )
        return replace(self, file=edited, n_gemms=None, flops=None)

    def split(self, n_parts: int) -> list[_Part]:
        """Return parts of about the same cost."""
        from longpole.bench import tunableop

        shares = tunableop.split(self.file, n_parts)
        return [_Part(each.file, each.n_rows, each.flops, self.merged) for each in shares]

    def row(self, name: str) -> Any:
        """Return what is reported about the written file."""
        from longpole.bench.tunableop.untuned import costs
        from longpole.cli.tunableop.data import EditedRow

        file, merged = self.file, self.merged
        n_gemms = file.count("result") + file.count("untuned")
        return EditedRow(
            file=name,
            validators=" ".join(f"{key}={value}" for key, value in file.validators.items()),
            gemms=n_gemms if self.n_gemms is None else self.n_gemms,
            flops=sum(costs(file).values()) if self.flops is None else self.flops,
            dropped=0 if merged is None else merged.n_dropped,
            conflicts=0 if merged is None else len(merged.conflicts),
        )


def _merged(
    sources: Sequence[TunableFile], conflict: Policy, parts: int | str | None
) -> list[_Part]:
    """Merge results files, or files that only have untuned GEMMs."""
    from longpole.bench import tunableop

    if not any(file.count("result") for file in sources):
        return [_Part(tunableop.gather_untuned(sources))]
    if parts == _VALIDATORS:
        merged = tunableop.merge_by_validators(sources, conflict=conflict)
    else:
        merged = [tunableop.merge(sources, conflict=conflict)]
    return [_Part(each.file, each.n_gemms, merged=each) for each in merged]


def _expanded(name: str) -> Sequence[str | Path]:
    from longpole.bench import tunableop

    if "%d" not in name:
        return [name]
    found = tunableop.all_ordinals(name)
    if not found:
        raise FileNotFoundError(errno.ENOENT, "no file matches, with any ordinal for %d", name)
    return found


def _chosen(parts: Sequence[_Part], where: str) -> list[Key]:
    """Return the GEMMs of the results that match a condition.

    Raises
    ------
    ResultsError
        No row matches.
    """
    from longpole.bench.tunableop.records import GemmRow
    from longpole.rows.selection import matching
    from longpole.words.json_schema import types_of

    columns = [name for name, type_ in types_of(GemmRow).items() if type_ is not type(None)]
    found: dict[Key, None] = {}
    for rows in chain.from_iterable(part.file.parts() for part in parts):
        results = rows.filter(rows["kind"] == "result").select(columns)
        with usage_errors():
            matched = matching(results, where)
        found |= dict.fromkeys(matched.select("operator", "parameters").iter_rows())
    if not found:
        message = f"no result matches the condition {where}"
        raise ResultsError(message)
    return list(found)


def _answer(
    path: str, names: Sequence[str], found: Sequence[_Part], keys: Sequence[Key], to: str | None
) -> Answer:
    """Report what was written, which GEMMs changed, and which solutions were dropped."""
    from longpole.cli.tunableop.data import Edited, EditedRow, KeyRow

    rows = [part.row(name) for name, part in zip(names, found, strict=True)]
    merged = list({id(part.merged): part.merged for part in found if part.merged}.values())
    changed = [KeyRow(operator=operator, parameters=parameters) for operator, parameters in keys]
    done = "removed" if to == _NONE else f"with the solution {to}"
    headline = f"Written, {count(len(keys), 'GEMM')} {done}:" if keys else "Written:"

    def conflicts() -> Iterator[str]:
        return (str(conflict) for each in merged for conflict in each.conflicts)

    shown = [f"kept the first of: {conflict}" for conflict in islice(conflicts(), MOST_ROWS)]
    named = [",".join(key) for key in keys[:MOST_ROWS]]
    data = Edited(changed=changed, conflicts=[], rows=rows)
    has_conflicts = any(row["dropped"] for row in rows)
    document, code = rows_answer(
        "edit",
        path,
        headline,
        data,
        EditedRow,
        *("file", "gemms", "flops", *(("dropped", "conflicts") if has_conflicts else ())),
        notes=[*named, *shown],
    )
    whole = _Deferred(lambda: Edited(changed=changed, conflicts=list(conflicts()), rows=rows))
    return replace(document, data=whole), code


@dataclass(frozen=True, slots=True)
class _Deferred:
    """Data that only some formats need, and that may be large."""

    make: Callable[[], Any]

    def __data__(self) -> Any:
        return self.make()
