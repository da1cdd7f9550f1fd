"""The time per output token and to the first token, as far as the marks of a server show them."""

from __future__ import annotations

from typing import Any, Final

import polars as pl

_DECODES: Final = ("decode", "mixed")


def token_times(rows: pl.DataFrame) -> dict[str, Any]:
    """Return the fields of `Serving` about tokens, from its iterations.

    A request that decodes gets a token from each iteration that decodes: it waits for the prefill
    steps between two of them.
    """
    return {**_output_tokens(rows), "time_to_first_token_ns": _first_token_ns(rows)}


def _output_tokens(rows: pl.DataFrame) -> dict[str, Any]:
    has_prompts = pl.col("prefill_tokens") > 0
    numbered = rows.with_columns(n_prefills=has_prompts.fill_null(value=False).cum_sum())
    decoding = numbered.filter(pl.col("kind").is_in(_DECODES))
    if not _decode_one_token(decoding):
        return {}
    times = decoding.select(
        time_ns=pl.col("end_ns").diff(),
        is_delayed=pl.col("n_prefills").diff() > 0,
    ).drop_nulls()
    if times.is_empty():
        return {}
    return {
        "time_per_output_token_ns": times["time_ns"].median(),
        "longest_output_token_ns": times["time_ns"].max(),
        "n_delayed": times["is_delayed"].sum(),
    }


def _decode_one_token(decoding: pl.DataFrame) -> bool:
    """Whether each request decodes one token in an iteration, as without speculative decoding."""
    steps = decoding.filter(pl.col("kind") == "decode")
    has_one = (steps["decode_tokens"] == steps["requests"]).fill_null(value=False)
    return not steps.is_empty() and has_one.all()


def _first_token_ns(rows: pl.DataFrame) -> Any:
    prompts = rows.filter(pl.col("prefill_tokens") > 0)
    return (prompts["end_ns"] - prompts["start_ns"]).median()
