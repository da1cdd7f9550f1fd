"""What the surfaces of one question say, read back from what they print, and where they disagree.

Each surface is asked by itself: text, Markdown, CSV, JSON lines, JSON, the page, `whatif`, `path`,
tables, `diff` of a trace with itself, the tools for agents, and Python. Numbers are parsed from
what a person reads, and are recomputed here from the JSON, by other code than that which printed
them.
"""

from __future__ import annotations

import contextlib
import csv
import html
import io
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from longpole import Question, read_trace
from longpole.cli.mcp.tools import call
from longpole.cli.program import run
from longpole.engine.arguments import ARGUMENTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_LIMITS = {
    "waits": r"waits limit it more than any work does",
    "sides": r"\blimits? it( \(| alike|[;,])|limits? the step",
    "both": r"host and kernels|shorten both",
    "none_alone": r"removing any one side saves less than 5 %|no side alone is sure to limit it",
}
"""What the sentence of each limit says, and no other sentence."""
_CAUSES = ("waiting_for_launch", "between_activities", "other_wait", "after_last", "unlinked")
_NOUNS = {
    "kernels": "the kernels",
    "host": "the host",
    "communication": "communication",
    "copies": "memory copies",
}
_SAVES = re.compile(
    r"saves (?:(?P<nothing>nothing)|(?P<little>less than 1 %)|up to (?P<most>\d+) %"
    r"|(?P<low>\d+) to (?P<high>\d+) %|(?P<one>\d+) %)"
)
_ROUNDING = 0.01
"""Half of a percent, on each side of an interval that is shown as one number or rounded."""
_CUT = ("events", "time_ranges")
_CLOCK_NS = 10_000
"""Most by which clocks of simulated devices are off: the path corrects it, tables do not."""


@dataclass(frozen=True)
class Window:
    """A window as words of the command line, as a question, and as arguments of a tool."""

    words: tuple[str, ...]
    question: Question
    arguments: dict[str, Any]


_MARKED = r"ProfilerStep#[0-3]"
WINDOWS = (
    Window(("--step-name", _MARKED), Question(step_name=_MARKED), {"step_name": _MARKED}),
    Window(("--step", "2"), Question(step=2), {"step": 2}),
    Window((), Question(), {}),
    Window(("--window", "all"), Question(whole=True), {"window": "all"}),
    Window(
        ("--window", "0.2ms..0.9ms"),
        Question(between=(200_000, 900_000)),
        {"window": "0.2ms..0.9ms"},
    ),
)


class Surfaces:
    """All that is printed about one window of a trace."""

    def __init__(self, path: Path, window: Window, document: dict[str, Any]) -> None:
        self.path, self.window = path, window
        self.document = document
        """The summary as JSON, with which all others are compared."""

    def printed(self, command: str, *words: object) -> str:
        """Return what a command prints about the window."""
        given = [*command.split(), str(self.path), *self.window.words, *map(str, words)]
        return _printed(given)[1]

    def answered(self, command: str, *words: object) -> dict[str, Any]:
        """Return the JSON of a command."""
        found: dict[str, Any] = json.loads(self.printed(command, *words, "--json"))
        return found

    @property
    def verdict(self) -> dict[str, Any]:
        """Its verdict."""
        found: dict[str, Any] = self.document["data"]["verdict"]
        return found

    @property
    def window_ns(self) -> int:
        """Length of the window."""
        start_ns, end_ns = self.document["scope"]["window_ns"]
        return int(end_ns - start_ns)


def _printed(words: Sequence[str]) -> tuple[int, str]:
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        code = run(list(words))
    out.flush()
    return code, out.buffer.getvalue().decode()  # type: ignore[attr-defined]


def disagreements(path: Path, window: Window) -> list[str] | None:
    """List what the surfaces say differently; None if there is no answer about the window."""
    code, told = _printed(["summary", str(path), *window.words, "--json"])
    document = json.loads(told) if told else {"data": None}
    if document["data"] is None:
        return None
    surfaces = Surfaces(path, window, document)
    checks = (
        *_of_itself(surfaces, code),
        *_of_texts(surfaces),
        *_of_rows(surfaces),
        *_of_whatif(surfaces, code),
        *_of_tables(surfaces),
        *_of_page(surfaces),
        *_of_tools(surfaces),
        *_of_python(surfaces),
        *_of_diff(surfaces),
    )
    return [what for what, holds in checks if not holds]


Checks = "Iterator[tuple[str, bool]]"


