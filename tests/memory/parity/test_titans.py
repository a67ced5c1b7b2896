"""The neural memory against titans-pytorch, set to what the paper writes.

Its tokens share an anchor when `chunk_size` is 1 and `batch_size` the length of a cell. Its hidden
activation is the exact GELU, ours the tanh form: it is given a network with the tanh form.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from sojourn.memory import (
    AnchoredGradient,
    Heads,
    LinearNet,
    MomentumDecay,
    MomentumGates,
    SquaredError,
    Tokens,
    TwoLayerNet,
)

WIDTH, EXPANSION, CELL, STEPS = 8, 2, 4, 16
HEADS = Heads(WIDTH, 1, WIDTH, WIDTH)


class Network(nn.Module):
    """A matrix, or two with a tanh GELU between them, applied from the right."""

    def __init__(self, *sizes: tuple[int, int]) -> None:
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(0.3 * torch.randn(*size)) for size in sizes])

    def forward(self, x):
        for index, weight in enumerate(self.weights):
            x = (functional.gelu(x, approximate="tanh") if index else x) @ weight
        return x


NETS = {
    "linear": (LinearNet, ((WIDTH, WIDTH),)),
    "two layers": (
        lambda heads: TwoLayerNet(heads, EXPANSION),
        ((WIDTH, EXPANSION * WIDTH), (EXPANSION * WIDTH, WIDTH)),
    ),
}


def ours(net, memory, x, by_token: bool):
    """Our solver, fed with the views, gates and initial weights of their module."""
    solver = AnchoredGradient(
        HEADS,
        SquaredError(HEADS),
        net,
        MomentumDecay,
        chunk_size=CELL,
        largest_error=math.inf,
        largest_gain=math.inf,
    ).double()
    names = [f"weights_{layer}" for layer in solver.net.layers]
    state = solver.init_state(x.shape[0])
    for index, layer in enumerate(solver.net.layers):
        start = memory.memory_model_parameters[index].mT.expand(x.shape[0], -1, -1, -1)
        state |= {f"weights_{layer}": start, f"anchor_{layer}": start}
    views = (memory.to_queries, memory.to_keys, memory.to_values)
    query, key, value = (view(x).unsqueeze(2) for view in views)
    rate = 2 / WIDTH * memory.to_adaptive_step[0](x).sigmoid()  # their loss is a mean over channels
    gates = MomentumGates(
        functional.logsigmoid(-memory.to_decay_factor[0](x)),
        rate,
        functional.logsigmoid(memory.to_momentum[0](x)),
        torch.ones_like(rate),
    )
    tokens = Tokens(query * WIDTH**-0.5, key, value)  # the solver undoes the scale of the query
    steps = 1 if by_token else STEPS
    reads = []
    for start in range(0, STEPS, steps):
        part = (type(one)(*(y[:, start : start + steps] for y in one)) for one in (tokens, gates))
        out, state = solver(*part, state, None, None)
        reads.append(out)
    return torch.cat(reads, dim=1).squeeze(2), [state[name].squeeze(1).mT for name in names]


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("by_token", [False, True], ids=["cells", "tokens"])
def test_titans(parity, net, by_token):
    package = parity.imported("titans_pytorch")
    torch.manual_seed(1)
    factory, sizes = NETS[net]
    theirs = package.NeuralMemory(
        WIDTH,
        chunk_size=1,
        batch_size=CELL,
        model=Network(*sizes),
        pre_rmsnorm=False,
        mem_model_norm_add_residual=False,
        per_head_learned_parameters=True,
    ).double()
    x = torch.randn(2, STEPS, WIDTH, dtype=torch.float64, requires_grad=True)
    expected, state = theirs(x)
    outcomes = [(expected, list(state.states[0].values())), ours(factory, theirs, x, by_token)]
    linears = (theirs.to_keys, theirs.to_adaptive_step[0], theirs.to_momentum[0])
    sources = [x, *theirs.memory_model_parameters, *(linear.weight for linear in linears)]
    gradients = []
    for reads, weights in outcomes:
        loss = reads.tanh().square().sum() + sum(one.sin().sum() for one in weights)
        gradients.append(torch.autograd.grad(loss, sources))
    torch.testing.assert_close(outcomes[1], outcomes[0], rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-8, atol=1e-8)
