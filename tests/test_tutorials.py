"""The tutorials are true: their Python runs from top to bottom, as printed."""

import re
import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

OWN = {"study": "test_study_tutorial.py"}  # page -> the test that runs its commands before its code
TUTORIALS = [
    page
    for page in sorted(Path(__file__).resolve().parent.parent.glob("docs/tutorials/*.md"))
    if page.stem not in OWN
]
BLOCK = re.compile(r"```python(?: (\w+))?\n(.*?)```", re.DOTALL)  # a package that it needs, code

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # torchrl's own, at import
    import torchrl.collectors  # noqa: F401


@pytest.mark.parametrize("name", OWN)
def test_a_page_that_is_left_out_is_run_by_its_own_test(name: str) -> None:
    assert f"docs/tutorials/{name}.md" in (Path(__file__).parent / OWN[name]).read_text()


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_python_runs_as_printed(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    blocks = BLOCK.findall(page.read_text())
    assert blocks
    names: dict[str, object] = {"__name__": "tutorial"}
    left_out = set()
    for number, (needed, code) in enumerate(blocks):
        if needed and find_spec(needed) is None:
            left_out.add(needed)
            continue
        exec(compile(code, f"{page.name}, block {number}", "exec"), names)
    assert capsys.readouterr().out
    if left_out:
        pytest.skip(f"all else ran; not installed: {', '.join(sorted(left_out))}")
