"""Each defect of a TunableOp file is found, with the lines it stands on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tunable_rows import HEADER, OTHER_HEADER, real_files, result_lines, row

from longpole.bench.tunableop import check, merge
from longpole.bench.tunableop.check import PROBLEMS

SOUND = HEADER + row(1) + row(2)
PLANTED = {
    "no_validators": (row(1) + row(2), (1,)),
    "missing_validator": (b"Validator,HIP_VERSION,702\n" + row(1), ()),
    "duplicate_validator": (HEADER + b"Validator,PT_VERSION,2.9.1\n" + row(1), (1, 4)),
    "conflicting_validator": (HEADER + b"Validator,PT_VERSION,2.8.0\n" + row(1), (1, 4)),
    "mixed_validators": (SOUND + OTHER_HEADER + row(3), (4, 9)),
    "crlf": (SOUND.replace(b"\n", b"\r\n"), (1, 2, 3)),
    "crlf_row": (HEADER + row(1) + row(2, time="").replace(b"\n", b"\r\n"), (5,)),
    "byte_order_mark": (b"\xef\xbb\xbf" + SOUND, (1,)),
    "duplicate_rows": (SOUND + row(1), (4, 6)),
    "conflicting_rows": (SOUND + row(1, "Gemm_Rocblas_2", "0.75"), (4, 6)),
    "slower_row_first": (SOUND + row(1, "Gemm_Rocblas_2", "0.25"), (4, 6)),
    "default_inf": (SOUND + row(3, "Default", "inf"), (6,)),
    "unusable_time": (SOUND + row(3, time="nan"), (6,)),
    "glued_rows": (SOUND.removesuffix(b"\n") + row(3) + row(4), (5,)),
    "unknown_line": (HEADER + b"# tuned on a Monday\n" + row(1), (4,)),
    "cut_line": (SOUND + b"GemmTunableOp_float_TN,tn_3_8", (6,)),
    "no_final_newline": (SOUND.removesuffix(b"\n"), (5,)),
    "unknown_solution": (SOUND + row(3, "Gemm_Someday_1"), (6,)),
    "layout_mismatch": (SOUND + row(3).replace(b",tn_", b",nt_"), (6,)),
    "old_row_format": (SOUND + row(3).replace(b"_ld_8_8_3", b""), (6,)),
    "untuned_rows": (SOUND + b"GemmTunableOp_float_TN,tn_3_8_8_ld_8_8_3\n", (6,)),
    "blank_line": (HEADER + b"\n" + row(1), (4,)),
    "empty": (b"", ()),
}


def found(text, **options):
    return [(problem.code, problem.lines) for problem in check(text, **options)]


@pytest.mark.parametrize(("code", "text", "lines"), [(c, *p) for c, p in PLANTED.items()])
def test_a_planted_defect_is_found_on_its_lines_and_nothing_else(code, text, lines):
    assert found(text) == [(code, lines)]


def test_a_sound_file_has_no_problems():
    assert found(SOUND) == []


def test_every_kind_of_problem_is_tested():
    with_files_or_torch = {
        "foreign_validator",
        "unexpected_validator",
        "no_ordinal",
        "mixed_versions",
    }
    assert set(PLANTED) | with_files_or_torch == set(PROBLEMS)


def test_the_validators_are_compared_with_those_of_torch():
    torch = {"PT_VERSION": "2.9.1", "GCN_ARCH_NAME": "gfx942", "ROCBLAS_VERSION": "5.2"}
    assert found(SOUND, expected=torch) == [
        ("missing_validator", ()),
        ("foreign_validator", (2,)),
    ]
    rows = [problem.message for problem in check(SOUND, expected=torch)]
    assert rows == [
        "ROCBLAS_VERSION is missing; torch has 5.2",
        "GCN_ARCH_NAME is gfx1100; torch has gfx942",
    ]
    assert found(SOUND, expected={"PT_VERSION": "2.9.1"}) == []
    only = {"PT_VERSION": "2.9.1", "GCN_ARCH_NAME": "gfx1100"}
    assert found(SOUND, expected=only, is_complete=True) == [("unexpected_validator", (3,))]


def test_rows_behind_a_header_that_torch_rejects_are_called_lost(said):
    [problem] = check(SOUND, expected={"PT_VERSION": "2.11.0"})
    assert (problem.code, problem.lines, problem.severity) == ("foreign_validator", (1,), "error")
    said.within(problem.kind.effect)


def test_a_name_without_an_ordinal_is_no_file_that_torch_reads(tmp_path):
    for name, expected in (("results.csv", ["no_ordinal"]), ("results0.csv", [])):
        (tmp_path / name).write_bytes(SOUND)
        assert [problem.code for problem in check(tmp_path / name)] == expected


def test_files_of_different_versions_are_noticed(tmp_path):
    for number, header in enumerate((HEADER, HEADER, OTHER_HEADER)):
        (tmp_path / f"results{number}.csv").write_bytes(header + row(1))
    [problem] = check(sorted(tmp_path.iterdir()))
    assert (problem.code, problem.file) == ("mixed_versions", str(tmp_path / "results2.csv"))
    assert "PT_VERSION (2.9.1, here 2.11.0)" in problem.message


@pytest.mark.parametrize("path", real_files(), ids=lambda path: path.name)
def test_real_files_have_the_problems_that_are_known_of_them(path):
    codes = [problem.code for problem in check(path)]
    if path.name == "empty.csv":
        assert codes == ["empty"]
    elif path.name == "torch2.11_bias_duplicates.csv":
        assert codes.count("duplicate_rows") == 12
        assert codes.count("conflicting_rows") == 2
    else:
        assert codes == ["no_ordinal"]


@given(st.lists(result_lines(), max_size=6))
def test_a_merged_file_has_no_problem_that_a_merge_can_mend(lines):
    text = b"\xef\xbb\xbf" + HEADER + b"\r\n".join([*lines, *lines])
    codes = {problem.code for problem in check(merge(text).file)}
    mended = {"crlf", "crlf_row", "byte_order_mark", "duplicate_rows", "conflicting_rows"}
    mended |= {"slower_row_first", "glued_rows", "no_final_newline", "blank_line"}
    assert codes & mended == set()


def test_effects_name_the_versions_of_torch_that_they_are_of(said):
    effects = {code: kind.effect for code, kind in PROBLEMS.items()}
    said.within(effects["foreign_validator"])
    said.within(effects["foreign_validator"])
    assert "error up to 2.12" in effects["unknown_solution"]
    said.within(effects["unknown_solution"])