def _of_itself(it: Surfaces, code: int) -> Checks:
    verdict, limit = it.verdict, it.verdict["limit"]
    sentence, kind = verdict["sentence"], verdict["limit"]["kind"]
    if kind in _LIMITS:
        said = [name for name, words in _LIMITS.items() if re.search(words, sentence)]
        yield f"limit {kind} and sentence", kind in said and ("waits" in said) == (kind == "waits")
    if kind == "sides":
        named = {side for side, noun in _NOUNS.items() if noun in sentence}
        yield "sides and sentence", {*limit["sides"]} <= named
    yield "exit code and status", (code == 4) == (kind == "not_shown")
    for name, gain in _gains(verdict):
        ordered = gain["low"] <= max(gain["value"], 0.0) + 1e-12
        yield f"order of {name}", ordered and max(gain["value"], 0.0) <= gain["high"] + 1e-12
    yield from _of_plan(verdict)
    for row in verdict["remedies"]:
        delays = any(change["kind"] == "kernel_delay" for change in row["hopeful_changes"])
        if len(row["sides"]) == 1 and not delays:
            whole = verdict["gains"][row["sides"][0]]["high"]
            yield f"{row['remedy']} and its side", row["gain"]["high"] <= whole + 0.005
    span = verdict["window"]
    yield "order of steps", span["min_ns"] <= span["length_ns"] <= span["max_ns"]
    for device in it.document["data"]["devices"]:
        whole, idle = device["whole"], device["idle"]
        yield "busy and idle", whole["busy_ns"] + whole["idle_ns"] == it.window_ns
        causes = [idle[f"{cause}_ns"] for cause in _CAUSES]
        yield "causes of idle", sum(causes) == whole["idle_ns"]


