"""The table of Triton kernels against flash-linear-attention: its references and the kernels.

The kernels themselves run on the CPU, by Triton's interpreter and with the first of their tunings.
"""

from __future__ import annotations

import inspect
import os
from functools import partial

import numpy
import pytest
import torch
from torch import Tensor

from sojourn.memory import (
    ChannelDelta,
    ChannelHebbian,
    DotProduct,
    Edits,
    ExactChannel,
    ExactScalar,
    FeedbackDelta,
    Gates,
    SquaredError,
    Tokens,
)
from sojourn.memory.backend_kernels import Kernel

NAIVE = {
    "chunk_simple_gla": "naive_recurrent_simple_gla",
    "chunk_gated_delta_rule": "naive_recurrent_gated_delta_rule",
    "chunk_comba": "naive_chunk_comba",  # its token form predicts after the decay
    "chunk_gdn2": "naive_recurrent_gdn2",
}


def scalar(objective, parity, x):
    solver = ExactScalar(parity.sizes, objective(parity.sizes), 16)
    return solver, (Tokens(x.scaled_query, x.key, x.value), Gates(x.log_retention, x.rate))


def channel(rule, parity, x):
    rate, retention, erase, erase_rate = x.channel_rate, x.channel_retention, None, None
    if rule is ChannelDelta:
        erase, erase_rate = rate * x.key, rate
    elif rule is FeedbackDelta:
        retention, erase = x.log_retention.unsqueeze(-1), 0.7 * x.rate.unsqueeze(-1) * x.key
    solver = ExactChannel(rule(parity.sizes), 16)
    edits = Edits(x.scaled_query, erase, x.key, x.value_rate * x.value, retention, erase_rate)
    return solver, (edits,)


RULES = {
    "hebbian": partial(scalar, DotProduct),
    "delta": partial(scalar, SquaredError),
    "delta_before_decay": partial(scalar, partial(SquaredError, taken_at="previous")),
    "channel_hebbian": partial(channel, ChannelHebbian),
    "channel_delta": partial(channel, ChannelDelta),
    "feedback_delta": partial(channel, FeedbackDelta),
}


@pytest.fixture(params=RULES)
def rule(request) -> str:
    return request.param


def sides(parity, x, rule, kernel=None):
    """What our solver, in float64, and its kernel make of the same views."""
    solver, views = RULES[rule](parity, x)
    doubles = [
        type(view)(*(None if one is None else one.double() for one in view)) for view in views
    ]
    ours = parity.run(solver.double(), doubles, {"weights": x.state.mT.double()}, by_token=False)
    kernel = kernel or solver.backend.kernel
    return (ours[0], ours[1]["weights"]), kernel(x.state.mT, *views)


def for_the_interpreter(inputs):
    """One row of more than one chunk of 64 tokens in float32, with gates of every size."""
    x = {name: one[:1].detach().float() for name, one in inputs._asdict().items()}
    for name in x.keys() - {"state"}:
        x[name] = torch.cat([x[name], x[name][:, :6].flip(1)], dim=1)
    for name in ("log_retention", "channel_retention"):
        draw = torch.rand_like(x[name])
        x[name] = torch.where(draw < 0.1, -20.0, torch.where(draw < 0.2, -1e-8, x[name]))
    return type(inputs)(**{name: one.requires_grad_() for name, one in x.items()})


def test_the_references_by_the_arguments_of_the_kernels(parity, inputs, rule):
    kernel = RULES[rule](parity, inputs)[0].backend.kernel
    parity.imported(kernel.module)
    if kernel.name == "chunk_gla":
        module = parity.imported("fla.ops.gla.naive")

        def naive(q, k, v, g, scale, **states) -> tuple[Tensor, Tensor]:
            return module.naive_recurrent_gla(q * scale * q.shape[-1] ** 0.5, k, v, g, **states)
    else:
        naive = getattr(parity.imported(f"{kernel.module}.naive"), NAIVE[kernel.name])

    class Reference(Kernel):
        def load(self):
            return naive

    reference = Reference(kernel.module, kernel.name, kernel.arguments)
    parity.assert_same(*sides(parity, inputs, rule, reference), inputs)


def test_the_arguments_are_those_of_the_kernels(parity, inputs, rule):
    solver, views = RULES[rule](parity, inputs)
    kernel = solver.backend.kernel
    parity.imported(kernel.module)
    known = inspect.signature(kernel.load()).parameters
    given = {*kernel.arguments(*views), "scale", "initial_state", "output_final_state"}
    assert given <= known.keys()
    needed = {name for name, one in known.items() if one.default is one.empty}
    assert needed - {"kwargs"} <= given


@pytest.fixture
def interpreter(parity, monkeypatch) -> None:
    """Kernels run by Triton's interpreter, without a search for the fastest tuning."""
    if os.environ.get("TRITON_INTERPRET") != "1":  # read when Triton is imported
        pytest.skip("TRITON_INTERPRET=1 is not set, see `make parity`")
    parity.imported("fla")
    autotuner = parity.imported("triton.runtime.autotuner").Autotuner
    interpreter = parity.imported("triton.runtime.interpreter")
    language = parity.imported("triton.language")
    run_grid = interpreter.GridExecutor.__call__

    def run_first(tuner, *args, **kwargs):
        config = tuner.configs[0].all_kwargs()
        return tuner.fn.run(*args, **kwargs | {k: v for k, v in config.items() if k not in kwargs})

    def counters(*limits):
        """As in a compiled kernel, counters are tensors of the language."""
        numbers = (
            int(limit.handle.data.item()) if hasattr(limit, "handle") else int(limit)
            for limit in limits
        )
        for number in range(*numbers):
            handle = interpreter.TensorHandle(numpy.array([number], numpy.int32), language.int32)
            yield language.tensor(handle, language.int32)

    def run_counted(executor, *args, **kwargs):
        names = executor.fn.__globals__
        names["range"] = counters
        try:
            return run_grid(executor, *args, **kwargs)
        finally:
            del names["range"]

    monkeypatch.setattr(autotuner, "run", run_first)
    monkeypatch.setattr(interpreter.GridExecutor, "__call__", run_counted)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of what a kernel masks
def test_the_kernels_themselves(parity, inputs, rule, interpreter):
    x = for_the_interpreter(inputs)
    parity.assert_same(*sides(parity, x, rule), x)
