"""Rates of calls whose work is told, Triton configurations, and copies of buffers."""

import sys

import pytest
from timed import answered, time

from longpole.bench import FakeClock, measure, read_results
from longpole.bench.time.targets import config_labels, under_config
from longpole.bench.time.timing import Work, WorkPlan, evaluate

pytestmark = pytest.mark.real_time

MODULE = '''
import time
from types import SimpleNamespace

def config(block, warps):
    return SimpleNamespace(kwargs={"BLOCK": block}, num_warps=warps, num_stages=2)

class Autotuner:
    """As much of Triton's as counts: with one configuration it uses that, without a search."""
    def __init__(self): self.configs = [config(64, 4), config(128, 8)]
    def run(self):
        assert len(self.configs) == 1, "a search would be timed"
        time.sleep({64: 0.002, 128: 0.004}[self.configs[0].kwargs["BLOCK"]])

kernel = Autotuner()
def launch(): kernel.run()

def gemm(n): time.sleep(0.001)

made = []
def factory():
    buffer = [len(made)]
    made.append(buffer)
    with open("copies", "a") as log: log.write("made\\n")
    def call():
        if len(buffer) < 3: buffer.append(0)
    return call
'''


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "kernels_here.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.delitem(sys.modules, "kernels_here", raising=False)


def test_rates_are_shares_of_the_peaks_that_the_roofline_uses():
    work = Work(bytes=3.35e9, flops=1.9788e12, dtype="bf16")
    assert work.rates(2e6, "NVIDIA H100 80GB HBM3") == {
        "bytes_per_s": pytest.approx(1.675e12),
        "flops_per_s": pytest.approx(989.4e12),
        "bandwidth_share": pytest.approx(0.5),
        "flops_share": pytest.approx(1.0),
    }
    unknown = work.rates(2e6, "a processor")
    assert (unknown["bandwidth_share"], unknown["flops_share"]) == (None, None)
    assert unknown["bytes_per_s"] == pytest.approx(1.675e12)
    without_type = Work(flops=1e12).rates(1e6, "NVIDIA H100 80GB HBM3")
    assert without_type["flops_share"] is None


def test_measure_takes_the_work_of_a_call():
    clock = FakeClock(device="NVIDIA H100 80GB HBM3")
    timing = measure(lambda: clock.work(1000), clock=clock, bytes=3_350_000, flops=7)
    assert timing.rates()["bandwidth_share"] == pytest.approx(1.0)
    assert timing.record().sampling["bytes"] == 3_350_000
    assert Work.of(timing.record().sampling) == Work(3_350_000, 7)


@pytest.mark.parametrize(
    "text", ["", "m", "n +", "n ** 99", "__import__('os')", "n.real", "'a'", "0 * n", "-n", "True"]
)
def test_what_is_no_expression_is_refused(text):
    with pytest.raises(ValueError, match=r"is no|is neither|is too large|not a positive"):
        evaluate(text, {"n": 4})


def test_work_is_an_expression_of_the_axes(capsys):
    code, found = answered(
        capsys,
        "kernels_here:gemm",
        *["--axis", "n=10,20", "-o", "out.jsonl"],
        *["--bytes", "3*n*n*4", "--flops", "2*n**3:fp32"],
        processes=1,
        budget="0.5",
    )
    assert code == 0
    small, large = found["functions"]
    assert small["bytes_per_s"] == pytest.approx(1200 / small["median_ns"] * 1e9)
    assert large["flops_per_s"] == pytest.approx(16_000 / large["median_ns"] * 1e9)
    assert small["flops_share"] is None  # the peak of a processor is not known
    first, _ = read_results("out.jsonl").records
    assert (first.sampling["flops"], first.sampling["dtype"]) == (2000, "fp32")
    time("kernels_here:gemm", "--axis", "n=10", "--bytes", "1e6*n", processes=1)
    assert " GB/s" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["2*n:", "2*n:fp33", "2*n:fp32:fp16", ":fp32"])
def test_operations_of_an_unknown_type_are_wrong_use(capsys, text):
    assert time("kernels_here:gemm", "--axis", "n=1", "--flops", text, processes=1) == 2
    assert "--flops" in capsys.readouterr().err


