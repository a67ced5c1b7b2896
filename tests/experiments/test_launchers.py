"""Launchers: the same study on joblib, submitit and Ray as on this machine, row by row."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from sojourn.experiments.command import main
from sojourn.experiments.studies.member import Places, state_of
from sojourn.experiments.studies.plan import plan
from sojourn.experiments.studies.runner import LAUNCHERS, LOCAL

from .conftest import TINY

MEMORY_FREE = [word for word in TINY if not word.startswith("memory.")]
WORDS = [*MEMORY_FREE, "memory=none", "seed=1", "trainer.learning_rate=1e-3,1e30", "jobs=2"]
MACHINE = {"submitit": ["launcher.cluster=local"]}
OTHERS = [name for name in LAUNCHERS if name != LOCAL]
needs = {
    name: pytest.mark.skipif(find_spec(name) is None, reason=f"the package {name} is not here")
    for name in OTHERS
}
INSTALLED = [pytest.param(name, marks=needs[name]) for name in OTHERS]


def rows(study: Path) -> dict[str, dict[str, Any]]:
    """Row files by name, clocks left out."""
    found = {path.name: json.loads(path.read_text()) for path in study.glob("members/*.json")}
    for row in found.values():
        assert row["summary"].pop("steps_per_second") > 0
    return found


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study as this machine runs it: one member finishes, one fails."""
    place = tmp_path_factory.mktemp("local")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        assert main(["study", *WORDS, "output=study"]) == 1
    assert len(rows(place / "study")) == 1
    return place / "study"


@pytest.mark.filterwarnings("ignore")  # of the libraries
@pytest.mark.parametrize("launcher", INSTALLED)
def test_every_launcher_leaves_the_rows_of_the_local_study(
    launcher: str, local: Path, workplace: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = [*WORDS, "output=study", f"launcher={launcher}", *MACHINE.get(launcher, [])]
    assert main(["study", *words]) == 1
    assert rows(Path("study")) == rows(local)
    said = capfd.readouterr().out
    assert said.count("failed: none__learning_rate=1e+30") == 1
    assert "[1/2]" in said
    assert not list(Path("study").glob(".stop*"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("launcher", INSTALLED)
def test_a_stopped_study_saves_and_goes_on(
    launcher: str, workplace: Path, assert_same_run: Callable[[Path, Path], None]
) -> None:
    words = [*TINY, "memory=gated_delta_net", "seed=1", "num_steps=25_600", "output=study"]
    how = [f"launcher={launcher}", *MACHINE.get(launcher, [])]
    process = subprocess.Popen(
        [sys.executable, "-m", "sojourn.experiments.command", "study", *words, *how]
    )
    (member,) = plan(words).members
    places = Places(Path("study"))
    deadline = time.monotonic() + 3600
    while not (places.run(member) / "metrics.csv").exists():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130
    assert state_of(places, member) == "started", "it was stopped, and it saved"
    assert main(["study", *words, *how]) == 0
    whole = [word for word in words if not word.startswith("output=")]
    assert main(["train", *whole, "folder=whole", "quiet=true", "num_threads=1"]) == 0
    assert_same_run(Path("whole"), places.run(member))


@pytest.mark.slow
def test_a_second_signal_leaves_no_member_behind(workplace: Path) -> None:
    words = [*TINY, "memory=gated_delta_net", "seed=1,2", "num_steps=null", "jobs=2"]
    process = subprocess.Popen(
        [sys.executable, "-m", "sojourn.experiments.command", "study", *words, "output=study"]
    )
    deadline = time.monotonic() + 3600
    while len(list(Path("study").glob("runs/*/metrics.csv"))) < 2:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    members = psutil.Process(process.pid).children(recursive=True)
    assert len(members) == 2
    process.send_signal(signal.SIGINT)
    time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=300) == 130
    _, alive = psutil.wait_procs(members, timeout=300)
    assert not alive


@pytest.mark.parametrize("launcher", OTHERS)
def test_a_missing_package_is_named_with_its_extra(
    launcher: str,
    refuse: Callable[..., str],
    workplace: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, launcher, None)
    line = refuse("study", *WORDS, "output=study", f"launcher={launcher}")
    assert f"needs the package {launcher} (pip install 'sojourn[{launcher}]')" in line


def test_a_ray_that_does_not_start_is_told_in_one_line(
    refuse: Callable[..., str], workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def init(**_: object) -> None:
        raise Exception("The current node timed out\nduring startup.")

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(init=init))
    line = refuse("study", *WORDS, "output=study", "launcher=ray", code=1)
    assert "launcher=ray: Ray did not start (The current node timed out during startup.)" in line
    assert "RAY_agent_register_timeout_ms" in line


def test_wrong_launchers_and_options_are_refused(refuse: Callable[..., str]) -> None:
    assert "did you mean submitit?" in refuse("study", *WORDS, "launcher=submit")
    assert "has no options" in refuse("study", *WORDS, "launcher.cluster=slurm", "output=s")


@needs["joblib"]
def test_an_option_of_joblib_is_refused_with_the_nearest(refuse: Callable[..., str]) -> None:
    words = ["launcher=joblib", "launcher.backed=dask", "output=s"]
    assert "did you mean backend?" in refuse("study", *WORDS, *words)


@needs["submitit"]
def test_parameters_of_submitit_are_its_own(refuse: Callable[..., str]) -> None:
    words = ["launcher=submitit", "launcher.cluster=local", "launcher.partitio=x", "output=s"]
    assert "partitio" in refuse("study", *WORDS, *words)