def _gains(verdict: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from verdict["gains"].items()
    yield from ((row["remedy"], row["gain"]) for row in verdict["remedies"])


def _of_texts(it: Surfaces) -> Checks:
    for form in ("text", "md"):
        told = _flat(it.printed("summary", "--format", form).replace("\\", ""))
        yield f"sentence in {form}", _flat(it.verdict["sentence"]) in told
        yield from _of_lines(it.verdict["plan"], told, form)


def _of_lines(plan: dict[str, Any], told: str, where: str) -> Checks:
    """Compare what is printed of a plan with its data: each line in its place, and the total."""
    for place, line in enumerate(plan["lines"], 1):
        found = re.search(rf"(?<!\S){place}\. (.*?)(?= {place + 1}\. | Together: |$)", told)
        yield f"line {place} in {where}", found is not None and _flat(line["advice"]) in found[1]
        if found is not None and line["then"] is not None:
            yield f"saving of line {place} in {where}", _fits(found[1], line["then"])
    total = re.search(r"Together: .*? -> .*? \((.*?)\)", told)
    n_computed = sum(line["then"] is not None for line in plan["lines"])
    yield f"total in {where}", (total is not None) == (n_computed > 1)
    if total is not None:
        yield f"saving of all in {where}", _fits(f"saves {total[1]}", plan["gain"])
    yield f"none in {where}", not (plan["lines"] and "No remedy" in told)


def _of_plan(verdict: dict[str, Any]) -> Checks:
    """Compare the lines of a plan with each other, with its total, and with the remedies."""
    plan = verdict["plan"]
    computed = [line for line in plan["lines"] if line["then"] is not None]
    yield "number of lines", len(plan["lines"]) <= 4
    if computed:
        yield "total of the plan", plan["gain"] == computed[-1]["gain"]
        thens = sum(line["then"]["value"] for line in computed)
        yield "sum of the lines", abs(thens - plan["gain"]["value"]) < 1e-9
        lengths = [(1 - plan["gain"][end]) * plan["length_ns"] for end in ("high", "low")]
        pairs = zip(plan["then_ns"], lengths, strict=True)
        yield "lengths of the plan", all(abs(one - max(it, 0)) <= 1 for one, it in pairs)
        # A line that saves less opens the next one.
        yield "the last line surely saves", computed[-1]["then"]["low"] >= 0.02
    for line in computed:
        then = line["then"]
        yield "order of a line", then["low"] <= then["value"] + 1e-12 <= then["high"] + 2e-12
    lines = {(line["remedy"], line["name"]) for line in plan["lines"]}
    named = {(row["remedy"], row["name"]) for row in verdict["remedies"] if row["named"]}
    yield "remedies of the plan", named <= lines
    events = [{*_shortened(line)} for line in computed]
    yield "no event in two lines", len(set().union(*events)) == sum(map(len, events))


def _shortened(line: dict[str, Any]) -> Iterator[int]:
    """Yield the kernels and copies that a line shortens."""
    for change in (*line["changes"], *line["hopeful_changes"]):
        if change["change"] in {"scale", "replace"} and change["kind"] in {"kernel", "copy"}:
            yield from change["events"] or ()


def _fits(line: str, gain: dict[str, Any]) -> bool:
    """Whether the interval of a line is that of a gain."""
    found = _SAVES.search(line)
    if found is None:
        return False
    low, high = gain["low"], gain["high"]
    if found["nothing"] or found["little"]:
        return high < _ROUNDING
    if found["most"]:
        return abs(int(found["most"]) / 100 - high) <= _ROUNDING
    if found["one"]:
        one = int(found["one"]) / 100
        return max(abs(one - low), abs(one - high)) <= _ROUNDING
    least, most = int(found["low"]) / 100, int(found["high"]) / 100
    return abs(least - low) <= _ROUNDING and abs(most - high) <= _ROUNDING


def _of_rows(it: Surfaces) -> Checks:
    rows = list(csv.DictReader(io.StringIO(it.printed("summary", "--format", "csv"))))
    remedies = [
        (row["section"].removeprefix("remedy: "), float(row["share"]), int(row["duration_ns"]))
        for row in rows
        if row["section"].startswith("remedy: ")
    ]
    yield (
        "remedies in csv",
        remedies
        == [
            (row["remedy"], row["gain"]["value"], row["gain"]["duration_ns"])
            for row in it.verdict["remedies"]
        ],
    )
    [told] = [row["name"] for row in rows if row["section"] == "verdict"]
    yield "sentence in csv", told == it.verdict["sentence"]
    [length] = [int(row["duration_ns"]) for row in rows if row["section"] == "window"]
    yield "window in csv", length == it.window_ns
    for row in rows:
        if row["section"] in {"device", "stream", "idle"}:
            part = int(row["duration_ns"]) / max(it.window_ns, 1)
            yield f"{row['section']} in csv", abs(float(row["share"]) - part) < 1e-9
    [line] = it.printed("summary", "--format", "jsonl").splitlines()
    yield "jsonl", json.loads(line)["data"] == it.document["data"]


def _of_whatif(it: Surfaces, code: int) -> Checks:
    ranked = it.answered("whatif")["data"]
    yield "verdict of whatif", ranked["verdict"] == it.verdict
    exit_code, told = _printed(["whatif", str(it.path), *it.window.words])
    yield "exit code of whatif", exit_code == code
    told = _flat(told)
    yield "sentence of whatif", _flat(it.verdict["sentence"]) in told
    plan = it.verdict["plan"]
    yield from _of_lines(plan, told, "whatif")
    for line in re.findall(r"(?<!\S)\d\. \w+: saves (.*?) \(event", told):
        yield "a line worth saying", re.match(r"nothing|less than 1 %|up to 1 %", line) is None
    planned = [line["remedy"] for line in plan["lines"] if line["then"] is not None]
    own = [row["remedy"] for row in it.verdict["remedies"] if row["remedy"] in planned]
    if len(planned) > 1 and sorted(own) == sorted(planned):
        words = [word for one in planned for word in ("--remedy", one)]
        after = it.answered("whatif", *words)["data"]["after"]
        yield "the plan as a what-if", after["gain"] == plan["gain"]
    ids = [*dict.fromkeys(row["remedy"] for row in it.verdict["remedies"] if row["changes"])]
    if ids and code != 4:
        one = it.answered("whatif", "--remedy", ids[0])["data"]
        mine = [row["gain"] for row in it.verdict["remedies"] if row["remedy"] == ids[0]]
        yield "gain of one remedy", [row["gain"] for row in one["remedies"]] == mine
        yield "one remedy and together", one["after"]["gain"]["high"] >= mine[0]["value"] - 1e-9
    path = it.answered("path")
    ends = zip(path["scope"]["window_ns"], it.document["scope"]["window_ns"], strict=True)
    yield "window of path", all(abs(one - other) <= _CLOCK_NS for one, other in ends)
    start_ns, end_ns = path["scope"]["window_ns"]
    # The path lies on clocks that agree, its window on those of the file.
    yield "length of path", abs(path["data"]["length_ns"] - (end_ns - start_ns)) <= _CLOCK_NS
    yield "verdict of path", path["data"]["verdict"] == it.verdict
    kinds = sum(row["duration_ns"] for row in path["data"]["kinds"])
    yield "kinds of path", kinds == path["data"]["length_ns"]


def _of_tables(it: Surfaces) -> Checks:
    listed = _flat(it.printed("table"))
    yield "sentence of the list of tables", _flat(it.verdict["sentence"]) in listed
    idle = it.answered("table", "idle") if it.document["data"]["devices"] else None
    if idle is None or not idle["data"]:
        return
    yield "window of tables", idle["scope"]["window_ns"] == it.document["scope"]["window_ns"]
    gaps = it.answered("table", "gaps")["data"]["rows"]
    for device in it.document["data"]["devices"]:
        own = [row for row in idle["data"]["rows"] if row["device"] == device["device"]]
        whole = [row for row in own if row["stream"] is None]
        idle_ns = device["whole"]["idle_ns"]
        yield "idle by cause", sum(row["duration_ns"] for row in whole) == idle_ns
        for row in whole:
            cause_ns = device["idle"][f"{row['cause']}_ns"]
            yield f"idle {row['cause']}", row["duration_ns"] == cause_ns
        listed_ns = sum(row["duration_ns"] for row in gaps if row["device"] == device["device"])
        # Gaps of 1 ns, where clocks are rounded, are counted but not listed.
        yield "gaps", 0 <= idle_ns - listed_ns <= sum(row["count"] for row in whole)
    rows = list(csv.DictReader(io.StringIO(it.printed("table", "idle", "--format", "csv"))))
    yield (
        "idle in csv",
        [int(row["duration_ns"]) for row in rows]
        == [row["duration_ns"] for row in idle["data"]["rows"]],
    )


def _of_page(it: Surfaces) -> Checks:
    page = it.path.with_suffix(".html")
    _printed(["report", str(it.path), *it.window.words, "-o", str(page), "--force"])
    text = page.read_text(encoding="utf-8")
    page.unlink()
    text = re.sub(r"<(script|style)\b.*?</\1>", " ", text, flags=re.DOTALL)
    told = _flat(html.unescape(re.sub(r"<[^>]+>", " ", text)))
    verdict = it.verdict
    yield "sentence on the page", _letters(verdict["sentence"]) in _letters(told)
    for line in verdict["plan"]["lines"]:
        yield f"{line['remedy']} on the page", _letters(line["advice"]) in _letters(told)
    sentence = verdict["plan"]["sentence"]
    yield "total on the page", _letters(sentence) in _letters(told)
    start_up = (verdict["start_up"] or {}).get("sentence", "")
    yield "start-up on the page", _letters(start_up) in _letters(told)
    sides = verdict["limit"].get("sides", [])
    tile = re.search(r"Limited by (.{0,40})", told)
    if len(sides) == 1 and verdict["limit"]["kind"] == "sides":
        noun = _NOUNS[sides[0]].removeprefix("the ")
        yield "tile on the page", tile is not None and tile[1].startswith(noun)
    if verdict["limit"]["kind"] == "waits":
        yield "tile on the page", tile is not None and tile[1].startswith("waits")
    if not verdict["plan"]["lines"]:
        text = _flat(it.printed("summary"))
        for word in ("No remedy that longpole knows", "no remedy saves"):
            yield "none on the page", (word in text) == (word in told)


def _of_tools(it: Surfaces) -> Checks:
    for tool, key in (("summary", "verdict"), ("whatif", "verdict"), ("path", "verdict")):
        answer = call(tool, {"trace": str(it.path), **it.window.arguments}, [it.path.parent])
        found = (answer["data"] or {}).get(key, {})
        for part in ("sentence", "limit", "gains", "window", "actions", "plan"):
            told = _without_lists(found.get(part)) == _without_lists(it.verdict[part])
            yield f"{part} of the tool {tool}", told


def _without_lists(value: Any) -> Any:
    """Return data without lists of events and of times, which tools cut."""
    if isinstance(value, dict):
        return {key: _without_lists(it) for key, it in value.items() if key not in _CUT}
    return [_without_lists(it) for it in value] if isinstance(value, list) else value


def _of_python(it: Surfaces) -> Checks:
    trace = read_trace(it.path, args=ARGUMENTS)
    asked = it.window.question
    if asked.between is not None:
        asked = asked.about(between=trace.times_on_clock(asked.between))
    answer = trace.answer(asked)
    yield "Python", answer.verdict.to_dict() == it.verdict
    if asked.step is not None:
        yield "step of Python", answer.steps == (asked.step,)
        yield "step", tuple(it.verdict["steps"]) == (asked.step,)
    if asked.step_name is not None:
        marked = {row["step"] for row in trace.core.steps(asked.step_name).to_dicts()}
        yield "marked steps", {*it.verdict["steps"]} <= marked


def _of_diff(it: Surfaces) -> Checks:
    words = ["diff", str(it.path), str(it.path), *it.window.words, "--same-program", "--json"]
    data = json.loads(_printed(words)[1] or '{"data": null}')["data"]
    if data is None:
        return
    yield "change of itself", data["change"] == 0 and data["verdict"] != "regression"
    yield "steps of diff", data["base"]["steps"] in ([], it.verdict["steps"])
    if it.window.words != ():
        yield "verdict of diff", data["base"]["verdict"]["limit"] == it.verdict["limit"]
        yield "sentence of diff", data["base"]["verdict"]["sentence"] == it.verdict["sentence"]


def _flat(text: str) -> str:
    return " ".join(text.split())


def _letters(text: str) -> str:
    """Return a text without what markup changes: spaces, and marks of code."""
    return "".join(text.split()).replace("`", "")
