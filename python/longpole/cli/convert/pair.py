"""Writes an execution trace with the times of a Kineto trace: ET+, Chakra graphs, tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, NotRequired

from longpole.cli.answer import exit_codes
from longpole.cli.answer.graphs import (
    Findings,
    checked_graph,
    exit_code_of_graph,
    finding_blocks,
    known_of_replay,
    replay_warnings,
)
from longpole.cli.answer.inputs import name_of, record_of
from longpole.cli.answer.problems import require
from longpole.cli.convert.written import SCHEMA, Converted, write_table
from longpole.formats.convert.chakra import read_chakra, write_chakra, write_et_plus
from longpole.formats.convert.execution_trace import link_execution_trace
from longpole.report.blocks import Column, Headline, Notes, Sentence, tabulated
from longpole.report.document import Document
from longpole.words.data import Row, plain
from longpole.words.wording import count, escape

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

    from longpole.cli.answer.emit import Answer
    from longpole.cli.ask.options import Options
    from longpole.formats.convert.execution_trace import LinkedTrace
    from longpole.jobs.linked_ranks import LinkedRanks
    from longpole.report.blocks import Block


class Pair(Row):
    """A written graph, and the two files it was made from."""

    path: str
    rank: int | None
    execution: str
    kineto: str
    paired_by: Literal["process", "rank"] | None


class ConvertedGraph(Pair):
    """A written graph with its problems."""

    findings: Findings


class MatchedCalls(Row):
    """The collective calls of several ranks."""

    count: int
    matched_by: list[str]


class ConvertedGraphs(Row):
    """The Chakra graphs that were written."""

    graphs: list[ConvertedGraph]
    groups: str | None
    """File with the ranks of the process groups, for several ranks."""
    calls: NotRequired[MatchedCalls]
    findings: NotRequired[list[str]]


def convert_pair(
    execution: str,
    kinetos: Sequence[str],
    output: Path,
    *,
    table: str,
    iteration: int | None,
    gaps: bool,
    force: bool,
    options: Options,
) -> int:
    """Link the two files of one rank, or of each rank; write the result, and report it."""
    from longpole.formats.read import read_trace

    [kineto, *others] = kinetos
    is_of_ranks = others or not all(Path(path).is_file() for path in (execution, kineto))
    is_folder = not output.suffix or output.is_dir()
    if is_of_ranks or is_folder:
        return _convert_ranks(execution, kinetos, output, gaps=gaps, force=force, options=options)
    trace = read_trace(kineto, vocabulary=options.vocabulary)
    linked = link_execution_trace(execution, trace, iteration=iteration)
    given = {"path": execution, "kineto": kineto}
    if output.suffix == ".et":
        write_chakra(linked, output, gaps=gaps, overwrite=force)
        return options.emit(_graph_answer(given, output))
    if output.suffix == ".json":
        write_et_plus(linked, output, gaps=gaps, overwrite=force)
        return options.emit(_file_answer(given, output, linked, "ET+", linked.nodes))
    rows = getattr(linked, table)
    write_table(rows, output, linked.inputs, force=force)
    return options.emit(_file_answer(given, output, linked, table, rows))


def _convert_ranks(
    execution: str,
    kinetos: Sequence[str],
    output: Path,
    *,
    gaps: bool,
    force: bool,
    options: Options,
) -> int:
    from longpole.jobs.linked_ranks import link_ranks

    is_file = bool(output.suffix) and not output.is_dir()
    require(not is_file, "for the execution traces of several ranks, --output is a folder")
    ranks = link_ranks(execution, kinetos[0] if len(kinetos) == 1 else kinetos)
    written = ranks.write_chakra(output, gaps=gaps, overwrite=force)
    return options.emit(_ranks_answer(ranks, written))


def _file_answer(
    given: dict[str, str], output: Path, linked: LinkedTrace, what: str, rows: pl.DataFrame
) -> Answer:
    """Report a written file, and where the replay differs from the run."""
    warnings = replay_warnings(linked.replay(), linked.nodes)
    written = Converted(str(output), output.stat().st_size, what, rows.height)
    unit = "node" if what == "ET+" else "row"
    document = Document(
        schema=SCHEMA,
        **known_of_replay(given, warnings),
        data=written,
        blocks=lambda: [
            Headline(f"{', '.join(map(name_of, given.values()))}: {what}"),
            Sentence(f"Wrote {count(rows.height, unit)} to {escape(str(output))}."),
        ],
        records=lambda: [record_of(written, given["path"])],
    )
    return document, exit_codes.INCONCLUSIVE if warnings else exit_codes.OK


def _graph_answer(given: dict[str, str], output: Path) -> Answer:
    """Return the problems of a graph that was just written."""
    found, warnings = checked_graph(read_chakra(output))
    path = str(output)
    execution, kineto = given.values()
    pair = Pair(path=path, rank=None, execution=execution, kineto=kineto, paired_by=None)
    document = Document(
        schema=SCHEMA,
        **known_of_replay(given, warnings),
        data=ConvertedGraphs(graphs=[{**pair, "findings": found}], groups=None),
        blocks=lambda: list(finding_blocks(path, found)),
        records=lambda: [plain(pair)],
    )
    return document, exit_code_of_graph(found, warnings)


def _ranks_answer(ranks: LinkedRanks, written: Sequence[Path]) -> Answer:
    """Report the files written for the ranks of a run, and how their calls were matched."""
    *graphs, groups = written
    checked = [checked_graph(read_chakra(path), path.name) for path in graphs]
    warnings = [warned for _, of_graph in checked for warned in of_graph]
    pairs = _pairs(ranks, graphs)
    calls = ranks.traces.calls
    converted = ConvertedGraphs(
        graphs=[
            {**pair, "findings": found} for pair, (found, _) in zip(pairs, checked, strict=True)
        ],
        groups=str(groups),
        calls={
            "count": calls.height,
            "matched_by": sorted(calls["matched_by"].unique().cast(str)),
        },
        findings=[finding.message for finding in ranks.traces.findings],
    )
    document = Document(
        schema=SCHEMA,
        **known_of_replay(
            {"path": str(groups.parent), "ranks": [pair["rank"] for pair in pairs]}, warnings
        ),
        data=converted,
        blocks=lambda: list(_converted(pairs, converted)),
        records=lambda: plain(pairs),
    )
    return document, max(exit_code_of_graph(found, warnings) for found, _ in checked)


def _pairs(ranks: LinkedRanks, graphs: Sequence[Path]) -> list[Pair]:
    return [
        Pair(
            path=str(path),
            rank=pair.rank,
            execution=pair.execution,
            kineto=pair.kineto,
            paired_by=pair.paired_by,
        )
        for pair, path in zip(ranks.pairs, graphs, strict=True)
    ]


def _converted(pairs: Sequence[Pair], converted: ConvertedGraphs) -> Iterator[Block]:
    """Show the pairs, the problems of their graphs, and how calls were matched."""
    calls = converted["calls"]
    by = f", matched by {', '.join(calls['matched_by'])}" if calls["matched_by"] else ""
    yield Headline(f"{count(len(pairs), 'rank')}, {count(calls['count'], 'call')} of several{by}")
    yield tabulated(pairs, {Column(name.replace("_", " ")): name for name in pairs[0]})
    for graph in converted["graphs"]:
        yield from finding_blocks(graph["path"], graph["findings"])
    groups = f"The ranks of the process groups: {converted['groups']}."
    yield Notes([*converted["findings"], groups])
