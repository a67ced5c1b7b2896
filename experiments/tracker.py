"""What an update tells about regret: metrics of the episodes that ended in it, and their sum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sojourn.envs import EpisodeRecord

from .episodes import Episodes

MAX_EPISODES = 5  # episode indices of a task that get a metric and a curve of their own


class RegretTracker:
    """Turns finished episodes into metrics by name; remembers only two numbers between updates."""

    def __init__(self) -> None:
        self.cumulative = 0.0
        self.last = float("nan")

    def update(self, records: Sequence[EpisodeRecord], num_steps: int) -> dict[str, float]:
        """Metrics of an update of `num_steps` steps per lifetime; NaN where no episode tells.

        An update in which no episode ended counts with the regret of the last one that knew it.
        """
        episodes = Episodes.from_records(records, 0)
        regret = episodes.regret()
        if np.isfinite(regret.normalised):
            self.last = regret.normalised
        if np.isfinite(self.last):
            self.cumulative += self.last * num_steps
        metrics = {
            "charts/episodic_return": _mean([r.total_return for r in records]),
            "charts/episodic_length": _mean([r.num_steps for r in records]),
            "continual/num_episodes": float(len(records)),
            "continual/task_index": _mean([r.segment for r in records]),
            "continual/regret": regret.normalised,
            "continual/regret_raw": regret.raw,
            "continual/cumulative_regret": self.cumulative,
        }
        hides = bool(np.isfinite(episodes.informed).any())
        if hides:
            metrics["continual/regret_informed"] = regret.informed
        for index in range(episodes.num_indices(MAX_EPISODES)):
            part = episodes.of_index(index).regret()
            metrics[f"continual/regret_episode_{index + 1}"] = part.normalised
            if hides:
                metrics[f"continual/regret_informed_episode_{index + 1}"] = part.informed
        return metrics

    def state_dict(self) -> dict[str, float]:
        return {"cumulative": self.cumulative, "last": self.last}

    def load_state_dict(self, saved: Mapping[str, float]) -> None:
        self.cumulative, self.last = saved["cumulative"], saved["last"]


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else float("nan")
