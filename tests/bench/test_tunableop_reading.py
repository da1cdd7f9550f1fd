"""TunableOp files: what is read is what stands there, and it is written back as it was."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tunable_rows import HEADER, gemms, real_files, result_lines, solutions, times

from longpole.bench import tunableop
from longpole.bench.tunableop import Gemm, parts


def rows(text, *columns):
    return tunableop.read(text).pieces.select(*columns).rows()


@pytest.mark.parametrize("path", real_files(), ids=lambda path: path.name)
def test_a_real_file_has_no_line_that_is_not_understood(path):
    assert set(tunableop.read(path).pieces["kind"]) <= {"validator", "result"}


@pytest.mark.parametrize("n_bytes", [1, 60, 200])
def test_a_file_that_is_read_in_parts_has_the_same_pieces(monkeypatch, n_bytes):
    row = b"GemmTunableOp_float_NN,nn_%d_2_3,Gemm_Rocblas_7,%s\n"
    mark = b"\xef\xbb\xbf"
    text = mark + HEADER + b"".join(row % (m, b"0.5") for m in range(9)) + b"\n# note\n"
    text += mark + row % (10, b"0.5,7") + row % (11, b"0.5x") + b"Validator,NEW,1\n" + row[:20]
    whole = tunableop.read(text)
    assert (whole.pieces["kind"] == "result").sum() == 10
    lines, blocks = whole.lines, whole.blocks
    monkeypatch.setattr(parts, "_PART_BYTES", n_bytes)
    apart = tunableop.read(text)
    assert len(list(apart.parts())) > 3
    assert apart.pieces.equals(whole.pieces)
    assert (apart.lines, apart.blocks) == (lines, blocks)
    assert apart.validators["NEW"] == "1"


def test_rows_that_only_torch_understands_differ_by_all_of_their_text():
    row = "GemmTunableOp_float_NN,nn_1_2_3,Default,0.5"
    first, second = tunableop.merge([f"{row},8".encode()]), tunableop.merge([f"{row},7".encode()])
    both = tunableop.merge([first.file, second.file])
    assert both.file.text == f"{row},7\n".encode()
    assert tunableop.merge([second.file, first.file]).file.text == both.file.text


@pytest.mark.parametrize("path", real_files(), ids=lambda path: path.name)
def test_a_real_file_is_written_back_byte_for_byte(path, tmp_path):
    tunableop.read(path).write(tmp_path / path.name)
    assert (tmp_path / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("path", real_files(), ids=lambda path: path.name)
def test_the_signatures_of_real_rows_are_rendered_as_torch_wrote_them(path):
    for row in tunableop.read(path).results.iter_rows(named=True):
        assert Gemm.from_row(row).key == (row["operator"], row["parameters"])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "GemmTunableOp_float_TN,tn_768_36_128_ld_128_128_768,Gemm_Rocblas_-1140855908,0.0190437",
            ("Gemm", "float", "TN", 768, 36, 128, None, 128, "rocblas", -1140855908, 19043.7, "ok"),
        ),
        (
            "GemmStridedBatchedTunableOp_BFloat16_NN,nn_64_128_128_B_192_ld_64_128_64,Gemm_Rocblas_-1140856489,0.0199737",
            (
                "GemmStridedBatched",
                "BFloat16",
                "NN",
                64,
                128,
                128,
                192,
                64,
                "rocblas",
                -1140856489,
                19973.7,
                "ok",
            ),
        ),
        (
            "GemmTunableOp_Half_TN,tn_57344_32768_8192,Default,inf",
            ("Gemm", "Half", "TN", 57344, 32768, 8192, None, None, "default", None, None, "inf"),
        ),
        (
            "ScaledGemmTunableOp_Float8_e4m3fn_Float8_e4m3fn_BFloat16_TN,tn_64_12288_2048_ld_2048_2048_64_rw_1_bias_None",
            (
                "ScaledGemm",
                "Float8_e4m3fn",
                "TN",
                64,
                12288,
                2048,
                None,
                2048,
                None,
                None,
                None,
                None,
            ),
        ),
    ],
)
def test_columns_have_what_the_row_says(line, expected):
    columns = ("operation", "dtype_a", "layout", "m", "n", "k", "batch", "lda")
    columns += ("family", "solution_index", "time_ns", "status")
    assert rows(line.encode(), *columns) == [expected]


def test_torch_counts_rows_and_columns_the_other_way_round():
    """`torch.matmul(A[36, 128], B[128, 768])` is written with m = 768 and n = 36."""
    line = b"GemmTunableOp_float_TN,tn_768_36_128_ld_128_128_768"
    assert rows(line, "matmul_m", "matmul_n", "k") == [(36, 768, 128)]


@given(gemms())
def test_a_gemm_that_is_rendered_and_read_is_the_same(gemm):
    [row] = tunableop.read(",".join(gemm.key).encode()).rows()
    assert row["kind"] == "untuned"
    assert Gemm.from_row(row) == gemm


@given(gemms(), solutions, times)
def test_a_result_that_is_rendered_and_read_is_the_same(gemm, solution, time):
    line = ",".join([*gemm.key, solution, *([time] if time else [])])
    [row] = tunableop.read(line.encode() + b"\n").rows()
    assert (Gemm.from_row(row), row["solution"], row["time"]) == (gemm, solution, time or None)
    assert row["family"] == (solution.lower().split("_")[1] if "_" in solution else "default")
    milliseconds = float(time or "nan")
    if 0 < milliseconds < float("inf"):
        assert row["time_ns"] == pytest.approx(milliseconds * 1e6, rel=1e-15)
        assert row["status"] == "ok"
    else:
        assert row["time_ns"] is None
        assert row["status"] != "ok"


noise = st.one_of(
    st.binary(max_size=40),
    result_lines(),
    st.sampled_from(
        [b"", b"# note", b"Validator,", b"Validator,PT_VERSION", HEADER, b"\xef\xbb\xbf"]
    ),
)


@given(st.lists(st.tuples(noise, st.sampled_from([b"\n", b"\r\n", b"", b"\n\n"])), max_size=12))
def test_any_bytes_are_written_back_as_they_were(parts):
    text = b"".join(line + ending for line, ending in parts)
    file = tunableop.read(text)
    assert file.render() == text
    assert file.pieces["line"].is_sorted()


@given(st.lists(result_lines(), min_size=1, max_size=5))
def test_rows_that_were_glued_together_are_all_found(lines):
    glued = b"".join(line for line in lines if b"BLAS_PARAMS" not in line)
    file = tunableop.read(glued)
    assert file.results.height == sum(b"BLAS_PARAMS" not in line for line in lines)
    assert b"".join(line.text for line in file.lines) == glued


def test_a_comment_that_quotes_a_row_is_no_row():
    text = b"# GemmTunableOp_float_NN,nn_1_2_3,Default,0.5\n"
    assert rows(text, "kind", "reason") == [("unknown", "foreign")]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("hello", "foreign"),
        ("GemmTunableOp_float_NN", "too_few_fields"),
        ("GemmTunableOp_int8_NN,nn_1_2_3,Default,0.5", "operator"),
        ("GemmTunableOp_float_NN,nn_1_2,Default,0.5", "parameters"),
        ("GemmTunableOp_float_NN,nn_1_2_3,,0.5", "solution"),
        ("Validator,PT_VERSION", "too_few_fields"),
    ],
)
def test_a_line_that_is_not_understood_is_kept_with_the_reason(line, reason):
    file = tunableop.read(f"{line}\n".encode())
    assert file.pieces.select("kind", "reason").rows() == [("unknown", reason)]
    assert file.others == [line.encode()]


def test_a_file_is_never_written_over(tmp_path):
    path = tmp_path / "results0.csv"
    path.write_bytes(b"mine")
    file = tunableop.read(HEADER)
    with pytest.raises(FileExistsError, match="exists; to replace it"):
        file.write(path)
    assert path.read_bytes() == b"mine"
    file.write(path, force=True)
    assert path.read_bytes() == HEADER
    assert [entry.name for entry in tmp_path.iterdir()] == ["results0.csv"]


@pytest.mark.parametrize(
    ("end", "time_ns"),
    [
        (b", 0.5", 500_000.0),
        (b",0.5,note", 500_000.0),
        (b",0.5,", 500_000.0),
        (b",0.5ms", 500_000.0),
        (b",", None),
        (b",fast", None),
    ],
)
def test_a_row_is_read_by_its_first_four_fields_as_torch_reads_it(end, time_ns):
    text = b"Validator,PT_VERSION,2.9.1,\n" + b"GemmTunableOp_Half_TN,tn_1_2_3_ld_3_3_1,"
    file = tunableop.read(text + b"Gemm_Rocblas_5" + end + b"\n")
    assert file.validators == {"PT_VERSION": "2.9.1"}
    assert file.results.select("line", "solution", "time_ns").rows() == [
        (2, "Gemm_Rocblas_5", time_ns)
    ]
    assert file.render() == file.text
    assert tunableop.merge([file]).file.text.endswith(b"Gemm_Rocblas_5" + end + b"\n")


def test_lines_that_are_not_understood_keep_their_order_in_a_merge():
    new = b"NewTunableOp_Half_TN,tn_1_2_3_ld_3_3_1,"
    text = b"Validator,PT_VERSION,2.9.1\n" + new + b"Gemm_B_2,0.5\n" + new + b"Gemm_A_1,0.9\n"
    assert tunableop.merge([text]).file.text == text


@pytest.mark.parametrize(
    "parameters",
    ["nn_1234567890123456789_2_3", "nn_1_2_3_B_", "nn_1_2_3_ld_1_2", "nn_1_2_3_", "xn_1_2_3", "nn"],
)
def test_sizes_that_are_not_whole_are_not_understood(parameters):
    [row] = tunableop.read(f"GemmTunableOp_float_NN,{parameters},Default,1\n".encode()).rows()
    assert (row["kind"], row["reason"]) == ("unknown", "parameters")


@pytest.mark.parametrize(
    ("solution", "family", "index"),
    [
        ("Gemm_Rocblas_-7", "rocblas", -7),
        ("Gemm_Hipblaslt_123456789012345678", "hipblaslt", 123456789012345678),
        ("Gemm_Hipblaslt_1234567890123456789", "other", None),
        ("Gemm_Rocblas_", "other", None),
        ("Gemm_Rocblas_--7", "other", None),
    ],
)
def test_indices_of_solutions_are_whole_numbers(solution, family, index):
    text = f"GemmTunableOp_float_NN,nn_1_2_3,{solution},1\n".encode()
    assert tunableop.read(text).results.select("family", "solution_index").rows() == [
        (family, index)
    ]
