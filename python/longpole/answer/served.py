"""The steps of an inference server in words: decode steps, prefill steps, mixed batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from longpole.remedies.parts import ServedSteps
from longpole.words.wording import count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def served_steps(
    iterations: Sequence[Mapping[str, Any]], numbers: Sequence[int], shown: int
) -> ServedSteps | None:
    """Return what the steps with some numbers are; None if they are of several kinds.

    Parameters
    ----------
    iterations
        The iterations of the server, of which the number of a step is the index.
    numbers
        The steps of the verdict.
    shown
        Index of the shown step among them.

    Examples
    --------
    >>> row = {"kind": "decode", "requests": 8, "decode_tokens": 8}
    >>> served_steps([row] * 3, [1, 2], 0)
    ServedSteps(kind='decode', requests=8, has_token_each=True)
    >>> served_steps([row, {**row, "kind": "prefill"}], [0, 1], 0)
    """
    rows = [iterations[number] for number in numbers if number < len(iterations)]
    kinds = {row["kind"] for row in rows}
    if len(rows) < len(numbers) or len(kinds) != 1 or None in kinds:
        return None
    [kind] = kinds
    has_token_each = all(
        row["kind"] == "decode" and None is not row["requests"] == row["decode_tokens"]
        for row in rows
    )
    return ServedSteps(kind, rows[shown]["requests"], has_token_each)


def described(steps: ServedSteps) -> str:
    """Return a step of a server with its batch, as the subject of a sentence.

    Examples
    --------
    >>> described(ServedSteps("decode", 8, has_token_each=True))
    'decode step of 8 requests (one token each)'
    >>> described(ServedSteps("prefill", None, has_token_each=False))
    'prefill step'
    """
    batch = "" if steps.requests is None else f" of {count(steps.requests, 'request')}"
    return f"{steps.noun}{batch}{' (one token each)' if steps.has_token_each else ''}"
