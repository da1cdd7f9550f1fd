"""What is found in the output of profilers, and what AITemplate makes of the same text."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from printed import DOCUMENTS, TEXTS

from longpole import bench
from longpole.bench import ProfileResult, extract_profile_result
from longpole.cli.answer import exit_codes
from longpole.cli.bench.extract import extract as extract_command

FAILED = (ProfileResult("", 0, 0), True)
BIG = "12345678901234567890123456"


def one(operation, duration, workspace):
    return ProfileResult(operation, duration, workspace), False


def rows(found):
    return [
        (row.operation, row.time_ns, row.workspace_bytes, row.status) for row in found.measurements
    ]


# What was printed; what AITemplate makes of it; the records; the reasons of rejection.
CASES = {
    "scientific": ("OP:a,TIME:9.5e-05,WS:0\n", one("", 9.5, 0), [("a", 95.0, 0, "ok")], []),
    "scientific beside a plain one": (
        "OP:a,TIME:9.5e-05,WS:0\nOP:slow,TIME:3.0,WS:0\n",
        one("slow", 3.0, 0),
        [("a", 95.0, 0, "ok"), ("slow", 3e6, 0, "ok")],
        [],
    ),
    "large": ("TIME:1.23457e+06\nWS:0\n", one("", 1.23457, 0), [(None, 1.23457e12, 0, "ok")], []),
    "one line": ("TIME:1.5 WS:4\n", one("", 1.5, 4), [(None, 1.5e6, 4, "ok")], []),
    "negative": ("TIME:-1\nWS:0\n", FAILED, [(None, -1e6, 0, "negative")], []),
    "nan": ("TIME:nan\nWS:0\n", FAILED, [(None, None, 0, "nan")], []),
    "infinite": (
        "OP:x,TIME:inf,WS:0\nOP:b,TIME:2.0,WS:0\n",
        one("b", 2.0, 0),
        [("x", None, 0, "inf"), ("b", 2e6, 0, "ok")],
        [],
    ),
    "zero": (
        "OP:bad,TIME:0,WS:0\nOP:b,TIME:1,WS:0\n",
        one("bad", 0.0, 0),
        [("bad", 0.0, 0, "zero"), ("b", 1e6, 0, "ok")],
        [],
    ),
    "two points": (
        "OP:a,TIME:1.2.3,WS:0\nOP:b,TIME:1,WS:0\n",
        FAILED,
        [("b", 1e6, 0, "ok")],
        ["not_a_number"],
    ),
    "only a point": ("TIME:.\nWS:0\n", FAILED, [], ["not_a_number"]),
    "nothing behind the point": (
        "OP:a,TIME:2.,WS:0\n",
        one("a", 2.0, 0),
        [("a", 2e6, 0, "ok")],
        [],
    ),
    "nothing before the point": (
        "OP:a,TIME:.5,WS:0\n",
        one("a", 0.5, 0),
        [("a", 5e5, 0, "ok")],
        [],
    ),
    "padded": ("OP:a,TIME:00001.50,WS:0\n", one("a", 1.5, 0), [("a", 1.5e6, 0, "ok")], []),
    "CR LF": ("OP:a,TIME:1.5,WS:0\r\n", one("a", 1.5, 0), [("a", 1.5e6, 0, "ok")], []),
    "Arabic digits": ("OP:a,TIME:\u0661.\u0665,WS:0\n", one("a", 1.5, 0), [], ["not_a_number"]),
    "negative workspace": ("OP:a,TIME:1.5,WS:-1\n", FAILED, [("a", 1.5e6, None, "ok")], []),
    "negative workspace beside a plain one": (
        "OP:a,TIME:1.5,WS:-1\nOP:b,TIME:2,WS:1\n",
        one("b", 2.0, 1),
        [("a", 1.5e6, None, "ok"), ("b", 2e6, 1, "ok")],
        [],
    ),
    "workspace with a unit": ("OP:a,TIME:1.5,WS:12.5KB\n", one("a", 1.5, 12), [], ["extra_text"]),
    "huge workspace": (f"OP:a,TIME:1.5,WS:{BIG}\n", one("a", 1.5, int(BIG)), [], ["out_of_range"]),
    "name with a dash": ("OP:a-b,TIME:1.5,WS:4\n", one("", 1.5, 4), [("a-b", 1.5e6, 4, "ok")], []),
    "name with colons beside a plain one": (
        "OP:cutlass::gemm,TIME:1.5,WS:4\nOP:b,TIME:2,WS:1\n",
        one("b", 2.0, 1),
        [("cutlass::gemm", 1.5e6, 4, "ok"), ("b", 2e6, 1, "ok")],
        [],
    ),
    "name with brackets and a comma": (
        "OP:gemm<128,64>,TIME:1.5,WS:4\n",
        one("", 1.5, 4),
        [("gemm<128,64>", 1.5e6, 4, "ok")],
        [],
    ),
    "name with a point": (
        "OP:v2.1,TIME:1.5,WS:4\n",
        one("", 1.5, 4),
        [("v2.1", 1.5e6, 4, "ok")],
        [],
    ),
    "no name": ("OP:,TIME:1.5,WS:4\n", one("", 1.5, 4), [("", 1.5e6, 4, "ok")], []),
    "blanks": ("OP:a, TIME:1.5, WS:4\n", one("", 1.5, 4), [("a", 1.5e6, 4, "ok")], []),
    "two lines": ("TIME:1.5\nWS:4\n", one("", 1.5, 4), [(None, 1.5e6, 4, "ok")], []),
    "another time": (
        "BUILDTIME:7\nTIME:1.5\nWS:4\n",
        one("", 7.0, 4),
        [(None, 1.5e6, 4, "ok")],
        [],
    ),
    "text around": ("fooOP:a,TIME:1.5,WS:0trailing\n", one("a", 1.5, 0), [], ["extra_text"]),
    "cut before the workspace": (
        "OP:b,TIME:1,WS:0\nOP:a,TIME:0.5,W",
        one("b", 1.0, 0),
        [("b", 1e6, 0, "ok")],
        ["truncated"],
    ),
    "cut within the workspace": (
        "OP:a,TIME:0.5,WS:10",
        one("a", 0.5, 10),
        [("a", 5e5, 10, "cut")],
        [],
    ),
    "cut within the time": ("WS:4\nTIME:0.4", one("", 0.4, 4), [(None, 4e5, None, "cut")], []),
    "decimal comma": ("TIME:1,5\nWS:0\n", one("", 1.0, 0), [], ["not_a_number"]),
    "lower case": ("op:a,time:1.5,ws:0\n", FAILED, [], []),
    "empty": ("", FAILED, [], []),
    "equally fast": (
        "OP:b,TIME:1,WS:2\nOP:a,TIME:1.0,WS:1\n",
        one("b", 1.0, 2),
        [("b", 1e6, 2, "ok"), ("a", 1e6, 1, "ok")],
        [],
    ),
    "the same operation twice": (
        "OP:a,TIME:2,WS:2\nOP:a,TIME:1,WS:1\n",
        one("a", 1.0, 1),
        [("a", 2e6, 2, "ok"), ("a", 1e6, 1, "ok")],
        [],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_aitemplates_answer_is_given_bit_for_bit(case):
    printed, answer, _, _ = case
    found = extract_profile_result(printed)
    assert found == answer
    assert [type(value) for value in found] == [ProfileResult, bool]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_same_text_is_read_strictly(case):
    printed, _, records, reasons = case
    found = bench.extract(printed.encode(), format="aitemplate", died=True)
    assert rows(found) == records
    assert found.rejected["reason"].to_list() == reasons
    assert found.rejected_counts == dict.fromkeys(reasons, 1)


TWICE = "OP:a,TIME:2,WS:2\nOP:b,TIME:3,WS:3\nOP:a,TIME:1,WS:1\n"


@pytest.mark.parametrize(
    ("printed", "wanted", "answer"),
    [
        (TWICE, ["a"], [("a", 2.0, 2), ("a", 1.0, 1)]),
        (TWICE, ["b", "zzz"], [("b", 3.0, 3)]),
        (TWICE, ["zzz"], []),
        (TWICE, [], []),
        (TWICE, "ab", [("a", 2.0, 2), ("b", 3.0, 3), ("a", 1.0, 1)]),
        ("TIME:1.5\nWS:4\n", ["zzz"], ("", 1.5, 4)),
        ("OP:a,TIME:1.2.3,WS:0\nOP:b,TIME:1,WS:0\n", ["b"], [("b", 1.0, 0)]),
    ],
)
def test_aitemplate_lists_the_operations_that_were_asked_for(printed, wanted, answer):
    assert extract_profile_result(printed, wanted) == (answer, False)


@pytest.mark.parametrize("stdout", [None, b"OP:a,TIME:1,WS:0"])
def test_aitemplate_takes_text_only(stdout):
    assert extract_profile_result(stdout) == FAILED


def test_the_best_is_the_fastest_that_may_be_compared():
    found = bench.extract(
        b"OP:z,TIME:0,WS:0\nOP:b,TIME:1,WS:1\nOP:a,TIME:1,WS:2\nOP:c,TIME:0.5,W\n"
    )
    assert found.best().operation == "a"
    assert found.best(["b", "zzz"]).workspace_bytes == 1
    assert found.best([]) is None
    with pytest.raises(TypeError, match="list of names"):
        found.best("ab")


MIXED = "".join(TEXTS.values())


def test_all_formats_are_found_in_one_stream():
    found = bench.extract(MIXED.encode())
    assert [(row.format, row.time_ns) for row in found.measurements if row.is_selectable] == [
        ("aitemplate", 250_000.0),
        ("cutlass", 6_736_550.0),
        ("cutlass-csv", 6_736_550.0),
        ("hipblaslt", 21_871_200.0),
        ("rocblas", 102_694_000.0),
        ("nccl", 63_896_000.0),
        ("nccl", 63_959_000.0),
        ("ckprofiler", 1_193_300.0),
        ("cublaslt", 31_744.0),
        ("rocprof", 11_040.0),
        ("rocprof", 517_647.434),
        ("rocprof", 18_400.0),
        ("rocprof", 18_900.0),
        ("inductor", 84_800.0),
        ("inductor", 87_000.0),
        ("triton", 410_000_000.0),
        ("triton", 3_970_000_000.0),
        ("serving", 277_200_000_000.0),
        ("serving", 95_500_000.0),
        ("serving", 69_140_000.0),
        ("serving", 623_870_000.0),
        ("serving", 39_280_000.0),
        ("serving-latency", 1_081_500_000.0),
        ("serving-latency", 49_370_000.0),
        ("google-benchmark-csv", 380.766),
        ("google-benchmark", 387.0),
        ("nvbench", 112_431.0),
        ("ncu", 406_240.0),  # the next launch or the end completes it
    ]
    assert found.rejected.height == 0
    assert found.table("nccl")["placement"].to_list() == ["out_of_place", "in_place"]
    assert found.table("cutlass")["k"].to_list() == ["4096"]


def test_every_format_has_a_sample():
    assert [*TEXTS, *DOCUMENTS] == sorted(bench.formats(), key=[*TEXTS, *DOCUMENTS].index)


def test_a_table_of_nccl_tests_ends_with_its_average():
    header = (
        "#     size       count   type redop root   time  algbw  busbw #wrong   time  algbw  busbw"
    )
    row = (
        "8589934592  2147483648  float   sum   -1  63896 134.44 235.26    N/A  63959 134.30 235.03"
    )
    ended = f"{header} #wrong\n{row} N/A\n# Avg bus bandwidth    : 235.145\n{row} N/A\n"
    found = bench.extract(ended.encode())
    assert [row.time_ns for row in found.measurements] == [63_896_000.0, 63_959_000.0]


@pytest.mark.parametrize("name", TEXTS)
def test_each_format_is_found_alone(name):
    found = bench.extract(MIXED.encode(), format=name)
    assert {row.format for row in found.measurements} == {name}


def test_a_frame_and_the_tuples_say_the_same():
    found = bench.extract(MIXED.encode())
    columns = ["format", "operation", "time_ns", "printed_time", "printed_unit"]
    frame = found.records.select(*columns, "workspace_bytes", "data_bytes", "status")
    assert frame.rows() == [tuple(row) for row in found.measurements]


def test_a_source_is_a_path_bytes_or_a_file(tmp_path):
    log = tmp_path / "run.log"
    log.write_bytes(MIXED.encode())
    answers = [
        bench.extract(source).measurements
        for source in (log, str(log), log.read_bytes(), io.BytesIO(log.read_bytes()))
    ]
    assert all(answer == answers[0] for answer in answers)


def test_a_pattern_finds_what_no_format_does():
    pattern = (
        r"regex=^Perf: (?P<time_ms>\S+) ms, (?P<tflops>\S+) TFlops, .* GB/s, (?P<operation>.+)$"
    )
    found = bench.extract(
        b"Perf: 1.25 ms, 109.3 TFlops, 248 GB/s, DeviceGemm<256, 128>\nOP:a,TIME:1,WS:0\n",
        format=[pattern, "aitemplate"],
    )
    assert rows(found) == [("DeviceGemm<256, 128>", 1.25e6, None, "ok"), ("a", 1e6, 0, "ok")]
    assert found.table("regex")["tflops"].to_list() == ["109.3"]


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("nonsense", "no format 'nonsense'; there are aitemplate"),
        ("regex=(?P<time>.)", "no group for the time"),
        ("regex=(?<=x)(?P<time_s>.)", "cannot be used"),
        ("regex=(?P<time_s>x*)", "matches the empty text"),
    ],
)
def test_a_format_that_cannot_be_looked_for_is_told(name, complaint):
    with pytest.raises(ValueError, match=complaint.replace("(", r"\(")):
        bench.extract(b"", format=name)


def test_a_stream_ends_once():
    extractor = bench.Extractor()
    extractor.feed(b"OP:a,TIME:1,WS:0")
    assert extractor.finish().is_unterminated
    for call in (extractor.finish, lambda: extractor.feed(b"")):
        with pytest.raises(ValueError, match="has ended"):
            call()


def run(*arguments, stdin=None):
    return CliRunner().invoke(extract_command, arguments, input=stdin, standalone_mode=False)


def test_the_command_prints_a_table_and_warns_of_what_it_could_not_read(tmp_path, said):
    log = tmp_path / "run.log"
    log.write_text("OP:a\x1b[31m,TIME:0.25,WS:0\nOP:b,TIME:1.2.3,WS:0\n")
    result = run(str(log))
    assert result.return_value == exit_codes.OK
    assert [line.split() for line in result.stdout.splitlines()[2:]] == [
        ["operation", "time_ns", "workspace_bytes", "data_bytes", "status", "format"],
        ["a\\x1b[31m", "250000", "0", "-", "ok", "aitemplate"],
    ]
    said.within(result.stderr)


def test_the_command_speaks_json_csv_and_markdown(tmp_path):
    log = tmp_path / "run.log"
    log.write_text("OP:=cmd(),TIME:0.25,WS:0\nOP:b|c,TIME:nan,WS:0\nOP:c,TIME:1,5,WS:0\n")
    envelope = json.loads(run(str(log), "--json").stdout)
    assert (envelope["schema"], envelope["status"]) == ("longpole.bench.extract/1", "partial")
    assert [row["time_ns"] for row in envelope["data"]["records"]] == [250_000, None]
    assert envelope["warnings"][0]["code"] == "not_a_number"
    assert json.loads(run(str(log), "--format", "jsonl").stdout) == envelope
    by_csv = run(str(log), "--format", "csv", "--job-format", "aitemplate").stdout
    assert f"{log},aitemplate,'=cmd(),250000,0.25,ms,0,,ok\n" in by_csv
    by_markdown = run(str(log), "--format", "md").stdout
    assert "| b\\|c | - | 0 | - | nan | aitemplate |" in by_markdown


def test_named_groups_of_a_pattern_are_columns(tmp_path):
    log = tmp_path / "run.log"
    log.write_text("m=4 r=7 1.5 ms 9 GF\nm=8 r=8 0.25 ms 11 GF\nOP:a,TIME:2,WS:0\n")
    pattern = r"m=(?P<m>\d+) r=(?P<record>\d+) (?P<time_ms>\S+) ms (?P<status>\d+) GF"
    formats = ("--job-format", f"regex={pattern}", "--job-format", "aitemplate")
    by_csv = run(str(log), *formats, "--format", "csv").stdout.splitlines()
    assert by_csv[0].split(",")[-3:] == ["m", "record", "field.status"]
    assert [row.split(",")[-3:] for row in by_csv[1:]] == [
        ["4", "7", "9"],
        ["8", "8", "11"],
        ["", "", ""],
    ]
    text = run(str(log), *formats).stdout
    assert text.splitlines()[2].split()[:5] == [
        "operation",
        "m",
        "record",
        "field.status",
        "time_ns",
    ]


@given(st.lists(st.integers(1, 10**6) | st.floats(1e-3, 1e12), min_size=1, max_size=20))
def test_times_in_csv_are_those_in_json(times_ns):
    log = "".join(f"took {time_ns!r} ns\n" for time_ns in times_ns)
    formats = ("-", "--job-format", r"regex=took (?P<time_ns>\S+) ns")
    records = json.loads(run(*formats, "--json", stdin=log).stdout)["data"]["records"]
    rows = csv.DictReader(run(*formats, "--format", "csv", stdin=log).stdout.splitlines())
    assert [row["time_ns"] for row in rows] == [repr(record["time_ns"]) for record in records]


def test_the_exit_code_says_whether_there_is_a_result(tmp_path):
    assert run("-", stdin="OP:a,TIME:1,WS:0\n").return_value == exit_codes.OK
    assert run("-", stdin="OP:a,TIME:0,WS:0\n").return_value == exit_codes.INCONCLUSIVE
    assert run("-", stdin="nothing\n").return_value == exit_codes.INCONCLUSIVE
    assert run("-", "--died", stdin="OP:a,TIME:1,WS:1").return_value == exit_codes.INCONCLUSIVE
    assert run(str(tmp_path / "missing")).return_value == exit_codes.UNREADABLE
    with_nonsense = run("-", "--job-format", "nonsense", stdin="").exception
    assert isinstance(with_nonsense, click.UsageError)
    assert "no format" in with_nonsense.format_message()


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (gzip.compress(b"{}", mtime=0), "It is compressed with gzip"),
        (b"SQLite format 3\0", "It is a database of SQLite"),
        (b'{"traceEvents": []}', "It is a trace: ask `longpole summary"),
        (b"nothing here\n", "`longpole bench extract --help` lists the formats"),
    ],
)
def test_a_file_without_rows_is_named_as_what_it_is(held, said, tmp_path):
    (tmp_path / "log").write_bytes(held)
    result = run(str(tmp_path / "log"))
    assert result.return_value == exit_codes.INCONCLUSIVE
    assert said in " ".join(result.stdout.split())


def test_times_are_numbers_or_null():
    found = bench.extract(b"OP:a,TIME:nan,WS:0\nOP:b,TIME:1e400,WS:0\nOP:c,TIME:1e-400,WS:0\n")
    assert found.records["time_ns"].to_list() == [None, None, 0.0]
    assert found.records["status"].to_list() == ["nan", "inf", "zero"]
    assert not any(math.isnan(row.time_ns or 0.0) for row in found.measurements)


def test_the_page_and_the_help_list_the_formats():
    page = (Path(__file__).parents[2] / "docs" / "extraction.md").read_text()
    named = re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE)
    assert [name for name in named if name in bench.formats()] == list(bench.formats())
    shown = run("--help").stdout.partition("Formats:")[2]
    assert re.findall(r"^  (\S+)", shown, re.MULTILINE) == list(bench.formats())
