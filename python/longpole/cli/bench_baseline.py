"""`longpole bench baseline`: keep results under a name, to compare later ones with."""

from __future__ import annotations

import click

from longpole.cli import exit_codes

__all__ = ["baseline"]


@click.command
@click.argument("name")
@click.argument("results", type=click.Path(exists=True, dir_okay=False))
@click.option("-f", "--force", is_flag=True, help="Take the place of a baseline of that name.")
def baseline(name: str, results: str, *, force: bool) -> int:
    """Keep the file RESULTS under NAME, to compare later ones with.

    Baselines lie in .longpole/baselines, or in the folder that LONGPOLE_BASELINES names.

    Example: longpole bench baseline main results.jsonl
    """
    from longpole.bench.baselines import save_baseline
    from longpole.errors import LongpoleError

    try:
        path = save_baseline(name, results, overwrite=force)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    except FileExistsError as error:
        message = f"there is a baseline {name} already; -f takes its place"
        raise click.UsageError(message) from error
    except (LongpoleError, OSError) as error:
        click.echo(f"error: {error}", err=True)
        return exit_codes.UNREADABLE
    click.echo(f"kept as {path}", err=True)
    return exit_codes.OK
