"""Recorded models: FLOPs are those that torch counts itself."""

from __future__ import annotations

import pytest

import longpole
from longpole.flops import MATRIX_OPERATORS
from longpole.flops.attention import ATTENTION
from longpole.flops.products import CONVOLUTIONS
from longpole.tables.operator_work import operators_with_work

torch = pytest.importorskip("torch", reason="needs torch")
pytestmark = pytest.mark.needs("torch")

from torch.utils.flop_counter import (  # noqa: E402 - behind the skip
    FlopCounterMode,
    sdpa_backward_flop_count,
    sdpa_flop_count,
)

functional = torch.nn.functional


def linear():
    model = torch.nn.Sequential(
        torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.LayerNorm(64), torch.nn.Linear(64, 8)
    )
    return model, (torch.randn(4, 16, 32),)


def products():
    class Products(torch.nn.Module):
        def forward(self, x, y):
            return torch.bmm(x, y).sum() + torch.baddbmm(x @ y, x, y).mean() + (x[0] @ y[0]).sum()

    x, y = (torch.randn(3, 5, 5, requires_grad=True) for _ in range(2))
    return Products(), (x, y)


def convolution(dimensions=2, **options):
    kind = getattr(torch.nn, f"{options.pop('kind', 'Conv')}{dimensions}d")
    model = torch.nn.Sequential(kind(4, 6, 3, **options), torch.nn.ReLU())
    return model, (torch.randn(2, 4, *[12] * dimensions, requires_grad=True),)


def attention():
    class Attention(torch.nn.Module):
        def forward(self, query, key, value):
            return functional.scaled_dot_product_attention(query, key, value)

    return Attention(), tuple(torch.randn(2, 4, 16, 8, requires_grad=True) for _ in range(3))


def transformer():
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
    return layer, (torch.randn(2, 10, 32, requires_grad=True),)


def channels_last():
    model, (x,) = convolution()
    return model, (x.detach().to(memory_format=torch.channels_last).requires_grad_(),)


MODELS = {
    "linear": linear,
    "products": products,
    "conv1d": lambda: convolution(1),
    "conv2d": lambda: convolution(2, stride=2, padding=1),
    "conv2d same": lambda: convolution(2, padding="same"),
    "conv2d channels last": channels_last,
    "conv3d dilated": lambda: convolution(3, dilation=2),
    "transposed": lambda: convolution(2, kind="ConvTranspose", stride=2, output_padding=1),
    "transformer": transformer,
}


def recorded(make, tmp_path, *, backward=True):
    """Run a model under both counters; give torch's counter, its profile and the trace."""
    torch.manual_seed(0)
    model, inputs = make()
    with FlopCounterMode(display=False) as counter:
        run(model, inputs, backward=backward)
    with torch.profiler.profile(record_shapes=True, with_flops=True) as profile:
        run(model, inputs, backward=backward)
    path = tmp_path / "trace.json"
    profile.export_chrome_trace(str(path))
    return counter, profile, longpole.read_trace(path)


def run(model, inputs, *, backward):
    out = model(*inputs).sum()
    if backward:
        out.backward()


def counted(trace):
    return operators_with_work(trace)


def counts_attention(counter):
    """Whether torch counted attention, which older releases do on GPUs only."""
    return any("attention" in str(operator) for operator in counter.get_flop_counts()["Global"])


def without_attention(operators):
    """Leave out attention on CPUs, which not every torch counts."""
    return operators.filter(~operators["name"].str.contains("attention"))


@pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])
@pytest.mark.parametrize("name", MODELS)
def test_products_and_convolutions_are_those_of_the_flop_counter(name, backward, tmp_path):
    counter, _, trace = recorded(MODELS[name], tmp_path, backward=backward)
    found = counted(trace).filter(is_matrix=True)
    if not counts_attention(counter):
        found = without_attention(found)
    assert found["flops"].sum() == counter.get_total_flops() > 0


def test_a_grouped_convolution_is_that_of_the_flop_counter_forward(tmp_path):
    counter, _, trace = recorded(lambda: convolution(groups=2), tmp_path, backward=False)
    assert counted(trace).filter(is_matrix=True)["flops"].sum() == counter.get_total_flops()


