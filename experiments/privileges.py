"""What a run was told in training that its agent does not see; marked in every table."""

from __future__ import annotations

from collections.abc import Sequence

from omegaconf import DictConfig, OmegaConf

NONE = "no"


def privileges(config: DictConfig) -> list[str]:
    """A few words for each: true task ends, expected rewards, hidden numbers of the task.

    The division of rewards by a task's ceiling - floor is not among them: it is the unit.
    """
    strategy = str(OmegaConf.select(config, "trainer.extras.strategy._target_"))
    told = {
        "memory reset at task ends": config.memory_reset == "task",
        "credit cut at task ends": config.credit == "task",
        "discount at task ends": _read(config, "trainer.returns.task_discount", 1.0) != 1.0,
        "pseudo-regret": _read(config, "trainer.returns.reward", "sampled") == "expected",
        "critic": _read(config, "trainer.extras.critic", None) is not None,
        f"{strategy.rpartition('.')[2]} at task ends": (
            _read(config, "trainer.extras.strategy.at", None) == "task_end"
        ),
    }
    return [words for words, is_so in told.items() if is_so]


def cell(found: Sequence[str]) -> str:
    """For a table."""
    return ", ".join(found) or NONE


def _read(config: DictConfig, key: str, default: object) -> object:
    found = OmegaConf.select(config, key)
    return default if found is None else found
