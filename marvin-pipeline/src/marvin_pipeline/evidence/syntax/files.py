"""Which files are tests, in which language, and which others have a say in what tests ask for."""

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
"""The tests of Go that are built for each system. The others are so for the one in their name, or never."""
_SHAPES = {
    "python": (r"test_.*\.py", r".*_test\.py", r"test.*\.py"),
    "script": (r".*\.test\.\w+", r".*\.spec\.\w+", r".*[-_]test\.\w+", r"test-.*\.\w+", r"test\.\w+"),
    "go": (_GO_EVERYWHERE, r".*_test\.go"),
}
_GO_LEFT_OUT = ("testdata", "vendor")
"""Folders that Go takes no packages from; those whose names begin with `_` or a dot are as well."""
_SCRIPTS = frozenset({"javascript", "typescript", "tsx"})
_SETTINGS = re.compile(
    r"pytest\.ini|\.pytest\.ini|tox\.ini|setup\.cfg|pyproject\.toml|package\.json|Cargo\.toml|[Mm]akefile|GNUmakefile|"
    r"(?:jest|vitest|vitest\.workspace|playwright|cypress|karma|ava|jasmine|vite)\.(?:config|conf|workspace)\.\w+|"
    r"\.mocharc\.?\w*|\.taprc|\.borp\.yaml|vitest\.workspace\.\w+"
)
_IGNORED = frozenset({"__init__.py", ".gitignore", ".gitkeep", "README.md"})


def language_of(path: str) -> Language:
    """The language that a file is written in, told from its name; empty for any that nothing here reads."""
    return _LANGUAGES.get(PurePosixPath(path).suffix, "")


def shapes_of(path: str) -> frozenset[str]:
    """What the runners of the language find this file by; empty where it is no file of tests.

    A test that is moved to a file without the shape that the old one had may not be found any more.
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
    """Whether runners find a test in its new file by what they found it by in the old one."""
    before, after = shapes_of(old), shapes_of(new)
    names = [shape for shapes in _SHAPES.values() for shape in shapes if shape in before]
    if names:
        return names[0] in after
    return bool(before & after) or (not before and not after)


def is_among_tests(path: str) -> bool:
    """Whether a file is a test, or lies beside tests: a helper, a fixture, data."""
    place = PurePosixPath(path)
    if language_of(path) == "rust":
        return "tests" in place.parts[:-1] or "src" in place.parts[:-1]
    in_folder = any(part in _FOLDERS or part in _KEPT for part in place.parts[:-1])
    return in_folder or place.name == "conftest.py" or bool(shapes_of(path))


def is_data(path: str) -> bool:
    """Whether it is a file beside tests that nothing here reads: what tests compare with, or another language."""
    place = PurePosixPath(path)
    return is_among_tests(path) and not language_of(path) and place.name not in _IGNORED


def is_settings(path: str) -> bool:
    """Whether a file may say which tests are run."""
    return bool(_SETTINGS.fullmatch(PurePosixPath(path).name))


def counts(path: str) -> bool:
    """Whether a change of this file may be one of what tests ask for."""
    return is_among_tests(path) or is_settings(path)
