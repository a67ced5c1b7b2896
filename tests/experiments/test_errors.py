"""Every mistake on the command line gets one line: what, what was expected, the nearest choice."""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from sojourn.experiments.command import main
from sojourn.experiments.errors import hint, nearest

Refuse = Callable[..., str]
BANDIT = ["stream=bandit"]

MISTAKES = {
    "misspelt root key": (["sede=2"], "sede: no such key; did you mean seed?"),
    "misspelt key of a class": (["memory.num_head=2"], "did you mean num_heads?"),
    "misspelt nested key": (["memory.views.convwidth=2"], "did you mean conv_width?"),
    "misspelt plain group": (["agent.widht=8"], "did you mean width?"),
    "misspelt choice": (["memory=deltanett"], "no such memory; did you mean delta_net"),
    "misspelt preset": (["experiment=bandits"], "did you mean bandit"),
    "name of another framework": (["total_timesteps=10"], "did you mean num_steps?"),
    "num_envs": (["num_envs=10"], "did you mean num_lifetimes?"),
    "lr": (["trainer.lr=1e-3"], "did you mean trainer.learning_rate?"),
    "text for a number": (["memory.num_heads=two"], "expected a whole number, got 'two'"),
    "fraction for a count": (["num_lifetimes=1.5"], "expected a whole number, got 1.5"),
    "text for a schedule": (["trainer.loss.entropy=high"], "expected a number or a Schedule"),
    "choice string": (["memory_reset=epsode"], "expected one of 'lifetime', 'task', 'episode'"),
    "negative seed": (["seed=-1"], "seed: expected a whole number from 0"),
    "text for the seed": (['seed="3"'], "seed: expected a whole number or null, got '3'"),
    "no budget": (["num_steps=0"], "num_steps: expected at least 1"),
    "key below a value": (["seed.x=1"], "seed is a value"),
    "index of a list": (["stream.schedule.families.7.num_arms=2"], "has entries 0 to 0"),
    "key of hydra": (["hydra.ouput_subdir=x"], "folder=PATH"),
    "sweep": (["seed=1,2"], "one value at a time"),
    "nothing for a width": (["agent.width=null"], "agent.width: expected a whole number, got None"),
    "recomputed nothing": (
        ["agent.recompute_every=0"],
        "recompute_every: expected at least 1 token",
    ),
    "no memory at all": (["agent.depth=0"], "agent.depth: expected at least 1, got 0"),
    "unknown reference": (["agent.width=${nope}"], "'nope' not found"),
    "dashes": (["--seed=2"], "expected key=value without dashes"),
    "value for a node": (["evaluation=3"], "evaluation: expected keys num_lifetimes and steps"),
    "not a key": (["seed"], "expected key=value"),
    "deletion": (["~seed"], "expected key=value"),
    "unquoted value": (["stream.x=a=b"], "quote special characters"),
    "no such resume": (["resume=no/such"], "no such folder or file"),
    "refused by a constructor": (["memory.num_heads=0"], "memory: num_heads must be at least 1"),
    "kernels without a GPU": (["memory.backend=fla"], "memory: backend=fla: "),
    "no such backend": (["memory.backend=flaa"], "got 'flaa'; did you mean 'fla'?"),
    "no such class": (["memory._target_=sojourn.memory.Nothing"], "cannot import"),
    "argument of the run": (["stream.seed=2"], "set by the run from seed"),
    "hand-set choices": (["choices.memory=gru"], "set by the run"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_line_and_exit_code_2(
    mistake: str, refuse: Refuse, workplace: Path
) -> None:
    words, expected = MISTAKES[mistake]
    assert expected in refuse("train", *BANDIT, *words)
    assert not list(workplace.iterdir()), "a refused request must leave no trace"


def test_nothing_but_our_line_is_printed_for_a_class_that_is_not_there(
    refuse: Refuse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # pytest's own would hide the lines
    assert "cannot import 'nowhere.Mine'" in refuse("train", "memory._target_=nowhere.Mine")


def test_an_unknown_environment_is_refused_with_the_nearest_id(refuse: Refuse) -> None:
    line = refuse("train", "stream.schedule.families.0.id=MiniGrid-Emty-5x5-v0")
    assert "MiniGrid-Empty-5x5-v0" in line


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        ("id: 'no_such:Bar-v0'", "No module named 'no_such'"),
        ("id: CartPole-v1, kwargs: {speed: 3}", "CartPole-v1 takes no 'speed'; it takes sutton"),
    ],
)
def test_an_environment_that_cannot_be_made_is_refused(
    family: str, expected: str, refuse: Refuse
) -> None:
    node = f"{{_target_: sojourn.envs.GymnasiumFamily, {family}}}"
    assert expected in refuse("train", *BANDIT, f"stream.schedule.families.0={node}")


def test_an_unknown_verb_is_refused_with_the_nearest(refuse: Refuse) -> None:
    assert "did you mean train?" in refuse("trian")
    assert "did you mean memory?" in refuse("list", "memry")


@pytest.mark.parametrize("path", ["a/epoch=9", "a b", "a#b", "a%b", '"a=b"'])
def test_a_path_may_hold_any_character(path: str, refuse: Refuse) -> None:
    shown = path.strip('"')
    assert refuse("train", f"resume={path}").startswith(f"sojourn: resume={shown}: no such folder")


def test_a_missing_gpu_is_said_before_the_run(
    refuse: Refuse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert "no GPU" in refuse("train", *BANDIT, "device=cuda")


def test_no_words_print_the_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert main(["--help"]) == 0
    assert main(["--version"]) == 0
    out = capsys.readouterr().out
    assert "sojourn VERB" in out
    assert "sojourn 0." in out


def test_hints_name_the_nearest_or_all() -> None:
    assert nearest("GRU", ["gru", "lstm"]) == ["gru"]
    assert hint("xyz", ["a", "b"]) == "choose from a, b"
