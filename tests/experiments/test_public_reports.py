"""Faults that users of other packages reported of configuration, folders, logs, resuming and
statistics: each is a test here or one of those named below.
"""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from sojourn.experiments import evaluate
from sojourn.experiments.command import main
from sojourn.experiments.folder import RunFolder
from sojourn.experiments.loading import load
from sojourn.experiments.measures.forgetting import Matrix, accuracy, backward_transfer
from sojourn.experiments.recordings.camera import SCREENLESS

HERE = Path(__file__).parent
TESTS = {
    "facebookresearch/hydra#1577: a path with = # % or a space cannot be given": (
        "test_errors.py::test_a_path_may_hold_any_character",
        "test_resume.py::test_relative_paths_are_those_of_the_launch_directory",
        "test_public_reports.py::test_our_own_names_need_no_quotes",
    ),
    "facebookresearch/hydra#1457: a misspelt key is taken, or refused without a hint": (
        "test_errors.py::test_a_mistake_gets_one_line_and_exit_code_2",
    ),
    "facebookresearch/hydra#2284, #2551, #2824: what failed in a sweep is told late or never": (
        "test_study.py::test_a_study_keeps_what_is_finished_and_survives_a_failure",
        "test_train.py::test_a_failure_leaves_a_traceback_in_the_folder",
        "test_launchers.py::test_every_launcher_leaves_the_rows_of_the_local_study",
    ),
    "facebookresearch/hydra#2103, alex-hh/profam#261: two runs share a folder": (
        "test_folder.py::test_runs_that_start_at_once_get_folders_of_their_own",
        "test_folder.py::test_an_existing_folder_is_refused",
        "test_folder.py::test_a_second_process_is_kept_out",
    ),
    "facebookresearch/hydra#2414, #990, hydra-zen#339: relative paths move with the job": (
        "test_resume.py::test_relative_paths_are_those_of_the_launch_directory",
        "test_errors.py::test_a_mistake_gets_one_line_and_exit_code_2",
    ),
    "stable-baselines3#433, stable-baselines#56, #1007: after resuming curves start at 0": (
        "test_resume.py::test_a_longer_budget_continues_the_same_curves",
    ),
    "tensorboard#4840, wandb#3229: steps after the checkpoint are there twice": (
        "test_resume.py::test_what_was_written_after_the_checkpoint_is_written_once",
        "test_tables.py::test_resuming_cuts_back_so_that_each_step_is_there_once",
    ),
    "tensorboardX#519, pytorch#40574: hyperparameters make a run of their own": (
        "test_resume.py::test_viewers_see_one_run_with_speed_and_configuration",
    ),
    "tensorboard#7064, #7107: tensorboard does not start with setuptools of 2026": (
        "test_public_reports.py::test_tensorboard_starts",
    ),
    "oxwhirl/pymarl#73: memory grows with the steps": (
        "test_train.py::test_a_long_run_does_not_grow",
        "test_live_size.py::test_memory_stays_flat_for_a_while",
    ),
    "Gymnasium#356, #1322, #1327, Minigrid#504: videos need moviepy or a screen": (
        "test_public_reports.py::test_a_recording_needs_no_moviepy_and_no_screen",
        "test_record.py::test_mp4_without_its_extra_is_refused_by_name",
        "test_gallery.py::test_pictures_start_no_screen_and_no_sound_and_say_nothing",
    ),
    "sample-factory#313: a checkpoint with NumPy numbers cannot be loaded": (
        "test_checkpoint.py::test_content_comes_back_as_it_was",
        "test_checkpoint.py::test_another_format_is_refused_clearly",
    ),
    "pytorch-lightning#688, optuna-examples#53: a kill while saving destroys the last file": (
        "test_checkpoint.py::test_a_kill_while_saving_leaves_the_last_good_file",
        "test_checkpoint.py::test_a_broken_newest_file_falls_back_to_the_last_good_one",
        "test_resume.py::test_a_broken_newest_checkpoint_falls_back_and_says_so",
    ),
    "stable-baselines3#1277, stable-baselines#692: is a resumed run the unbroken one?": (
        "test_resume.py::test_an_interrupted_run_goes_on_bit_for_bit",
        "test_kill.py::test_a_killed_run_goes_on_bit_for_bit",
    ),
    "IsaacLab#2635: what an agent knows of its inputs is not saved": (
        "test_public_reports.py::test_another_process_acts_as_this_one",
        "test_loading.py::test_the_loaded_agent_is_the_trained_one",
    ),
    "stable-baselines3#1877: resuming under changed settings": (
        "test_resume.py::test_a_resumed_run_may_change_its_trainer_and_says_so",
        "test_resume.py::test_a_resumed_run_keeps_what_its_life_depends_on",
    ),
    "Continvvm/continuum#281, dytox#12: forgetting after the second task is 0": (
        "test_public_reports.py::test_forgetting_of_two_tasks_by_hand",
    ),
    "ContinualAI/avalanche#837: forward transfer fails without an early evaluation": (
        "test_public_reports.py::test_transfer_needs_no_early_evaluation_that_is_asked_for",
        "test_measures_matrix.py::test_three_tasks_by_hand",
    ),
    "google-research/rliable#20: a bootstrap over the wrong axis has no variance": (
        "test_statistics.py::test_bands_have_the_width_of_the_spread_between_runs_not_between_points",
        "test_statistics.py::test_axes_are_not_mistaken",
        "test_statistics.py::test_one_run_has_no_interval",
    ),
}


