"""What the command says of itself."""

import pytest

from sojourn.experiments import catalog
from sojourn.experiments.command import VERBS, main


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0
    assert f"sojourn {verb}" in capsys.readouterr().out


def test_help_lists_keys_defaults_and_choices(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "experiment=bandit", "--help"]) == 0
    out = capsys.readouterr().out
    for expected in ("slice_steps", "steps of every lifetime", "trainer.num_epochs", "delta_net"):
        assert expected in out
    assert "memory.views.conv_width" in out


@pytest.mark.parametrize("group", catalog.GROUPS)
def test_list_names_every_option(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", group]) == 0
    out = capsys.readouterr().out
    for name in catalog.options(group):
        assert name in out
