"""Checkpoints load with `weights_only=True`, survive kills, and put every generator back."""

import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sojourn.experiments import checkpoint
from sojourn.experiments.errors import RunError

CONTENT: dict[str, Any] = {
    "scalar": np.float64(1.5),
    "count": np.int64(7),
    "flag": np.bool_(True),
    "array": np.arange(6, dtype=np.int64).reshape(2, 3),
    "mask": np.array([True, False]),
    "empty": np.zeros(0, np.float32),
    "tensor": torch.arange(3),
    "nested": {"list": [1, "a", None, np.float32(0.5)], 3: (1, 2)},
}


def test_content_comes_back_as_it_was(tmp_path: Path) -> None:
    content = checkpoint.load(checkpoint.save(tmp_path, 12, CONTENT, keep=2))
    assert content["step"] == 12
    assert content["scalar"] == 1.5
    assert content["flag"] is True
    for name in ("array", "mask", "empty"):
        np.testing.assert_array_equal(content[name], CONTENT[name])
        assert content[name].dtype == CONTENT[name].dtype
    assert torch.equal(content["tensor"], CONTENT["tensor"])
    assert content["nested"] == {"list": [1, "a", None, 0.5], 3: [1, 2]}


def test_the_newest_are_kept_and_pointed_at(tmp_path: Path) -> None:
    for step in (5, 50, 500, 10):
        checkpoint.save(tmp_path, step, {}, keep=2)
    assert [checkpoint.step_of(p) for p in checkpoint.newest_first(tmp_path)] == [500, 50]


def test_latest_points_at_the_newest(tmp_path: Path) -> None:
    for step in (1, 2):
        path = checkpoint.save(tmp_path, step, {}, keep=1)
    assert (tmp_path / "latest").resolve() == path.resolve()


@pytest.mark.parametrize("damage", ["empty", "half", "garbage"])
def test_a_broken_newest_file_falls_back_to_the_last_good_one(tmp_path: Path, damage: str) -> None:
    checkpoint.save(tmp_path, 1, {"x": torch.zeros(1000)}, keep=3)
    broken = checkpoint.save(tmp_path, 2, {"x": torch.zeros(1000)}, keep=3)
    whole = broken.read_bytes()
    broken.write_bytes({"empty": b"", "half": whole[: len(whole) // 2], "garbage": b"x"}[damage])
    path, content, complaints = checkpoint.load_newest(tmp_path)
    assert (checkpoint.step_of(path), content["step"]) == (1, 1)
    assert len(complaints) == 1 and str(broken) in complaints[0]


def test_a_kill_while_saving_leaves_the_last_good_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint.save(tmp_path, 1, {}, keep=1)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", die)
    with pytest.raises(KeyboardInterrupt):
        checkpoint.save(tmp_path, 2, {}, keep=1)
    monkeypatch.undo()
    assert checkpoint.load_newest(tmp_path)[1]["step"] == 1
    assert len(list(tmp_path.iterdir())) == 2, "the half-written file gives its room back"


def test_another_format_is_refused_clearly(tmp_path: Path) -> None:
    path = tmp_path / "step_000000000001.pt"
    torch.save({"format": 99}, path)
    with pytest.raises(RunError, match="checkpoint format 99, this version reads format 1"):
        checkpoint.load(path)


def test_no_checkpoint_at_all_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no checkpoint to resume from"):
        checkpoint.load_newest(tmp_path)


def test_every_global_generator_is_put_back(tmp_path: Path) -> None:
    def draw() -> list[float]:
        return [float(torch.rand(1)), float(np.random.normal()), random.random()]

    draw()
    path = checkpoint.save(tmp_path, 1, {"g": checkpoint.generator_states()}, keep=1)
    expected = [draw() for _ in range(3)]
    checkpoint.set_generator_states(checkpoint.load(path)["g"])
    assert [draw() for _ in range(3)] == expected
