"""Plants faults in a copy of the code, one at a time, and asks whether a test notices each.

    python tests/oracles/mutations.py [PART OF A NAME ...]

A fault that no test notices is a hole in the tests: the command fails and names it. It also fails
when the text that a fault replaces is gone, so that faults keep up with the code.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
COPY = ROOT / ".build" / "mutations"
CORE = "rust/longpole-core/src"
PATH_TESTS = (
    "tests/engine/test_path_threads.py",
    "tests/engine/test_path_waits.py",
    "tests/engine/test_path_windows.py",
    "tests/engine/test_shared_cases.py",
)
MEASURE_TESTS = ("tests/formats/test_tables_agree.py", "tests/tables/test_summary.py")
EXTRACT_TESTS = ("tests/bench/test_extract.py",)
STATISTICS_TESTS = ("tests/properties/test_stats_properties.py",)


@dataclass(frozen=True)
class Fault:
    """A text of one file that is replaced by another, and the tests that should notice."""

    name: str
    file: str
    text: str
    replacement: str
    tests: tuple[str, ...] = PATH_TESTS

    @property
    def path(self) -> str:
        """The file, from the root; without a folder of the root it is one of the core."""
        return self.file if self.file.startswith("python/") else f"{CORE}/{self.file}"


FAULTS = (
    Fault(
        "a stream follows the first to finish instead of the last",
        "graph/rules/starts.rs",
        "self.last_finished = self.last_finished.max(Some(first));",
        "self.last_finished = self.last_finished.or(Some(first));",
    ),
    Fault(
        "work inside its call follows the end of the call",
        "graph/rules/starts.rs",
        "push(nodes.start(call), (Kind::Runtime, Role::LaunchInside), call);",
        "push(nodes.start(call), (Kind::Launch, Role::LaunchInside), call);",
    ),
    Fault(
        "a recorded wait for an event reaches up to the call that waits",
        "graph/rules/stream_waits.rs",
        ".or_else(|| other.last_submitted_before(recorded_ns));",
        ".or_else(|| other.last_submitted_before(i64::MAX));",
    ),
    Fault(
        "a recorded wait for an event ignores when the event was recorded",
        "graph/facts/waits.rs",
        "stream.last_awaited(recorded_ns, call, streams.timeline)",
        "stream.last_awaited(called_ns, call, streams.timeline)",
    ),
    Fault(
        "work that ends a little after its wait is not cut off there",
        "graph/rules/syncs.rs",
        "if 0 < late_ns",
        "if 1_000_000 < late_ns",
    ),
    Fault(
        "time after the last event is left out of a path",
        "path/walk.rs",
        "if time_ns(node) < end_ns {",
        "if time_ns(node) > end_ns {",
    ),
    Fault(
        "a path is not cut at the start of its window",
        "path/walk.rs",
        "let start_ns = segment.start_ns.max(self.start_ns);",
        "let start_ns = segment.start_ns;",
    ),
    Fault(
        "slack is the most that any edge allows",
        "path/slack.rs",
        "source_latest < *source",
        "source_latest > *source",
    ),
    Fault(
        "an edge that did not bind keeps all of its time",
        "path/what_if/pass.rs",
        "edge.gap_ns(&graph.nodes).min(graph.typical_ns(edge.role))",
        "edge.gap_ns(&graph.nodes).max(graph.typical_ns(edge.role))",
    ),
    Fault(
        "of several last events the last in content order ends a window",
        "path/clip.rs",
        "(time_ns(node), Reverse(graph.nodes.event(node)))",
        "(time_ns(node), graph.nodes.event(node))",
    ),
    Fault(
        "communication behind copies is not counted",
        "measure/busy.rs",
        "communication.minus(&compute).length_ns()",
        "communication.minus(&copy).length_ns()",
        MEASURE_TESTS,
    ),
    Fault(
        "of a gap the time after the call counts as the host's",
        "measure/idle_causes.rs",
        "returned.clamp(start_ns, end_ns) - start_ns",
        "end_ns - returned.clamp(start_ns, end_ns)",
        MEASURE_TESTS,
    ),
    Fault(
        "events own nothing once another has begun",
        "measure/self_time.rs",
        "own[event.row()] += end - start);",
        "own[event.row()] = end - start);",
        MEASURE_TESTS,
    ),
    Fault(
        "milliseconds are microseconds",
        "extract/numbers.rs",
        "Self::Milliseconds => 6,",
        "Self::Milliseconds => 3,",
        EXTRACT_TESTS,
    ),
    Fault(
        "a table of nccl-tests goes on after its end",
        "extract/formats/nccl.rs",
        "self.columns = None;",
        "",
        EXTRACT_TESTS,
    ),
    Fault(
        "a change within the gate on one side is neutral",
        "python/longpole/diffs/judgement.py",
        "if -gate <= low and high <= gate:",
        "if -gate <= low or high <= gate:",
        ("tests/diffs/test_judgement.py",),
    ),
    Fault(
        "a shift is the upper of the two middle differences",
        "python/longpole/rows/statistics/ranks.py",
        "places = [(n_pairs - 1) // 2,",
        "places = [n_pairs // 2,",
        STATISTICS_TESTS,
    ),
    Fault(
        "zeros count once in the sign test, and all above",
        "python/longpole/rows/statistics/ranks.py",
        ".sum()) + n_zero // 2",
        ".sum()) + n_zero",
        STATISTICS_TESTS,
    ),
    Fault(
        "the idle shares of a stream are those of its device",
        "python/longpole/tables/idle_time.py",
        '.over("device", "stream"),',
        '.over("device"),',
        ("tests/tables/test_sums_close.py",),
    ),
    Fault(
        "a copy may be faster than any device",
        "python/longpole/tables/copy_bandwidth.py",
        "rate.is_between(0, _MOST_GB_PER_S)",
        "rate >= 0",
        ("tests/tables/test_copy_bandwidth.py",),
    ),
    Fault(
        "the size of memory is taken for a number",
        "python/longpole/tables/memory_peak.py",
        "isinstance(n_bytes, int) and 0 < n_bytes",
        "n_bytes is not None and 0 < n_bytes",
        ("tests/properties/test_whole_answers.py",),
    ),
    Fault(
        "a launch shape may hold anything",
        "python/longpole/tables/launch_shapes.py",
        "not isinstance(sizes, list) or not all(type(it) is int and it > 0 for it in sizes)",
        "not isinstance(sizes, list)",
        ("tests/tables/test_launch_shapes.py",),
    ),
    Fault(
        "a plan saves what its first line saves",
        "python/longpole/remedies/plan.py",
        "return self.lines[-1].gain if self.lines else None",
        "return self.lines[0].gain if self.lines else None",
        ("tests/remedies/test_plan.py", "tests/answer/test_agreement.py"),
    ),
    Fault(
        "of many what-ifs each gain is a loss",
        "python/longpole/engine/critical_path/path.py",
        "return [self.length_ns - length_ns for",
        "return [length_ns - self.length_ns for",
        ("tests/tables/test_kernel_gains.py",),
    ),
    Fault(
        "NOT NOT is NOT",
        "python/longpole/rows/selection/grammar.py",
        "if len(negations) % 2 else found",
        "if negations else found",
        ("tests/rows/test_where.py",),
    ),
)


def main() -> int:
    """Plant the requested faults, or all, and report those that no test detects."""
    chosen = [
        fault
        for fault in FAULTS
        if not sys.argv[1:] or any(part in fault.name for part in sys.argv[1:])
    ]
    _copy_tree()
    every_test = tuple(dict.fromkeys(test for fault in chosen for test in fault.tests))
    if not (_build() and _passes(every_test)):
        print("the tests fail without any fault")
        return 1
    missed = [fault.name for fault in chosen if not _is_noticed(fault)]
    print(f"{len(chosen) - len(missed)} of {len(chosen)} faults noticed")
    return int(bool(missed))


def _copy_tree() -> None:
    """Copy what git would commit, and keep what was built there before."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True).stdout
    for folder in ("rust", "python", "tests"):
        shutil.rmtree(COPY / folder, ignore_errors=True)
    for name in filter(None, names.decode().split("\0")):
        if (ROOT / name).is_file():
            (COPY / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, COPY / name)


