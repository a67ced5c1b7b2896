"""The documentation holds together: links, anchors, list of pages, doors, the built site."""

from __future__ import annotations

import ast
import importlib
import re
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
KINDS = ("*.md", "docs/**/*.md", "results/**/*.md")
PAGES = sorted(path for kind in KINDS for path in ROOT.glob(kind))
ROOMS = ("memory", "envs", "agents", "experiments")
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)")


def loaded() -> ModuleType:
    """docs/build_site.py, which belongs to no room."""
    spec = spec_from_file_location("build_site", ROOT / "docs" / "build_site.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SITE = loaded()


def outside_code(text: str) -> str:
    """Markdown without its blocks of code."""
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    found: dict[str, int] = {}
    names = set()
    for title in re.findall(r"^#+ (.+)$", outside_code(page.read_text()), re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        names.add(f"{slug}-{found[slug]}" if slug in found else slug)
        found[slug] = found.get(slug, 0) + 1
    return names


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_and_anchors_lead_somewhere(page: Path) -> None:
    for target, anchor in LINK.findall(outside_code(page.read_text())):
        path = page.parent / target if target else page
        assert path.exists(), target
        if anchor:
            assert anchor in anchors(path), f"{target}#{anchor}"


def test_every_page_is_listed_once() -> None:
    listed = [target for _, target in SITE.ENTRY.findall((ROOT / "docs/README.md").read_text())]
    inside = sorted(target for target in listed if not target.startswith("../"))
    written = (path.relative_to(ROOT / "docs") for path in ROOT.glob("docs/**/*.md"))
    assert inside == sorted(str(path) for path in written if path.name != "README.md")


@pytest.mark.parametrize("room", ROOMS)
def test_what_a_door_offers_says_its_duty(room: str) -> None:
    silent = []
    for name, module in SITE.door(room).items():
        text = documented(module, name)
        if not text or len(text.split()) < 3:
            silent.append(f"{module}.{name}")
    assert not silent


def documented(module: str, name: str) -> str | None:
    """The docstring of a class or function, or the string right after an assignment."""
    path = ROOT.joinpath(*module.split(".")[1:])
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    body = ast.parse(file.read_text()).body
    for node, following in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return ast.get_docstring(node)
        if isinstance(node, ast.ImportFrom) and name in {alias.asname for alias in node.names}:
            return documented(f"{module}.{node.module}", name)
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            value = getattr(following, "value", None)
            return str(value.value) if isinstance(value, ast.Constant) else None
    raise AssertionError(f"{module} does not define {name}")


@pytest.mark.parametrize("room", ROOMS)
def test_the_reference_lists_exactly_the_door(room: str) -> None:
    entries = re.findall(r"^::: (\S+)$", SITE.api_page(room), re.MULTILINE)
    found = [entry.rpartition(".")[2] for entry in entries]
    door = importlib.import_module(f"sojourn.{room}")
    public = {
        name
        for name, value in vars(door).items()
        if not name.startswith("_") and not isinstance(value, ModuleType) and name not in OWN
    }
    assert len(found) == len(set(found))
    assert public <= set(found), "a name of the door is missing"
    assert all(hasattr(door, name) for name in found)


OWN = {"Any", "TYPE_CHECKING"}  # what a door needs itself


@pytest.mark.skipif(
    find_spec("mkdocs") is None or find_spec("mkdocstrings") is None,
    reason="the extra docs is not installed",
)
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    assert SITE.build(tmp_path / "out") == 0
    for room in ROOMS:
        page = (tmp_path / "out/site/docs/api" / f"{room}.html").read_text()
        for name, module in SITE.door(room).items():
            assert f'id="{module}.{name}"' in page, f"{module}.{name}"
    text = (tmp_path / "out/site/index.html").read_text()
    outside = re.findall(r'(?:src|href)="(https?://[^"]+)"', text)
    assert not [link for link in outside if "cdn" in link or "fonts" in link]
