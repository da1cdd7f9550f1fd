"""`longpole completion`: print a shell script that completes commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(context: click.Context, *, shell: str) -> int:
    """Print a shell script that completes commands and options.

    \b
    Examples:
      eval "$(longpole completion bash)"                   in ~/.bashrc
      eval "$(longpole completion zsh)"                    in ~/.zshrc
      longpole completion fish > ~/.config/fish/completions/longpole.fish
    """
    kind = get_completion_class(shell)
    if kind is None:
        message = f"there is no completion for {shell}"
        raise click.UsageError(message)
    script = kind(context.find_root().command, {}, "longpole", "_LONGPOLE_COMPLETE").source()
    # click's script for fish ends a description at its first comma.
    click.echo(script.replace('string split ","', 'string split --max 1 ","'))
    return 0
