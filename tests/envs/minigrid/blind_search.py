"""A search that knows no rule of a game: the slow, obvious version of the planner."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from typing import Any


def fewest_steps(
    env: Any,
    actions: Collection[int],
    save: Callable[[], tuple[Any, ...]],
    load: Callable[..., None],
) -> int | None:
    """Fewest actions to a reward, by stepping the real game from every state it can reach.

    `save` tells the state of `env`, `load(*state)` puts it back; None where nothing succeeds within
    the time limit.
    """
    vars(env)["gen_obs"] = lambda: None
    start = save()
    reached, pending = {start}, deque([(start, 0)])
    while pending:
        state, num_steps = pending.popleft()
        for action in actions if num_steps < env.max_steps else ():
            load(*state)
            env.step_count = num_steps
            _, reward, terminated, _, _ = env.step(action)
            if reward > 0:
                return num_steps + 1
            after = save()
            if not terminated and after not in reached:
                reached.add(after)
                pending.append((after, num_steps + 1))
    return None
