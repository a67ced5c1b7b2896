"""k % tuning: settings see a part of a life only, the frozen ones live on fresh seeds."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import yaml

from sojourn.experiments import study
from sojourn.experiments.command import main
from sojourn.experiments.errors import UsageError
from sojourn.experiments.folder import write_atomically
from sojourn.experiments.studies.member import Member, Places, write_row
from sojourn.experiments.studies.plan import plan
from sojourn.experiments.studies.play import Outcome
from sojourn.experiments.studies.tuning import choose, is_pending, score

from .conftest import TINY

BASE = [word for word in TINY if not word.startswith("memory.")]
RATES = ["tune=0.5", "tune.trainer.learning_rate=1e-3,1e30", "tune_seed=7"]
WORDS = [*BASE, "memory=none", "seed=1,2", *RATES]
ROW = '{"words": [], "choices": {}, "settings": {}, "summary": {"regret_end": {"all": {"normalised"'


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Studies run their members in this process; the names of those that ran."""
    names: list[str] = []

    def run(
        places: Places,
        members: Sequence[Member],
        jobs: int,
        say: Callable[[Outcome], None],
        *launcher: object,
    ) -> None:
        for member in members:
            names.append(member.name)
            words = [*member.words, f"folder={places.run(member)}", "quiet=true"]
            failed = main(["train", *words]) != 0
            if not failed:
                write_row(places, member)
            say(Outcome(member, 0.0, "failed" if failed else ""))

    monkeypatch.setattr(study, "run_members", run)
    return names


def test_a_run_stopped_early_is_the_beginning_of_the_whole_one(
    train: Callable[..., Path], assert_same_run: Callable[[Path, Path], None]
) -> None:
    whole, run = train("whole"), train("run", "stop_step=160")
    assert "5 updates" in (run / "log.txt").read_text()
    assert main(["train", "resume=run", "stop_step=null", "quiet=true"]) == 0
    assert_same_run(whole, run)


def test_trials_are_settings_times_seeds_on_the_first_part(tmp_path: Path) -> None:
    words = ["memory=gru,lstm", "seed=0..2", "num_steps=1_000", "evaluation.num_lifetimes=9"]
    tuned = ["tune=0.25", "tune.trainer.learning_rate=1e-3,3e-3", "tune.trainer.loss.clip=0.1,0.2"]
    found = plan([*words, *tuned, "tune_seed=7,8"])
    assert len(found.members) == 6 and set(found.trials) == {"gru", "lstm"}
    assert [len(trials) for trials in found.trials.values()] == [4 * 2] * 2
    names = {trial.member.name for trials in found.trials.values() for trial in trials}
    assert len(names) == 16
    for trial in found.trials["gru"]:
        settings = trial.member.settings
        assert (settings["stop_step"], settings["num_steps"]) == (250, 1_000)
        assert settings["evaluation"]["num_lifetimes"] == 0
        assert trial.member.choices["seed"] in ("7", "8")
    (first, *_) = found.tuned({"gru": ["trainer.learning_rate=3e-3"]})
    assert first.settings["trainer"]["learning_rate"] == 3e-3
    assert first.settings["stop_step"] is None
    assert first.group == "gru"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tune=0.1"], "tune: which settings?"),
        (["tune.seed_x=1"], "tune: which part of a life?"),
        (["tune_seed=3"], "tune: which part of a life?"),
        (["tune=1.0", "tune.trainer.loss.clip=0.1,0.2"], "tune=1.0: expected a fraction"),
        (["tune=x", "tune.trainer.loss.clip=0.1,0.2"], "tune=x: expected a fraction"),
        (["tune=0.1", "tune.trainer.lr=1,2"], "did you mean trainer.learning_rate?"),
        (["tune=0.1", "tune.memory=gru,lstm"], "tune.memory: swept by the study already"),
        (["tune=0.1", "tune.trainer.loss.clip=0.1", "tune_seed=1"], "1 is a seed of the study"),
        (["tune=0.1", "tune.trainer.loss.clip=0.1", "num_steps=null"], "give num_steps=N"),
    ],
)
def test_mistakes_are_found_before_anything_runs(words: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan(["memory=gru", "seed=1,2", *words])
    assert message in str(caught.value)


def test_the_least_mean_wins_and_a_failure_under_any_seed_loses(tmp_path: Path) -> None:
    words = ["memory=gru", "seed=1", "tune=0.1", "tune.trainer.loss.clip=0.1,0.2,0.3"]
    found = plan([*words, "tune_seed=7,8"])
    places = Places(tmp_path)
    trials = found.trials["gru"]
    places.row(trials[0].member).parent.mkdir()
    for trial, regret in zip(trials, (0.4, 0.2, 0.1, 0.1, 0.0, None), strict=True):
        if regret is None:
            places.run(trial.member).mkdir(parents=True)
            write_atomically(places.run(trial.member) / "status.json", '{"status": "failed"}')
        else:
            write_atomically(places.row(trial.member), f"{ROW}: {regret}}}}}}}}}")
    assert not any(is_pending(places, trial) for trial in trials)
    assert found.options.tune is not None
    tuned = choose(places, found.trials, found.options.tune)["gru"]
    assert tuned.setting == ("trainer.loss.clip=0.2",)
    assert list(tuned.scores.values()) == [pytest.approx(0.3), pytest.approx(0.1), math.inf]
    told = tuned.line()
    assert "3 settings x 2 seeds" in told and "first 10% of a life" in told


def test_without_a_reference_the_return_decides(tmp_path: Path) -> None:
    words = ["memory=gru", "seed=1", "tune=0.1", "tune.trainer.loss.clip=0.1", "tune_seed=7"]
    (trial,) = plan(words).trials["gru"]
    places = Places(tmp_path)
    places.row(trial.member).parent.mkdir()
    assert is_pending(places, trial) and score(places, trial) == math.inf
    write_atomically(places.row(trial.member), f'{ROW}: null}}}}, "return_end": 3.5}}}}')
    assert score(places, trial) == -3.5


def test_a_study_tunes_freezes_and_goes_on(
    workplace: Path, ran: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["study", *WORDS, "output=study"]
    assert main(command) == 0
    assert len(ran) == 4, "two trials, then two members"
    said = capsys.readouterr().out
    assert "2 trials, 0 of them done" in said and "2 members, 0 of them done" in said
    table = Path("study/study.md").read_text()
    assert "trainer.learning_rate=0.001 (of 2 settings x 1 seed, first 50% of a life)" in table
    kept = yaml.safe_load(Path("study/tuned.yaml").read_text())["none"]
    assert kept["words"] == ["trainer.learning_rate=0.001"] and kept["seeds"] == ["7"]
    assert main(command) == 0
    assert len(ran) == 4, "nothing is run twice, not even what failed"


def test_a_group_whose_settings_all_fail_is_left_out(
    workplace: Path, ran: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*BASE, "memory=none", "seed=1", "tune=0.5", "tune.trainer.learning_rate=1e30"]
    assert main(["study", *words, "tune_seed=7", "output=study"]) == 1
    assert "tuned none: left out, as every setting failed" in capsys.readouterr().out
    assert len(ran) == 1


def test_shares_wait_for_the_trials_of_the_others(workplace: Path, ran: list[str]) -> None:
    command = ["study", *WORDS, "output=study"]
    assert main([*command, "part=1/2"]) == 1
    assert len(ran) == 1, "its own trial only"
    assert main([*command, "part=2/2"]) == 0
    assert main([*command, "part=1/2"]) == 0
    assert len(ran) == 4
