"""Merging, splitting and editing TunableOp files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tunable_rows import HEADER, OTHER_HEADER, gemms, real_files, result_lines, row

from longpole.bench import tunableop
from longpole.bench.tunableop import merge, merge_by_validators, names, split
from longpole.errors import ResultsError

# A handful of GEMMs, so that files have some in common.
few_lines = st.lists(
    st.sampled_from(range(5)).flatmap(
        lambda m: result_lines(
            st.just(
                tunableop.Gemm(
                    operation="Gemm", dtypes=("Half",), transa="t", transb="n", m=m + 1, n=2, k=3
                )
            )
        )
    ),
    max_size=8,
)
files = few_lines.map(lambda lines: HEADER + b"".join(line + b"\n" for line in lines))


def solutions(file):
    return dict(file.results.select("m", "solution").iter_rows())


@given(files, files, files)
def test_a_merge_is_associative_and_does_not_hang_on_the_order(a, b, c):
    whole = merge([a, b, c]).file.text
    assert merge([merge([a, b]).file, c]).file.text == whole
    assert merge([a, merge([b, c]).file]).file.text == whole
    assert merge([c, a, b]).file.text == whole
    assert merge([whole]).file.text == whole


@given(st.lists(result_lines(), max_size=12, unique=True), st.integers(1, 5))
def test_what_is_split_and_merged_again_is_the_same(lines, n_shares):
    text = HEADER + b"".join(line + b"\n" for line in lines)
    parts = [share.file for share in split(text, n_shares)]
    assert len(parts) == n_shares
    assert merge(parts).file.text == merge(text).file.text
    assert sum(part.results.height for part in parts) == len(lines)


@pytest.mark.parametrize("path", real_files(), ids=lambda path: path.name)
def test_a_real_file_that_is_split_and_merged_again_is_the_same(path):
    once = merge(path).file
    for n_shares in (1, 4, 12):
        parts = [share.file for share in split(once, n_shares)]
        assert merge(parts).file.text == once.text


def test_parts_cost_about_the_same_and_not_the_same_number():
    gemms = b"".join(row(m, "Default", 1) for m in (900, *range(100, 108)))
    dear, cheap = split(gemms, 2)
    assert [dear.file.results.height, cheap.file.results.height] == [1, 8]
    assert (dear.flops, cheap.flops) == (2 * 900 * 64, 2 * 828 * 64)


@given(st.lists(st.integers(0, 1000), max_size=30), st.integers(1, 6))
def test_no_share_is_a_third_dearer_than_it_must_be(costs, n_shares):
    shares = tunableop.untuned.share_out({("g", str(n)): c for n, c in enumerate(costs)}, n_shares)
    loads = [sum(costs[int(number)] for _, number in share) for share in shares]
    assert sorted(key for share in shares for key in share) == sorted(
        ("g", str(n)) for n in range(len(costs))
    )
    # The greedy rule: when the last GEMM of a share came, no share cost less.
    for share, load in zip(shares, loads, strict=True):
        if share:
            assert load - costs[int(share[-1][1])] <= min(loads)


@pytest.mark.parametrize(
    ("times", "winner"),
    [
        (("0.5", "0.25"), 1),
        (("inf", "9"), 1),
        (("nan", "9"), 1),
        (("0", "9"), 1),
        (("-1", "9"), 1),
        (("0.5", "0.50"), 0),  # equal times: the name of the solution decides
        (("inf", "inf"), 0),
    ],
)
def test_the_fastest_wins_and_an_unusable_time_loses(times, winner):
    lines = [row(8, f"Gemm_Rocblas_{n}", time) for n, time in enumerate(times)]
    merged = merge([HEADER + lines[0], HEADER + lines[1]])
    assert solutions(merged.file) == {8: f"Gemm_Rocblas_{winner}"}
    assert len(merged.conflicts) == 1


def test_the_policy_decides_where_sources_disagree():
    slow, fast = HEADER + row(8, "Gemm_Rocblas_1", 2), HEADER + row(8, "Gemm_Rocblas_2", 1)
    assert solutions(merge([slow, fast], conflict="first").file) == {8: "Gemm_Rocblas_1"}
    with pytest.raises(ResultsError, match=r"Gemm_Rocblas_2 \(-:4\), Gemm_Rocblas_1 \(-:4\)"):
        merge([slow, fast], conflict="error")
    with pytest.raises(ValueError, match="conflict is one of fastest, first, error"):
        merge([slow], conflict="best")
    same = merge([slow, HEADER + row(8, "Gemm_Rocblas_1", 1)], conflict="error")
    assert same.n_dropped == 1
    assert not same.conflicts


def test_files_of_different_versions_are_refused_or_kept_apart():
    sources = [HEADER + row(8, "Default", 1), OTHER_HEADER + row(16, "Default", 1)]
    with pytest.raises(ResultsError, match=r"PT_VERSION \(2.11.0, 2.9.1\)"):
        merge(sources)
    parts = merge_by_validators(sources)
    assert [dict(part.validators)["PT_VERSION"] for part in parts] == ["2.11.0", "2.9.1"]
    assert [solutions(part.file) for part in parts] == [{16: "Default"}, {8: "Default"}]


def test_files_that_were_joined_by_hand_are_told_apart():
    joined = HEADER + row(8, "Default", 1) + OTHER_HEADER + row(16, "Default", 1)
    with pytest.raises(ResultsError, match="2 different sets"):
        merge(joined)
    with pytest.raises(ResultsError, match="different validators"):
        split(joined, 2)
    assert len(merge_by_validators(joined)) == 2


def test_lines_that_are_not_understood_survive_a_merge():
    merged = merge([HEADER + b"# mine\n" + row(8, "Default", 1), HEADER + b"# mine\n# yours"])
    assert merged.file.others == [b"# mine", b"# yours"]
    assert merged.file.text.endswith(b"\n# mine\n# yours\n")


class TestGather:
    """The eight cases in which torch's own gathering goes wrong or could."""

    def gather(self, name):
        return merge(names.all_ordinals(str(name))).file

    def write(self, folder, **texts):
        for name, text in texts.items():
            (folder / f"{name}.csv").write_bytes(text)

    def test_1_rows_of_several_devices_come_together(self, tmp_path):
        self.write(tmp_path, res0=HEADER + row(8, "A", 1), res1=HEADER + row(16, "B", 1))
        assert solutions(self.gather(tmp_path / "res.csv")) == {8: "A", 16: "B"}

    def test_2_rows_that_disagree_leave_the_fastest_and_not_a_lottery(self, tmp_path):
        self.write(tmp_path, res0=HEADER + row(8, "A", 2), res1=HEADER + row(8, "B", 1))
        file = self.gather(tmp_path / "res.csv")
        assert file.results.select("m", "solution").rows() == [(8, "B")]

    def test_3_a_missing_line_end_glues_nothing(self, tmp_path):
        first = (HEADER + row(8, "A", 1)).removesuffix(b"\n")
        self.write(tmp_path, res0=first, res1=HEADER + row(16, "B", 1))
        file = self.gather(tmp_path / "res.csv")
        assert solutions(file) == {8: "A", 16: "B"}
        assert set(file.pieces["ending"]) == {"lf"}

    def test_4_a_folder_may_have_a_dot_in_its_name(self, tmp_path):
        folder = tmp_path / "v2.1"
        folder.mkdir()
        self.write(folder, res0=HEADER + row(8, "A", 1))
        assert solutions(self.gather(folder / "res.csv")) == {8: "A"}
        assert names.full_name(folder / "res.csv", 0) == folder / "res_full0.csv"

    def test_5_a_path_may_begin_with_a_dot(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        self.write(tmp_path, res0=HEADER + row(8, "A", 1))
        assert solutions(self.gather("./res.csv")) == {8: "A"}

    def test_6_digits_of_the_name_are_not_taken_for_the_ordinal(self):
        full = [names.full_name("mi300_run.csv", ordinal).name for ordinal in (0, 1, 10)]
        assert full == ["mi300_run_full0.csv", "mi300_run_full1.csv", "mi300_run_full10.csv"]

    def test_7_no_device_is_lost_from_the_tenth_on(self, tmp_path):
        many = {f"res{n}": HEADER + row(n + 1, "A", 1) for n in range(12)}
        self.write(tmp_path, **many)
        assert solutions(self.gather(tmp_path / "res.csv")) == dict.fromkeys(range(1, 13), "A")
        found = [names.ordinal_of(path) for path in names.all_ordinals(str(tmp_path / "res.csv"))]
        assert found == list(range(12))

    def test_8_versions_are_not_mixed_under_one_header(self, tmp_path):
        self.write(tmp_path, res0=HEADER + row(8, "A", 1), res1=OTHER_HEADER + row(16, "B", 1))
        with pytest.raises(ResultsError, match="PT_VERSION"):
            self.gather(tmp_path / "res.csv")


def test_untuned_gemms_are_listed_once_in_a_stable_order():
    recorded = b"".join(row(m, "", "").rstrip(b",\n") + b"\n" for m in (3, 1, 2))
    found = tunableop.gather_untuned([recorded, recorded, HEADER + row(4, "Default", 1)])
    assert found.untuned["m"].to_list() == [1, 2, 3, 4]
    assert found.results.is_empty()
    assert tunableop.gather_untuned([HEADER + row(4, "Default", 1), recorded]).text == found.text


def test_pinning_changes_one_row_and_no_other_byte():
    text = HEADER + row(8, "A", 1) + row(16, "B", 2) + b"# end"
    keys = tunableop.select(text, parameters="^tn_16_")
    pinned = tunableop.pin(text, keys)
    assert pinned.text == HEADER + row(8, "A", 1) + row(16, "Default", 2)[:-3] + b"\n# end"
    named = tunableop.pin(text, keys, "Gemm_Hipblaslt_77")
    assert solutions(named) == {8: "A", 16: "Gemm_Hipblaslt_77"}
    assert tunableop.unpin(text, keys).text == HEADER + row(8, "A", 1) + b"# end"
    with pytest.raises(ResultsError, match="has no result for"):
        tunableop.pin(HEADER, keys)
    with pytest.raises(ResultsError, match="not a solution name"):
        tunableop.pin(text, keys, "a,b")


@given(gemms())
def test_any_gemm_can_be_pinned_and_taken_out(gemm):
    text = HEADER + ",".join([*gemm.key, "Gemm_Rocblas_1", "0.5"]).encode() + b"\r\n"
    pinned = tunableop.pin(text, [gemm.key])
    assert pinned.text == HEADER + ",".join([*gemm.key, "Default"]).encode() + b"\r\n"
    assert tunableop.unpin(pinned, [gemm.key]).text == HEADER


def test_a_difference_names_what_changed():
    before = HEADER + row(1, "A", 1) + row(2, "A", 1) + row(3, "A", 1) + row(4, "A", 1)
    after = HEADER + row(2, "A", 1) + row(3, "A", 0.5) + row(4, "B", 1) + row(5, "A", 1)
    changes = tunableop.diff(before, after)
    shown = changes.select("parameters", "change", "ratio").rows()
    assert [(name.split("_")[1], change, ratio) for name, change, ratio in shown] == [
        ("1", "removed", None),
        ("3", "time", 0.5),
        ("4", "solution", 1.0),
        ("5", "added", None),
    ]
    assert tunableop.diff(before, before).is_empty()


def test_speedup_counts_each_gemm_with_a_time_on_both_sides():
    tuned = HEADER + row(1, "A", 1) + row(2, "A", 1) + row(3, "A", "inf") + row(4, "A", 1)
    base = HEADER + row(1, "Default", 2) + row(2, "B", 8) + row(3, "Default", 1)
    gained = tunableop.speedup(tuned, base)
    assert gained.rows["speedup"].to_list() == [8.0, 2.0]
    assert gained.geometric_mean == pytest.approx(4.0)
    assert gained.of_one_call_each == 5.0
    assert (gained.n_unmatched, gained.n_not_default) == (2, 1)
    assert tunableop.speedup(HEADER, base).geometric_mean is None


def test_results_are_written_as_torch_writes_them():
    assert merge([HEADER + row(2, "B", 1) + row(1, "A", 1)]).file.text == (
        HEADER + row(1, "A", 1) + row(2, "B", 1)
    )


ROW = b"GemmTunableOp_Half_TN,tn_1_2_3_ld_3_3_1,Default,0.5\n"
OTHER_ROW = b"GemmTunableOp_Half_TN,tn_2_2_3_ld_3_3_2,Default,0.5\n"
VERSION, ARCH = b"Validator,PT_VERSION,2.9.1\n", b"Validator,GCN_ARCH_NAME,gfx942\n"


@pytest.mark.parametrize(
    "text",
    [
        ROW + OTHER_ROW + VERSION + ARCH,
        ROW + VERSION + ARCH + OTHER_ROW,
        VERSION + ROW + OTHER_ROW + ARCH,
        VERSION + ROW + ARCH + OTHER_ROW,
        VERSION + ARCH + ROW + OTHER_ROW + VERSION,
    ],
)
def test_a_merge_keeps_validators_wherever_they_are_in_the_file(text):
    assert merge([text]).file.text == VERSION + ARCH + ROW + OTHER_ROW


def test_validators_after_the_rows_that_contradict_those_before_are_refused_not_lost(said):
    newer = b"Validator,PT_VERSION,2.10.0\n"
    with pytest.raises(ResultsError, match=r"PT_VERSION \(2.10.0, 2.9.1\)"):
        merge([VERSION + ROW + newer])
    (problem,) = tunableop.check(VERSION + ROW + newer)
    said(problem.message)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("Validator,PT_VERSION,2.9.1\n".encode("utf-16"), "looks like UTF-16"),
        (b"name,duration\nmatmul,3\n", "such as tunableop_results0.csv"),
    ],
)
def test_a_file_of_another_kind_is_not_merged(text, hint):
    with pytest.raises(ResultsError, match=hint):
        merge([VERSION + ROW, text])
