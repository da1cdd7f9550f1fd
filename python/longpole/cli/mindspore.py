"""`longpole mindspore`: analyse MindSpore profiles without MindSpore."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from longpole.cli.ask.files import OutputPath
from longpole.cli.ask.options import Options, answers, shared_options
from longpole.cli.ask.windows import step_option

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["mindspore"]


@click.command()
@answers("longpole.mindspore.offline:Analysis")
@click.argument(
    "folders", nargs=-1, required=True, type=click.Path(readable=False), metavar="DIR..."
)
@click.option(
    "-o",
    "--output",
    type=OutputPath(is_folder=True),
    help="Write files to a folder.",
)
@click.option("--compat", is_flag=True, help="Write the same files as MindSpore r2.3.")
@step_option("all steps", "steps", multiple=True)
@click.option("--no-developer-rows", is_flag=True, help="Leave out level 0 of host_info.")
@shared_options
def mindspore(
    *,
    folders: Sequence[str],
    output: str | None,
    compat: bool,
    steps: Sequence[int],
    no_developer_rows: bool,
    options: Options,
) -> int:
    """Analyse MindSpore profiles without MindSpore: operators, steps, data pipelines, memory.

    DIR is the output_path of the profiler, or a folder in it. Without -o, nothing is written.
    Every command can read the timelines: `longpole summary OUT/timeline_0.json`.

    \b
    Examples:
      longpole mindspore data/
      longpole mindspore data/ -o analysis
      longpole mindspore data/ -o files --compat
    """
    from longpole.cli.answer.mindspore import mindspore_answers

    if output is None and compat:
        message = "--compat is about files; name a folder with -o"
        raise click.UsageError(message)
    if output is not None and len(folders) > 1:
        message = "with -o, name one DIR"
        raise click.UsageError(message)
    asked = {
        "step_list": sorted(steps) or None,
        "output": output,
        "compat": "mindspore" if compat else None,
        "developer_rows": not no_developer_rows,
    }
    found = mindspore_answers(folders, asked, debug=options.debug)
    return options.emit_each(found)
