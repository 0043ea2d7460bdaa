"""Determines which files are tests, their language, and which other files affect the tests."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Literal, TypeAlias

Language: TypeAlias = Literal["python", "javascript", "typescript", "tsx", "go", "rust", ""]

_LANGUAGES: dict[str, Language] = {
    ".py": "python",
    ".js": "javascript",
    ".jsx": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".ts": "typescript",
    ".mts": "typescript",
    ".cts": "typescript",
    ".tsx": "tsx",
    ".go": "go",
    ".rs": "rust",
}
_FOLDERS = frozenset("test tests __tests__ spec specs testing __mocks__ e2e cypress".split())
_KEPT = frozenset("__snapshots__ testdata snapshots".split())
_GO_EVERYWHERE = (
    r"(?![_.])(?!.*_(?:aix|android|darwin|dragonfly|freebsd|hurd|illumos|ios|js|linux|nacl|netbsd|openbsd|plan9|solaris|"
    r"wasip1|windows|zos|386|amd64|arm|arm64|loong64|mips\w*|ppc64\w*|riscv64|s390x|sparc64|wasm)_test\.go).*_test\.go"
)
"""Go test files that are built for each system. Others are only for the system in their name, or never."""
_SHAPES = {
    "python": (r"test_.*\.py", r".*_test\.py", r"test.*\.py"),
    "script": (r".*\.test\.\w+", r".*\.spec\.\w+", r".*[-_]test\.\w+", r"test-.*\.\w+", r"test\.\w+"),
    "go": (_GO_EVERYWHERE, r".*_test\.go"),
}
_GO_LEFT_OUT = ("testdata", "vendor")
"""Folders that Go ignores, in addition to names that begin with `_` or a dot."""
_SCRIPTS = frozenset({"javascript", "typescript", "tsx"})
_SETTINGS = re.compile(
    r"pytest\.ini|\.pytest\.ini|tox\.ini|setup\.cfg|pyproject\.toml|package\.json|Cargo\.toml|[Mm]akefile|GNUmakefile|"
    r"(?:jest|vitest|vitest\.workspace|playwright|cypress|karma|ava|jasmine|vite)\.(?:config|conf|workspace)\.\w+|"
    r"\.mocharc\.?\w*|\.taprc|\.borp\.yaml|vitest\.workspace\.\w+"
)
_IGNORED = frozenset({"__init__.py", ".gitignore", ".gitkeep", "README.md"})


def language_of(path: str) -> Language:
    """The language of a file by its name; empty for an unsupported one."""
    return _LANGUAGES.get(PurePosixPath(path).suffix, "")


def shapes_of(path: str) -> frozenset[str]:
    """The naming patterns by which the language's runners find this file; empty for a file without tests.

    A test that is moved to a file without its old pattern may no longer be found.
    """
    place, language = PurePosixPath(path), language_of(path)
    if not language:
        return frozenset()
    if language == "rust":
        return frozenset({"rust"})
    names = _SHAPES["script" if language in _SCRIPTS else language]
    found = [shape for shape in names if re.fullmatch(shape, place.name)]
    if language == "go" and any(part in _GO_LEFT_OUT or part[0] in "_." for part in place.parts[:-1]):
        found = [shape for shape in found if shape != _GO_EVERYWHERE]
    if language in _SCRIPTS:
        found += [f"{part}/" for part in place.parts[:-1] if part in ("test", "tests", "__tests__")]
    return frozenset(found)


def is_still_found(old: str, new: str) -> bool:
    """Whether runners find a test in its new file by a pattern of the old one."""
    before, after = shapes_of(old), shapes_of(new)
    names = [shape for shapes in _SHAPES.values() for shape in shapes if shape in before]
    if names:
        return names[0] in after
    return bool(before & after) or (not before and not after)


def is_among_tests(path: str) -> bool:
    """Whether a file is a test, or lies next to tests: a helper, a fixture, data."""
    place = PurePosixPath(path)
    if language_of(path) == "rust":
        return "tests" in place.parts[:-1] or "src" in place.parts[:-1]
    in_folder = any(part in _FOLDERS or part in _KEPT for part in place.parts[:-1])
    return in_folder or place.name == "conftest.py" or bool(shapes_of(path))


def is_data(path: str) -> bool:
    """Whether it is a file next to tests in an unsupported format: expected data, or another language."""
    place = PurePosixPath(path)
    return is_among_tests(path) and not language_of(path) and place.name not in _IGNORED


def is_settings(path: str) -> bool:
    """Whether a file may configure which tests are run."""
    return bool(_SETTINGS.fullmatch(PurePosixPath(path).name))


def counts(path: str) -> bool:
    """Whether changing this file may weaken tests."""
    return is_among_tests(path) or is_settings(path)
