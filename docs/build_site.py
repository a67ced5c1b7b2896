"""The documentation as a site: the Markdown of the repository as it lies, and an API reference.

    python docs/build_site.py [FOLDER]        FOLDER/site; needs the extra `docs`

Pages keep their places, so that relative links hold; what they link to is copied beside them. The
reference is made of the doors of the rooms and their docstrings, read without importing anything.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("memory", "envs", "agents", "experiments")
PAGES = ("*.md", "docs/**/*.md", "results/**/*.md")
INDEX = "docs/README.md"
TEXT = r"(?<!`)(\[(?:[^\[\]]|\[[^\]]*\])*\])"  # of a link; pictures may be in it
LINK = re.compile(TEXT + r"\((?!https?:|mailto:)([^)#\s]*)(#[^)\s]*)?\)")
FENCE = re.compile(r"^(```\w+) .*$", re.MULTILINE)  # what follows the language is for the tests
ENTRY = re.compile(r"^\* \[(.+?)\]\((.+?)\)", re.MULTILINE)


def door(room: str) -> dict[str, str]:
    """Name -> dotted module that defines it, of everything that a room's door offers."""
    tree = ast.parse((ROOT / room / "__init__.py").read_text())
    offered: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module:
            for alias in node.names:
                if alias.asname == alias.name:
                    offered[alias.name] = f"sojourn.{room}.{node.module}"
    return dict(sorted(offered.items(), key=lambda item: item[0].lower()))


def api_page(room: str) -> str:
    """A room's reference as Markdown for mkdocstrings: every name of the door, once."""
    text = ast.get_docstring(ast.parse((ROOT / room / "__init__.py").read_text())) or ""
    names = "\n\n".join(f"::: {module}.{name}" for name, module in door(room).items())
    return f"# sojourn.{room}\n\n{text}\n\n{names}\n"


def pages() -> Iterator[Path]:
    """Every page, relative to the repository."""
    for pattern in PAGES:
        yield from sorted(path.relative_to(ROOT) for path in ROOT.glob(pattern))


def stage(source: Path) -> None:
    """Copy pages, the files they link to and the reference into `source`."""
    for page in pages():
        text = LINK.sub(lambda link: _staged(link, page, source), (ROOT / page).read_text())  # noqa: B023
        _write(source / page, FENCE.sub(r"\1", text))
    for room in ROOMS:
        _write(source / _reference(room), api_page(room))


def navigation() -> list[dict[str, object]]:
    """The pages in the order of docs/README.md; what it does not list is left to its links."""
    listed = [(title, Path("docs", target)) for title, target in ENTRY.findall(_index())]
    entries = [{title: _normal(path)} for title, path in listed]
    reference = [{f"sojourn.{room}": _reference(room)} for room in ROOMS]
    shown = {path for entry in entries for path in entry.values()}
    others = [str(path) for path in pages() if str(path) not in {*shown, "README.md", INDEX}]
    results: list[object] = [_titled(path) for path in others if path.startswith("results/")]
    house = [path for path in others if not path.startswith("results/")]
    return [
        {"sojourn": "README.md"},
        {"Documentation": [{"Contents": INDEX}, *entries]},
        {"Reference": reference},
        {"Results": results},
        {"House": house},
    ]


def build(folder: Path) -> int:
    """Stage and build into `folder`, anew; returns the exit code of mkdocs, 1 for any warning."""
    shutil.rmtree(folder, ignore_errors=True)
    stage(folder / "source")
    base = yaml.load((ROOT / "docs" / "mkdocs.yml").read_text(), yaml.UnsafeLoader)
    base["nav"] = navigation()
    base["plugins"][1]["mkdocstrings"]["handlers"]["python"]["paths"] = [str(ROOT / ".types")]
    (folder / "mkdocs.yml").write_text(yaml.dump(base, sort_keys=False, allow_unicode=True))
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    command += ["--config-file", str(folder / "mkdocs.yml")]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, env=quiet, capture_output=True, text=True)
    said = [line for line in done.stderr.splitlines() if not line.startswith("INFO")]
    print("\n".join([*said, f"{folder / 'site' / 'index.html'}"]))
    return done.returncode


def _staged(link: re.Match[str], page: Path, source: Path) -> str:
    """The link as the site has it: a folder is its page, a file is copied."""
    text, target, anchor = link[1], link[2], link[3] or ""
    if not target:
        return link[0]
    path = ROOT / page.parent / target
    if path.is_dir():
        name = _normal(page.parent / target)
        index = _reference(name) if name in ROOMS else f"{name}/README.md"
        if name not in ROOMS and not (ROOT / index).is_file():
            return text[1:-1]
        up = "../" * len(page.parent.parts)
        return f"{text}({up}{index}{anchor})"
    if path.is_file() and path.suffix != ".md":
        copied = source / _normal(page.parent / target)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copied)
    return link[0]


def _titled(path: str) -> object:
    """A page in a folder of its own is told apart from its namesakes by that folder."""
    place = Path(path)
    return path if len(place.parts) == 2 else {" ".join((*place.parts[1:-1], place.stem)): path}


def _reference(room: str) -> str:
    return f"docs/api/{room}.md"


def _index() -> str:
    return (ROOT / INDEX).read_text()


def _normal(path: Path) -> str:
    return str((ROOT / path).resolve().relative_to(ROOT))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "docs"))
