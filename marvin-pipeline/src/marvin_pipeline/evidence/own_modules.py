"""The modules that a project has or plans: a failed import of one of them shows that a test fails for missing code."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from marvin_core import Record

from ..checks.files import folders_in, is_file, text_of
from ..checks.javascript import package_of

_TEST_FOLDERS = frozenset({"tests", "test", "__tests__", "e2e", "spec", "specs", "integration", "fixtures"})
_TEST_FILE = re.compile(r"test_.*\.py|.*_test\.(?:py|go)|conftest\.py|.*[._-](?:test|spec)\.[cm]?[jt]sx?")
_NAMED_FILE = re.compile(r"(?<![\w./-])((?:[\w.-]{1,60}/){0,8})([A-Za-z_]\w{0,60})\.pyi?(?!\w)")
"""A Python file in a text, with its folders."""
_NAMED_FOLDER = re.compile(r"(?<![\w./-])([A-Za-z_]\w{0,60})/(?![\w/.])")
"""A folder name followed by a slash and nothing else, as in a drawing of a folder tree."""
_AROUND = frozenset({"src", "lib", "."})
"""Folders that are not part of module names."""
_SOURCES = frozenset({"src", "lib"})
"""Folders that may be imported as packages, such as `src.adder`, even before they exist."""
_ALIASES = ("@/", "~/", "#")
"""Prefixes of JavaScript path aliases that a project may configure; no package name has them."""
_OF_TESTS = frozenset({"pytest", "hypothesis", "mock", "nose", "_pytest", "xdist"})
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][\w.-]{0,100})")
_LISTED = 500


class OwnModules(Record):
    """The modules of a project."""

    names: frozenset[str]
    """Top-level Python modules, and JavaScript package names."""
    foreign: frozenset[str] = frozenset()
    """The modules of declared dependencies."""
    is_told: bool = True
    """Whether a manifest or the design names modules. If none does, any unknown module may be the project's."""

    def has(self, module: str, *, of_python: bool = True) -> bool:
        """Whether a module that could not be imported is one that the project plans.

        Args:
            module: as `TestResult.missing` has it.
        """
        if module.startswith("./"):  # a JavaScript file of the project
            parts = PurePosixPath(module).parts
            return "node_modules" not in parts and not is_test(module)
        first = module.partition(".")[0] if of_python else module
        if first in self.names or (first in _SOURCES if of_python else first.startswith(_ALIASES)):
            return True
        is_open = of_python and not self.is_told and first.isidentifier()
        return is_open and first not in self.foreign | sys.stdlib_module_names | _OF_TESTS | _TEST_FOLDERS


def own_modules(root: Path, design: str, folders: Iterable[str] = (".",)) -> OwnModules:
    """The modules of a project: existing ones, names in manifests, and files in its design.

    Blocks: it lists folders and reads manifests.

    Args:
        design: the text of the design.
        folders: the working directories of commands, relative to the project.
    """
    found = {
        name for folder in {".", *folders} for place in (root / folder, root / folder / "src") for name in _there(place)
    }
    projects = [(root / folder, _project(root / folder)) for folder in {".", *folders}]
    named = {name for folder, project in projects for name in _called(folder, project)} - {""}
    planned = set(_planned(design)) - set(sys.stdlib_module_names)
    return OwnModules(
        names=frozenset(found | named | planned) - _TEST_FOLDERS,
        foreign=frozenset(name for folder, project in projects for name in _declared(folder, project)),
        is_told=bool(named | planned),
    )


def is_test(path: str) -> bool:
    """Whether a file is a test, by its path."""
    parts = PurePosixPath(path).parts
    return bool(parts) and (bool(_TEST_FOLDERS & set(parts[:-1])) or _TEST_FILE.fullmatch(parts[-1]) is not None)


def _there(folder: Path) -> Iterator[str]:
    """The modules in a folder."""
    for _, path in zip(range(_LISTED), sorted(folder.glob("*.py")), strict=False):
        if is_file(path) and not _TEST_FILE.fullmatch(path.name) and path.stem != "setup":
            yield path.stem
    for inner in folders_in(folder)[:_LISTED]:
        if is_file(inner / "__init__.py") or any(is_file(path) for path in inner.glob("*.py")):
            yield inner.name


def _project(folder: Path) -> dict[str, Any]:
    """The `project` table of a pyproject.toml; empty if there is no readable one."""
    project = _toml(folder / "pyproject.toml").get("project")
    return project if isinstance(project, dict) else {}


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text_of(path))
    except (ValueError, RecursionError):
        return {}


def _called(folder: Path, project: Mapping[str, Any]) -> Iterator[str]:
    """The names of a project and its modules in manifests."""
    yield _module(str(project.get("name", "")))
    scripts = project.get("scripts")
    for target in scripts.values() if isinstance(scripts, dict) else ():
        yield str(target).partition(":")[0].partition(".")[0].strip()
    yield str(package_of(folder).get("name") or "")
    package = _toml(folder / "Cargo.toml").get("package")
    yield _module(str(package.get("name", ""))) if isinstance(package, dict) else ""


def _declared(folder: Path, project: Mapping[str, Any]) -> Iterator[str]:
    """The declared dependencies, by their usual module names."""
    extras = project.get("optional-dependencies")
    lists = [project.get("dependencies"), *(extras.values() if isinstance(extras, dict) else ())]
    lines = [str(one) for found in lists if isinstance(found, list) for one in found]
    for path in sorted(folder.glob("requirements*.txt"))[:_LISTED]:
        lines += text_of(path).splitlines()
    for line in lines:
        if found := _REQUIREMENT.match(line):
            yield _module(found[1])


def _module(name: str) -> str:
    return re.sub(r"[-.]+", "_", name)


def _planned(design: str) -> Iterator[str]:
    """The Python files and folders that a text names, as top-level modules."""
    for found in _NAMED_FILE.finditer(design):
        parts = [part for part in found[1].split("/") if part not in _AROUND and part]
        name = parts[0] if parts else found[2]
        if name not in _TEST_FOLDERS and not _TEST_FILE.fullmatch(f"{found[2]}.py"):
            yield name
    for found in _NAMED_FOLDER.finditer(design):
        yield found[1]
