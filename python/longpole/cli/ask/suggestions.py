"""Suggests which option an unknown one may have meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from collections.abc import Iterable

_CLOSE: Final = 0.75
"""Similarity from which a name counts as a misspelling."""
_WHOLE_COMMANDS: Final = ("summary", "path", "whatif", "table", "report", "convert", "ranks")
"""Commands whose options are suggested to users of another command."""

_PAGE: Final = "`{page}`"
_PAGES: Final = {
    "diff": "longpole diff BASE NEW --format html",
    "ranks": "longpole report FOLDER -o FILE.html",
}
"""What writes a page of the same answer, by command; else `report` does."""

_REMEDIES: Final = "`longpole whatif TRACE` lists the remedies with their gains"
_EXPLAIN: Final = "`longpole whatif --remedy ID` explains a remedy"
_WHERE: Final = 'choose with `--where "{0} = ..."` of `longpole table TRACE NAME`'
_THREADS: Final = "the environment variable LONGPOLE_THREADS sets the number of threads"
_PROGRESS: Final = "progress is only shown on a terminal, and not if CI is set"
_TO_A_FILE: Final = f"redirect the answer with `> FILE`; {_PAGE} writes a page"

_MEANT: Final = {
    "--format": ("format", "output-format", "fmt", "type"),
    "--json": ("json", "as-json", "raw", "verbose", "v", "full-output", "details"),
    "--format csv": ("csv",),
    "--format jsonl": ("jsonl", "ndjson"),
    "--format md": ("md", "markdown"),
    "--format html": ("html",),
    "--output": ("output-file", "out", "outfile", "save", "to", "file", "dest", "o"),
    "--top": ("top-k", "topk", "limit", "n", "rows", "max-rows", "head", "count", "k", "max"),
    "--step": ("steps", "iteration", "iterations", "iter", "step-number", "step-id"),
    "--sort": ("sort-by", "order-by", "order", "orderby"),
    "--where": ("filter", "query", "select", "grep", "name", "kernel", "operator", "op", "match"),
    "--window": ("range", "time-range", "between", "from", "start", "begin", "time", "annotation"),
    "--window NAME": ("region", "nvtx", "nvtx-range", "marker", "record-function", "instance"),
    "--window all": ("whole", "all", "full", "whole-trace", "entire", "all-steps", "trace"),
    "--remedy": ("fix", "apply", "remedies"),
    "--drop": ("remove", "delete", "without", "skip"),
    "--scale": ("speedup", "factor", "faster", "speed-up"),
    "--gate": ("threshold", "fail-on", "max-regression", "tolerance"),
    "--force": ("overwrite", "yes", "y", "replace"),
    "--color never": ("no-color", "no-colour"),
    "--color": ("colour", "colors"),
    "--workers": ("jobs", "j", "processes", "parallel"),
    "--devices": ("gpus", "gpu", "device"),
    "--shapes": ("shape", "input-shapes", "group-by-shape", "group-by-input-shape", "sizes"),
    "--peak": ("tflops", "peak-flops", "peak-tflops"),
    "--step-time": ("measured-time", "real-step-time", "wall-time"),
}
"""Words that users try for an option, by the option and the value that it needs."""

_ELSEWHERE: Final = {
    **dict.fromkeys(("gain", "gains"), _REMEDIES),
    **dict.fromkeys(("explain", "why", "reason", "remedy"), _EXPLAIN),
    **dict.fromkeys(("remedies", "fixes", "suggest", "advice"), _REMEDIES),
    **dict.fromkeys(("html", "page", "report", "svg", "plot"), f"{_PAGE} (or FILE.svg) writes one"),
    **dict.fromkeys(("output", "output-file", "out", "outfile", "save", "o"), _TO_A_FILE),
    **dict.fromkeys(("at-peak", "peak-memory"), "`longpole table TRACE memory` is of the peak"),
    **dict.fromkeys(("rank", "ranks"), "give the file of one rank, or `longpole ranks FOLDER`"),
    **{word: _WHERE.format(word) for word in ("device", "stream", "kind", "lane")},
    **dict.fromkeys(("gpu", "gpus"), _WHERE.format("device")),
    **dict.fromkeys(("threads", "n-threads", "cores"), _THREADS),
    **dict.fromkeys(("no-progress", "quiet", "q", "silent", "no-bar"), _PROGRESS),
    "tables": "`longpole table TRACE` lists the tables",
    "list": "`longpole table TRACE` lists the tables",
    "version": "`longpole --version`",
}
"""Advice for words that users try but for which the command has no option."""


def closest(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return the known name that a wrong one resembles, as a question, or else another advice.

    Examples
    --------
    >>> closest("kernel", ["kernels", "steps"], "see the list")
    'did you mean `kernels`?'
    >>> closest("nope", ["copies", "envelope"], "see the list")
    'see the list'
    """
    import difflib

    names = [*known]
    with_word = sorted((one for one in names if name in one.split("_")), key=len)
    meant = difflib.get_close_matches(name, names, n=1, cutoff=_CLOSE) or with_word
    return f"did you mean `{meant[0]}`?" if meant else otherwise


def with_suggestion(error: click.NoSuchOption) -> click.NoSuchOption:
    """Return an unknown option with one suggestion: by its meaning, else by its spelling."""
    given = error.option_name
    context = error.ctx
    found = None if context is None else _suggestion(given.lstrip("-").replace("_", "-"), context)
    message = f"no such option '{given}'" + (f"; {found}" if found else "")
    return click.NoSuchOption(given, message, ctx=context)


def _suggestion(word: str, context: click.Context) -> str | None:
    import difflib

    command = context.command
    own = _options(command)
    meant = [
        option
        for option, words in _MEANT.items()
        if word.lower() in words and option.split()[0] in own
    ]
    close = difflib.get_close_matches(f"--{word}", own, n=1, cutoff=_CLOSE)
    if word.lower() in _ELSEWHERE and not meant:
        page = _PAGES.get(command.name or "", "longpole report TRACE -o FILE.html")
        return _ELSEWHERE[word.lower()].replace("{page}", page)
    suggested = [*meant, *close]
    return f"did you mean `{suggested[0]}`?" if suggested else _of_others(word, context)


def _of_others(word: str, context: click.Context) -> str | None:
    """Return the commands that have an option which this one lacks."""
    program = context.find_root().command
    if not isinstance(program, click.Group):
        return None
    commands = {name: program.get_command(context, name) for name in _WHOLE_COMMANDS}
    having = [name for name, one in commands.items() if one and f"--{word}" in _options(one)]
    if having:
        return f"it is an option of {', '.join(f'`{name}`' for name in having)}"
    tables_with: Any = getattr(commands["table"], "tables_with", None)
    tables = tables_with(f"--{word}") if tables_with else []
    return f"it is an option of `longpole TRACE {tables[0]}`" if tables else None


def _options(command: click.Command) -> list[str]:
    """List the long options of a command."""
    options = (each for each in command.params if isinstance(each, click.Option))
    return [name for each in options for name in each.opts if name.startswith("--")]
