"""The verb `probe` from words to tables: seeds, resuming, failures, mistakes."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sojourn.experiments import catalog
from sojourn.experiments.command import main
from sojourn.experiments.probes import member, study
from sojourn.experiments.probes.plan import plan
from sojourn.experiments.tables import read_table

TINY = ["steps=3", "batch=4", "width=8", "memory.num_heads=1", "output=out"]
RECALL = ["task.num_keys=8", "task.size=2", "task.train_sizes=[2]", "task.test_sizes=[2,4]"]
MQAR = ["probe=mqar", *TINY, *RECALL]
Rows = dict[str, list[tuple[str, float, float]]]


@pytest.fixture(autouse=True)
def small_tests(monkeypatch: pytest.MonkeyPatch, workplace: Path) -> None:
    monkeypatch.setattr("sojourn.experiments.probes.training.TEST_ROWS", 8)


def rows(folder: str = "out") -> Rows:
    """Member -> its rows without the clock."""
    found: Rows = {}
    for path in sorted(Path(folder, "members").glob("*.csv")):
        table = read_table(path)
        cells = zip(table["measure"], table["x"], table["value"], strict=True)
        found[path.stem] = [tuple(row) for row in cells if row[0] != "seconds"]
    return found


def same_rows(one: Rows, other: Rows) -> None:
    assert list(one) == list(other)
    for name, cells in one.items():
        for first, second in zip(cells, other[name], strict=True):
            assert first[0] == second[0]
            np.testing.assert_array_equal(first[1:], second[1:])


def test_every_probe_runs_from_words_to_tables() -> None:
    assert main(["probe", "probe=all", "memory=delta_net", *TINY]) == 0
    assert len(rows()) == len(catalog.options("probe"))
    table = read_table(Path("out/probes.csv"))
    assert set(table["probe"]) == set(catalog.options("probe"))
    assert np.isfinite(table["score mean"]).all()
    text = Path("out/probes.md").read_text()
    assert "| delta_net |" in text
    assert "Rules alone" in text
    for name in ("probes", *catalog.options("probe")):
        assert Path(f"out/{name}.png").stat().st_size > 1000
    assert Path("out/command.txt").read_text().startswith("sojourn probe probe=all")
    assert Path("out/versions.json").exists()


def test_same_seed_same_bits_and_another_seed_others() -> None:
    for folder in ("one", "two"):
        assert main(["probe", *MQAR, "memory=delta_net,ttt_mlp", f"output={folder}"]) == 0
    same_rows(rows("one"), rows("two"))
    assert main(["probe", *MQAR, "memory=delta_net", "seed=1", "output=three"]) == 0
    (other,) = rows("three").values()
    assert other != next(iter(rows("one").values()))


def test_a_stopped_study_goes_on_and_ends_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["probe", *MQAR, "memory=delta_net,linear_attention", "seed=0..1"]
    assert main([*words, "output=whole"]) == 0
    run, calls = study.run_member, []

    def stop_at_the_third(wanted: member.Member) -> member.Result:
        calls.append(wanted)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return run(wanted)

    monkeypatch.setattr(study, "run_member", stop_at_the_third)
    assert main(words) == 130
    assert len(rows()) == 2
    calls.clear()
    monkeypatch.setattr(study, "run_member", lambda wanted: (calls.append(wanted), run(wanted))[1])
    assert main(words) == 0
    assert len(calls) == 2
    same_rows(rows(), rows("whole"))
    calls.clear()
    assert main(words) == 0
    assert not calls, "a finished study has nothing to do"


def test_other_settings_are_other_members() -> None:
    for change in ("steps=3", "steps=4", "memory.value_width=4", "task.num_values=4"):
        assert main(["probe", *MQAR, "memory=delta_net", change]) == 0
    assert len(rows()) == 4


def test_a_failing_member_leaves_its_line_and_the_others_go_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["probe", "probe=mqar", *TINY, *RECALL, "lr=1e30", "steps=25"]
    words = [word for word in words if word != "memory.num_heads=1"]
    assert main([*words, "memory=none,gru"]) == 1
    out = capsys.readouterr().out
    assert "failed: the loss is not finite at step" in out
    assert "try a smaller lr" in Path("out/probes.md").read_text()
    table = read_table(Path("out/probes.csv"))
    assert table["failed"].sum() >= 1
    assert len(rows()) == 2
    assert main([*words, "memory=none,gru"]) == 1
    assert "0 of them in out already" in capsys.readouterr().out or table["failed"].sum() == 1


def test_members_run_side_by_side_as_in_turn() -> None:
    words = ["probe", *MQAR, "memory=delta_net", "seed=0..1"]
    assert main([*words, "output=turn"]) == 0
    assert main([*words, "output=side", "jobs=2"]) == 0
    # The workers test on more rows than this process does: the training curves must agree.
    for name, cells in rows("turn").items():
        trained = [row for row in cells if row[0] == "training score"]
        assert trained == [row for row in rows("side")[name] if row[0] == "training score"]


def test_sizes_are_matched_and_what_cannot_be_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    words = [word for word in MQAR if word != "memory.num_heads=1"]
    chosen = "memory=delta_net,gru,softmax_attention"
    assert main(["probe", *words, chosen, "match=none,parameters,state_bytes"]) == 0
    assert "left out: softmax_attention, match=state_bytes" in capsys.readouterr().out
    table = read_table(Path("out/probes.csv"))
    assert len(table["memory"]) == 8
    matched = table["match"] != "none"
    assert (np.abs(table["off"][matched]) <= 0.05).all()
    for how in ("parameters", "state_bytes"):
        sizes = table[how][table["match"] == how]
        assert sizes.max() <= 1.11 * sizes.min()


def test_the_control_has_rows_of_its_own() -> None:
    assert main(["probe", *MQAR, "memory=delta_net", "control=none,reset_every_step"]) == 0
    table = read_table(Path("out/probes.csv"))
    assert list(table["control"]) == ["none", "reset_every_step"]


MISTAKES = {
    "probe": (["probe=mqr"], "probe=mqr: no such probe; did you mean mqar?"),
    "memory": (["memory=gru,deltanet"], "memory=deltanet: no such memory; did you mean delta_net"),
    "seed": (["seed=one"], "seed=one: expected whole numbers"),
    "match": (["match=params"], "match=params: no such match; did you mean parameters?"),
    "control": (["control=reset"], "control=reset: no such control; "),
    "jobs": (["jobs=0"], "jobs=0: expected a whole number, 1 or more"),
    "empty range": (["seed=2..0"], "seed=2..0: expected whole numbers"),
    "no digit": (["seed=²"], "seed=²: expected whole numbers"),
    "rate": (["lr=nan"], "lr: expected a number above 0"),
    "ratio": (["mlp_ratio=-1"], "mlp_ratio: expected at least"),
    "size of the memory": (["memory.num_heads=0"], "num_heads must be at least 1"),
    "reference without a state": (
        ["match=state_bytes", "reference=none"],
        "the reference has none",
    ),
    "key": (["stepz=3"], "stepz: no such key; did you mean steps?"),
    "key of the task": (["task.num_pears=3"], "num_pears: no such key; did you mean num_"),
    "key of the memory": (["memory.num_head=2"], "did you mean num_heads?"),
    "value": (["steps=few"], "steps: expected a whole number, got 'few'"),
    "no step": (["steps=0"], "steps: expected at least 1, got 0"),
    "learning rate": (["lr=0.0"], "lr: expected a number above 0"),
    "refused by the task": (["task.num_keys=2"], "task: num_keys: expected at least 32"),
    "no equals sign": (["mqar"], "expected key=value"),
    "nothing left": (["memory=none", "match=state_bytes"], "no member is left: none"),
    "nothing after a comma": (["memory=gru,"], "memory=gru,: expected names between commas, as in"),
    "no file": (["memory=./nothing.yaml"], "memory=./nothing.yaml: cannot be read"),
    "no task": (["task=null"], "task: expected keys, first of all a `_target_`, got None"),
    "another group's key": (
        ["memory=mesa_net", "memory.solver.method.num_steps=3"],
        "memory.solver.method.num_steps: no such key; memory.solver.method takes none",
    ),
    "growing reference": (
        ["match=state_bytes", "reference=softmax_attention"],
        "reference: its state grows with every token",
    ),
    "several references": (["match=parameters", "reference=gru,lstm"], "expected one memory"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_line_and_leaves_no_trace(
    mistake: str, refuse: Callable[..., str], workplace: Path
) -> None:
    words, expected = MISTAKES[mistake]
    assert expected in refuse("probe", *words)
    assert not list(workplace.iterdir())


def test_lists_and_ranges_name_members() -> None:
    wanted = plan(["probe=mqar,copying", "memory=gru,lstm", "seed=0..2,7"])
    assert len(wanted.members) == 2 * 2 * 4
    assert [m.seed for m in wanted.members[:4]] == [0, 0, 0, 0]
    assert len({m.name for m in wanted.members}) == 16
    assert len(plan(["memory=all"]).members) == len(catalog.options("memory"))


def test_a_memory_may_be_a_file_of_the_users_own(capsys: pytest.CaptureFixture[str]) -> None:
    Path("averages.py").write_text(
        "from sojourn.memory import GRU\n\n\nclass Averages(GRU):\n    pass\n"
    )
    Path("mine.yaml").write_text("_target_: averages.Averages\nhidden_width: 3\n")
    words = ["probe", *MQAR, "memory=./mine.yaml,gru", "steps=1", "match=parameters"]
    words = [word for word in words if not word.startswith("memory.")]
    assert main([*words, "reference=./mine.yaml"]) == 0
    table = read_table(Path("out/probes.csv"))
    assert set(table["memory"]) == {"mine", "gru"}
    Path("gru.yaml").write_text("_target_: averages.Averages\n")
    assert main([*words, "memory=gru,gru.yaml"]) == 2
    assert "another memory is called gru; rename the file" in capsys.readouterr().err


@pytest.mark.slow
def test_every_memory_is_trained_controlled_and_measured() -> None:
    words = ["probe", *MQAR, "memory=all", "steps=1", "control=none,reset_every_step"]
    words = [word for word in words if word != "memory.num_heads=1"]
    words[1] = "probe=mqar,overwriting"
    words = [word for word in words if not word.startswith("task.")]
    assert main([*words, "task.test_sizes=[2]", "task.train_sizes=[2]", "task.size=2"]) == 0
    text = Path("out/probes.md").read_text()
    assert "Remarks" not in text
    assert text.count("(initial gates)") >= 20 * 5
