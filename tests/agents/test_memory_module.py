"""`MemoryModule` keeps the contract of TorchRL's recurrent modules, for every memory."""

import pytest
import torch
from tensordict import TensorDict
from torch import Tensor
from torchrl.modules import set_recurrent_mode

from sojourn.agents import MemoryModule
from sojourn.memory import AttentionMemory, FastWeightMemory, GrowingCache, MemoryCore

from .conftest import CORES, small_core
from .conftest import SMALL_WIDTH as WIDTH

FIXED = [name for name in CORES if not small_core(name).grows]


@pytest.fixture(params=FIXED)
def core(request: pytest.FixtureRequest) -> MemoryCore:
    """Every registered memory of a fixed size."""
    return small_core(request.param)


def module_of(core: MemoryCore) -> MemoryModule:
    return MemoryModule(core, commit_key="commit")


def tokens(batch: int, steps: int) -> TensorDict:
    parts = {
        "embed": torch.randn(batch, steps, WIDTH, dtype=torch.float64),
        "is_init": torch.rand(batch, steps, 1) < 0.25,
        "commit": torch.rand(batch, steps, 1) < 0.5,
    }
    return TensorDict(parts, batch_size=[batch, steps])


def act(
    module: MemoryModule, data: TensorDict, carried: TensorDict | None, zeroed: bool = True
) -> TensorDict:
    """Step through `data` `[B, T]` as an environment with a primer does: zeros at every start."""
    lived = []
    for t in range(data.shape[1]):
        step = data[:, t].clone()
        if carried is not None:
            start = step["is_init"] & zeroed
            kept = carried.apply(lambda leaf: torch.where(like(start, leaf), 0, leaf))  # noqa: B023
            step["memory"] = kept
        else:
            step["memory"] = blank(module, len(step))
        module(step)
        carried = step["next", "memory"]
        lived.append(step)
    return torch.stack(lived, dim=1)


def blank(module: MemoryModule, batch: int) -> TensorDict:
    spec = module.make_tensordict_primer().primers
    zeros: TensorDict = spec.expand(batch, *spec.shape).zero()["memory"]
    return zeros


def like(flags: Tensor, leaf: Tensor) -> Tensor:
    return flags.reshape(-1, *(1,) * (leaf.ndim - 1))


def in_sequence(module: MemoryModule, data: TensorDict) -> TensorDict:
    with set_recurrent_mode(True):
        out: TensorDict = module(data)
    return out


@pytest.mark.parametrize(("steps", "zeroed"), [(1, True), (2, True), (11, True), (11, False)])
def test_recurrent_mode_equals_single_steps(core: MemoryCore, steps: int, zeroed: bool) -> None:
    """Also where a start finds what an earlier trajectory has left (`zeroed` False)."""
    module = module_of(core)
    before = tokens(3, 3)
    before["is_init"][:, 0] = True
    carried = act(module, before, None)[:, -1]["next", "memory"]
    lived = act(module, tokens(3, steps), carried, zeroed)
    out = in_sequence(module, lived.clone())
    torch.testing.assert_close(out["features"], lived["features"], rtol=1e-10, atol=1e-10)
    last, expected = out[:, -1]["next", "memory"], lived[:, -1]["next", "memory"]
    for key, leaf in expected.items(True, True):
        torch.testing.assert_close(last[key], leaf, rtol=1e-10, atol=1e-10)


def test_a_start_is_the_reset_of_the_core(core: MemoryCore) -> None:
    module, data = module_of(core), tokens(2, 9)
    data["is_init"][:, 0] = True
    commit = data["commit"].squeeze(-1)
    init = data["is_init"].squeeze(-1)
    if core.anchored:  # a start at step 0 only: later ones also set the clock back
        data["is_init"][:, 1:] = False
    y, _ = core(data["embed"], core.init_state(2), data["is_init"].squeeze(-1), commit=commit)
    out = in_sequence(module, data.clone())
    torch.testing.assert_close(out["features"], y, rtol=1e-10, atol=1e-10)
    state = core.init_state(2)
    _, state = core(data["embed"], state)
    after, _ = core.step(data["embed"][:, 0], state, init[:, 0], commit=commit[:, 0])
    step = data[:, 0].clone()
    module.state.write(step, state, torch.tensor([9, 9]))
    step["memory"] = step["next", "memory"]
    torch.testing.assert_close(module(step)["features"], after, rtol=1e-10, atol=1e-10)


