"""`longpole tunableop`, from the user's seat."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from longpole.cli.answer.inputs import csv_rows
from longpole.cli.program import longpole, run
from longpole.cli.schema import schema_for
from longpole.report.csv import csv_chunks
from longpole.report.document import Document
from longpole.testing import TraceBuilder

HEADER = "Validator,PT_VERSION,2.9.1\nValidator,GCN_ARCH_NAME,gfx1100\n"
WORKER = Path(__file__).with_name("fake_tunable_worker.py")


def row(m, solution="Gemm_Rocblas_1", time="0.5"):
    return f"GemmTunableOp_Half_TN,tn_{m}_8_8_ld_8_8_{m},{solution},{time}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Stand in a folder with a few files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    for name, text in {
        "a0.csv": HEADER + row(1) + row(2, time="0.9"),
        "a1.csv": HEADER + row(2, "Gemm_Rocblas_2", "0.3") + row(3),
        "default0.csv": HEADER + row(1, "Default", "1.0") + row(2, "Default", "0.9"),
        "other0.csv": HEADER.replace("2.9.1", "2.11.0") + row(4),
        "broken0.csv": (HEADER + row(1) + row(1, "Gemm_Rocblas_9", "0.1")).rstrip("\n"),
        "untuned0.csv": "".join(row(m).rsplit(",", 2)[0] + "\n" for m in (1, 2, 3, 1)),
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def validate(command, found):
    """Compare an answer with the schema of its command, where jsonschema is installed."""
    import jsonschema

    jsonschema.validate(found, schema_for(f"tunableop {command}", longpole))


def data(capsys, *arguments):
    code = run(["tunableop", *arguments, "--json"])
    printed = capsys.readouterr()
    found = json.loads(printed.out)["data"]
    validate(arguments[0], found)
    return code, found, printed.err


def test_check_names_lines_and_exits_with_1(capsys, said):
    code, found, _ = data(capsys, "check", "broken0.csv", "--expect", "PT_VERSION=2.9.1")
    assert code == 1
    assert {(problem["code"], tuple(problem["lines"])) for problem in found["problems"]} == {
        ("slower_row_first", (3, 4)),
        ("no_final_newline", (4,)),
    }
    assert run(["tunableop", "check", "a0.csv", "--expect", "PT_VERSION=2.9.1"]) == 0
    said.within(capsys.readouterr().out)
    assert run(["tunableop", "check", "a0.csv", "--expect", "GCN_ARCH_NAME=gfx942"]) == 1
    said.within(capsys.readouterr().out)


def test_show_lists_rows_as_torch_counts_them(capsys):
    code, found, _ = data(capsys, "show", "a0.csv")
    assert code == 0
    assert [(each["matmul_m"], each["matmul_n"], each["k"]) for each in found["rows"]] == [
        (8, 1, 8),
        (8, 2, 8),
    ]
    run(["tunableop", "show", "untuned0.csv"])
    assert "4 untuned GEMMs" in capsys.readouterr().out


def test_show_leaves_out_columns_that_say_nothing(capsys):
    text = HEADER + row(1) + row(2, time="inf")
    Path("one0.csv").write_text(HEADER + row(1))
    Path("two0.csv").write_text(text)
    assert run(["tunableop", "show", "one0.csv"]) == 0
    heading = capsys.readouterr().out.splitlines()[2]
    assert heading.split() == ["line", "GEMM", "M", "N", "K", "solution", "time"]
    assert run(["tunableop", "show", "two0.csv"]) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[2].split()[-1] == "status"
    assert "GEMM HALF TN" in printed


def test_show_lists_the_untuned_gemms_of_a_file_that_has_no_results(capsys, said):
    code, found, _ = data(capsys, "show", "untuned0.csv")
    assert code == 0
    assert [(each["kind"], each["matmul_n"]) for each in found["rows"]] == [
        *(("untuned", 1), ("untuned", 2), ("untuned", 3), ("untuned", 1)),
    ]
    assert run(["tunableop", "show", "untuned0.csv"]) == 0
    said.within(capsys.readouterr().out)


@pytest.mark.parametrize("text", ["", HEADER, "name,duration\nmatmul,3\n"])
@pytest.mark.parametrize(
    "command", ["show {}", "edit {} -o new.csv", "show --untuned {}", "edit {} --parts 2 -o x.csv"]
)
def test_a_file_without_rows_is_an_error_and_nothing_is_written(capsys, tmp_path, command, text):
    Path("rowless0.csv").write_text(text, encoding="utf-8")
    before = set(tmp_path.iterdir())
    assert run(["tunableop", *command.format("rowless0.csv").split()]) == 3
    assert "rowless0.csv" in capsys.readouterr().err
    assert set(tmp_path.iterdir()) == before


def test_diff_and_speedup(capsys, said):
    code, found, _ = data(capsys, "show", "a0.csv", "a1.csv")
    assert code == 1
    assert [each["change"] for each in found["rows"]] == ["removed", "solution", "added"]
    assert data(capsys, "show", "a0.csv", "a0.csv")[0] == 0
    code, found, _ = data(capsys, "show", "default0.csv", "a0.csv")
    assert (code, found["geometric_mean"]) == (1, pytest.approx(2**0.5))
    assert (found["n_timed"], found["n_not_default"], found["same_validators"]) == (2, 0, True)
    assert [each["gain_ns"] for each in found["rows"]] == [pytest.approx(5e5), 0]
    assert run(["tunableop", "show", "default0.csv", "other0.csv"]) == 1
    said.within(capsys.readouterr().out)


def test_files_of_other_validators_differ(capsys, said):
    Path("newer0.csv").write_text(HEADER.replace("2.9.1", "2.10.0") + row(1) + row(2, time="0.9"))
    code, found, _ = data(capsys, "show", "a0.csv", "newer0.csv")
    assert (code, found["rows"], found["same_validators"]) == (1, [], False)
    run(["tunableop", "show", "a0.csv", "newer0.csv"])
    said.within(capsys.readouterr().out)


@pytest.mark.parametrize("text", ["", "name,duration\nmatmul,3\n", "\x00\x01"])
def test_a_file_that_is_none_is_not_compared(capsys, text):
    Path("odd0.csv").write_text(text)
    for pair in (("a0.csv", "odd0.csv"), ("odd0.csv", "a0.csv"), ("odd0.csv", "odd0.csv")):
        assert run(["tunableop", "show", *pair]) == 3
        assert "odd0.csv" in capsys.readouterr().err


def test_merge_writes_one_file_and_none_over_another(capsys, folder):
    code, found, _ = data(capsys, "edit", "a%d.csv", "-o", "all0.csv")
    assert (code, found["rows"][0]["gemms"], len(found["conflicts"])) == (0, 3, 1)
    assert (folder / "all0.csv").read_text() == HEADER + row(1) + row(
        2, "Gemm_Rocblas_2", "0.3"
    ) + row(3)
    before = (folder / "default0.csv").read_bytes()
    assert run(["tunableop", "edit", "a0.csv", "-o", "default0.csv"]) == 2
    assert "default0.csv" in capsys.readouterr().err
    assert (folder / "default0.csv").read_bytes() == before
    assert run(["tunableop", "edit", "a0.csv", "other0.csv", "-o", "x.csv"]) == 3
    assert "PT_VERSION (2.11.0, 2.9.1)" in capsys.readouterr().err
    assert not (folder / "x.csv").exists()
    parts = ("edit", "a0.csv", "other0.csv", "-o", "x.csv", "--parts", "validators")
    assert data(capsys, *parts)[0] == 0
    assert (folder / "x0.csv").read_text() == HEADER.replace("2.9.1", "2.11.0") + row(4)
    assert run(["tunableop", "edit", "nothing%d.csv", "-o", "y.csv"]) == 3


def test_an_input_is_never_replaced(folder):
    before = (folder / "a0.csv").read_bytes()
    for command in (
        ["edit", "a0.csv", "a1.csv", "-o", "a0.csv", "-f"],
        ["edit", "a0.csv", "--where", "k > 0", "--to", "Default", "-o", "a0.csv", "-f"],
        ["show", "--untuned", "a0.csv", "-o", "a0.csv", "-f"],
    ):
        assert run(["tunableop", *command]) != 0
        assert (folder / "a0.csv").read_bytes() == before


def test_split_and_untuned(capsys, folder):
    code, found, _ = data(
        capsys, "edit", "untuned0.csv", "--parts", "2", "-o", "untuned0_part%d.csv"
    )
    assert (code, [each["file"] for each in found["rows"]]) == (
        0,
        ["untuned0_part0.csv", "untuned0_part1.csv"],
    )
    parts = ("untuned0_part0.csv", "untuned0_part1.csv")
    _, found, _ = data(capsys, "show", "--untuned", *parts, "-o", "u0.csv")
    assert len(found["rows"]) == 3
    assert len((folder / "u0.csv").read_text().splitlines()) == 3
    for number in ("0", "1025", "many", "9" * 30):
        words = ["edit", "untuned0.csv", "--parts", number, "-o", "p.csv"]
        assert run(["tunableop", *words]) == 2


def test_edit_changes_and_removes_the_gemms_of_a_condition(capsys, folder):
    where = ("--where", "m = 1")
    code, found, _ = data(capsys, "edit", "a0.csv", *where, "--to", "Default", "-o", "p0.csv")
    assert code == 0
    assert [each["parameters"] for each in found["changed"]] == ["tn_1_8_8_ld_8_8_1"]
    assert (folder / "p0.csv").read_text() == HEADER + row(1, "Default", "").replace(
        ",\n", "\n"
    ) + row(2, time="0.9")
    where = ("--where", "solution = 'Default'")
    assert data(capsys, "edit", "p0.csv", *where, "--to", "none", "-o", "q0.csv")[0] == 0
    assert (folder / "q0.csv").read_text() == HEADER + row(2, time="0.9")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--where", "m = 1"], 2),
        (["--to", "Default"], 2),
        (["--where", "m = (", "--to", "none"], 2),
        (["--where", "m = 1", "--to", "a,b"], 3),
        (["--where", "solution = 'Nothing'", "--to", "none"], 3),
    ],
)
def test_an_edit_that_cannot_be_made_writes_nothing(folder, words, code):
    assert run(["tunableop", "edit", "a0.csv", *words, "-o", "z.csv"]) == code
    assert not (folder / "z.csv").exists()


def test_edits_are_made_one_after_the_other(capsys):
    words = ("--where", "m = 3", "--to", "none", "--parts", "2", "-o", "e.csv")
    code, found, _ = data(capsys, "edit", "a0.csv", "a1.csv", *words)
    assert (code, len(found["conflicts"]), len(found["changed"])) == (0, 1, 1)
    assert [each["gemms"] for each in found["rows"]] == [1, 1]
    assert Path("e0.csv").read_text() == HEADER + row(2, "Gemm_Rocblas_2", "0.3")
    assert Path("e1.csv").read_text() == HEADER + row(1)


def test_check_without_a_file_shows_names_and_collisions(capsys, monkeypatch, said):
    code, found, _ = data(capsys, "check", "--devices", "fake:2")
    names = ["tunableop_results0.csv", "tunableop_results1.csv"]
    assert (code, [each["results"] for each in found["rows"]]) == (0, names)
    assert run(["tunableop", "check", "--visible", "0", "--visible", "1"]) == 1
    assert "all use tunableop_results0.csv" in capsys.readouterr().out
    monkeypatch.setenv("PYTORCH_TUNABLEOP_ENABLED", "1")
    monkeypatch.setenv("PYTORCH_TUNABLEOP_FILENAME", "mine%d.csv")
    assert [each["results"] for each in data(capsys, "check")[1]["rows"]] == ["mine0.csv"]
    monkeypatch.setenv("PYTORCH_TUNABLEOP_VEROBSE", "1")
    assert run(["tunableop", "check"]) == 1
    said.within(capsys.readouterr().out)


@pytest.mark.parametrize(
    "words",
    [
        ["a0.csv", "--phase", "use"],
        ["a0.csv", "--visible", "0"],
        ["--exports"],
        ["--expect", "PT_VERSION"],
        ["--phase", "use", "--expect", "PT_VERSION=abc"],
    ],
)
def test_options_of_check_that_do_not_fit_are_refused(words):
    assert run(["tunableop", "check", *words]) == 2


def test_a_phase_prints_variables_and_warns(capsys, monkeypatch):
    monkeypatch.setenv("PYTORCH_TUNABLEOP_VEROBSE", "1")
    assert run(["tunableop", "check", "--phase", "collect"]) == 0
    printed = capsys.readouterr().out
    assert "PYTORCH_TUNABLEOP_RECORD_UNTUNED=1" in printed
    assert "did you mean" in printed


def test_coverage_of_recorded_gemms_and_of_a_trace(capsys, folder):
    code, found, _ = data(capsys, "show", "untuned0.csv", "a0.csv")
    assert (code, found["n_tuned"], found["n_gemms"]) == (1, 2, 3)
    assert data(capsys, "show", "untuned0.csv", "a1.csv")[1]["n_tuned"] == 2
    inputs = {
        "Input Dims": [[8, 8], [8, 1]],
        "Input Strides": [[8, 1], [1, 8]],
        "Input type": ["c10::Half", "c10::Half"],
    }
    builder = TraceBuilder().operator("aten::mm", (0, 4), **inputs)
    builder.launch("gemm", call=(1, 3), work=(5, 25)).write(folder / "trace.json")
    code, found, _ = data(capsys, "show", "trace.json", "a0.csv")
    assert found["gemm_ns"] == 20_000
    assert [(each["match"], each["operator"]) for each in found["rows"]] == [
        ("missing", "GemmTunableOp_Half_NN")
    ]
    assert code == 1


def test_coverage_of_an_execution_trace(capsys, folder, said):
    def node(number, name, shapes, strides, types):
        inputs = {"values": [], "shapes": shapes, "strides": strides, "types": types}
        empty = {"values": [], "shapes": [], "types": []}
        return {
            "id": number,
            "name": name,
            "ctrl_deps": 1,
            "inputs": inputs,
            "outputs": empty,
            "attrs": [],
        }

    half = ["Tensor(c10::Half)", "Tensor(c10::Half)"]
    nodes = [
        node(2, "aten::mm", [[8, 8], [8, 1]], [[8, 1], [1, 8]], half),
        node(3, "aten::mm", [[8, 8], [8, 1]], [[8, 1], [1, 8]], half),
        node(4, "aten::mm", [[8, 8], [8, 3]], [[8, 1], [3, 1]], half),
        node(5, "aten::_int_mm", [[8, 8], [8, 3]], [[8, 1], [3, 1]], half),
        node(6, "aten::mm", [], [], []),
    ]
    text = {"schema": "1.1.1-chakra.0.0.4", "pid": 7, "nodes": nodes}
    (folder / "et.json").write_text(json.dumps(text), encoding="utf-8")
    (folder / "r0.csv").write_text(
        HEADER + "GemmTunableOp_Half_NN,nn_1_8_8_ld_1_8_1,Gemm_Rocblas_1,0.5\n", encoding="utf-8"
    )
    code, found, _ = data(capsys, "show", "et.json", "r0.csv")
    assert (code, found["n_calls"], found["n_tuned_calls"]) == (1, 5, 2)
    assert [(each["match"], each["calls"], each["flops"]) for each in found["rows"]] == [
        ("missing", 1, 384),
        ("not_tunable", 1, None),
        ("unknown", 1, None),
        ("tuned", 2, 256),
    ]
    assert found["share_of_flops"] == 0.4
    assert run(["tunableop", "show", "et.json", "r0.csv", "--step", "1"]) == 3
    assert run(["tunableop", "show", "et.json", "r0.csv"]) == 1
    said.within(capsys.readouterr().out)


def test_tune_with_a_worker(capsys, folder):
    worker = f"{sys.executable} {WORKER} {folder}"
    command = ("tune", "untuned?.csv", "--devices", "fake:2", "--worker", worker)
    code, found, _ = data(capsys, *command)
    assert (code, found["n_tuned"]) == (0, 3)
    assert found["outputs"] == ["tunableop_results_full0.csv", "tunableop_results_full1.csv"]
    assert run(["tunableop", *command]) == 2
    assert run(["tunableop", "tune", "untuned0.csv", "--devices", "fake:2"]) == 2
    refuse = "sh -c 'echo no torch >&2; exit 5'"
    again = ("tune", "untuned?.csv", "--devices", "fake:1", "--worker", refuse, "-o", "r.csv")
    assert run(["tunableop", *again]) == 5


def test_a_file_that_is_not_there_is_named(capsys):
    for command in ("check", "show"):
        assert run(["tunableop", command, "absent.csv"]) == 3
        assert "absent.csv" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["text", "csv", "md", "jsonl", "html"])
def test_every_format_is_written(form, capsys):
    for command in (["check", "broken0.csv"], ["show", "a0.csv"], ["show", "a0.csv", "a1.csv"]):
        run(["tunableop", *command, "--format", form])
        assert capsys.readouterr().out


def test_a_row_with_wildcards_has_a_share_of_its_own(capsys):
    Path("wild0.csv").write_text(
        HEADER + row(1) + "GemmTunableOp_Half_TN,tn_*_8_8_ld_8_8_*,Gemm_Rocblas_1,0.5\n",
        encoding="utf-8",
    )
    code, found, _ = data(capsys, "show", "untuned0.csv", "wild0.csv")
    assert (code, found["n_tuned"], found["n_wildcard"], found["n_gemms"]) == (1, 1, 2, 3)
    assert found["wildcard_share"] == pytest.approx(5 / 6)
    run(["tunableop", "show", "untuned0.csv", "wild0.csv"])
    assert "PYTORCH_TUNABLEOP_WILDCARD_FALLBACK=1" in capsys.readouterr().out


def test_untuned_leaves_out_what_has_a_row(capsys, said):
    code, found, _ = data(capsys, "show", "--untuned", "untuned0.csv", "--reuse", "a0.csv")
    assert code == 0
    assert [each["m"] for each in found["rows"]] == [3]
    run(
        [
            "tunableop",
            "show",
            "--untuned",
            "untuned0.csv",
            *("--reuse", "a0.csv", "--reuse", "a1.csv"),
        ]
    )
    said.within(capsys.readouterr().out)


def test_a_phase_is_printed_for_a_shell(capsys, monkeypatch, said):
    monkeypatch.setenv("PYTORCH_TUNABLEOP_VEROBSE", "1")
    monkeypatch.setenv("PYTORCH_TUNABLEOP_FILENAME", "my results%d.csv")
    assert run(["tunableop", "check", "--phase", "use", "--exports"]) == 0
    printed = capsys.readouterr()
    assert "export PYTORCH_TUNABLEOP_ENABLED=1\n" in printed.out
    assert "export PYTORCH_TUNABLEOP_FILENAME='my results%d.csv'\n" in printed.out
    said(printed.err)
    assert run(["tunableop", "check", "--phase", "use", "--exports", "--json"]) == 2


def test_show_lists_the_first_rows_of_a_large_file_and_csv_has_all(capsys, folder, said):
    rows = "".join(row(m) for m in range(1, 1301))
    (folder / "large0.csv").write_text(HEADER + rows, encoding="utf-8")
    assert run(["tunableop", "show", "large0.csv"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("large0.csv: 1,300 GEMMs, PT_VERSION 2.9.1")
    said.within(printed)
    assert run(["tunableop", "show", "large0.csv", "--format", "csv"]) == 0
    assert capsys.readouterr().out.count("\n") == 1301
    _, found, _ = data(capsys, "show", "large0.csv")
    assert [each["m"] for each in found["rows"]] == list(range(1, 1301))


def test_sizes_whose_flops_exceed_63_bits_are_counted_without_them(capsys):
    large = "GemmTunableOp_float_NN,nn_999999999999999999_999999999999999999_3"
    Path("untuned0.csv").write_text(f"{large}\nGemmTunableOp_float_NN,nn_1_2_3\n")
    Path("results0.csv").write_text(HEADER + f"{large},Default,0.5\n")
    code, found, _ = data(capsys, "show", "untuned0.csv", "results0.csv")
    assert (code, found["n_tuned"], found["share"]) == (1, 1, 0.0)
    assert sorted(str(row["flops"]) for row in found["rows"]) == ["12", "None"]


def test_rows_of_a_frame_are_written_as_single_records_are():
    texts = ['a"b', "a,b", "=cmd()", "", None, "two\nlines", "-1", "\u200b", "plain"]
    numbers = [0.1, 1e-7, 1e16, 569204.0, None, 3.0, -2.5e300, 7.0, 0.0]
    frame = pl.DataFrame({"n": range(9), "text": texts, "number": numbers, "flag": [True] * 9})
    document = Document(
        schema="s/1", input={}, columns=frame.columns, records=lambda: frame.iter_rows(named=True)
    )
    whole = "".join(csv_chunks(document, has_header=True))
    framed = replace(document, csv_rows=lambda: csv_rows(frame))
    assert "".join(csv_chunks(framed, has_header=True)) == whole
    assert "".join(csv_chunks(framed, has_header=False)) == whole.partition("\n")[2]


@pytest.mark.parametrize(
    "text", [b"\x1f\x8b\x08\0\0", b' {"traceEvents": []}', b"SQLite format 3\0"]
)
@pytest.mark.parametrize("command", ["show", "check"])
def test_a_file_of_another_kind_is_named_as_that(text, command, tmp_path, capsys, said):
    path = tmp_path / "trace.json"
    path.write_bytes(text)
    assert run(["tunableop", command, str(path)]) == 3
    printed = capsys.readouterr().err
    said.within(printed)
    assert "longpole summary" in printed
