"""Writes a script that times code before and after a remedy, with the recorded inputs."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from longpole.formats.convert.operator_script import FUNCTIONS, recorded_inputs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.remedies.model import Form
    from longpole.trace.trace import Trace

_SCRIPT: Final = '''"""Time the operators of {remedy} in both forms, with recorded shapes.

Prints a line of JSON for each form: the recorded one, the changed one, and the factor between them.
"""

import argparse
import json
from collections import namedtuple
from contextlib import contextmanager

Tensor = namedtuple("Tensor", "shape strides dtype")
NOT_RECORDED = "not recorded"

# The kind of change, what else it needs, and the operators with their inputs.
FORMS = [
{forms}]


{functions}

@contextmanager
def rounding(is_allowed):
    """Allow products of float32 to use TF32, or not."""
    import torch

    parts = torch.backends.cuda.matmul, torch.backends.cudnn
    before = [part.allow_tf32 for part in parts]
    for part in parts:
        part.allow_tf32 = is_allowed
    try:
        yield
    finally:
        for part, allowed in zip(parts, before):
            part.allow_tf32 = allowed


def tf32(operators, device, _):
    """Return an operator in float32, and with TF32."""
    name, inputs = operators[0]
    values = [made(each, device) for each in inputs]

    def form(is_allowed):
        own = values
        if name == "aten::cudnn_convolution" and isinstance(values[-1], bool):
            own = [*values[:-1], is_allowed]  # its last argument, allow_tf32
        with rounding(is_allowed):
            run = operator(name, "", own)

        def call():
            with rounding(is_allowed):
                return run()

        return call

    return form(False), form(True)


def channels_last(operators, device, _):
    """Return an operator with images in NCHW, and in channels_last."""
    import torch

    name, inputs = operators[0]
    values = [made(each, device) for each in inputs]
    last = [
        each.contiguous(memory_format=torch.channels_last)
        if isinstance(each, torch.Tensor) and each.dim() == 4
        else each
        for each in values
    ]
    return operator(name, "", values), operator(name, "", last)


def fused_attention(operators, device, _):
    """Return attention with its scores written out, and fused."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    query, key, value = attention_inputs(operators, device)
    # As a program would pass them: a fused kernel needs the elements of a head side by side.
    heads = [each.contiguous()[None] for each in (query, key.transpose(1, 2), value)]

    def written():
        return attention(query, key, value)

    return written, lambda: scaled_dot_product_attention(*heads)