def test_an_expression_without_its_axis_is_wrong_use(capsys, said):
    code, printed = answered(capsys, "kernels_here:gemm", "--axis", "n=1", "--bytes", "k*4")
    assert code == 2
    said.within(printed)


def test_each_configuration_of_a_kernel_is_timed_without_a_search(capsys):
    code, found = answered(
        capsys,
        "kernels_here:launch",
        *["--configs", "kernels_here:kernel", "-o", "out.jsonl"],
        processes=7,
        budget="0.5",
    )
    assert code == 0
    keys = [row["key"] for row in found["functions"]]
    assert keys == [
        "kernels_here:launch@BLOCK=64,num_warps=4,num_stages=2",
        "kernels_here:launch@BLOCK=128,num_warps=8,num_stages=2",
    ]
    (difference,) = found["differences"]
    assert difference["design"] == "in turns"
    assert difference["verdict"] in {"slower", "inconclusive"}  # the latter on a busy machine
    first, second = (row["median_ns"] for row in found["functions"])
    assert second > first


def test_a_kernel_has_its_configurations_back_after_a_call():
    import kernels_here

    labels = config_labels("kernels_here:kernel")
    calls = [under_config(kernels_here.launch, "kernels_here:kernel", each) for each in labels]
    for call in calls:
        call()
    assert len(kernels_here.kernel.configs) == 2


REAL_CONFIG = """
from types import SimpleNamespace
{config}
kernel = SimpleNamespace(configs=[Config({{"BLOCK": 64}}), Config({{"BLOCK": 64}}, num_warps=8)])
def launch(): return [kernel.configs[0].num_warps, len(kernel.configs)]
"""

CONFIG_OF_TRITON = """
class Config:
    def __init__(self, kwargs, num_warps=4, num_stages=3, num_ctas=1, maxnreg=None,
                 pre_hook=None, ir_override=None):
        self.kwargs, self.num_warps, self.num_ctas = kwargs, num_warps, num_ctas
        self.num_stages, self.maxnreg, self.pre_hook = num_stages, maxnreg, pre_hook
        self.ir_override = ir_override
"""


@pytest.mark.parametrize(
    "config",
    [
        CONFIG_OF_TRITON,
        pytest.param("from triton import Config", marks=pytest.mark.needs("triton")),
    ],
)
def test_a_label_from_source_finds_the_configuration_with_the_options_it_leaves_out(
    tmp_path, monkeypatch, config
):
    (tmp_path / "real_kernels.py").write_text(REAL_CONFIG.format(config=config))
    monkeypatch.delitem(sys.modules, "real_kernels", raising=False)
    import real_kernels

    name = "real_kernels:kernel"
    labels = [*config_labels(name), "BLOCK=64", "BLOCK=64,num_warps=4", "BLOCK=64,num_warps=8"]
    assert labels[0] == "BLOCK=64,num_warps=4,num_stages=3,num_ctas=1"
    found = [under_config(real_kernels.launch, name, label)() for label in labels]
    assert found == [[4, 1], [8, 1], [4, 1], [4, 1], [8, 1]]
    with pytest.raises(ValueError, match="has 0 configurations BLOCK=32; it has: BLOCK=64"):
        under_config(real_kernels.launch, name, "BLOCK=32")


def test_what_is_no_autotuned_kernel_is_wrong_use(capsys, said):
    code, printed = answered(capsys, "kernels_here:launch", "--configs", "kernels_here:gemm")
    assert code == 2
    said.within(printed)


def test_copies_rotate_through_buffers_of_their_own(tmp_path):
    assert time("kernels_here:factory", "--factory", "--copies", "5", processes=1) == 0
    assert (tmp_path / "copies").read_text().count("made") == 5


def test_copies_need_a_factory(capsys):
    code, said = answered(capsys, "kernels_here:gemm", "--copies", "2")
    assert (code, "--copies needs --factory" in said) == (2, True)


def test_a_plan_without_work_is_no_work():
    assert WorkPlan().at({"n": 1}) == Work()
