"""The rooms and the doors between them."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NAME = "sojourn"
DOORS: dict[str, set[str]] = {  # room -> rooms it may open
    "memory": set(),
    "envs": set(),
    "agents": {"memory", "envs"},
    "experiments": {"memory", "envs", "agents", "configs"},
}
STRANGERS: dict[str, set[str]] = {  # room -> outside packages that must stay outside
    "memory": {"gymnasium", "minigrid", "torchrl", "hydra", "omegaconf", "numpy"},
    "envs": {"torch", "tensordict", "torchrl", "hydra", "omegaconf"},
    "agents": {"minigrid", "gymnasium", "hydra", "omegaconf", "tensorboard"},
    "experiments": set(),
}
LONGEST_FILE = 250
LONGEST_FUNCTION = 50


def sources(room: str) -> list[Path]:
    return sorted((ROOT / room).rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    depth_in_room = len(path.relative_to(ROOT).parts) - 1
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level <= depth_in_room, f"{path}: name the other room, do not climb dots"
            if node.level == 0:
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("room", DOORS)
def test_each_room_opens_only_its_own_doors(room: str) -> None:
    for path in sources(room):
        for name in imports(path):
            top, _, rest = name.partition(".")
            where = f"{path.relative_to(ROOT)} imports {name}"
            assert top not in STRANGERS[room], where
            assert top not in DOORS, f"{where}: say {NAME}.{name}"
            assert top != NAME or rest.split(".")[0] in DOORS[room] | {room}, where


def test_configs_hold_data_only() -> None:
    for path in sources("configs"):
        assert path.name == "__init__.py", path
        assert path.read_text() == "", f"{path}: configs hold YAML only"


def test_every_folder_is_packaged() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    files = [path for room in (*DOORS, "configs") for path in (ROOT / room).rglob("*.*")]
    folders = {path.parent for path in files if path.suffix in {".py", ".yaml"}}
    expected = {".".join([NAME, *folder.relative_to(ROOT).parts]) for folder in folders}
    assert set(project["tool"]["setuptools"]["packages"]) == expected


def test_the_type_checkers_see_every_room() -> None:
    links = {link.name: link.resolve() for link in (ROOT / ".types" / NAME).iterdir()}
    assert links == {room: ROOT / room for room in (*DOORS, "configs")}


def test_tables_and_figures_never_read_what_is_written_for_tensorboard() -> None:
    """One module writes event files, and none reads them."""
    files = [path for room in DOORS for path in sources(room)]
    about = [p.name for p in files if any("tensorboard" in name for name in imports(p))]
    assert about == ["board.py"]


@pytest.mark.parametrize("room", DOORS)
def test_files_and_functions_stay_readable(room: str) -> None:
    for path in sources(room):
        text = path.read_text()
        assert text.count("\n") <= LONGEST_FILE, f"{path.relative_to(ROOT)} is too long"
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno
                assert length <= LONGEST_FUNCTION, f"{path.relative_to(ROOT)}: {node.name}"


@pytest.mark.parametrize("room", DOORS)
def test_every_module_says_its_duty(room: str) -> None:
    for path in sources(room):
        assert ast.get_docstring(ast.parse(path.read_text())), path.relative_to(ROOT)
