"""The inputs of operators as typed columns, parsed from the strings of the trace on demand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

_TEXTS: Final = {
    "dims": ("Input Dims", "Input dims"),
    "types": ("Input type",),
    "steps": ("Input Strides",),
    "texts": ("Concrete Inputs",),
}
INPUT_ARGUMENTS: Final = [key for keys in _TEXTS.values() for key in keys]
"""Arguments of operators that contain their inputs."""

_TOO_LARGE: Final = 1 << 63
_NO_TENSOR: Final = frozenset({"", "Scalar", "ScalarList", "TensorList", "GenericList"})


def typed_inputs(arguments: pl.DataFrame | None) -> pl.DataFrame:
    """Parse the inputs of operators from their arguments; see `Trace.inputs`.

    Examples
    --------
    >>> import polars as pl
    >>> arguments = pl.DataFrame(
    ...     {
    ...         "event": [4],
    ...         "Input Dims": ["[[[2, 3], [5]], []]"],
    ...         "Input type": ['["TensorList", "Scalar"]'],
    ...         "Concrete Inputs": ['["", "1"]'],
    ...     }
    ... )
    >>> typed_inputs(arguments).row(0)
    (4, [0, 0, 1], [[2, 3], [5], None], [None, None, None], ['', '', 'Scalar'], ['', '', '1'])
    """
    events, distinct = distinct_inputs(arguments)
    joined = events.join(distinct, on="call", how="left", maintain_order="left")
    return joined.select("event", *_schema())


def distinct_inputs(arguments: pl.DataFrame | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Parse each distinct call once, since programs repeat themselves.

    Returns
    -------
    tuple of DataFrame
        `event` and `call`, then `call` with the columns of `Trace.inputs`.
    """
    import polars as pl

    if arguments is None:
        arguments = pl.DataFrame(schema={"event": pl.UInt32})
    event = pl.col("event").cast(pl.UInt32)
    texts = arguments.select(event, *(_text(arguments, name) for name in _TEXTS))
    texts = texts.filter(pl.col("dims").is_not_null())
    distinct = texts.select(list(_TEXTS)).unique(maintain_order=True).with_row_index("call")
    known = texts.join(
        distinct, on=list(_TEXTS), how="left", nulls_equal=True, maintain_order="left"
    )
    rows = [
        input_columns(*row)
        for row in distinct.select(pl.col(list(_TEXTS)).cast(pl.String)).iter_rows()
    ]
    parsed = pl.DataFrame(rows, schema=_schema(), orient="row")
    calls = pl.concat([distinct.select("call"), parsed], how="horizontal")
    return known.select("event", "call"), calls


def _schema() -> dict[str, Any]:
    import polars as pl

    sizes = pl.List(pl.List(pl.Int64))
    return {
        "inputs": pl.List(pl.Int32),
        "shapes": sizes,
        "strides": sizes,
        "dtypes": pl.List(pl.String),
        "values": pl.List(pl.String),
    }


def _text(arguments: pl.DataFrame, name: str) -> pl.Expr:
    import polars as pl

    keys = [key for key in _TEXTS[name] if key in arguments.columns]
    if len(keys) == 1:
        # Strings of the trace are categoricals, which compare as numbers.
        return pl.col(keys[0]).alias(name)
    found = [pl.col(key).cast(pl.String) for key in keys]
    return pl.coalesce(*found, pl.lit(None, pl.String)).alias(name)


def input_columns(
    dims: str, types: str | None, strides: str | None, values: str | None
) -> tuple[list[Any], ...]:
    """Return the columns of `Trace.inputs` for the recorded strings of one call.

    These are its dimensions, types, strides and concrete values. Each tensor or other input has a
    value in every column.
    """
    sizes, steps = json_list(dims), json_list(strides)
    names, texts = json_list(types), json_list(values)
    rows = [
        (position, *tensor)
        for position, size in enumerate(sizes)
        for tensor in _tensors(
            size, item_at(steps, position), item_at(names, position), item_at(texts, position)
        )
    ]
    inputs, *others = ([row[column] for row in rows] for column in range(5))
    return inputs, *others


def _tensors(size: Any, steps: Any, dtype: Any, value: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the tensors of one input, or the input itself if it is not a tensor."""
    text = str(value) if value is not None else ""
    if isinstance(size, list) and size and isinstance(size[0], list):
        for place, one in enumerate(size):
            name = item_at(dtype, place) if isinstance(dtype, list) else None
            yield _sizes(one), _sizes(item_at(steps, place)), str(name or ""), text
        return
    name = dtype if isinstance(dtype, str) else ""
    if dtype is not None and name in _NO_TENSOR and not size:
        yield None, None, name, text
        return
    yield _sizes(size), _sizes(steps), name, text


def _sizes(value: Any) -> list[int] | None:
    is_sizes = isinstance(value, list) and all(
        type(size) is int and abs(size) < _TOO_LARGE for size in value
    )
    return value if is_sizes else None


def item_at(values: Any, place: int) -> Any:
    """Return the item of a list at an index; None if there is none, or it is not a list."""
    return values[place] if isinstance(values, list) and place < len(values) else None


def json_list(text: str | None) -> list[Any]:
    """Parse a list; empty if the string is not a list."""
    try:
        found = json.loads(text) if text else []
    except (ValueError, RecursionError):
        return []
    return found if isinstance(found, list) else []


def shapes_in_words() -> pl.Expr:
    """Return `shapes` and `dtypes` as one string, to sort rows by.

    Examples
    --------
    >>> import polars as pl
    >>> rows = pl.DataFrame({"shapes": [[[2, 3], None, [4]]], "dtypes": [["float", "", "int"]]})
    >>> rows.select(shapes_in_words()).item()
    '2x3,,4 float,,int'
    """
    import polars as pl

    sizes = pl.element().cast(pl.List(pl.String)).list.join("x").fill_null("")
    shapes = pl.col("shapes").list.eval(sizes).list.join(",")
    return pl.concat_str(shapes, pl.col("dtypes").list.join(","), separator=" ").fill_null("")
