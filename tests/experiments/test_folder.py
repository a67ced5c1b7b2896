"""One run, one folder, whoever else starts at the same moment."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sojourn.experiments.errors import RunError, UsageError
from sojourn.experiments.folder import RunFolder, is_locked, latest_run, read_json


def test_runs_that_start_at_once_get_folders_of_their_own(workplace: Path) -> None:
    def start(_: int) -> Path:
        folder = RunFolder.create_named("test", "a__b__s1")
        folder.mark_latest()
        folder.close()
        return folder.path

    with ThreadPoolExecutor(8) as pool:
        paths = list(pool.map(start, range(16)))
    assert len(set(paths)) == 16
    assert latest_run() in paths
    assert not list(Path("runs").glob(".latest*")), "no temporary link is left"


def test_an_existing_folder_is_refused(workplace: Path) -> None:
    (workplace / "taken").mkdir()
    with pytest.raises(UsageError, match=r"folder=taken: exists already.*resume=taken"):
        RunFolder.create(Path("taken"))


def test_a_second_process_is_kept_out(workplace: Path) -> None:
    folder = RunFolder.create(Path("run"))
    code = (
        "import sys; from pathlib import Path; from sojourn.experiments.folder import RunFolder\n"
        "try: RunFolder(Path('run'))\n"
        "except Exception as error: print(error); sys.exit(7)"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (other.returncode, other.stdout.strip()) == (
        7,
        "run: another process is writing to this run",
    )
    folder.close()
    assert not is_locked(Path("run"))


def test_status_is_whole_at_every_moment(workplace: Path) -> None:
    folder = RunFolder.create(Path("run"))
    folder.set_status("running", 10)
    assert read_json(Path("run/status.json"))["step"] == 10
    folder.close()
    with pytest.raises(RunError, match="cannot be read"):
        read_json(Path("run/none.json"))
    Path("run/list.json").write_text("[]")
    with pytest.raises(RunError, match="expected a JSON object"):
        read_json(Path("run/list.json"))


def test_latest_without_a_run_is_refused(workplace: Path) -> None:
    with pytest.raises(UsageError, match="no run has been started from"):
        latest_run()
