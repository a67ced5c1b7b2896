"""How far an evaluation is held out: which of its tasks also occur in training."""

from __future__ import annotations

from sojourn.envs import Stream, task_key

LIFETIMES, SEGMENTS = 64, 16  # of the training stream, looked through for its tasks


def share_seen(trained: Stream, held_out: Stream) -> float:
    """Share of the held-out stream's first tasks whose hidden parameters are among those of 1,024
    training segments; layouts and other instances may differ all the same.
    """
    seen = set(_keys(trained, LIFETIMES, SEGMENTS))
    tasks = _keys(held_out, LIFETIMES // 4, SEGMENTS // 4)
    return sum(key in seen for key in tasks) / len(tasks)


def seen_note(share: float) -> str:
    """One line on what is new in an evaluation."""
    if share == 0.0:
        return "held out: no task of it is among 1,024 training segments"
    return (
        f"held out by root seed: {share:.0%} of its tasks have hidden parameters that occur in "
        "training; sojourn.envs.Split keeps some for evaluation alone"
    )


def _keys(stream: Stream, num_lifetimes: int, num_segments: int) -> list[bytes]:
    found = []
    for lifetime in range(num_lifetimes):
        limit = stream.num_segments(lifetime)
        for index in range(num_segments if limit is None else min(limit, num_segments)):
            found.append(task_key(stream.segment(lifetime, index).task))
    return found
