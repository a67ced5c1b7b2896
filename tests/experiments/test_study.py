"""Studies: members are the product, finished ones are kept, failing ones do not stop the others."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from sojourn.experiments import catalog
from sojourn.experiments.command import main
from sojourn.experiments.errors import UsageError
from sojourn.experiments.folder import RunFolder
from sojourn.experiments.studies.member import Places, find_row, state_of
from sojourn.experiments.studies.plan import plan
from sojourn.experiments.studies.runner import Outcome, run_members

from .conftest import TINY

MEMORY_FREE = [word for word in TINY if not word.startswith("memory.")]


def names(*words: str) -> list[str]:
    return [member.name for member in plan(list(words)).members]


def test_members_are_the_product_of_all_sweeps() -> None:
    found = plan(["memory=gru,lstm", "seed=0..2", "trainer.num_epochs=1,2"]).members
    assert len({member.name for member in found}) == 12
    assert [member.choices["seed"] for member in found] == [s for s in "012" for _ in range(4)]
    assert {member.group for member in found} == {
        f"{memory} num_epochs={n}" for memory in ("gru", "lstm") for n in (1, 2)
    }


def test_shares_are_the_whole_study() -> None:
    words = ["memory=gru,none", "seed=0..4"]
    shares = [names(*words, f"part={i}/3") for i in (1, 2, 3)]
    together = [name for share in shares for name in share]
    assert sorted(together) == sorted(names(*words))
    assert len(set(together)) == 10


def test_members_are_chosen_by_their_names() -> None:
    words = ["memory=gru,none", "seed=0..4"]
    assert names(*words, "only=*") == names(*words)
    assert names(*words, "only=gru__*,*__s3") == [
        name for name in names(*words) if name.startswith("gru__") or "__s3__" in name
    ]


def test_a_member_is_known_by_all_its_settings() -> None:
    base = ["memory=gru", "seed=1"]
    assert names(*base) == names(*base, "quiet=true", "num_threads=2")
    assert names(*base) != names(*base, "num_steps=5_000")
    assert names(*base) != names(*base, "memory.hidden_width=7")


def test_a_file_adds_words_to_the_members_that_made_a_choice(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "words: [experiment=bandit]\n"
        "sweeps: [['memory=gru,lstm', seed=1], [memory=none, seed=2]]\n"
        "where: {memory=gru: [trainer.returns.trace=0.3]}\n"
    )
    words = {m.choices["memory"]: m.words for m in plan([f"study={file}"]).members}
    assert "trainer.returns.trace=0.3" in words["gru"]
    assert not any(word.startswith("trainer") for word in words["lstm"])
    assert "seed=2" in words["none"]
    own = plan([f"study={file}", "trainer.returns.trace=0.5"]).members
    assert all("trainer.returns.trace=0.5" in member.words for member in own)


def test_what_a_sweep_chooses_goes_before_the_words_of_a_choice(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "sweeps: [['memory=gru', 'memory.hidden_width=8,16', seed=1]]\n"
        "where: {memory=gru: [memory.hidden_width=32]}\n"
    )
    members = plan([f"study={file}"]).members
    assert sorted(m.settings["memory"]["hidden_width"] for m in members) == [8, 16]


def test_whatever_a_sweep_of_a_file_sets_tells_its_members_apart(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "sweeps: [['memory=gru,lstm', seed=1..2], [memory=gru, stream=bandit, seed=1]]\n"
    )
    groups = [member.group for member in plan([f"study={file}"]).members]
    assert sorted(groups) == ["gru", "gru", "gru bandit", "lstm", "lstm"]


def test_what_two_sweeps_ask_for_is_one_member(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "words: [experiment=quickstart]\n"
        "sweeps: [['memory=gru,lstm', seed=1], [memory=gru, experiment=held_out_rules, seed=1]]\n"
    )
    assert len(plan([f"study={file}"]).members) == 3
    repeated = plan([f"study={file}", "experiment=quickstart"]).members
    assert [member.group for member in repeated] == ["gru", "lstm"]


@pytest.mark.parametrize("name", catalog.options("study"))
def test_every_shipped_study_can_be_planned(name: str) -> None:
    assert len(names(f"study={name}")) > 1
    assert "title" in catalog.header(catalog.text_of("study", name))


def test_sizes_are_matched() -> None:
    found = plan(["memory=gru,gated_delta_net", "seed=1", "match=parameters"]).members
    assert any(word.startswith("memory.hidden_width=") for word in found[0].words)
    assert not any(word.startswith("memory.") for word in found[1].words)
    left_out = plan(["memory=none,gru", "seed=1", "match=state_bytes"]).left_out
    assert left_out == ["none: state_bytes: this memory has no state"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["memory=gru"], "seed: a study needs seeds"),
        (["memory=gru", "seed=4..0"], "seed=4..0: a study needs seeds given as whole numbers"),
        (["memory=gru", "seed=null"], "seed=null: a study needs seeds given as whole numbers"),
        (["memory=gruu", "seed=1"], "did you mean gru?"),
        (["study=bandits"], "did you mean bandit or moving_bandit?"),
        (["memory=gru", "seed=1", "jobs=0"], "jobs=0"),
        (["memory=gru", "seed=1", "part=3/2"], "part=3/2"),
        (["memory=gru", "seed=1", "only=gru__s2"], "only=gru__s2: no such member; did you mean"),
        (["memory=gru", "seed=1", "match=size"], "match=size"),
        (["memory=gru", "seed=1", "match=state_bytes", "reference=none"], "reference has none"),
        (
            ["memory=gru", "seed=1", "match=state_bytes", "reference=softmax_attention"],
            "reference: its state grows with every token",
        ),
        (["memory=gru", "seed=1", "folder=x"], "its own folder is output="),
        (["memory=gru", "seed=1", "trainer.lr=1"], "trainer.learning_rate"),
    ],
)
def test_mistakes_are_found_before_anything_runs(words: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message.replace("?", r"\?")):
        plan(words)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("words: [a=1", "not valid YAML"),
        ("sweeps:", "sweeps: expected a list"),
        ("sweeps: 3", "sweeps: expected a list"),
        ("where: [memory=gru]", "where: expected choices"),
    ],
)
def test_a_broken_study_file_is_told_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=message) as caught:
        plan([f"study={path}", "seed=1"])
    assert "\n" not in str(caught.value)


def test_a_study_keeps_what_is_finished_and_survives_a_failure(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*MEMORY_FREE, "memory=none", "seed=1", "trainer.learning_rate=1e-3,1e30"]
    command = ["study", *words, "output=study", "jobs=2"]
    assert main(command) == 1
    printed = capsys.readouterr().out
    assert "failed: none__learning_rate=1e+30" in printed
    rows = list(Path("study/members").glob("*.json"))
    assert len(rows) == 1
    assert json.loads(rows[0].read_text())["summary"]["seed"] == 1
    assert "| none learning_rate=0.001 | 1 |" in Path("study/study.md").read_text()
    assert Path("study/windowed_regret.png").exists()
    assert 'data-section="summary"' in Path("study/report.html").read_text()
    before = rows[0].stat().st_mtime_ns
    assert main(command) == 1
    assert rows[0].stat().st_mtime_ns == before


def test_an_interrupted_study_goes_on_where_it_stopped(
    workplace: Path, assert_same_run: Callable[[Path, Path], None]
) -> None:
    # Long enough not to be done before the signal arrives, however busy the machine is.
    words = [*TINY, "memory=gated_delta_net", "seed=1", "num_steps=9_600", "output=study"]
    code = "import sys; from sojourn.experiments.command import main; sys.exit(main())"
    process = subprocess.Popen([sys.executable, "-c", code, "study", *words])
    (member,) = plan(words).members
    places = Places(Path("study"))
    deadline = time.monotonic() + 120
    while not (places.run(member) / "metrics.csv").exists():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130
    assert state_of(places, member) == "started"
    assert main(["study", *words]) == 0
    assert state_of(places, member) == "done"
    whole = [word for word in words if not word.startswith("output=")]
    assert main(["train", *whole, "folder=whole", "quiet=true", "num_threads=1"]) == 0
    assert_same_run(Path("whole"), places.run(member))


def test_what_another_study_runs_is_left_to_it(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*MEMORY_FREE, "memory=none", "seed=1", "output=study"]
    (member,) = plan(words).members
    places = Places(Path("study"))
    places.run(member).parent.mkdir(parents=True)
    folder = RunFolder.create(places.run(member))
    folder.append("metrics.csv", "step")
    outcomes: list[Outcome] = []
    assert run_members(places, [member], 1, outcomes.append) is None
    assert outcomes == [] and folder.metrics_file.read_text() == "step\n"
    assert main(["study", *words]) == 0
    printed = capsys.readouterr().out
    assert "1 members, 0 of them done" in printed
    assert "another process runs it" in printed
    folder.close()


def test_a_row_answers_until_a_setting_that_it_knew_changes(tmp_path: Path) -> None:
    words = ["experiment=bandit", "memory=gru", "seed=1", "trainer.returns.trace=0.5"]
    (member,) = plan(words).members
    settings = json.loads(json.dumps(member.settings))
    del settings["trainer"]["max_grad_norm"]  # a key that the version of the row did not have
    places = Places(tmp_path)
    path = tmp_path / "members" / f"{member.stem}__00000000.json"
    path.parent.mkdir()

    def found(settings: dict[str, Any], words: Sequence[str] = member.words) -> bool:
        path.write_text(json.dumps({"words": list(words), "settings": settings}))
        return find_row(places, member) is not None

    assert found(settings)
    assert not found(settings, [*member.words, "trainer.max_grad_norm=0.4"])
    assert not found(settings | {"num_steps": 1})
    assert not found(settings | {"of_old": 1})
    del settings["trainer"]["num_minibatches"]  # the preset sets it to another than the default
    assert not found(settings)
