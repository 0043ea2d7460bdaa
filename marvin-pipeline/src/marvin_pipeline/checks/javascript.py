"""The commands of a JavaScript or TypeScript project, from its package.json and its lock file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

from .commands import PORT, CommandKind, ProjectCommand, Which
from .files import files_below, folders_in, is_file, is_folder, text_of

_LOCKS = (
    ("package-lock.json", "npm"),
    ("pnpm-lock.yaml", "pnpm"),
    ("yarn.lock", "yarn"),
    ("bun.lock", "bun"),
    ("bun.lockb", "bun"),
)
_LISTED = re.compile(r"^\s*-\s*['\"]?([^'\"#\n]{1,200}?)['\"]?\s*(?:#.*)?$", re.MULTILINE)
"""An entry of a list in pnpm-workspace.yaml, such as a package pattern."""
_DEEP = 6
_PACKAGES = 50
"""Packages of a workspace that are examined."""
_PLACEHOLDER = "no test specified"
"""The placeholder test script of `npm init`."""
_RUNNERS = ("vitest", "jest", "mocha")
_ONCE = (("CI", "1"), ("NO_COLOR", "1"))
"""Variables with which test runners neither watch for changes nor colour their output."""
_TEST_FILES = (".test.js", ".test.mjs", ".test.cjs", ".spec.js", ".spec.mjs", "_test.js", "-test.js")
_SERVING = ("preview", "serve", "start", "dev")
_PORT_FLAGS = (("vite", ("--port", PORT, "--strictPort")), ("next", ("--port", PORT)), ("astro", ("--port", PORT)))

Package: TypeAlias = Mapping[str, Any]


def javascript_commands(folder: Path, name: str, which: Which) -> Sequence[ProjectCommand]:
    """The commands of a folder with a package.json, or with tests for Node's runner; none for any other."""
    if not is_file(folder / "package.json"):
        return _by_node(folder, name, which)
    package = package_of(folder)
    manager = _manager(folder, package)
    scripts = _section(package, "scripts")
    found = []
    if _depends(package) and not is_folder(folder / "node_modules"):
        found.append(_command("install", name, (manager, "install"), "no node_modules"))
    found += [
        _command("build", name, (manager, "run", script), f"the script {script}")
        for script in ("typecheck", "build")
        if scripts.get(script)
    ]
    found += _tests(folder, name, package, which)
    found += [
        _command("e2e", name, (manager, "run", script), f"the script {script}")
        for script in ("test:e2e", "e2e")
        if scripts.get(script)
    ][:1]
    return [*found, *_serving(name, manager, scripts)]


def package_of(folder: Path) -> Package:
    """The content of a package.json; empty if it is unreadable."""
    try:
        data = json.loads(text_of(folder / "package.json"))
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def has_workspaces(folder: Path) -> bool:
    """Whether a folder is the root of a workspace."""
    return bool(package_of(folder).get("workspaces")) or is_file(folder / "pnpm-workspace.yaml")


def workspace_tests(root: Path, which: Which) -> Sequence[ProjectCommand]:
    """The tests of a workspace's packages, each in its own folder; none if the root tests all."""
    if not has_workspaces(root) or _declared_tests(root, ".", package_of(root)):
        return []
    manager = _manager(root, package_of(root))
    found = []
    for folder in _packages(root):
        for one in _tests(folder, str(folder.relative_to(root)), package_of(folder), which):
            argv = (manager, *one.argv[1:]) if one.argv[:2] == ("npm", "run") else one.argv
            found.append(one.replace(argv=argv))
    return found


def _packages(root: Path) -> Sequence[Path]:
    """The folders of the packages of a workspace."""
    named = package_of(root).get("workspaces")
    named = named.get("packages") if isinstance(named, dict) else named
    patterns = [one for one in named if isinstance(one, str)] if isinstance(named, list) else []
    patterns += _LISTED.findall(text_of(root / "pnpm-workspace.yaml"))
    plain = [one.strip("/").removeprefix("./") for one in patterns if not one.startswith(("!", "/"))]
    found = {
        folder: None
        for pattern in plain
        if pattern and ".." not in pattern and pattern.count("**") <= 1 and pattern.count("/") < _DEEP
        for folder in _matching(root, PurePosixPath(pattern).parts)
        if is_file(folder / "package.json") and folder != root
    }
    return list(found)[:_PACKAGES]


