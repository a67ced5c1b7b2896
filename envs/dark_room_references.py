"""What an explorer who knows the rules of the dark room earns: sweep for the goal, then go to it.

The sweep follows a spiral from the centre, on which every step enters a new cell. Each episode goes
on where the last one stopped, from the nearer end of the cells not seen yet. Averages over all
goals are exact:

    episode in which the goal is the i-th step's cell: H + 1 - i;   later episodes: H + 1 - d

In the first episode no policy does better on its own: sum_{i <= H} (H + 1 - i) / (n^2 - 1).
"""

from __future__ import annotations

import numpy as np

from .dark_room import DarkRoom
from .interface import Array


def sweep_returns(family: DarkRoom, num_episodes: int) -> Array:
    """Mean return `[num_episodes]` of the sweep over all goals of a family, exact."""
    distance = family.walk.distances
    centre, horizon = family.walk.centre, family.horizon
    spiral = _spiral(family.size)
    left = spiral.tolist()
    found_at: dict[int, tuple[int, int]] = {}
    for episode in range(num_episodes):
        if not left:
            break
        if distance[centre, left[-1]] < distance[centre, left[0]]:
            left.reverse()
        start = int(distance[centre, left[0]])
        seen = left[: max(horizon - start + 1, 0)]
        found_at |= {cell: (episode, start + i) for i, cell in enumerate(seen)}
        left = left[len(seen) :]
    returns = np.zeros((len(spiral), num_episodes))
    for row, goal in enumerate(spiral.tolist()):
        episode, step = found_at.get(goal, (num_episodes, 0))
        returns[row, episode : episode + 1] = horizon + 1 - step
        returns[row, episode + 1 :] = max(horizon + 1 - distance[centre, goal], 0)
    return np.asarray(returns.mean(0))


def _spiral(size: int) -> Array:
    """All cells but the centre, neighbour by neighbour, outwards."""
    row = column = size // 2
    cells: list[int] = []
    step, direction = 1, 0
    while len(cells) < size**2 - 1:
        for _ in range(2):
            for _ in range(step):
                row, column = (
                    row + (0, 1, 0, -1)[direction],
                    column + (1, 0, -1, 0)[direction],
                )
                cells.append(row * size + column)
            direction = (direction + 1) % 4
        step += 1
    return np.array(cells[: size**2 - 1])
