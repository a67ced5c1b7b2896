"""Any registered environment is a family of tasks by its id."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from sojourn.envs import Crowd, GymnasiumFamily, Length, NeverRepeating, Stream


def test_any_registered_environment_by_id() -> None:
    with pytest.raises(ValueError, match=r"Did you mean: `CartPole`"):
        GymnasiumFamily("CartPol-v1")
    with pytest.raises(ValueError, match="nothing_of_this_name"):
        GymnasiumFamily("nothing_of_this_name:Foo-v0")
    family = GymnasiumFamily("CartPole-v1", max_episode_steps=5)
    crowd = Crowd(Stream(NeverRepeating([family]), Length(10), seed=0), 1)
    steps = [crowd.step(np.array([t % 2])) for t in range(25)]
    records = [record for step in steps for record in step.episodes]
    assert [(r.num_steps, r.status) for r in records] == [(5, "truncated")] * 5


@pytest.mark.parametrize(("instance", "num_layouts"), [("resampled", 5), ("fixed", 1)])
def test_layouts_differ_unless_the_instance_is_fixed(
    instance: Literal["resampled", "fixed"], num_layouts: int
) -> None:
    family = GymnasiumFamily("MiniGrid-DoorKey-6x6-v0", {"max_steps": 3}, instance=instance)
    runs = []
    for _ in range(2):
        crowd = Crowd(Stream(NeverRepeating([family]), Length(20), seed=7), 1)
        layouts = [crowd.observation["grid"].tobytes()]
        for step in [crowd.step(np.array([0])) for _ in range(14)]:
            if step.episodes:
                layouts.append(step.observation["grid"].tobytes())
        runs.append(layouts)
    assert runs[0] == runs[1]
    assert len(set(runs[0])) == num_layouts
