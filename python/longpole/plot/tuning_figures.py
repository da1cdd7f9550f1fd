"""Figures of a search: the best so far, parallel coordinates, and a heat map of two parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from longpole.plot.figures import Figure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longpole.bench.tune import Tuning
    from longpole.bench.tune.objective import Candidate

_NS_PER_MS: Final = 1e6
_GOOD_TO_BAD: Final = [[0, "#2c5f8a"], [0.5, "#a9c4dc"], [1, "#f3f4f6"]]


def best_so_far_figure(found: Tuning) -> Figure | None:
    """Draw the best result of the screening over the measuring time; None without a result."""
    if not found.curve:
        return None
    scale, unit = _unit(found)
    steps = [*found.curve]
    curve = {
        "type": "scatter",
        "mode": "lines+markers",
        "line": {"shape": "hv"},
        "x": [*(step.measuring_s for step in steps), found.screening_s],
        "y": [*(step.value * scale for step in steps), steps[-1].value * scale],
        "hovertext": [_html(step.label) for step in [*steps, steps[-1]]],
        "hovertemplate": "%{hovertext}: %{y:.4g} " + unit + "<extra></extra>",
        "meta": {"color": "bar"},
    }
    layout = {
        "showlegend": False,
        "xaxis": {"title": {"text": "measuring time, s"}, "rangemode": "tozero"},
        "yaxis": {"title": {"text": _title(found)}},
    }
    return Figure([curve], layout, "Best candidate so far")


def parallel_coordinates_figure(found: Tuning) -> Figure | None:
    """Draw each candidate that worked as a line through its values; None if none worked.

    The last axis shows the winner and the candidates that do not differ significantly from it.
    """
    rows = _sound(found)
    if not rows:
        return None
    scale, _ = _unit(found)
    values = [row.value * scale for row in rows if row.value is not None]
    names = list(dict.fromkeys(name for row in rows for name in row.point))
    ranks = _ranks(found)
    dimensions = [
        *(_dimension(name, [row.point.get(name) for row in rows]) for name in names),
        {"label": _title(found), "values": values},
        {
            "label": "verdict",
            "values": [ranks.get(row.label, 0) for row in rows],
            "tickvals": [0, 1, 2],
            "ticktext": ["worse", "tied", "winner"],
            "range": [0, 2],
        },
    ]
    line = {
        "color": values,
        "colorscale": _GOOD_TO_BAD,
        "reversescale": found.goal == "max",
        "showscale": True,
    }
    lines = {"type": "parcoords", "dimensions": dimensions, "line": line}
    return Figure([lines], {"height": 420}, "Candidates")


def heat_map_figure(found: Tuning, x: str, y: str) -> Figure | None:
    """Draw the best result for each combination of two parameters; None if no candidate worked.

    The winner and the candidates that do not differ significantly from it are marked.

    Raises
    ------
    ValueError
        A parameter is unknown.
    """
    rows = _sound(found)
    for name in (x, y):
        if not any(name in row.point for row in found.candidates):
            message = f"{name!r} is not a parameter"
            raise ValueError(message)
    if not rows:
        return None
    scale, unit = _unit(found)
    columns, lines = (_values(found.candidates, name) for name in (x, y))
    cells = _best_by_place(found, rows, x, y)
    picture = [[cells.get((left, top)) for left in columns] for top in lines]
    heat = {
        "type": "heatmap",
        "x": [_html(str(value)) for value in columns],
        "y": [_html(str(value)) for value in lines],
        "z": [
            [None if it is None or it.value is None else it.value * scale for it in line]
            for line in picture
        ],
        "text": [["" if it is None else _html(it.label) for it in line] for line in picture],
        "colorscale": _GOOD_TO_BAD,
        "reversescale": found.goal == "max",
        "hoverongaps": False,
        "hovertemplate": "%{text}: %{z:.4g} " + unit + "<extra></extra>",
        "colorbar": {"title": {"text": _title(found)}},
    }
    layout = {
        "xaxis": {"title": {"text": _html(x)}, "type": "category"},
        "yaxis": {"title": {"text": _html(y)}, "type": "category"},
    }
    return Figure([heat, _marks(found, x, y)], layout, "Best value by two parameters")


def _best_by_place(
    found: Tuning, rows: Sequence[Candidate], x: str, y: str
) -> dict[tuple[Any, Any], Candidate]:
    best: dict[tuple[Any, Any], Candidate] = {}
    for row in rows:
        place = (row.point.get(x), row.point.get(y))
        best[place] = min(best.get(place, row), row, key=lambda it: _cost(found, it))
    return best


def _marks(found: Tuning, x: str, y: str) -> Mapping[str, Any]:
    """Mark the winner, and candidates that do not differ from it unless at the same position."""
    marks: dict[tuple[str, str], str] = {}
    for each in sorted(found.finalists, key=lambda it: it is not found.winner):
        if each.is_tied:
            place = _html(str(each.point.get(x))), _html(str(each.point.get(y)))
            marks.setdefault(place, "winner" if each is found.winner else "tied")
    return {
        "type": "scatter",
        "mode": "text",
        "x": [place[0] for place in marks],
        "y": [place[1] for place in marks],
        "text": list(marks.values()),
        "textfont": {"color": "#b42318"},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _sound(found: Tuning) -> list[Candidate]:
    return [each for each in found.candidates if each.value is not None]


def _ranks(found: Tuning) -> dict[str, int]:
    return {
        each.label: 2 if each is found.winner else int(each.is_tied) for each in found.finalists
    }


def _values(rows: Sequence[Candidate], name: str) -> list[Any]:
    """Return the values of a parameter, numbers in ascending order."""
    values = list(dict.fromkeys(row.point.get(name) for row in rows))
    return sorted(values) if all(isinstance(value, int | float) for value in values) else values


def _dimension(name: str, values: Sequence[Any]) -> dict[str, Any]:
    """Return an axis: positions with their labels, since values may be strings."""
    choices = list(dict.fromkeys(values))
    if all(isinstance(value, int | float) for value in choices):
        choices.sort()
    return {
        "label": _html(name),
        "values": [choices.index(value) for value in values],
        "tickvals": list(range(len(choices))),
        "ticktext": [_html(str(value)) for value in choices],
    }


def _cost(found: Tuning, row: Candidate) -> float:
    value = row.value or 0.0
    return value if found.goal == "min" else -value


def _unit(found: Tuning) -> tuple[float, str]:
    return (1 / _NS_PER_MS, "ms") if found.unit == "ns" else (1.0, found.unit)


def _title(found: Tuning) -> str:
    unit = _unit(found)[1]
    return _html(f"{found.metric}, {unit}" if unit else found.metric)


def _html(text: str) -> str:
    return text.replace("<", "&lt;")
