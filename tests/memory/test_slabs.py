"""A call that is cut into slabs gives what it gives in one piece."""

from __future__ import annotations

import pytest
import torch

from sojourn.memory.slabs import SHORTEST_SLAB, in_one_piece, num_slabs

STEPS = 2 * SHORTEST_SLAB + 1


@pytest.mark.parametrize("flags", ["nothing", "everything"])
@pytest.mark.parametrize("name", ["gated_delta_net", "falcon3", "memt", "mesa_net"])
def test_slabs_change_no_number(tools, name, flags):
    torch.manual_seed(0)
    core = tools.small(name).double()
    x = torch.randn(2, STEPS, core.width, dtype=torch.float64)
    reset = mask = commit = None
    if flags == "everything":
        reset, mask, commit = (torch.rand(3, 2, STEPS) < 0.1).unbind()
        mask = ~mask
    core.slab_numbers = 1
    assert num_slabs(x, core.slab_numbers) == 3

    def run() -> tuple[torch.Tensor, ...]:
        core.zero_grad()
        y, state = core(x, core.init_state(2), reset, mask, commit)
        y.square().sum().backward()
        gradients = [one.grad for one in core.parameters() if one.grad is not None]
        return (y, *state.values(), *gradients)

    cut = run()
    with in_one_piece(core):
        whole = run()
    assert core.slab_numbers == 1
    torch.testing.assert_close(cut, whole, rtol=1e-9, atol=1e-10)


def test_a_slab_is_never_a_single_token_of_several():
    for steps in range(2, 5 * SHORTEST_SLAB):
        x = torch.zeros(1, steps, 1)
        pieces = x.tensor_split(num_slabs(x, 1), dim=1)
        assert min(piece.shape[1] for piece in pieces) > 1


def test_compiled_slabs_are_half_as_long(monkeypatch):
    x = torch.zeros(16, 8 * SHORTEST_SLAB, 4)
    numbers = 16 * 4 * 2 * SHORTEST_SLAB
    assert num_slabs(x, numbers) == 4
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert num_slabs(x, numbers) == 8
    assert num_slabs(x, 1) == 8
