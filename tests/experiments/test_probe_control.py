"""The control of recall probes: a convolution is all that reaches over time."""

import pytest
import torch
from tensordict import TensorDict
from torch import Tensor

from sojourn.experiments.build import build_memory, seed_everything
from sojourn.experiments.config import compose_config, parse
from sojourn.experiments.probes.control import ResetEveryStep
from sojourn.memory import MemoryCore

WIDTH = 6
SMALL = ["memory.num_heads=1", "memory.key_width=4", "memory.value_width=4"]
MEMORIES = ["delta_net", "falcon1", "kda", "softmax_attention", "sliding_window", "ttt_mlp"]


def make(name: str, *words: str) -> MemoryCore:
    seed_everything(3)
    return build_memory(compose_config(parse([f"memory={name}", *words])), WIDTH).double()


def token_by_token(core: MemoryCore, x: Tensor) -> Tensor:
    """Before every token, all leaves but the convolution's window go back to the start."""
    state, outputs = core.init_state(x.shape[0]), []
    for token in x.unbind(1):
        fresh = dict(core.init_state(x.shape[0]).items())
        if "conv_window" in fresh:
            fresh["conv_window"] = state["conv_window"]
        y, state = core.step(token, TensorDict(fresh, batch_size=[x.shape[0]]))
        outputs.append(y)
    return torch.stack(outputs, dim=1)


@pytest.mark.parametrize("steps", [1, 2, 9])
@pytest.mark.parametrize("name", MEMORIES)
def test_the_control_is_the_loop_that_resets(name: str, steps: int) -> None:
    core = make(name, *SMALL)
    control = ResetEveryStep(core)
    x = torch.randn(3, steps, WIDTH, dtype=torch.float64)
    y, _ = control(x, control.init_state(3))
    torch.testing.assert_close(y, token_by_token(core, x))


@pytest.mark.parametrize("name", ["gru", "none", "hybrid"])
def test_memories_with_other_states_reach_no_further_than_their_convolution(name: str) -> None:
    control = ResetEveryStep(make(name))
    x = torch.randn(2, 9, WIDTH, dtype=torch.float64)
    changed = x.clone()
    changed[:, 0] += 1
    first, second = (control(tokens, control.init_state(2))[0] for tokens in (x, changed))
    reach = 4 if name == "hybrid" else 1
    assert not torch.equal(first[:, :reach], second[:, :reach])
    torch.testing.assert_close(first[:, reach:], second[:, reach:], rtol=0, atol=0)
