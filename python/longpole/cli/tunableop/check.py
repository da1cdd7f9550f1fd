"""`longpole tunableop check`: find what makes torch ignore a file or lose rows of it."""

from __future__ import annotations

import click

from longpole.cli.ask.options import Options, answer_options, answers

__all__ = ["check"]


@click.command()
@answers("longpole.cli.answer.tunable_data:Checked")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--torch", "version", metavar="VERSION", help="Version of torch to use it with.")
@click.option(
    "--expect", multiple=True, metavar="KEY=VALUE", help="A validator that the file must have."
)
@answer_options
def check(
    *, files: tuple[str, ...], version: str | None, expect: tuple[str, ...], options: Options
) -> int:
    """Find what makes torch ignore a file, lose rows of it, or choose a slow solution.

    Validators are compared with the installed torch, if there is one. Several files are
    compared with each other. The exit code is 1 if there is an error or a warning.

    \b
    Examples:
      longpole tunableop check tunableop_results0.csv
      longpole tunableop check run*.csv --torch 2.9.1 --expect GCN_ARCH_NAME=gfx942
    """
    from longpole.bench import tunableop
    from longpole.bench.tunableop import Installed
    from longpole.cli.answer.tunableop import check_answer

    pairs = [text.partition("=") for text in expect]
    if any(not mark for _, mark, _ in pairs):
        message = "give KEY=VALUE"
        raise click.BadParameter(message, param_hint="'--expect'")
    asked = Installed({"PT_VERSION": version}, is_complete=False) if version else None
    known = asked or tunableop.installed_validators()
    expected = {**known.validators, **{key: value for key, _, value in pairs}}
    read = [tunableop.read(file) for file in files]
    problems = tunableop.check(read, expected=expected, is_complete=known.is_complete)
    found = [
        check_answer(file.name, [each for each in problems if each.file == file.name])
        for file in read
    ]
    return options.emit(*found)
