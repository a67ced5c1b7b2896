"""Chunk sizes: those of exact memories are speed only, those of anchored ones part of the model."""

import pytest

from sojourn.experiments import catalog
from sojourn.experiments.config import compose_config, parse
from sojourn.experiments.probes.plan import plan as plan_probes
from sojourn.experiments.speed_only import without_speed_only
from sojourn.experiments.studies.earlier import answers
from sojourn.experiments.studies.plan import plan as plan_study
from sojourn.memory import ChannelSolver, Solver

MEMORIES = [n for n in catalog.options("memory") if n not in ("hybrid", "multi_rate")]


def solver_of(memory: str) -> type | None:
    """The class of the solver, where the memory has one with chunks."""
    from hydra.utils import get_class

    config = compose_config(parse([f"memory={memory}"])).memory
    if "chunk_size" not in config.get("solver", {}):
        return None
    return get_class(config.solver._target_)


@pytest.mark.parametrize("memory", MEMORIES)
def test_another_chunk_size_is_another_member_of_anchored_memories_only(memory: str) -> None:
    solver = solver_of(memory)
    if solver is None:
        pytest.skip("no solver with chunks")
    assert issubclass(solver, Solver | ChannelSolver)
    word = "memory.solver.chunk_size=7"
    one, other = (
        plan_probes(["probe=mqar", f"memory={memory}", *words]).members[0] for words in ([], [word])
    )
    assert (one.name == other.name) != getattr(solver, "anchored", False)


def test_rows_of_a_study_answer_for_other_chunks() -> None:
    words = ["experiment=bandit", "memory=delta_net", "seed=0"]
    (member,) = plan_study(words).members
    row = {"words": member.words, "settings": dict(member.settings)}
    row["settings"] = change(row["settings"], "chunk_size", 5)
    assert row["settings"] != member.settings
    assert answers(row, member.words, member.settings)
    other = change(row["settings"], "num_heads", 5)
    assert not answers({**row, "settings": other}, member.words, member.settings)


def change(settings: object, key: str, value: int) -> object:
    """The same nested settings with another value wherever the key stands."""
    if isinstance(settings, dict):
        return {k: value if k == key else change(v, key, value) for k, v in settings.items()}
    return [change(v, key, value) for v in settings] if isinstance(settings, list) else settings


def test_what_is_not_a_solver_keeps_its_chunks() -> None:
    for target in ("", "no.such.thing", "torch.nn.Linear"):
        node = {"_target_": target, "chunk_size": 3, "inner": [{"chunk_size": 4}]}
        assert without_speed_only(node) == node
