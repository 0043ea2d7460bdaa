"""Which modules a project has or is to have: that a test fails to import one of them is what shows that it is red."""

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
"""A file of Python in a text, with the folders before it."""
_NAMED_FOLDER = re.compile(r"(?<![\w./-])([A-Za-z_]\w{0,60})/(?![\w/.])")
"""A folder by itself, as trees of folders have it."""
_AROUND = frozenset({"src", "lib", "."})
"""Folders that are no part of the names of modules."""
_SOURCES = frozenset({"src", "lib"})
"""Folders of a project that are imported as packages, as `src.adder`, also before they are there."""
_ALIASES = ("@/", "~/", "#")
"""What begins the name of a file of the project where its settings say where that lies; no package is called so."""
_OF_TESTS = frozenset({"pytest", "hypothesis", "mock", "nose", "_pytest", "xdist"})
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][\w.-]{0,100})")
_LISTED = 500


class OwnModules(Record):
    """The modules of a project."""

    names: frozenset[str]
    """Of Python the topmost parts of their names, of JavaScript names of packages."""
    foreign: frozenset[str] = frozenset()
    """Packages that it declares to depend on, as modules are called."""
    is_told: bool = True
    """Whether a manifest or the design names them. Where none does, any unknown module may be the one that is meant."""

    def has(self, module: str, *, of_python: bool = True) -> bool:
        """Whether a module that could not be imported is one that the project is to have.

        Args:
            module: as `TestResult.missing` has it.
        """
        if module.startswith("./"):  # a file of JavaScript, in the project
            parts = PurePosixPath(module).parts
            return "node_modules" not in parts and not is_test(module)
        first = module.partition(".")[0] if of_python else module
        if first in self.names or (first in _SOURCES if of_python else first.startswith(_ALIASES)):
            return True
        is_open = of_python and not self.is_told and first.isidentifier()
        return is_open and first not in self.foreign | sys.stdlib_module_names | _OF_TESTS | _TEST_FOLDERS


def own_modules(root: Path, design: str, folders: Iterable[str] = (".",)) -> OwnModules:
    """The modules of a project: those that are there, what its manifests call it, and the files its design names.

    Blocks: it lists folders and reads manifests.

    Args:
        design: the text of the design.
        folders: those that commands are run in, relative to the project.
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
    """Whether a file is one of the tests, told from its path."""
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
    """The table `project` of a pyproject.toml; nothing where there is none that can be read."""
    project = _toml(folder / "pyproject.toml").get("project")
    return project if isinstance(project, dict) else {}


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text_of(path))
    except (ValueError, RecursionError):
        return {}


def _called(folder: Path, project: Mapping[str, Any]) -> Iterator[str]:
    """What manifests call a project, and the modules that they name."""
    yield _module(str(project.get("name", "")))
    scripts = project.get("scripts")
    for target in scripts.values() if isinstance(scripts, dict) else ():
        yield str(target).partition(":")[0].partition(".")[0].strip()
    yield str(package_of(folder).get("name") or "")
    package = _toml(folder / "Cargo.toml").get("package")
    yield _module(str(package.get("name", ""))) if isinstance(package, dict) else ""


def _declared(folder: Path, project: Mapping[str, Any]) -> Iterator[str]:
    """The packages that a project depends on, as their modules are mostly called."""
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
    """What files of Python and folders a text names, by the topmost parts of their modules."""
    for found in _NAMED_FILE.finditer(design):
        parts = [part for part in found[1].split("/") if part not in _AROUND and part]
        name = parts[0] if parts else found[2]
        if name not in _TEST_FOLDERS and not _TEST_FILE.fullmatch(f"{found[2]}.py"):
            yield name
    for found in _NAMED_FOLDER.finditer(design):
        yield found[1]
