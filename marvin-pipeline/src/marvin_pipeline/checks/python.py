"""The commands of a Python project, from its manifests, its tests and its imports."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .commands import PORT, ProjectCommand, Which
from .files import files_below, is_file, is_folder, text_of

_ENVIRONMENTS = (".venv", "venv")
_TEST_FILE = re.compile(r"test_\w*\.py|\w+_test\.py")
_PYTEST = re.compile(r"^\s*(?:import pytest|from pytest\b|(?:async )?def test_\w*\()", re.MULTILINE)
_UNITTEST = re.compile(r"^\s*(?:import unittest|from unittest\b)", re.MULTILINE)
_WEB = re.compile(
    r"^(?P<name>[A-Za-z_]\w{0,60})\s*(?::[^=\n]{1,80})?=\s*(?P<kind>Flask|FastAPI|Starlette)\(", re.MULTILINE
)
_READ = 60
"""Test files, and program files, that are examined."""
_PLAIN = (("PYTHONDONTWRITEBYTECODE", "1"), ("NO_COLOR", "1"))


def python_commands(folder: Path, name: str, which: Which) -> Sequence[ProjectCommand]:
    """The commands of a folder with Python in it; none for any other."""
    python = _interpreter(folder, which)
    if python is None:
        return []
    return [*_tests(folder, name, python), *_serving(folder, name, python)]


def _interpreter(folder: Path, which: Which) -> str | None:
    """The project's own interpreter, else that of the machine."""
    for environment in _ENVIRONMENTS:
        if is_folder(folder / environment) and (folder / environment / "bin" / "python").exists():
            return f"{environment}/bin/python"
    return next((name for name in ("python3", "python") if which(name)), None)


def _tests(folder: Path, name: str, python: str) -> Iterator[ProjectCommand]:
    runner, why = _runner(folder)
    if not runner:
        return
    # No flags are added: one that the project also configures would change the output, or be an error.
    argv = (python, "-m", runner, *(_where(folder) if runner == "unittest" else ()))
    yield ProjectCommand(kind="test", argv=argv, folder=name, why=why, environment=_PLAIN)
    e2e = next((place for place in ("tests/e2e", "e2e", "tests/integration") if _has_tests(folder / place)), "")
    if e2e and runner == "pytest":
        yield ProjectCommand(kind="e2e", argv=(*argv, e2e), folder=name, why=f"the tests in {e2e}", environment=_PLAIN)


def _where(folder: Path) -> tuple[str, ...]:
    """The start directory for unittest, which by itself enters packages only."""
    for name in ("tests", "test"):
        if is_folder(folder / name) and not is_file(folder / name / "__init__.py"):
            return "discover", "-s", name
    return ()


def _runner(folder: Path) -> tuple[str, str]:
    """The test runner, pytest or unittest, and where it was found; nothing if there are no tests."""
    if why := _declares_pytest(folder):
        return "pytest", why
    texts = [text_of(path) for path in _test_files(folder)]
    if any(_PYTEST.search(text) and not _UNITTEST.search(text) for text in texts):
        return "pytest", "the functions of its tests"
    return ("unittest", "its tests are those of unittest") if texts else ("", "")


def _declares_pytest(folder: Path) -> str:
    for name in ("pytest.ini", "conftest.py", "tests/conftest.py"):
        if is_file(folder / name):
            return name
    if "pytest" in _table(_manifest(folder), "tool"):
        return "pytest in pyproject.toml"
    for name in ("pyproject.toml", "setup.cfg", "tox.ini", "requirements.txt", "requirements-dev.txt"):
        if re.search(r"\bpytest\b", text_of(folder / name)):
            return f"pytest in {name}"
    return ""


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text_of(folder / "pyproject.toml"))
    except (ValueError, RecursionError):
        return {}


def _table(data: dict[str, Any], name: str) -> dict[str, Any]:
    table = data.get(name)
    return table if isinstance(table, dict) else {}


def _test_files(folder: Path) -> list[Path]:
    found = (path for path in files_below(folder) if _TEST_FILE.fullmatch(path.name))
    return [path for _, path in zip(range(_READ), found, strict=False)]


def _has_tests(folder: Path) -> bool:
    return is_folder(folder) and bool(_test_files(folder))


def _serving(folder: Path, name: str, python: str) -> Iterator[ProjectCommand]:
    """The command that serves the web application, if there is one: of Django, Flask or an ASGI framework."""
    if "DJANGO_SETTINGS_MODULE" in text_of(folder / "manage.py"):
        django = (python, "manage.py", "runserver", "--noreload", f"127.0.0.1:{PORT}")
        yield ProjectCommand(kind="serve", argv=django, folder=name, why="manage.py", environment=_PLAIN)
        return
    programs = (path for path in files_below(folder) if path.suffix == ".py" and not _TEST_FILE.fullmatch(path.name))
    for _, path in zip(range(_READ), programs, strict=False):
        if found := _WEB.search(text_of(path)):
            module, base = _module(path, folder)
            if not module:
                continue
            application, where = f"{module}:{found['name']}", f"{found['kind']} in {path.relative_to(folder)}"
            asked = ("--host", "127.0.0.1", "--port", PORT)
            how = ("flask", "--app", application, "run") if found["kind"] == "Flask" else ("uvicorn", application)
            argv = (python, "-m", *how, *asked)
            path_of_modules = (("PYTHONPATH", base),) if base != "." else ()
            yield ProjectCommand(
                kind="serve", argv=argv, folder=name, why=where, environment=(*_PLAIN, *path_of_modules)
            )
            return


def _module(path: Path, folder: Path) -> tuple[str, str]:
    """The name of a module, and its import root; no name if it cannot be imported."""
    parts = path.relative_to(folder).with_suffix("").parts
    base = "src" if parts[0] == "src" and len(parts) > 1 else "."
    parts = parts[1:] if base == "src" else parts
    return (".".join(parts), base) if all(part.isidentifier() for part in parts) else ("", base)
