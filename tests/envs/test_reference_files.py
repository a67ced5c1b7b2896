"""References in files: written, read back, matched to their task, shipped with the package."""

from __future__ import annotations

from pathlib import Path

import pytest

from sojourn.envs import (
    Evidence,
    Reference,
    family_of,
    is_provisional,
    read_reference,
    reference_path,
    reference_task,
    reference_text,
    shipped_reference,
    spec_of,
    valid_reference,
)
from sojourn.envs.reference_files import SHIPPED

TASK = {"id": "CartPole-v1", "kwargs": {"sutton_barto_reward": True}}
EVIDENCE = Evidence(400, 400, (5,), (6,), (4,), (1, 2, 3), "0f2a")
FOUND = Reference(-1.0, -0.01, "trained", 0.02, 0.003, evidence=EVIDENCE)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cartpole.yaml"
    path.write_text(reference_text(FOUND, TASK, {"gymnasium": "1.4.0"}, "a title"))
    return path


def test_what_is_written_is_read(file: Path) -> None:
    assert read_reference(file, TASK) == FOUND


def test_a_task_takes_its_reference_from_a_file(file: Path) -> None:
    spec = spec_of(TASK | {"reference": str(file)})
    assert reference_task(spec) == TASK
    assert family_of(spec)._reference == FOUND  # type: ignore[attr-defined]


def test_a_file_is_written_by_hand_too(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        '# mine\ntask: {"id": "A-v0"}\nkind: best of us  # so far\nfloor: 0\nceiling: 1\n'
    )
    assert read_reference(path, {"id": "A-v0"}) == Reference(0.0, 1.0, "best of us")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("kind", "kinds"), "no such key 'kinds'; nearest is 'kind'"),
        (("floor: -1.0\n", ""), "floor: missing"),
        (("kind: ", " kind: "), "line 3: expected key: value"),
        (("[4]", "[5]"), "estimation_seeds: expected none of the selection_seeds"),
        (("-1.0\n", "low\n"), "could not convert"),
        (("true", "false"), "measured with kwargs .*make one with sojourn reference"),
    ],
)
def test_a_wrong_file_is_named(file: Path, change: tuple[str, str], told: str) -> None:
    file.write_text(file.read_text().replace(*change, 1))
    with pytest.raises(ValueError, match=told) as caught:
        read_reference(file, TASK)
    assert "cartpole.yaml" in str(caught.value)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(ValueError, match=r"nowhere.yaml: cannot be read"):
        family_of(spec_of({"id": "CartPole-v1", "reference": "nowhere.yaml"}))


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.yaml")), ids=lambda path: path.stem)
def test_shipped_references_are_sound_and_go_with_the_plain_id_alone(path: Path) -> None:
    task = {"id": path.stem}
    found = shipped_reference(task)
    assert found is not None
    assert valid_reference(found) is found and not is_provisional(found)
    if found.evidence is None:
        assert found.kind == "dp" and found.floor_error == found.ceiling_error == 0.0
    else:
        assert found.evidence.num_ceiling >= 100 and found.evidence.num_floor >= 200
        assert set(found.evidence.estimation_seeds).isdisjoint(found.evidence.floor_seeds)
    assert family_of(spec_of(path.stem))._reference == found  # type: ignore[attr-defined]
    assert shipped_reference(task | {"max_episode_steps": 50}) is None


def test_ids_become_file_names() -> None:
    assert reference_path(Path("a"), "ns/Foo-v0") == Path("a/ns-Foo-v0.yaml")
    assert reference_path(Path("a"), "my.envs:Foo") == Path("a/my.envs-Foo.yaml")
    assert shipped_reference({"id": "nobody/knows"}) is None


def test_seeds_that_choose_never_estimate() -> None:
    with pytest.raises(ValueError, match="none of the selection_seeds"):
        Evidence(10, 10, estimation_seeds=(1, 2), selection_seeds=(2,))