def fused_attention_training(operators, device, _):
    """Return attention and its gradients, with its scores written out, and fused."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    query, key, value = attention_inputs(operators, device)
    inputs = [each.detach().requires_grad_() for each in (query, key.transpose(1, 2), value)]
    heads = [each.detach().contiguous()[None].requires_grad_() for each in inputs]
    gradient = torch.randn_like(attention(query, key, value))

    def written():
        with torch.enable_grad():
            result = attention(inputs[0], inputs[1].transpose(1, 2), inputs[2])
            return torch.autograd.grad(result, inputs, gradient)

    def fused():
        with torch.enable_grad():
            result = scaled_dot_product_attention(*heads)
            return torch.autograd.grad(result, heads, gradient[None])

    return written, fused


def attention_inputs(operators, device):
    """Make the factors of the two products: query, transposed key, and value."""
    (_, first), (_, second) = operators
    query, key = [made(each, device) for each in first if isinstance(each, Tensor)][-2:]
    value = [made(each, device) for each in second if isinstance(each, Tensor)][-1]
    return query, key, value


def attention(query, key, value):
    """Compute attention with its scores written out."""
    import torch

    scores = torch.bmm(query, key) * query.shape[-1] ** -0.5
    return torch.bmm(torch.softmax(scores, -1), value)


def compiled(operators, device, _):
    """Return operators in a row, each with the result of the one before, and compiled."""
    import torch

    parts = [resolved(name, "", [made(each, device) for each in inputs])
             for name, inputs in operators]

    def row():
        result = None
        for call, positional, named in parts:
            own = list(positional)
            for place, value in list(enumerate(own))[:: -1 if call is COPY else 1]:
                if is_alike(value, result):
                    own[place] = result
                    break
            result = call(*own, **named)
            result = result[0] if isinstance(result, tuple) else result
        return result

    def is_alike(value, result):
        both = isinstance(value, torch.Tensor) and isinstance(result, torch.Tensor)
        return both and value.shape == result.shape and value.dtype == result.dtype

    COPY = torch.ops.aten.copy_.default
    return row, torch.compile(row)


def fused_optimizer(operators, device, name):
    """Return the step of an optimizer over its parameters one by one, and of a fused one."""
    import torch

    shapes = [next(each for each in inputs if isinstance(each, Tensor)) for _, inputs in operators]
    kind = getattr(torch.optim, name)

    def optimizer(**how):
        parameters = [torch.nn.Parameter(tensor(shape, device)) for shape in shapes]
        for parameter in parameters:
            parameter.grad = torch.ones_like(parameter)
        return kind(parameters, lr=1e-3, **how)

    try:
        changed = optimizer(fused=True)
    except (RuntimeError, TypeError):
        changed = optimizer(foreach=True)
    return optimizer(foreach=False).step, changed.step


HOW = {{
    "tf32": tf32,
    "channels_last": channels_last,
    "fused_attention": fused_attention,
    "fused_attention_training": fused_attention_training,
    "compiled": compiled,
    "fused_optimizer": fused_optimizer,
}}


def main():
    """Time both forms of each in turns, with the clock of longpole."""
    try:
        import torch

        from longpole.bench import CpuClock, Effort, TorchClock, measure_in_turns
    except ImportError as error:
        raise SystemExit(f"the script needs torch and longpole: {{error}}\\n"
                         "hint: pip install 'longpole[torch]'") from error

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--budget-s", type=float, default=2.0, help="time for each form")
    options = parser.parse_args()
    torch.manual_seed(0)
    is_cpu = options.device == "cpu"
    device_name = "cpu" if is_cpu else torch.cuda.get_device_name(options.device)
    for how, detail, operators in FORMS:
        with torch.no_grad():
            slow, changed = HOW[how](operators, options.device, detail)
            timings = measure_in_turns(
                {{"slow": slow, "changed": changed}},
                clock=CpuClock() if is_cpu else TorchClock("hot"),
                effort=Effort(budget_s=options.budget_s),
            )
        pairs = list(zip(timings["slow"].samples_ns, timings["changed"].samples_ns))
        factors = sorted(after / before for before, after in pairs)
        tenth = len(factors) // 10
        print(json.dumps({{
            "operators": sorted({{name for name, _ in operators}}),
            "device": device_name,
            "slow_ns": timings["slow"].summarise().median_ns,
            "changed_ns": timings["changed"].summarise().median_ns,
            "factor": [factors[tenth], factors[len(factors) // 2], factors[-1 - tenth]],
        }}), flush=True)


if __name__ == "__main__":
    main()
'''


def remedy_script(trace: Trace, remedy: str, forms: Sequence[Form]) -> str:
    """Write a script that times code before and after a remedy, with the recorded inputs.

    Parameters
    ----------
    trace
        Read with the arguments of operators.
    remedy
        Its id, for the reader of the script.
    forms
        What to time; see `longpole.remedies.model.Form`.

    Raises
    ------
    ValueError
        There is nothing to time, or inputs were not recorded with shapes and types.
    """
    if not forms:
        message = f"no operators of {remedy} can be timed: record shapes, or choose another remedy"
        raise ValueError(message)
    sources = [trace, *(trace.capture_traces if any(form.source for form in forms) else ())]
    chosen: dict[int, list[int]] = defaultdict(list)
    for form in forms:
        chosen[form.source] += form.operators
    recorded = {it: recorded_inputs(sources[it], events) for it, events in chosen.items()}
    lines = []
    for form in forms:
        inputs, names = recorded[form.source], sources[form.source].events["name"]
        operators = ", ".join(
            _operator(str(names[event]), event, inputs) for event in form.operators
        )
        lines.append(f"    ({form.how!r}, {form.detail!r}, [{operators}]),\n")
    return _SCRIPT.format(remedy=remedy, forms="".join(lines), functions=FUNCTIONS)


def _operator(name: str, event: int, inputs: dict[int, list[str]]) -> str:
    if event not in inputs:
        message = f"the inputs of {name} (event {event}) were not recorded with shapes and types"
        raise ValueError(message)
    return f"({name!r}, [{', '.join(inputs[event])}])"
