"""An endless life, window by window: live and learn, let the twin live, judge, write down."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from omegaconf import OmegaConf
from torch import Tensor

from sojourn.agents import LivedWindow, Verdict, restart_broken, unseen, window_losses
from sojourn.envs import EpisodeRecord

from .. import checkpoint
from ..folder import RunFolder
from ..progress import Display
from ..selection import Selection
from ..stopping import StopRequest
from .parts import LiveParts
from .request import LIFE, LiveRequest
from .tables import LiveTables, Tally

END = 1.0  # progress: the schedules of the trainer stand at their end


class Life:
    """Lives from wherever it stands; every window ends at a point from which it can go on.

    Only what the checkpoint holds decides what comes next, so that a life that was killed is the
    unbroken one bit for bit.
    """

    def __init__(
        self, request: LiveRequest, parts: LiveParts, folder: RunFolder, display: Display
    ) -> None:
        self.request, self.parts, self.folder, self.display = request, parts, folder, display
        self.step = 0
        self.tally = Tally()
        self.selection = Selection()
        self.begin = copy.deepcopy(parts.agent.state_dict())
        written: Mapping[str, int] = request.content["rows"] if request.goes_on else {}
        self.tables = LiveTables(folder.path, request.settings.table_rows, written)
        self._saved: int | None = None
        if request.goes_on:
            self._load_state_dict(request.content)

    def live(self, stop: StopRequest) -> bool:
        """Live until the budget is spent (True) or a stop is asked for (False); saves either
        way.
        """
        settings = self.request.settings
        self._checkpoint()
        while settings.num_steps is None or self.step < settings.num_steps:
            if stop.signal is not None:
                self._checkpoint()
                return False
            before = self.step // settings.checkpoint_every
            self._window()
            if self.step // settings.checkpoint_every > before:
                self.selection.end_stretch(self.step)
                self._checkpoint()
        self._checkpoint()
        return True

    def _window(self) -> None:
        """One window of both lives, and what becomes of the parameters it taught."""
        parts, steps = self.parts, self.request.window_steps
        start = parts.rollout.state_dict()
        records, metrics, broken = self._learn()
        verdict = broken or parts.guard.judged(LivedWindow(start, steps, records))
        restart_broken(parts.rollout)
        lived = [] if parts.twin is None else parts.twin.live(steps)
        twins = [ending.record for ending in lived]
        losses = window_losses([records, twins], parts.measure).tolist()
        self.step += steps * self.request.settings.num_lifetimes
        self.tally.add(losses[0], losses[1], verdict)
        known = parts.measure == "regret"
        self.selection.add(losses[0] if known else math.nan, _minus_return(records))
        metrics["distance"] = self._distance()
        self.tables.write_window(self.step, losses, verdict, metrics)
        self.tables.write_episodes(self.step, records, twins)
        self.display.update(self.step, self.tally.line(parts.measure))

    def _learn(self) -> tuple[list[EpisodeRecord], dict[str, float], Verdict | None]:
        """Live a window and learn from each slice. Where learning breaks, the parameters are taken
        back and the rest of the window is lived without it; the episodes of that slice are lost.
        """
        parts, length = self.parts, self.request.slice_steps
        slices = self.request.settings.guard.slices
        records: list[EpisodeRecord] = []
        sums: dict[str, float] = {}
        for number in range(slices):
            try:
                done = parts.trainer.iterate(parts.rollout, length, END, unseen)
            except FloatingPointError:
                verdict = parts.guard.broken()
                restart_broken(parts.rollout)
                rest = parts.rollout.live(length * (slices - number - 1))
                return [*records, *(ending.record for ending in rest)], {}, verdict
            records += done.episodes
            for name, value in done.metrics.items():
                sums[name] = sums.get(name, 0.0) + value / slices
        return records, sums, None

    def _distance(self) -> float:
        """|phi - phi_0| / |phi_0| of the outer parameters in force."""
        names = [name for name, _ in self.parts.agent.named_parameters()]
        now, then = (_vector(one, names) for one in (self.parts.agent.state_dict(), self.begin))
        return float((now - then).norm() / then.norm())

    def _checkpoint(self) -> None:
        if self._saved == self.step:
            return
        self._saved = self.step
        rows = self.tables.bound()
        keep = self.request.settings.keep_checkpoints
        content = self.state_dict() | {"rows": rows}
        best = self.selection.best_step
        checkpoint.save(self.folder.checkpoints, self.step, content, keep, best)
        summary = self.tally.summary(self.parts.measure)
        self.folder.write_json("life.json", {"step": self.step, **summary})
        self.folder.set_status("running", self.step)

    def state_dict(self) -> dict[str, Any]:
        """Everything the life needs to go on, beside the tables; `config` and `agent` are those of
        a run, so that a life can be loaded and evaluated like one.
        """
        parts = self.parts
        return {
            "kind": LIFE,
            "config": OmegaConf.to_yaml(self.request.config),
            "live": OmegaConf.to_yaml(self.request.live),
            "agent": parts.agent.state_dict(),
            "begin": self.begin,
            "trainer": parts.trainer.state_dict(),
            "rollout": parts.rollout.state_dict(),
            "guard": parts.guard.state_dict(),
            "twin": None if parts.twin is None else parts.twin.state_dict(),
            "tally": self.tally.state_dict(),
            "selection": self.selection.state_dict(),
            "generators": checkpoint.generator_states(),
        }

    def _load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Take over a checkpoint's content; generators last, building objects draws from them."""
        parts = self.parts
        self.step = self._saved = int(saved["step"])
        self.begin = dict(saved["begin"])
        parts.agent.load_state_dict(saved["agent"])
        parts.trainer.load_state_dict(saved["trainer"])
        parts.rollout.load_state_dict(saved["rollout"])
        parts.guard.load_state_dict(saved["guard"])
        if parts.twin is not None:
            parts.twin.load_state_dict(saved["twin"])
            parts.twin_agent.load_state_dict(self.begin)
        self.tally.load_state_dict(saved["tally"])
        self.selection.load_state_dict(saved.get("selection", {}), self.folder.checkpoints)
        checkpoint.set_generator_states(saved["generators"])


def _minus_return(records: Sequence[EpisodeRecord]) -> float:
    returns = [record.total_return for record in records]
    return -sum(returns) / len(returns) if returns else math.nan


def _vector(values: Mapping[str, Tensor], names: list[str]) -> Tensor:
    return torch.cat([values[name].flatten().double().cpu() for name in names])
