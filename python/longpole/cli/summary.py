"""`longpole summary`: where the time of a step went, and what it waited for most."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from longpole.cli import exit_codes
from longpole.cli.options import Options, shared_options, traces_argument
from longpole.cli.output import DATA_FORMATS, Document
from longpole.cli.traces import NotInTraceError, answer_each, describe, title, warnings_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.analyses.summary import Summary
    from longpole.trace import Trace

__all__ = ["summary"]

_SCHEMA = "longpole.summary/1"


@click.command()
@traces_argument
@click.option(
    "--step", type=int, metavar="N", help="ProfilerStep to look at; default: the longest complete."
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="How many kernels and operators to list.",
)
@shared_options
def summary(*, traces: Sequence[str], step: int | None, top: int, options: Options) -> int:
    """Say where the time of a step went, and what it waited for most.

    TRACE is what the PyTorch profiler exports, plain or gzip, or `-` for stdin. Shares
    name their denominator: the step, or the whole trace where it marks no steps.

    \b
    Examples:
      longpole summary trace.json.gz
      longpole summary rank*.json.gz --step 3 --format csv
      curl -s https://example.org/trace.json.gz | longpole summary -
    """

    def answer(path: str, trace: Trace) -> Document:
        return _document(path, trace, step, top)

    return answer_each(traces, options, _SCHEMA, answer)


def _document(path: str, trace: Trace, step: int | None, top: int) -> Document:
    from longpole.analyses.long_pole import LongPole, long_pole
    from longpole.analyses.summary import summary as summarize
    from longpole.cli import summary_records, summary_text

    try:
        found = summarize(trace, step=step, top=top)
    except ValueError as error:
        raise NotInTraceError(str(error)) from error
    known: dict[str, Any] = {
        "schema": _SCHEMA,
        "input": describe(path, trace),
        "warnings": warnings_of(trace),
    }
    if found is None or not found.window.span_ns:
        why = "the trace holds no event with a duration"
        if found is not None:
            why = f"{found.window.noun}: it is 0 ns long, so that nothing can be measured"
        return Document(
            **known,
            status="abstained",
            exit_code=exit_codes.INCONCLUSIVE,
            text=lambda _: f"{title(path)}: {why}\n",
        )
    pole = long_pole(trace, found.window.step)
    sentence = str(pole) if isinstance(pole, LongPole) else None
    return Document(
        **known,
        status="partial" if trace.status == "recovered" else "ok",
        scope=_scope(trace, found),
        data={
            **found.to_dict(),
            "long_pole": asdict(pole) if isinstance(pole, LongPole) else None,
            "long_pole_reason": None if isinstance(pole, LongPole) else pole,
        },
        truncated=_truncated(found),
        forms_with_warnings=(*DATA_FORMATS, "text"),
        text=lambda terminal: summary_text.text(path, trace, found, sentence, terminal),
        markdown=lambda: summary_text.markdown(path, found, sentence),
        records=lambda: summary_records.records(path, found),
    )


def _scope(trace: Trace, found: Summary) -> dict[str, Any]:
    window = found.window
    return {
        "rank": trace.rank,
        "step": window.step,
        "window_ns": [window.start_ns, window.end_ns],
        "reason": window.reason,
    }


def _truncated(found: Summary) -> dict[str, Any]:
    return {
        "kernels": {"shown": len(found.kernels.rows), "total": found.kernels.n_total},
        "operators": {"shown": len(found.operators.rows), "total": found.operators.n_total},
    }