def _matching(folder: Path, parts: Sequence[str]) -> Sequence[Path]:
    """The folders that match a pattern, part by part, without hidden and installed ones."""
    if not parts:
        return [folder]
    inner = folders_in(folder)
    here = [one for one in inner if fnmatch(one.name, parts[0])]
    found = [place for one in here for place in _matching(one, parts[1:])]
    if parts[0] == "**":
        found = [*_matching(folder, parts[1:]), *(place for one in inner for place in _matching(one, parts))]
    return found[:_PACKAGES]


def depends_on(package: Package, *names: str) -> bool:
    """Whether a package depends on one of these."""
    found = {**_section(package, "dependencies"), **_section(package, "devDependencies")}
    return any(name in found for name in names)


def _section(package: Package, name: str) -> dict[str, str]:
    section = package.get(name)
    if not isinstance(section, dict):
        return {}
    return {str(key): value for key, value in section.items() if isinstance(value, str)}


def _depends(package: Package) -> bool:
    return bool(_section(package, "dependencies") or _section(package, "devDependencies"))


def _manager(folder: Path, package: Package) -> str:
    declared = str(package.get("packageManager") or "").partition("@")[0]
    if declared in ("npm", "pnpm", "yarn", "bun"):
        return declared
    return next((manager for lock, manager in _LOCKS if is_file(folder / lock)), "npm")


def _tests(folder: Path, name: str, package: Package, which: Which) -> Sequence[ProjectCommand]:
    return _declared_tests(folder, name, package) or _by_node(folder, name, which)


def _declared_tests(folder: Path, name: str, package: Package) -> Sequence[ProjectCommand]:
    """The test scripts of a package.json."""
    script = _section(package, "scripts").get("test", "")
    if script and _PLACEHOLDER not in script:
        return [_command("test", name, (_manager(folder, package), "run", "test"), "the script test")]
    for runner in _RUNNERS:
        if depends_on(package, runner):
            once = ("run",) if runner == "vitest" else ()
            return [_command("test", name, ("npx", "--no-install", runner, *once), f"it depends on {runner}")]
    return []


def _by_node(folder: Path, name: str, which: Which) -> Sequence[ProjectCommand]:
    """Tests for Node's own runner. A folder without a package.json needs tests in a conventional place."""
    if not which("node"):
        return []
    places = [folder] if is_file(folder / "package.json") else [folder / "test", folder / "tests", *_flat(folder)]
    if any(path.name.endswith(_TEST_FILES) for place in places for path in files_below(place)):
        return [_command("test", name, ("node", "--test"), "files of tests for Node's runner")]
    return []


def _flat(folder: Path) -> list[Path]:
    return [one for one in folders_in(folder) if one.name in ("src", "lib", "__tests__")]


def _serving(name: str, manager: str, scripts: Mapping[str, str]) -> list[ProjectCommand]:
    for script in _SERVING:
        if text := scripts.get(script):
            words = text.split()
            flags = next((flags for program, flags in _PORT_FLAGS if program in words), ())
            handed = ("--", *flags) if flags and manager == "npm" else flags
            return [
                ProjectCommand(
                    kind="serve",
                    argv=(manager, "run", script, *handed),
                    folder=name,
                    why=f"the script {script}",
                    environment=(*_ONCE, ("PORT", PORT), ("HOST", "127.0.0.1"), ("BROWSER", "none")),
                )
            ]
    return []


def _command(kind: CommandKind, folder: str, argv: Sequence[str], why: str) -> ProjectCommand:
    return ProjectCommand(kind=kind, argv=tuple(argv), folder=folder, why=why, environment=_ONCE)
