"""Compares the settings of test runners: whether they exclude tests that were run before."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import PurePosixPath
from typing import Any

from .files import language_of
from .model import Weakening

_PYTEST_SECTIONS = {"setup.cfg": "tool:pytest"}
_KEYS = ("python_classes", "python_functions", "collect_imported_tests", "required_plugins", "usefixtures")
"""Settings that select tests and are compared as text."""
_LEAVING_OUT = re.compile(
    r"-[kmpco]\b|-[kmpco].|--(?:ignore|deselect|collect|co\b|lf|last-failed|sw|stepwise|override-ini|noconftest|"
    r"confcutdir|rootdir|pyargs|runxfail|suppress-no-test|maxfail|exitfirst|setup-only|setup-plan|fixtures|version|help)"
    r"|[^-].*"
)
_SCRIPT_SETTINGS = re.compile(
    r"exclude|ignore|testMatch|testRegex|testNamePattern|include|passWithNoTests|grep|alias|moduleNameMapper|setupFiles|"
    r"spec|bail|retr|roots|projects",
    re.IGNORECASE,
)
_PACKAGE_SECTIONS = ("jest", "vitest", "mocha", "ava", "tap", "jasmine", "c8", "nyc")
_MAKE_TARGETS = ("test", "check", "e2e", "tests")
_WHAT = "the settings of the test runner change which tests are run"


def settings_weakened(path: str, before: str, now: str, tests: Sequence[str]) -> list[Weakening]:
    """The places where settings exclude tests that were run before.

    Args:
        path: the settings file, relative to the project.
        before: its old content; empty for a new file.
        now: its new content.
        tests: the test files that existed.
    """
    name = PurePosixPath(path).name
    found: Iterator[tuple[str, str, str]]
    if name == "package.json":
        found = _of_package(before, now)
    elif name == "Cargo.toml":
        found = _of_cargo(before, now)
    elif name.lower() in ("makefile", "gnumakefile"):
        found = _of_makefile(before, now)
    elif name.endswith((".ini", ".cfg", ".toml")):
        found = _of_pytest(path, before, now, tests)
    else:
        found = _of_script(before, now)
    return [Weakening(file=path, line=1, test="", what=f"{_WHAT}: {key}", before=a, after=b) for key, a, b in found]


def _of_pytest(path: str, before: str, now: str, tests: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    old, new = _pytest(path, before), _pytest(path, now)
    folder = str(PurePosixPath(path).parent)
    own = [test for test in tests if language_of(test) == "python" and (folder == "." or test.startswith(folder + "/"))]
    for key, leaves_out in _CHECKS.items():
        if old.get(key, "") != new.get(key, "") and leaves_out(old.get(key, ""), new.get(key, ""), own):
            yield key, old.get(key, ""), new.get(key, "")


def _pytest(path: str, text: str) -> Mapping[str, str]:
    """The pytest settings of a file, each on one line. An unparsable file has one that says so."""
    try:
        if path.endswith(".toml"):
            tool = tomllib.loads(text).get("tool", {}).get("pytest", {})
            values: Mapping[str, Any] = tool.get("ini_options", tool)
        else:
            parser = configparser.ConfigParser(interpolation=None, strict=False)
            parser.read_string(text)
            section = _PYTEST_SECTIONS.get(PurePosixPath(path).name, "pytest")
            values = dict(parser.items(section)) if parser.has_section(section) else {}
        return {str(key): _line(value) for key, value in values.items()}
    except (ValueError, RecursionError, AttributeError, configparser.Error) as error:
        return {"python_classes": f"unreadable: {type(error).__name__}"}


def _line(value: Any) -> str:
    return shlex.join(map(str, value)) if isinstance(value, list) else " ".join(str(value).split())


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _is_not_covered(old: str, new: str, tests: Sequence[str]) -> bool:
    places = [place.rstrip("/").removeprefix("./") for place in _words(new)]
    return bool(places) and not all(any(_lies_in(test, place) for place in places) for test in tests)


def _lies_in(test: str, place: str) -> bool:
    return place in (".", "") or test == place or test.startswith(f"{place}/") or fnmatch(test, f"{place}/*")


def _is_not_named(old: str, new: str, tests: Sequence[str]) -> bool:
    patterns = _words(new) or ["test_*.py", "*_test.py"]
    before = _words(old) or ["test_*.py", "*_test.py"]
    names = [PurePosixPath(test).name for test in tests]
    found = [name for name in names if any(fnmatch(name, pattern) for pattern in before)]
    return not all(any(fnmatch(name, pattern) for pattern in patterns) for name in found)


def _is_not_entered(old: str, new: str, tests: Sequence[str]) -> bool:
    added = set(_words(new)) - set(_words(old))
    folders = {part for test in tests for part in PurePosixPath(test).parts[:-1]}
    return any(fnmatch(folder, pattern) or pattern.endswith(folder) for folder in folders for pattern in added)


def _leaves_out(old: str, new: str, tests: Sequence[str]) -> bool:
    added = [word for word in _words(new) if word not in _words(old)]
    return any(_LEAVING_OUT.match(word) for word in added)


def _is_another(old: str, new: str, tests: Sequence[str]) -> bool:
    return True


def _is_laxer(old: str, new: str, tests: Sequence[str]) -> bool:
    return old.lower() == "true"


_CHECKS: Mapping[str, Callable[[str, str, Sequence[str]], bool]] = {
    "testpaths": _is_not_covered,
    "python_files": _is_not_named,
    "norecursedirs": _is_not_entered,
    "addopts": _leaves_out,
    "xfail_strict": _is_laxer,
    "strict": _is_laxer,
    **dict.fromkeys(_KEYS, _is_another),
}


def _of_package(before: str, now: str) -> Iterator[tuple[str, str, str]]:
    old, new = _json(before), _json(now)
    scripts, after = (_mapping(each.get("scripts")) for each in (old, new))
    for name, command in scripts.items():
        if "test" in name and after.get(name) != command:
            yield f"the script {name}", str(command), str(after.get(name, ""))
    for name in _PACKAGE_SECTIONS:
        if old.get(name) != new.get(name):
            shown = (json.dumps(each.get(name)) if name in each else "" for each in (old, new))
            one, other = shown
            if one or _SCRIPT_SETTINGS.search(other):
                yield name, one, other


def _json(text: str) -> Mapping[str, Any]:
    try:
        return _mapping(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _of_cargo(before: str, now: str) -> Iterator[tuple[str, str, str]]:
    old, new = _cargo(before), _cargo(now)
    for key in sorted({*old, *new}):
        if old.get(key) != new.get(key):
            yield key, old.get(key, ""), new.get(key, "")


def _cargo(text: str) -> Mapping[str, str]:
    """A manifest's settings of tests."""
    try:
        value = tomllib.loads(text)
    except (ValueError, RecursionError):
        return {}
    found = {f"[[test]] {each.get('name')}": json.dumps(each) for each in _tables(value.get("test"))}
    for kind in ("lib", "bin", "example", "bench"):
        for each in _tables(value.get(kind)):
            if each.get("test") is False or each.get("harness") is False:
                found[f"{kind} {each.get('name', '')}"] = json.dumps(each)
    if _mapping(value.get("package")).get("autotests") is False:
        found["autotests"] = "false"
    return found


def _tables(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict)]


def _of_makefile(before: str, now: str) -> Iterator[tuple[str, str, str]]:
    old, new = _targets(before), _targets(now)
    for target, recipe in old.items():
        if new.get(target) != recipe:
            yield f"the target {target}", recipe, new.get(target, "")


def _targets(text: str) -> Mapping[str, str]:
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in text.splitlines():
        if line.startswith("\t"):
            if current is not None:
                current.append(line.strip())
        elif line.strip() and not line.startswith("#"):
            name, colon, needs = line.partition(":")
            is_target = bool(colon) and name.strip() in _MAKE_TARGETS and not needs.startswith("=")
            current = found.setdefault(name.strip(), [needs.strip()]) if is_target else None
    return {name: "; ".join(filter(None, lines)) for name, lines in found.items()}


def _of_script(before: str, now: str) -> Iterator[tuple[str, str, str]]:
    """Settings in a program: it is not run, so any change to the selection of tests counts."""
    old, new = " ".join(before.split()), " ".join(now.split())
    if old != new and (_SCRIPT_SETTINGS.search(old) or _SCRIPT_SETTINGS.search(new)):
        yield "it was changed", before[:300], now[:300]
