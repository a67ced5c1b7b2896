"""Pictures of streams: environments that draw themselves, and what is seen of those that do not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hydra.utils import instantiate
from matplotlib.image import imread
from omegaconf import OmegaConf

from sojourn.envs import Stream
from sojourn.experiments import catalog
from sojourn.experiments.command import main
from sojourn.experiments.gallery import SIDE, STEPS, draw_gallery, first_steps, picture_of
from sojourn.experiments.recordings.camera import SCREENLESS


def stream(name: str) -> Stream:
    text = catalog.text_of("stream", name)
    return instantiate(OmegaConf.create(text), seed=0)  # type: ignore[no-any-return]


def test_grids_are_drawn_and_cards_are_not() -> None:
    picture = picture_of(stream("minigrid").segment(0, 0))
    assert picture is not None
    assert picture.shape == (SIDE, SIDE, 3)
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 3, "not one flat colour"
    assert picture_of(stream("autoencode").segment(0, 0)) is None


def test_what_is_seen_has_a_row_per_number_and_borders_between_tasks() -> None:
    numbers, reward, borders = first_steps(stream("restless_rooms"))
    assert numbers.shape == (25 + 2, STEPS)  # the cell of a room of 5 x 5, reward, start
    assert numbers.min() == 0 and numbers.max() == 1
    assert reward.shape == (STEPS,)
    assert all(0 < border < STEPS for border in borders)


def test_the_verb_writes_a_picture(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = ["bandit", "t_maze", "two_goals"]
    monkeypatch.setattr(
        "sojourn.experiments.gallery.draw_gallery", lambda path: draw_gallery(path, drawn)
    )
    assert main(["list", "streams", "pictures=new/streams.png"]) == 0
    picture = imread(workplace / "new" / "streams.png")
    assert min(picture.shape[:2]) > 100 and picture.std() > 0


def test_only_streams_have_pictures(refuse: Callable[..., str]) -> None:
    assert "only streams" in refuse("list", "memory", "pictures=a.png")
    assert "ends in .png" in refuse("list", "streams", "pictures=a")


@pytest.mark.slow
def test_pictures_start_no_screen_and_no_sound_and_say_nothing(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path\n"
        "from sojourn.experiments.gallery import draw_gallery\n"
        "draw_gallery(Path('some.png'), ['mountain_car_offsets'])\n"
        "import sys\n"
        "print('pygame' in sys.modules)"
    )
    hidden = {"DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR", *SCREENLESS}
    env = {name: value for name, value in os.environ.items() if name not in hidden}
    command = [sys.executable, "-c", code]
    told = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert (told.stdout, told.stderr) == ("True\n", "")
