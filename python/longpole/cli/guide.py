"""`longpole guide`: print one page that explains longpole to an agent."""

from __future__ import annotations

from importlib.resources import files

import click


@click.command()
def guide() -> int:
    """Print one page that explains longpole to an agent.

    \b
    Examples:
      longpole guide
      longpole guide > AGENTS.md
    """
    click.echo(guide_text(), nl=False)
    return 0


def guide_text() -> str:
    """Return the page."""
    return files("longpole.cli").joinpath("guide.md").read_text(encoding="utf-8")
