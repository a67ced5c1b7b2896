"""The tutorials are true: their Python runs from top to bottom, as printed."""

import re
import warnings
from pathlib import Path

import pytest
import torch

TUTORIALS = sorted((Path(__file__).resolve().parent.parent / "docs" / "tutorials").glob("*.md"))

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # torchrl's own, at import
    import torchrl.collectors  # noqa: F401


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_python_runs_as_printed(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    assert blocks
    names: dict[str, object] = {"__name__": "tutorial"}
    for number, code in enumerate(blocks):
        exec(compile(code, f"{page.name}, block {number}", "exec"), names)
    assert capsys.readouterr().out
