"""`longpole explain`: say how a remedy is recognised, what it changes, and how well it predicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from longpole.cli.ask.options import Options, answers, shared_options

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

__all__ = ["explain"]


class _Remedy(click.ParamType[str]):
    """The id of a remedy, completed by the shell."""

    name = "remedy"

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        from longpole.remedies.catalogue import CATALOGUE

        return [CompletionItem(name) for name in CATALOGUE if name.startswith(incomplete)]


@click.command()
@answers("longpole.cli.answer.explain:Explained")
@click.argument("remedy", required=False, type=_Remedy(), metavar="[REMEDY]")
@shared_options
def explain(*, remedy: str | None, options: Options) -> int:
    """Explain a remedy: how it is recognised, what it changes, how well it predicts.

    REMEDY is an id of `longpole whatif TRACE --ideal`, such as cuda_graph. Without it, all
    remedies are listed.

    \b
    Examples:
      longpole explain
      longpole explain cuda_graph
    """
    import sys

    from longpole.cli.answer.emit import emit
    from longpole.cli.answer.explain import explained
    from longpole.report.terminal import Terminal

    return emit([explained(remedy)], options.form, Terminal.of(sys.stdout, options.color))
