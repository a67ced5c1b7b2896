"""A stream is a function of its seed; a crowd restored, split or sped up is the same crowd."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from sojourn.envs import Crowd, CrowdStep, Stream

Build = Callable[..., Stream]
Live = Callable[..., list[tuple[np.ndarray, CrowdStep]]]


def assert_same(one: CrowdStep, other: CrowdStep) -> None:
    for field in fields(CrowdStep):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if isinstance(a, dict):
            assert a.keys() == b.keys()
            for name in a:
                np.testing.assert_array_equal(a[name], b[name], err_msg=name)
                assert a[name].dtype == b[name].dtype
        elif isinstance(a, np.ndarray):
            np.testing.assert_array_equal(a, b, err_msg=field.name)
            assert a.dtype == b.dtype
        else:
            assert str(a) == str(b), field.name  # NaN is equal to itself here


def segment_facts(stream: Stream, lifetime: int, index: int) -> str:
    segment = stream.segment(lifetime, index)
    facts = {name: repr(value) for name, value in vars(segment.task).items()}
    return f"{segment.seed} {segment.task_index} {facts.get('before')} {segment.task.name}"


def test_same_seed_same_bits(build: Build, live: Live) -> None:
    runs = [live(Crowd(build(seed=3), 3), 40) for _ in range(2)]
    for (_, one), (_, other) in zip(*runs, strict=True):
        assert_same(one, other)


def test_other_seed_other_tasks(build: Build) -> None:
    one, other = build(seed=0), build(seed=1)
    assert [segment_facts(one, 0, k) for k in range(4)] != [
        segment_facts(other, 0, k) for k in range(4)
    ]


def test_segment_needs_no_earlier_ones(build: Build) -> None:
    in_order = build(seed=5)
    facts = {(b, k): segment_facts(in_order, b, k) for b in range(3) for k in range(6)}
    assert facts[2, 4] == segment_facts(build(seed=5), 2, 4)
    backwards = build(seed=5)
    for (b, k), known in reversed(facts.items()):
        assert segment_facts(backwards, b, k) == known


def test_restored_in_mid_episode_bit_for_bit(build: Build, live: Live) -> None:
    crowd = Crowd(build(seed=2), 3)
    live(crowd, 33)
    state = crowd.state_dict()
    assert_plain(state)
    going_on = live(crowd, 30, seed=1)
    restored = Crowd(build(seed=2), 3)
    restored.load_state_dict(state)
    for name, array in state["observation"].items():
        np.testing.assert_array_equal(array, restored.observation[name])
    for actions, step in going_on:
        assert_same(step, restored.step(actions))


def assert_plain(state: Any) -> None:
    if isinstance(state, dict):
        for part in state.values():
            assert_plain(part)
    elif isinstance(state, list):
        for part in state:
            assert_plain(part)
    else:
        assert type(state) in (int, float, str) or (
            type(state) is np.ndarray and state.dtype.kind in "buif"
        )


def test_crowd_of_many_equals_crowds_of_one(build: Build, live: Live) -> None:
    stream = build(seed=4)
    crowd = Crowd(stream, 3, first_lifetime=2)
    singles = [Crowd(stream, 1, first_lifetime=2 + row) for row in range(3)]
    alive = [True] * 3
    for actions, step in live(crowd, 40):
        for row, single in enumerate(singles):
            if not alive[row]:
                continue
            alone = single.step(actions[row : row + 1])
            alive[row] = not step.lifetime_end[row]
            for name in ("reward", "expected_reward", "terminated", "truncated", "task_end"):
                np.testing.assert_array_equal(getattr(alone, name)[0], getattr(step, name)[row])
            records = [record for record in step.episodes if record.lifetime == 2 + row]
            assert str(alone.episodes) == str(records)
            if alive[row]:
                for name, array in step.observation.items():
                    np.testing.assert_array_equal(alone.observation[name][0], array[row])


def test_backends_agree_bit_for_bit(build: Build, live: Live) -> None:
    fast = live(Crowd(build(seed=6, backend="auto"), 3), 50)
    slow = live(Crowd(build(seed=6, backend="gymnasium"), 3), 50)
    for (_, one), (_, other) in zip(fast, slow, strict=True):
        assert_same(one, other)


def test_shipped_streams_say_what_they_are(shipped_streams: list[Path]) -> None:
    assert shipped_streams
    for path in shipped_streams:
        lines = path.read_text().splitlines()
        for line, key in zip(lines, ("title", "source", "tests"), strict=False):
            assert line.startswith(f"# {key}: ") and len(line) > len(key) + 10, path


def test_shipped_streams_are_in_the_table(shipped_streams: list[Path]) -> None:
    page = (shipped_streams[0].parents[2] / "docs" / "streams.md").read_text()
    for path in shipped_streams:
        assert f"`{path.stem}`" in page, path.stem
