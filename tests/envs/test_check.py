"""What `check-env` finds: sound environments pass, every broken law is named."""

from __future__ import annotations

import random
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from sojourn.envs import Finding, GymnasiumFamily, check_family, family_of, spec_of

SOUND = ["CartPole-v1", "MiniGrid-DoorKey-5x5-v0", "BabyAI-GoToLocal-v0", "Blackjack-v1"]
SOUND += ["Pendulum-v1", max(id for id in gymnasium.registry if id.startswith("Taxi-v"))]


def findings(family: Any, level: str) -> list[Finding]:
    return [finding for finding in check_family(family) if finding.level == level]


@pytest.mark.parametrize("id", SOUND)
def test_sound_environments_break_no_law(id: str) -> None:
    found = list(check_family(family_of(spec_of(id))))
    assert [finding for finding in found if finding.level == "broken"] == []
    laws = {finding.law for finding in found}
    assert laws >= {"spaces", "seeding", "generators", "rewards", "endings", "saving"}
    saving = [finding.text for finding in found if finding.law == "saving"]
    assert saving == ["exact in the middle of an episode, by replay"]


class Faulty(gymnasium.Env[Any, Any]):
    """Five steps, broken in the way it is told."""

    def __init__(self, how: str) -> None:
        self.observation_space = spaces.Box(-1.0, 1.0, (2,))
        self.action_space = spaces.Discrete(2)
        self.how, self.shown, self.age = how, np.zeros(2, np.float32), 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=None if self.how == "unseeded" else seed)
        self.age += 1
        self.count = 0
        return self._show(), {}

    def _show(self) -> Any:
        x = self.np_random.uniform(-1, 1)
        if self.how == "numpy":
            np.random.random()
        if self.how == "python":
            random.random()
        if self.how == "aged" and self.age > 5:
            x = 0.5
        if self.how == "reused":
            self.shown[:] = x
            return self.shown
        size = 3 if self.how == "shape" and self.count == 2 else 2
        return np.full(size, 7.0 if self.how == "outside" else x, np.float32)

    def step(self, action: Any) -> Any:
        self.count += 1
        reward: Any = {"text": "one", "nan": np.nan, "integer": 1, "array": np.ones(1)}.get(
            self.how, 1.0
        )
        if self.how == "raises" and self.count == 3:
            raise ValueError("boom")
        ended = self.count == 5 and self.how != "endless"
        return self._show(), reward, ended, ended and self.how == "both", {}


BROKEN = {
    "unseeded": ("seeding", "on a second environment differs: the observation of step 0"),
    "aged": ("seeding", "on the same environment again differs"),
    "numpy": ("generators", "numpy.random"),
    "python": ("generators", "'random'"),
    "shape": ("observations", r"observation: expected shape (2,), got (3,)"),
    "text": ("rewards", "expected a reward of one number, got 'one'"),
    "nan": ("rewards", "expected a finite reward, got nan"),
    "raises": ("seeding", "ValueError: boom"),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_law_is_named(how: str) -> None:
    law, text = BROKEN[how]
    found = findings(GymnasiumFamily(Faulty, {"how": how}), "broken")
    assert any(finding.law == law and text in finding.text for finding in found), found


WORSE = {
    "outside": ("warning", "observations", "6 of 6 lie outside"),
    "endless": ("warning", "endings", "set max_episode_steps"),
    "unseeded": ("warning", "saving", "starts the episode again"),
    "reused": ("note", "observations", "the adapter copies"),
    "both": ("note", "endings", "terminated and truncated at once"),
    "array": ("note", "rewards", "ndarray, from 1 to 1"),
    "integer": ("fine", "rewards", "int, from 1 to 1"),
}


@pytest.mark.parametrize("how", WORSE)
def test_what_works_less_well_is_told(how: str) -> None:
    level, law, text = WORSE[how]
    found = findings(GymnasiumFamily(Faulty, {"how": how}), level)
    assert any(finding.law == law and text in finding.text for finding in found), found


class Forgetful(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Drops the seed."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return self.env.reset(options=options)


def test_the_wrapper_that_drops_the_seed_is_named() -> None:
    spec = {
        "id": "MiniGrid-DoorKey-6x6-v0",
        "wrappers": [Forgetful, "minigrid.wrappers:ImgObsWrapper"],
    }
    (found,) = [f for f in findings(family_of(spec_of(spec)), "broken") if f.law == "seeding"]
    assert found.text.endswith("Forgetful does not pass the seed on")