def test_attention_is_two_products_forward_and_five_backward(tmp_path):
    # torch counts attention with these functions, some releases on GPUs only.
    shape = (2, 4, 16, 8)
    _, _, trace = recorded(attention, tmp_path)
    found = counted(trace).filter(is_matrix=True).sort("operator")
    assert found["flops"].to_list() == [
        sdpa_flop_count(shape, shape, shape),
        sdpa_backward_flop_count(shape, shape, shape, shape),
    ]


@pytest.mark.parametrize("name", [name for name in MODELS if name != "conv2d same"])
def test_operators_have_the_flops_that_the_profiler_gives_them(name, tmp_path):
    _, profile, trace = recorded(MODELS[name], tmp_path, backward=False)
    names = {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::conv2d", "aten::mul"}
    theirs = sum(event.flops for event in profile.events() if event.name in names and event.flops)
    ours = without_attention(counted(trace))
    matrix = ours.filter(
        ours["name"].is_in(sorted(MATRIX_OPERATORS)) | (ours["name"] == "aten::mul")
    )
    has_conv2d = any(event.name == "aten::conv2d" for event in profile.events())
    has_other = any(event.name in {"aten::conv1d", "aten::conv3d"} for event in profile.events())
    if has_other or (name == "transposed" and not has_conv2d):
        pytest.skip("the profiler of torch counts two-dimensional convolutions only")
    assert matrix["flops"].sum() == theirs


def test_what_a_backward_pass_runs_again_is_told(tmp_path):
    from torch.utils.checkpoint import checkpoint

    class Again(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(16, 16)

        def forward(self, x):
            return checkpoint(self.layer, x, use_reentrant=False)

    _, _, trace = recorded(lambda: (Again(), (torch.randn(4, 16, requires_grad=True),)), tmp_path)
    found = counted(trace).filter(is_matrix=True)
    assert found.filter(is_recomputed=True)["flops"].to_list() == [2 * 4 * 16 * 16]
    assert found.height == 4  # forward, again, and two gradients


def test_modules_close_on_a_recorded_model(tmp_path):
    model, inputs = transformer()
    with torch.profiler.profile(with_stack=True, record_shapes=True) as profile:
        run(model, inputs, backward=True)
    path = tmp_path / "trace.json"
    profile.export_chrome_trace(str(path))
    trace = longpole.read_trace(path)
    rows = longpole.modules(trace, longpole.choose_window(trace, whole=True), by="path").rows
    frames = rows.filter(row="frame")
    assert frames.filter(frames["name"].str.contains("TransformerEncoderLayer")).height > 1
    assert (
        frames["self_ns"].sum()
        == frames.filter(~frames["name"].str.contains("/"))["total_ns"].sum()
    )


def arguments_of(name):
    """Return the names of the arguments of an operator, as torch declares them."""
    operator = getattr(torch.ops.aten, name.removeprefix("aten::"))
    return [argument.name for argument in operator.default._schema.arguments]


@pytest.mark.parametrize("name", [name for name in ATTENTION if name.startswith("aten::")])
def test_the_arguments_of_attention_stand_where_torch_declares_them(name):
    places, names = ATTENTION[name], arguments_of(name)
    assert names[places.first : places.first + 3] == ["query", "key", "value"]
    assert names[places.causal] in {"is_causal", "custom_mask_type"}
    assert all(names[place].startswith(("cum_seq", "cu_seqlens")) for place in places.ragged)
    assert len([name for name in names if name.startswith("cu")]) == len(places.ragged) + (
        names[places.causal] == "custom_mask_type"
    )


@pytest.mark.parametrize(
    "name", [name for name in CONVOLUTIONS if name != "aten::convolution_backward"]
)
def test_the_arguments_of_convolutions_stand_where_torch_declares_them(name):
    places, names = CONVOLUTIONS[name], arguments_of(name)
    for field in ("stride", "padding", "dilation", "groups", "transposed", "output_padding"):
        place = getattr(places, field)
        assert isinstance(place, bool | None) or names[place] == field


def test_the_backward_of_a_convolution_is_declared_as_it_is_read():
    names = arguments_of("aten::convolution_backward")
    assert (names[:3], names[7], names[10]) == (
        ["grad_output", "input", "weight"],
        "transposed",
        "output_mask",
    )
