"""A picture of every stream: the first tasks of one lifetime, as they look or as they are seen.

Where environments have pictures, the start of the first tasks; else what an agent sees over the
first steps of random play, a row per number, and under it the reward.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from omegaconf import OmegaConf

from sojourn.envs import Array, Channel, Crowd, Segment, Stream, random_actions

from . import catalog
from .build import make
from .errors import RunError
from .recordings.camera import MODE, need_no_screen

COLUMNS, TASKS, STEPS, SEED = 4, 4, 72, 0
GAP = 6  # pixels between pictures
SIDE = 160  # pixels of a picture


def draw_gallery(path: Path, names: Sequence[str] | None = None) -> None:
    """Write a picture with a panel per shipped stream; raises RunError where that fails."""
    need_no_screen()
    names = catalog.options("stream") if names is None else names
    num_rows = -(-len(names) // COLUMNS)
    figure = Figure(figsize=(16, 1.9 * num_rows), layout="constrained")
    panels = figure.subplots(num_rows, COLUMNS, squeeze=False).flatten().tolist()
    for panel, name in zip(panels, names, strict=False):
        draw_stream(panel, name)
    for panel in panels[len(names) :]:
        panel.set_axis_off()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=80)
    except (OSError, ValueError) as error:
        raise RunError(f"{path}: cannot be written ({error})") from error


def draw_stream(panel: Axes, name: str) -> None:
    """One stream, under its name and the number of its observations and actions."""
    config = OmegaConf.create({"stream": OmegaConf.create(catalog.text_of("stream", name))})
    stream: Stream = make(config, "stream", seed=SEED)
    pictures = [picture_of(stream.segment(0, index)) for index in range(TASKS)]
    seen = [picture for picture in pictures if picture is not None]
    panel.set_title(name, fontsize=11, loc="left", fontweight="bold")
    panel.set_xticks([])
    panel.set_yticks([])
    if len(seen) == TASKS:
        panel.imshow(side_by_side(seen))
        panel.set_frame_on(False)
        return
    numbers, reward, borders = first_steps(stream)
    panel.imshow(numbers, aspect="auto", cmap="viridis", interpolation="nearest")
    size = len(numbers)
    panel.set_ylim(1.35 * size, -0.5)
    height = 0.3 * size / max(1e-9, float(np.ptp(reward)))
    panel.plot(1.3 * size - height * (reward - reward.min()), color="#D55E00", linewidth=1.2)
    for border in borders:
        panel.axvline(border - 0.5, color="#000000", linewidth=1.5)


def picture_of(segment: Segment) -> Array | None:
    """uint8 `[SIDE, SIDE, 3]` of a task's first state; None where its environment draws none."""
    env = segment.task.make_env()
    try:
        bare: Any = env.unwrapped
        if MODE not in (bare.metadata or {}).get("render_modes", ()):
            return None
        segment.task.configure(env)
        env.reset(seed=segment.episode_seed(0))
        bare.render_mode = MODE
        return resized(np.asarray(bare.render(), np.uint8))
    finally:
        env.close()


def resized(picture: Array) -> Array:
    """Padded to a square and brought to SIDE x SIDE by the nearest pixels."""
    height, width = picture.shape[:2]
    side = max(height, width)
    square = np.full((side, side, 3), 255, np.uint8)
    top, left = (side - height) // 2, (side - width) // 2
    square[top : top + height, left : left + width] = picture
    chosen = np.arange(SIDE) * side // SIDE
    small: Array = square[chosen][:, chosen]
    return small


def side_by_side(pictures: Sequence[Array]) -> Array:
    """Pictures of one size in a row."""
    gap = np.full((SIDE, GAP, 3), 255, np.uint8)
    parts = [part for picture in pictures for part in (picture, gap)]
    return np.concatenate(parts[:-1], axis=1)


def first_steps(stream: Stream) -> tuple[Array, Array, list[int]]:
    """What is seen `[numbers, STEPS]` in [0, 1], the rewards `[STEPS]`, steps that begin a task."""
    crowd = Crowd(stream, 1)
    rng = np.random.default_rng(SEED)
    columns, rewards, borders = [], [], []
    for step in range(STEPS):
        columns.append(flat(crowd.observation, stream.interface.channels))
        actions = random_actions(crowd.interface, crowd.observation["action_mask"], rng)
        lived = crowd.step(actions)
        rewards.append(float(lived.reward[0]))
        if lived.task_end[0] and step + 1 < STEPS:
            borders.append(step + 1)
    crowd.close()
    numbers = np.stack(columns, axis=1)
    low, high = numbers.min(1, keepdims=True), numbers.max(1, keepdims=True)
    return (numbers - low) / np.maximum(high - low, 1e-9), np.array(rewards), borders


def flat(observation: Mapping[str, Array], channels: Mapping[str, Channel]) -> Array:
    """Row 0 of all channels as one vector; a discrete number as one of its few values."""
    parts = [np.zeros(0)]
    for name, channel in channels.items():
        values = observation[name][0]
        if channel.kind == "discrete" and channel.num_values <= 32:
            values = np.eye(channel.num_values)[values]
        parts.append(np.asarray(values, float).reshape(-1))
    inputs = (observation["previous_reward"][0], observation["episode_start"][0])
    return np.concatenate([*parts, np.array(inputs, float)])