@pytest.mark.parametrize("report", TESTS)
def test_every_report_has_its_tests(report: str) -> None:
    for test in TESTS[report]:
        file, _, name = test.partition("::")
        tree = ast.parse((HERE / file).read_text(encoding="utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, test


def test_our_own_names_need_no_quotes(workplace: Path) -> None:
    folder = RunFolder.create_named("a=b", "my core#1__50%__s1")
    folder.close()
    assert folder.path.parent.name == "a-b"
    assert folder.path.name.startswith("my-core-1__50-__s1__")


@pytest.mark.slow
def test_tensorboard_starts() -> None:
    command = [sys.executable, "-m", "tensorboard.main", "--version"]
    assert subprocess.run(command, capture_output=True).returncode == 0


def test_a_recording_needs_no_moviepy_and_no_screen(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "moviepy", None)
    for name in ("DISPLAY", "WAYLAND_DISPLAY", *SCREENLESS):
        monkeypatch.delenv(name, raising=False)
    assert main(["record", f"{runs}/delta-1", "steps=3", "output=life.gif"]) == 0
    assert {name: os.environ.get(name) for name in SCREENLESS} == SCREENLESS
    assert Path("life.gif").read_bytes().startswith(b"GIF8")


@pytest.mark.slow
def test_another_process_acts_as_this_one(train: Callable[..., Path]) -> None:
    run = train("run")
    code = (
        "from sojourn.experiments.loading import load\n"
        f"lived, _ = load({str(run)!r}).rollout(3, seed=5).collect(30)\n"
        "print(lived.steps['log_prob'].double().sum().item().hex())"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    lived, _ = load(run).rollout(3, seed=5).collect(30)
    assert isinstance(lived.steps["log_prob"], torch.Tensor)
    assert told.stdout.strip() == lived.steps["log_prob"].double().sum().item().hex(), told.stderr


def test_forgetting_of_two_tasks_by_hand() -> None:
    after_each = np.array([[0.9, 0.1], [0.4, 0.8]])  # row: after a task; column: of a task
    scores = np.concatenate([np.zeros((1, 2)), after_each])[None]
    matrix = Matrix.in_order(scores, np.array([[0, 1]]))
    assert backward_transfer(matrix) == pytest.approx([-0.5])
    assert accuracy(matrix) == pytest.approx([0.6])


def test_transfer_needs_no_early_evaluation_that_is_asked_for(
    train: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluate, "draw_figures", lambda *_: None)
    train("run", "num_steps=32", "stream.lifetime_segments=2")
    words = ["conditions=carried", "num_lifetimes=2", "probe_lifetimes=2", "output=out"]
    assert main(["evaluate", "run", *words]) == 0
    rows = json.loads(Path("out/measures.json").read_text())["measures"]
    (found,) = [row for row in rows if row["measure"] == "FWT, zero-shot minus untrained memory"]
    assert np.isfinite(found["mean"]) and found["num_lifetimes"] == 2