def test_gradients_are_those_of_single_steps(core: MemoryCore) -> None:
    module, data = module_of(core), tokens(2, 5)
    data["is_init"][:, 0] = True
    data["embed"].requires_grad_()
    inputs = [data["embed"], *core.parameters()]

    def gradients(features: Tensor) -> list[Tensor]:
        return list(torch.autograd.grad(features.square().sum(), inputs, allow_unused=True))

    by_step = gradients(act(module, data, None)["features"])
    at_once = gradients(in_sequence(module, data.clone(False))["features"])
    assert any(bool(g.abs().sum() > 0) for g in at_once if g is not None)
    for expected, actual in zip(by_step, at_once, strict=True):
        assert (expected is None) == (actual is None)
        if expected is not None:
            torch.testing.assert_close(actual, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_any_batch_shape_of_single_steps(shape: tuple[int, ...]) -> None:
    module = MemoryModule(small_core("titans"))
    x, init = torch.randn(*shape, WIDTH, dtype=torch.float64), torch.ones(*shape, 1).bool()
    out = module(TensorDict({"embed": x, "is_init": init}, batch_size=shape))
    assert out["features"].shape == x.shape
    flat = {"embed": x.reshape(-1, WIDTH), "is_init": init.reshape(-1)}
    one_axis = module(TensorDict(flat, batch_size=[len(flat["is_init"])]))
    torch.testing.assert_close(out["features"].reshape(-1, WIDTH), one_axis["features"])


def test_no_steps_and_more_batch_axes() -> None:
    module = module_of(small_core("gated_delta_net"))
    assert in_sequence(module, tokens(2, 0))["features"].shape == (2, 0, WIDTH)
    data = tokens(4, 5)
    data["is_init"][:, 0] = True
    flat = in_sequence(module, data.clone())["features"]
    square = in_sequence(module, data.clone().reshape(2, 2, 5))["features"]
    torch.testing.assert_close(square.reshape(4, 5, WIDTH), flat)


def test_a_state_that_is_not_finite_is_cleared_by_a_start() -> None:
    module, data = MemoryModule(small_core("gated_delta_net")), tokens(2, 4)
    lived = act(module, data, None)
    lived["memory"].apply_(lambda leaf: leaf.fill_(torch.nan) if leaf.is_floating_point() else leaf)
    lived["memory", "age"].zero_()
    lived["is_init"][:, 0] = True
    assert in_sequence(module, lived)["features"].isfinite().all()


def test_missing_primer() -> None:
    module = MemoryModule(FastWeightMemory(WIDTH))
    step = TensorDict({"embed": torch.zeros(2, WIDTH), "is_init": torch.ones(2, 1).bool()}, [2])
    module(step)  # a start needs no state
    step["is_init"] = torch.zeros(2, 1).bool()
    with pytest.raises(KeyError, match="append get_env_transforms_from_module"):
        module(step.exclude("memory"))


def test_refusals() -> None:
    module = MemoryModule(FastWeightMemory(WIDTH))
    start = torch.ones(2, 1).bool()
    with pytest.raises(KeyError, match="InitTracker"):
        module(TensorDict({"embed": torch.zeros(2, WIDTH)}, [2]))
    with pytest.raises(KeyError, match=r"'embed' is missing.*is_init"):
        module(TensorDict({"is_init": start}, [2]))
    with pytest.raises(ValueError, match=r"put a Linear\(\.\.\., 6\) before"):
        module(TensorDict({"embed": torch.zeros(2, 9), "is_init": start}, [2]))
    other = TensorDict({"embed": torch.zeros(2, WIDTH), "is_init": start}, [2])
    MemoryModule(FastWeightMemory(WIDTH, key_width=3))(other)
    other["memory"] = other["next", "memory"]
    with pytest.raises(ValueError, match="state of another memory"):
        module(other)
    module(other.exclude("memory"))
    other["memory"] = other["next", "memory"].exclude(("state", "weights"))
    with pytest.raises(KeyError, match=r"weights.* is missing beside"):
        module(other)
    with pytest.raises(ValueError, match="got one step"):
        in_sequence(module, TensorDict({"embed": torch.zeros(WIDTH), "is_init": start[0]}, []))
    with pytest.raises(ValueError, match="SlidingWindow"):
        MemoryModule(AttentionMemory(WIDTH, cache=GrowingCache))
    with pytest.raises(ValueError, match="commit_key"):
        MemoryModule(small_core("memt"))


def test_the_primer_follows_the_module() -> None:
    module = MemoryModule(FastWeightMemory(WIDTH)).double()
    assert (
        module.make_tensordict_primer().primers["memory", "state", "weights"].dtype == torch.float64
    )
