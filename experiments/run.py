"""A run: live a slice, train on it, write it down, until the budget is spent or it is stopped."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from omegaconf import OmegaConf

from sojourn.agents import Agent, Rollout, Trainer, Trajectory, from_all_ranks
from sojourn.envs import Schedule

from . import checkpoint
from .folder import RunFolder
from .pace import Pace
from .plasticity_probe import PlasticityProbe
from .recorder import Recorder
from .selection import Selection
from .settings import Settings
from .spaces import num_values
from .stopping import StopRequest
from .tracker import RegretTracker

DEBUG_UPDATES = 3

Evaluator = Callable[[Agent], Mapping[str, float]]


class Spent(NamedTuple):
    """Seconds of one update, and of the acting in it."""

    seconds: float
    collect_seconds: float


class Run:
    """One agent, its rollout and its trainer, from wherever they stand to the end of the budget.

    Schedules run over steps, never over seconds, so that a resumed run is the unbroken one bit for
    bit.
    """

    def __init__(
        self,
        agent: Agent,
        rollout: Rollout,
        trainer: Trainer,
        recorder: Recorder,
        folder: RunFolder,
        settings: Settings,
        config: str,
        evaluation: Evaluator | None = None,
    ) -> None:
        self.agent, self.rollout, self.trainer = agent, rollout, trainer
        self.recorder, self.folder, self.settings = recorder, folder, settings
        self.config, self.evaluation = config, evaluation
        self.tracker = RegretTracker()
        self.selection = Selection()
        self.pace = Pace()
        self.plasticity = PlasticityProbe(agent, settings.plasticity_every)
        self.step = 0
        self.updates = 0
        self._saved: int | None = None  # step of the newest checkpoint

    @property
    def num_steps(self) -> int | None:
        """The budget in environment steps; None never ends."""
        return planned_steps(self.settings)

    @property
    def _has_ended(self) -> bool:
        end = last_step(self.settings)
        return end is not None and self.step >= end

    @property
    def _schedule(self) -> Schedule:
        return self.rollout.crowd.stream.schedule

    def live(self, stop: StopRequest) -> bool:
        """Run until the budget is spent (True) or a stop is asked for (False); saves either way."""
        self._checkpoint()
        while not self._has_ended:
            if any(from_all_ranks(stop.signal is not None)):
                self._checkpoint()
                return False
            end = last_step(self.settings)
            if self.pace.add(self.advance().seconds) and end is not None:
                self.recorder.note(self._left(end))
            self._evaluate()
            if self._crossed(self.settings.checkpoint_every):
                # Episodes without end would otherwise leave no trace in the table.
                self.recorder.record_running(self.step, self.rollout.crowd.running_episodes())
                self.selection.end_stretch(self.step)
                self._checkpoint()
        self._checkpoint()
        return True

    def _left(self, end: int) -> str:
        """How long the rest of the budget takes, evaluations apart."""
        updates = max(0, -(-(end - self.step) // self.settings.steps_per_update))
        left = self.pace.per_update() * updates
        return f"{updates:,} updates are left: about {left} at the speed of the first"

    def advance(self) -> Spent:
        """One update, written down but not saved."""
        begin = time.perf_counter()
        collected = looked = begin  # a trainer that keeps no slices lives all the time

        def seen(trajectory: Trajectory) -> None:
            nonlocal collected, looked
            collected = time.perf_counter()
            self._diagnose(trajectory)
            self.plasticity.look(trajectory)
            looked = time.perf_counter()

        settings = self.settings
        self.plasticity.begin(self.updates + 1)
        done = self.trainer.iterate(self.rollout, settings.slice_steps, self._progress(), seen)
        end = time.perf_counter()
        if not self.trainer.keeps_slices:
            collected = looked = end
        self._schedule.observe(done.episodes)
        self.step += settings.steps_per_update
        self.updates += 1
        metrics = done.metrics | self.tracker.update(done.episodes, settings.slice_steps)
        self.selection.add(metrics["continual/regret"], -metrics["charts/episodic_return"])
        metrics |= {
            "time/collect_seconds": collected - begin,
            "time/update_seconds": end - looked,
            "time/steps_per_second": settings.steps_per_update / (end - begin),
        }
        metrics |= self.plasticity.end()
        self.recorder.record(self.step, self.updates, metrics, done.episodes)
        if self.settings.debug:
            self._check_finite(metrics)
        return Spent(end - begin, collected - begin)

    def _diagnose(self, trajectory: Trajectory) -> None:
        """Measure the memory on the slice just lived, with the parameters that lived it."""
        every = self.settings.diagnostics_every
        if every and (self.updates + 1) % every == 0:
            steps = trajectory.steps
            measures = self.agent.diagnose(steps["observation"], trajectory.state, steps["reset"])
            self.recorder.record_measures(self.step + self.settings.steps_per_update, measures)

    def _evaluate(self) -> None:
        """Let a copy of the agent live held-out lives."""
        every = self.settings.evaluation.every
        if self.evaluation is not None and every and self._crossed(every):
            self.recorder.record_evaluation(self.step, self.evaluation(self.agent))

    def _progress(self) -> float:
        """Fraction of the budget lived; an endless run stays at the start of its schedules."""
        return 0.0 if self.num_steps is None else min(1.0, self.step / self.num_steps)

    def _crossed(self, every: int) -> bool:
        return self.step // every > (self.step - self.settings.steps_per_update) // every

    def _check_finite(self, metrics: Mapping[str, float]) -> None:
        # Explained variance is undefined, not wrong, where the value targets are constant.
        wrong = [
            name
            for name, value in metrics.items()
            if name.startswith("losses/")
            and not math.isfinite(value)
            and name != "losses/explained_variance"
        ]
        if wrong:
            raise FloatingPointError(f"non-finite {', '.join(wrong)} at step {self.step}")

    def _checkpoint(self) -> None:
        if self._saved == self.step:
            return
        self._saved = self.step
        checkpoint.save(
            self.folder.checkpoints,
            self.step,
            self.state_dict(),
            self.settings.keep_checkpoints,
            self.selection.best_step,
        )
        self.folder.set_status("running", self.step)

    def state_dict(self) -> dict[str, Any]:
        """Everything the run needs to go on; generators are read here and must be put back last."""
        return {
            "config": self.config,
            "updates": self.updates,
            "agent": self.agent.state_dict(),
            "schedule": self._schedule.state_dict(),
            "rollout": self.rollout.state_dict(),
            "num_values": num_values(self.rollout.crowd.interface),
            "trainer": self.trainer.state_dict(),
            "tracker": self.tracker.state_dict(),
            "selection": self.selection.state_dict(),
            "rows": self.recorder.rows(),
            "generators": checkpoint.generator_states(),
        }

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Take over a checkpoint's content."""
        self.step, self.updates = saved["step"], saved["updates"]
        self._saved = self.step
        self.agent.load_state_dict(saved["agent"])
        self._schedule.load_state_dict(saved.get("schedule", {}))  # before a row asks for a segment
        self.rollout.load_state_dict(saved["rollout"])
        if _kind(saved["config"]) == _kind(self.config):  # another trainer begins anew
            self.trainer.load_state_dict(saved["trainer"])
        self.tracker.load_state_dict(saved["tracker"])
        self.selection.load_state_dict(saved.get("selection", {}), self.folder.checkpoints)
        checkpoint.set_generator_states(saved["generators"])


def _kind(config: str) -> str:
    """The class of a configuration's trainer."""
    return str(OmegaConf.select(OmegaConf.create(config), "trainer._target_"))


def last_step(settings: Settings) -> int | None:
    """Where a run stops: the end of its budget, or `stop_step` before it; None never."""
    ends = [end for end in (planned_steps(settings), settings.stop_step) if end is not None]
    return min(ends, default=None)


def planned_steps(settings: Settings) -> int | None:
    """The budget of a run; a debug run stops after a few updates."""
    if settings.debug:
        return DEBUG_UPDATES * settings.steps_per_update
    return settings.num_steps
