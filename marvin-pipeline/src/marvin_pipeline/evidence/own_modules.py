"""Which modules a project has or is to have: that a test fails to import one of them is what shows that it is red."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

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
_LISTED = 500


class OwnModules(Record):
    """The modules of a project."""

    names: frozenset[str]
    """Of Python the topmost parts of their names, of JavaScript names of packages."""

    def has(self, module: str) -> bool:
        """Whether a module that could not be imported is one that the project is to have.

        Args:
            module: as `TestResult.missing` has it.
        """
        if module.startswith("./"):  # a file of JavaScript, in the project
            parts = PurePosixPath(module).parts
            return "node_modules" not in parts and not is_test(module)
        return bool(module) and (module in self.names or module.partition(".")[0] in self.names)


def own_modules(root: Path, design: str, folders: Iterable[str] = (".",)) -> OwnModules:
    """The modules of a project: those that are there, what its manifests call it, and the files its design names.

    Blocks: it lists folders and reads manifests.

    Args:
        design: the text of the design.
        folders: those that commands are run in, relative to the project.
    """
    found = {
        name
        for folder in {".", *folders}
        for place in (root / folder, root / folder / "src")
        for name in _there(place)
    }
    named = {name for folder in {".", *folders} for name in _called(root / folder)}
    planned = set(_planned(design)) - set(sys.stdlib_module_names)
    return OwnModules(names=frozenset(found | named | planned) - _TEST_FOLDERS - {""})


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


def _called(folder: Path) -> Iterator[str]:
    """What manifests call a project."""
    try:
        project = tomllib.loads(text_of(folder / "pyproject.toml")).get("project")
    except (ValueError, RecursionError):
        project = None
    if isinstance(project, dict):
        yield re.sub(r"[-.]+", "_", str(project.get("name", "")))
    yield str(package_of(folder).get("name") or "")


def _planned(design: str) -> Iterator[str]:
    """What files of Python and folders a text names, by the topmost parts of their modules."""
    for found in _NAMED_FILE.finditer(design):
        parts = [part for part in found[1].split("/") if part not in _AROUND and part]
        name = parts[0] if parts else found[2]
        if name not in _TEST_FOLDERS and not _TEST_FILE.fullmatch(f"{found[2]}.py"):
            yield name
    for found in _NAMED_FOLDER.finditer(design):
        yield found[1]
