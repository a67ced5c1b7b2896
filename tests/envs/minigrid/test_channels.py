"""What MiniGrid shows becomes channels: cells a grid, pixels an image, missions tokens."""

from __future__ import annotations

import warnings

import gymnasium
import numpy as np

from sojourn.envs import Adapter, Channel, interface_of, mission_channel, mission_tokens
from sojourn.envs.missions import UNKNOWN, VOCABULARY


def test_missions_become_tokens() -> None:
    channel = mission_channel(5)
    assert channel == Channel("tokens", (5,), len(VOCABULARY) + 2)
    for word in VOCABULARY:
        assert UNKNOWN < mission_tokens(word, 3)[0] < channel.num_values
    assert mission_tokens("Frobnicate the BALL", 5)[0] == UNKNOWN
    assert mission_tokens("open the red door", 5)[-1] == 0
    assert mission_tokens("", 4).tolist() == [0, 0, 0, 0]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for number in range(3):
            assert len(mission_tokens("the " * 60 + str(number), 40)) == 40
    assert len(caught) == 1


def test_vocabulary_has_the_words_of_the_library_once() -> None:
    from minigrid.wrappers import DictObservationSpaceWrapper

    assert set(DictObservationSpaceWrapper.get_minigrid_words()) <= set(VOCABULARY)
    assert len(set(VOCABULARY)) == len(VOCABULARY)


def test_minigrid_shows_grid_direction_and_mission() -> None:
    env = gymnasium.make("MiniGrid-DoorKey-5x5-v0", disable_env_checker=True)
    assert set(interface_of(env).channels) == {"grid", "direction"}
    interface = interface_of(env, "tokens")
    assert interface.channels["mission"] == mission_channel(40)
    arrays = interface.zeros(2)
    native, _ = env.reset(seed=0)
    Adapter(env, interface).writer(arrays, 1)(native)
    np.testing.assert_array_equal(arrays["grid"][1], native["image"])
    assert arrays["direction"][1] == native["direction"] and arrays["grid"][0].sum() == 0
    np.testing.assert_array_equal(arrays["mission"][1], mission_tokens(native["mission"], 40))


def test_minigrid_pixels_are_an_image_and_cells_are_a_grid() -> None:
    from minigrid.wrappers import ImgObsWrapper, RGBImgPartialObsWrapper

    plain = gymnasium.make("MiniGrid-Empty-5x5-v0", disable_env_checker=True)
    pixels = interface_of(RGBImgPartialObsWrapper(plain))
    assert pixels.channels["image"] == Channel("image", (56, 56, 3))
    assert interface_of(ImgObsWrapper(plain)).channels == {"grid": Channel("grid", (7, 7, 3))}