def _is_noticed(fault: Fault) -> bool:
    file = COPY / fault.path
    text = file.read_text(encoding="utf-8")
    if text.count(fault.text) != 1:
        print(f"GONE     {fault.name}: its text stands {text.count(fault.text)} times", flush=True)
        return False
    file.write_text(text.replace(fault.text, fault.replacement), encoding="utf-8")
    try:
        if file.suffix == ".rs" and not _build():
            print(f"BROKEN   {fault.name}: it does not compile", flush=True)
            return False
        noticed = not _passes(fault.tests)
    finally:
        file.write_text(text, encoding="utf-8")
    print(f"{'noticed' if noticed else 'MISSED':8} {fault.name}", flush=True)
    return noticed


def _build() -> bool:
    """Build the extension of the copy and put it where the copy's package looks for it."""
    command = ["cargo", "build", "--package", "longpole-py", "--locked", "--quiet"]
    environment = os.environ | {"RUSTFLAGS": "-Awarnings"}
    built = subprocess.run(command, cwd=COPY, env=environment, check=False)
    if built.returncode == 0:
        library = COPY / "target" / "debug" / "lib_core.so"
        shutil.copy2(library, COPY / "python" / "longpole" / "_core.abi3.so")
    return built.returncode == 0


def _passes(tests: tuple[str, ...]) -> bool:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m"]
    command += ["not slow", "-k", "not real_trace", *tests]
    environment = os.environ | {"PYTHONPATH": str(COPY / "python")}
    ran = subprocess.run(command, cwd=COPY, env=environment, check=False, capture_output=True)
    return ran.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
