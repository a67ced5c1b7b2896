"""TensorBoard beside our own tables: scalars for viewing, never read back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from torch.utils.tensorboard import SummaryWriter


class Board:
    """Scalars over environment steps in one event folder.

    A resumed run passes the step it resumes from; what an earlier process wrote after it is hidden
    by the reader.
    """

    def __init__(self, folder: Path, resumed_from: int | None = None) -> None:
        purge = None if resumed_from is None else resumed_from + 1
        self._writer = SummaryWriter(str(folder), purge_step=purge)

    def scalars(self, step: int, metrics: Mapping[str, float]) -> None:
        """Add one point per metric; missing values are left out."""
        for name, value in metrics.items():
            if not math.isnan(value):
                self._writer.add_scalar(BOARD_NAMES.get(name, name), value, step)

    def hyperparameters(self, values: Mapping[str, object]) -> None:
        """The configuration as a Markdown table under the TEXT tab (no sub-run, unlike
        `add_hparams`).
        """
        cells = ((key, str(value).replace("|", "\\|")) for key, value in values.items())
        rows = "\n".join(f"|{key}|{text}|" for key, text in cells)
        self._writer.add_text("hyperparameters", f"|key|value|\n|-|-|\n{rows}", 0)

    def close(self) -> None:
        self._writer.close()


# Our tables mark clock readings by `time/`; viewers know this one by CleanRL's name.
BOARD_NAMES = {"time/steps_per_second": "charts/SPS"}
