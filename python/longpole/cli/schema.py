"""`longpole schema`: print the JSON Schema of what a command answers."""

from __future__ import annotations

from importlib.resources import files

import click

__all__ = ["schema"]


def _names() -> list[str]:
    """List the schemas of the package, the file `bench.run.json` as `bench run`."""
    names = (file.name for file in files("longpole").joinpath("schemas").iterdir())
    return sorted(name.removesuffix(".json").replace(".", " ") for name in names)


class _Command(click.ParamType[str]):
    """A word of the name of a command, completed by the shell."""

    name = "command"

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[click.shell_completion.CompletionItem]:
        words = sorted({word for name in _names() for word in name.split()})
        matching = (word for word in words if word.startswith(incomplete))
        return [click.shell_completion.CompletionItem(word) for word in matching]


@click.command()
@click.argument("command", nargs=-1, type=_Command(), metavar="COMMAND")
def schema(*, command: tuple[str, ...]) -> int:
    """Print the JSON Schema of what a command answers.

    The schema describes `data` in the output of `--format json`; `envelope` describes what
    stands around it. Without COMMAND the names are listed.

    \b
    Examples:
      longpole schema summary
      longpole schema bench compare
    """
    names, name = _names(), " ".join(command)
    if not name:
        click.echo("\n".join(names))
        return 0
    if name not in names:
        message = f"no schema for {name!r}; there are {', '.join(names)}"
        raise click.UsageError(message)
    file = files("longpole").joinpath("schemas", f"{name.replace(' ', '.')}.json")
    click.echo(file.read_text(encoding="utf-8"), nl=False)
    return 0
