"""The built wheel works outside the source tree: every room, every config, the command."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

CHECK = """
import sys
sys.path[:0] = [{wheel!r}, {packages!r}]
import importlib.metadata, sojourn.memory, sojourn.envs, sojourn.agents
from importlib.resources import files
from sojourn.experiments.command import main
assert (files("sojourn.experiments.pages") / "script.js").is_file()
assert (files("sojourn.experiments.pages") / "style.css").is_file()
assert sojourn.memory.__file__.startswith({wheel!r}), sojourn.memory.__file__
assert importlib.metadata.version("sojourn") == "0.1.0"
sys.exit(main(["list"]))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project built and unpacked into an empty folder."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    build = ["wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run([*pip, *build], check=True, capture_output=True)
    (built,) = folder.glob("sojourn-*.whl")
    target = folder / "site"
    install = ["install", "--no-deps", "--target", str(target), str(built)]
    subprocess.run([*pip, *install], check=True, capture_output=True)
    return target


def test_the_wheel_runs_outside_the_tree(wheel: Path, tmp_path: Path) -> None:
    # -S: no site module, so the editable install of this checkout stays out of sight.
    packages = sysconfig.get_path("purelib")
    code = CHECK.format(wheel=str(wheel), packages=packages)
    command = [sys.executable, "-S", "-c", code]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "gated_delta_net" in result.stdout


def test_nothing_bare_is_installed(wheel: Path) -> None:
    names = {path.name for path in wheel.iterdir() if not path.name.endswith(".dist-info")}
    assert names <= {"sojourn", "bin"}, names
