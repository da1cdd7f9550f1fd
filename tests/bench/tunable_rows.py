"""Rows of TunableOp files, made by the grammar of torch 2.3 to 2.15."""

from pathlib import Path

import pytest
from hypothesis import strategies as st

from longpole.bench.tunableop import Gemm

REAL = Path(__file__).parents[3] / "shared" / "data" / "tunableop"

HEADER = b"Validator,PT_VERSION,2.9.1\nValidator,GCN_ARCH_NAME,gfx1100\nValidator,HIP_VERSION,702\n"

OTHER_HEADER = HEADER.replace(b"2.9.1", b"2.11.0")

PLAIN_DTYPES = (
    "float",
    "tf32",
    "bfx9",
    "double",
    "BFloat16",
    "Half",
    "c10::complex<float>",
    "c10::complex<double>",
)
SCALED_DTYPES = (
    "Float8_e4m3fn",
    "Float8_e5m2",
    "Float8_e4m3fnuz",
    "Float8_e5m2fnuz",
    "Float8_e8m0fnu",
    "Float4_e2m1fn_x2",
    "BFloat16",
    "Half",
    "float",
    "unknown",
)
SCALAR_TYPES = ("None", "BFloat16", "Half", "Float", "Float8_e4m3fn")

dtypes = st.sampled_from(SCALED_DTYPES)
scalars = st.sampled_from(SCALAR_TYPES)
flags = st.integers(0, 1)
sizes = st.one_of(st.integers(1, 10**18 - 1), st.integers(1, 64), st.just("*"))
letters = st.sampled_from("nt")
indices = st.integers(-(2**31), 2**31)


@st.composite
def tails(draw):
    """The end of a scaled GEMM on ROCm or CUDA, or nothing."""
    form = draw(st.sampled_from(("none", "rocm", "cuda")))
    bias = draw(scalars)
    if form == "rocm":
        swizzle = draw(st.sampled_from(("", "_swz_0_1")))
        return f"_rw_{draw(flags)}_bias_{bias}{swizzle}"
    if form == "cuda":
        a, b, c, a_scale, b_scale = (draw(scalars.filter(lambda t: t != "None")) for _ in range(5))
        types = f"_a_{a}_b_{b}_c_{c}_as_{a_scale}_bs_{b_scale}"
        return f"{types}_ast_{draw(flags)}_bst_1_dscale_0_fast_{draw(flags)}_bias_{bias}"
    return draw(st.sampled_from(("", "_compute_bf16x9_r")))


@st.composite
def gemms(draw):
    """Any GEMM that torch could name."""
    operation = draw(st.sampled_from(("Gemm", "GemmAndBias", "GemmStridedBatched", "ScaledGemm")))
    scaled = operation == "ScaledGemm"
    return Gemm(
        operation=operation,
        dtypes=tuple(draw(dtypes) for _ in range(3))
        if scaled
        else (draw(st.sampled_from(PLAIN_DTYPES)),),
        transa=draw(letters),
        transb=draw(letters),
        m=draw(sizes),
        n=draw(sizes),
        k=draw(sizes),
        batch=draw(sizes) if operation == "GemmStridedBatched" else None,
        leading=draw(st.none() | st.tuples(sizes, sizes, sizes)),
        tail=draw(tails()) if scaled else "",
    )


cublaslt = st.tuples(*[st.integers(0, 99)] * 9).map(
    lambda n: (
        "Gemm_Cublaslt_id_{}_tile_{}_stages_{}_splitk_{}_red_{}_swizzle_{}_custom_{}"
        "_inner_{}_cluster_{}".format(*n)
    )
)
solutions = st.one_of(
    st.just("Default"),
    indices.map("Gemm_Rocblas_{}".format),
    indices.map("Gemm_Hipblaslt_{}".format),
    st.integers(0, 9999).map("Gemm_Hipblaslt_TN_{}".format),
    cublaslt,
)
times = st.one_of(
    st.floats(1e-6, 1e7).map("{:g}".format), st.sampled_from(("inf", "nan", "0", "-1", ""))
)


@st.composite
def result_lines(draw, gemm=None):
    """A row of a results file, without its line end."""
    key = ",".join(draw(gemms() if gemm is None else gemm).key)
    time = draw(times)
    row = f"{key},{draw(solutions)}{',' if time else ''}{time}"
    log = ",BLAS_PARAMS: - { function: matmul, M: 1, N: 2 }" if draw(st.booleans()) else ""
    return (row + log).encode()


def row(m, solution="Gemm_Rocblas_1", time="0.5"):
    """A result of a product of floats, or one without a time."""
    end = f",{time}" if time else ""
    return f"GemmTunableOp_float_TN,tn_{m}_8_8_ld_8_8_{m},{solution}{end}\n".encode()


def real_files():
    """List the public files outside the repository, or one entry that skips."""
    found = sorted(REAL.glob("*.csv"))
    skip = pytest.mark.skip(f"needs the public TunableOp files in {REAL}")
    return found or [pytest.param(REAL, marks=skip)]
