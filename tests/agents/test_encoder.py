"""Encoders: every channel counts, nothing indexes outside its table, tokens stay bounded."""

import numpy as np
import pytest
import torch

from sojourn.agents import Encoder
from sojourn.envs import Channel, Interface

INTERFACE = Interface(
    {
        "grid": Channel("grid", (7, 7, 3)),
        "direction": Channel("discrete", (), 4),
        "mission": Channel("tokens", (5,), 30),
        "vector": Channel("vector", (3,)),
    },
    num_actions=4,
)


def observation(shape: tuple[int, ...]) -> dict[str, torch.Tensor]:
    generator = np.random.default_rng(0)
    arrays = {
        "grid": generator.integers(0, 3, (*shape, 7, 7, 3), dtype=np.uint8),
        "direction": generator.integers(0, 4, shape),
        "mission": generator.integers(0, 30, (*shape, 5)),
        "vector": generator.normal(size=(*shape, 3)).astype(np.float32),
        "previous_action": generator.integers(0, 5, shape),
        "previous_reward": generator.normal(size=shape).astype(np.float32),
        "episode_start": generator.random(shape) < 0.5,
        "task_start": generator.random(shape) < 0.5,
    }
    return {name: torch.from_numpy(np.asarray(array)) for name, array in arrays.items()}


@pytest.mark.parametrize("shape", [(2,), (2, 3), (1, 1), (2, 0)])
def test_tokens_have_the_shape_of_the_observation(shape: tuple[int, ...]) -> None:
    encoder = Encoder(INTERFACE, 8)
    assert encoder(observation(shape)).shape == (*shape, 8)


@pytest.mark.parametrize("name", list(observation((1,))))
def test_every_input_matters(name: str) -> None:
    encoder = Encoder(INTERFACE, 8)
    seen = observation((1,))
    changed = dict(seen)
    changed[name] = ~seen[name] if seen[name].dtype == torch.bool else seen[name].roll(1, -1) + 1
    if name == "direction":
        changed[name] = (seen[name] + 1) % 4
    if name == "mission":
        changed[name] = (seen[name] + 1) % 30
    if name == "previous_action":
        changed[name] = (seen[name] + 1) % 4
    assert not torch.equal(encoder(seen), encoder(changed))


def test_unknown_cell_codes_share_the_last_row() -> None:
    encoder = Encoder(INTERFACE, 8)
    seen = observation((1,))
    for code in (100, 255):
        seen["grid"] = torch.full((1, 7, 7, 3), code, dtype=torch.uint8)
        assert torch.isfinite(encoder(seen)).all()


def test_no_previous_action_differs_from_every_action_and_is_silent() -> None:
    encoder = Encoder(INTERFACE, 8)
    seen = observation((5,)) | {"previous_action": torch.arange(5)}
    seen = {
        name: t if name == "previous_action" else t[:1].expand(5, *t.shape[1:])
        for name, t in seen.items()
    }
    tokens = encoder(seen)
    assert len({tuple(row.tolist()) for row in tokens}) == 5


def test_rewards_of_any_scale_keep_tokens_finite_and_apart() -> None:
    encoder = Encoder(INTERFACE, 8)
    seen = {name: t.expand(4, *t.shape[1:]) for name, t in observation((1,)).items()}
    seen["previous_reward"] = torch.tensor([0.0, 1.0, -500.0, 1e6])
    tokens = encoder(seen)
    assert torch.isfinite(tokens).all()
    assert len({tuple(row.tolist()) for row in tokens}) == 4


def test_a_channel_may_have_any_name() -> None:
    names = ["values", "keys", "forward", "a.b", "a_b", ""]
    encoder = Encoder(Interface({name: Channel("vector", (2,)) for name in names}, 4), 8)
    inputs = {n: t for n, t in observation((3,)).items() if n not in INTERFACE.channels}
    assert encoder(inputs | {name: torch.randn(3, 2) for name in names}).shape == (3, 8)


def test_a_grid_of_two_planes_is_refused() -> None:
    with pytest.raises(ValueError, match="expected 3 codes per cell"):
        Encoder(Interface({"grid": Channel("grid", (7, 7, 2))}, 3), 8)


KINDS = {
    "image": Channel("image", (20, 11, 3)),
    "one pixel": Channel("image", (1, 1, 1)),
    "several": Channel("discrete", (3,), 4),
    "many": Channel("discrete", (), 500),
    "many several": Channel("discrete", (2,), 300),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(2,), (2, 3), (1, 0)])
def test_every_kind_of_channel_is_encoded(kind: str, shape: tuple[int, ...]) -> None:
    channel = KINDS[kind]
    encoder = Encoder(Interface({"x": channel}, 4), 8)
    generator = np.random.default_rng(1)
    high = channel.num_values or 255
    seen = {n: t for n, t in observation(shape).items() if n not in INTERFACE.channels}
    x = generator.integers(0, high, (*shape, *channel.shape)).astype(channel.dtype)
    tokens = encoder(seen | {"x": torch.from_numpy(x)})
    assert tokens.shape == (*shape, 8) and torch.isfinite(tokens).all()
    other = encoder(seen | {"x": torch.from_numpy((high - 1 - x).astype(channel.dtype))})
    assert tokens.numel() == 0 or not torch.equal(tokens, other)


def test_vectors_of_any_scale_are_bounded_and_told_apart() -> None:
    encoder = Encoder(Interface({"x": Channel("vector", (1,))}, 4), 16)
    inputs = {n: t[:1] for n, t in observation((1,)).items() if n not in INTERFACE.channels}
    tokens = [
        encoder(inputs | {"x": torch.full((1, 1), x)}) for x in (-1e30, -10.0, 0.0, 1e4, 3e38)
    ]
    assert all(torch.isfinite(token).all() for token in tokens)
    assert len({tuple(token[0].tolist()) for token in tokens}) == 5


def test_every_part_of_the_previous_action_matters() -> None:
    interface = Interface({"x": Channel("vector", (1,))}, 4, (3,), 2)
    encoder = Encoder(interface, 8)
    seen = {n: t for n, t in observation((1,)).items() if n not in INTERFACE.channels}
    seen |= {"x": torch.zeros(1, 1), "previous_parts": torch.tensor([[1.0, 0.2, -0.2]])}
    for place, value in enumerate((2.0, -1.0, 1.0)):
        changed = seen["previous_parts"].clone()
        changed[0, place] = value
        assert not torch.equal(encoder(seen), encoder(seen | {"previous_parts": changed}))
