"""docs/scaling.md is true: its Python runs as printed where Ray is installed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "scaling.md").read_text()


@pytest.mark.slow
def test_rollout_workers_run_as_printed(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed (sojourn[ray])")
    (code,) = re.findall(r"```python ray\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "workers.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "workers.py"],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    shown = re.findall(r"reward per pull 0\.[3-7]", done.stdout)
    assert len(shown) == 3, done.stdout
