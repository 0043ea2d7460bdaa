"""Which package manager a project uses, by its lock files and manifests, and the commands of each."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from marvin_core import Paths, Record, ToolError

ENVIRONMENT = ".venv"
"""The folder of a Python project's environment."""
_MANIFEST_LIMIT = 2_000_000
_PYTHON_LOCKS = {"uv.lock": "uv", "poetry.lock": "poetry", "pdm.lock": "pdm", "Pipfile.lock": "pipenv"}
_PYTHON_SECTIONS = ("uv", "poetry", "pdm")
_PYTHON_PLAIN = {"uv.toml": "uv", "Pipfile": "pipenv"}
REQUIREMENTS = ("requirements.txt", "requirements-dev.txt", "dev-requirements.txt", "requirements.in")
"""Files in which pip projects list their requirements."""
_PIP = (*REQUIREMENTS, "pyproject.toml", "setup.py", "setup.cfg")
_NODE_LOCKS = {
    "package-lock.json": "npm",
    "npm-shrinkwrap.json": "npm",
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lock": "bun",
    "bun.lockb": "bun",
}
_NODE_PLAIN = {"pnpm-workspace.yaml": "pnpm", ".yarnrc.yml": "yarn"}
_RUST = ("Cargo.toml", "Cargo.lock")
_OTHERS = {
    "go.mod": "go",
    "Gemfile": "bundle",
    "composer.json": "composer",
    "environment.yml": "conda",
    "mix.exs": "mix",
    "pubspec.yaml": "dart",
    "deno.json": "deno",
}
_LOCKS = (*_PYTHON_LOCKS, *_NODE_LOCKS, "Cargo.lock")
_ADDING = {
    "uv": ("uv", "add"),
    "poetry": ("poetry", "add", "--no-interaction"),
    "npm": ("npm", "install", "--no-audit", "--no-fund"),
    "pnpm": ("pnpm", "add"),
    "yarn": ("yarn", "add"),
    "cargo": ("cargo", "add"),
}
_FOR_DEVELOPMENT: Mapping[str, Sequence[str]] = {
    "uv": ["--dev"],
    "poetry": ["--group", "dev"],
    "npm": ["--save-dev"],
    "pnpm": ["--save-dev"],
    "yarn": ["--dev"],
    "cargo": ["--dev"],
}
_REMOVING = {
    "uv": "uv remove",
    "pip": f"{ENVIRONMENT}/bin/python -m pip uninstall --yes",
    "poetry": "poetry remove",
    "npm": "npm uninstall",
    "pnpm": "pnpm remove",
    "yarn": "yarn remove",
    "cargo": "cargo remove",
}
_OF_DEVELOPMENT = {"uv": "--dev", "poetry": "--group dev", "cargo": "--dev"}
"""The options that remove a package from the development group."""
_BY_HAND = {
    "pdm": "pdm add",
    "pipenv": "pipenv install",
    "bun": "bun add",
    "go": "go get",
    "bundle": "bundle add",
    "composer": "composer require",
    "conda": "conda install --yes",
    "mix": "mix deps.get",
    "dart": "dart pub add",
    "deno": "deno add",
}
_ENDS_OPTIONS = ("uv", "poetry", "npm", "cargo")
_PIP_OPTIONS = ("--disable-pip-version-check", "--no-input")
_PYTHON_NAME = re.compile(r"([A-Za-z0-9][\w.-]*)\s*([\[<>=!~;(][^:/@]*)?")
_OTHER_NAME = re.compile(r"((?:@[\w.~-]+/)?[\w~-][\w.~-]*)(@[^:/@]*)?")


class Manager(Record):
    """A package manager that fits a project.

    `because` is the file that shows it. `extra` are options that this project needs.
    """

    name: str
    because: str
    extra: tuple[str, ...] = ()

    @property
    def is_known(self) -> bool:
        """Whether Marvin calls it; others are only named in messages."""
        return self.name in _REMOVING

    @property
    def is_python(self) -> bool:
        """Whether it installs into the project's `.venv`."""
        return self.name in ("uv", "poetry", "pip")

    def adding(self, packages: Sequence[str], *, dev: bool) -> list[str]:
        """The command that adds packages to the project. No name is parsed as an option."""
        if self.name == "pip":
            return [f"{ENVIRONMENT}/bin/python", "-I", "-m", "pip", "install", *_PIP_OPTIONS, "--", *packages]
        if self.name not in _ADDING:
            return [*_BY_HAND[self.name].split(), *packages]
        options = [*self.extra, *(_FOR_DEVELOPMENT[self.name] if dev else ())]
        ending = ["--"] if self.name in _ENDS_OPTIONS else []
        return [*_ADDING[self.name], *options, *ending, *packages]

    def removing(self, packages: Sequence[str], *, dev: bool) -> str:
        """The shell command that removes the packages; empty if their names are unknown, as of a URL."""
        names = [name for name in map(self._bare, packages) if name]
        if len(names) < len(packages):
            return ""
        group = _OF_DEVELOPMENT.get(self.name, "") if dev else ""
        return " ".join(filter(None, (_REMOVING[self.name], group, *self.extra, shlex.join(names))))

    def _bare(self, package: str) -> str:
        """The name without a version."""
        found = (_PYTHON_NAME if self.is_python else _OTHER_NAME).fullmatch(package)
        return found[1] if found is not None else ""


def by_hand(managers: Sequence[Manager], packages: Sequence[str], *, dev: bool) -> str:
    """The commands with which each manager would add the packages, one a line."""
    return "\n".join(shlex.join(manager.adding(packages, dev=dev)) for manager in managers)


def find(paths: Paths) -> Sequence[Manager]:
    """The managers of the working directory: one for each language, or more where files disagree."""
    return [*_python(paths), *_node(paths), *_rust(paths), *_of(_OTHERS, paths)]


def lock_above(paths: Paths) -> str:
    """A lock file in a folder above in the same repository, which makes the working directory part of a workspace."""
    if any(paths.exists(name) for name in (*_LOCKS, ".git")):
        return ""
    for folder in paths.root.parents:
        for name in _LOCKS:
            if (folder / name).is_file():
                return str(folder / name)
        if (folder / ".git").exists():
            break
    return ""


def _of(names: Mapping[str, str], paths: Paths) -> Iterator[Manager]:
    """The manager that each file shows, without duplicates."""
    told: dict[str, str] = {}
    for file, name in names.items():
        if name not in told and paths.exists(file):
            told[name] = file
    return (Manager(name=name, because=file) for name, file in told.items())


def _python(paths: Paths) -> Sequence[Manager]:
    if found := list(_of(_PYTHON_LOCKS, paths)):
        return found
    tools = _table(_toml(paths, "pyproject.toml").get("tool"))
    sections = [name for name in _PYTHON_SECTIONS if name in tools]
    told = [Manager(name=name, because=f"[tool.{name}] of pyproject.toml") for name in sections]
    if found := told or list(_of(_PYTHON_PLAIN, paths)):
        return found
    backend = str(_table(_toml(paths, "pyproject.toml").get("build-system")).get("build-backend", ""))
    if backend.startswith("poetry."):
        return [Manager(name="poetry", because="pyproject.toml")]
    return list(_of(dict.fromkeys(_PIP, "pip"), paths))


def _node(paths: Paths) -> Sequence[Manager]:
    if not paths.exists("package.json"):
        return []
    manifest = _json(paths, "package.json")
    named = str(manifest.get("packageManager", "")).partition("@")[0]
    if named in ("npm", "pnpm", "yarn", "bun"):
        found = [Manager(name=named, because="packageManager of package.json")]
    else:
        found = list(_of(_NODE_LOCKS, paths)) or list(_of(_NODE_PLAIN, paths))
    found = found or [Manager(name="npm", because="package.json")]
    return [_for_workspace(manager, manifest, paths) for manager in found]


def _for_workspace(manager: Manager, manifest: Mapping[str, Any], paths: Paths) -> Manager:
    """The option that installing into the root of a workspace requires."""
    if manager.name == "pnpm" and paths.exists("pnpm-workspace.yaml"):
        return manager.replace(extra=("--workspace-root",))
    if manager.name == "yarn" and manifest.get("workspaces") and not paths.exists(".yarnrc.yml"):
        return manager.replace(extra=("--ignore-workspace-root-check",))
    return manager


def _rust(paths: Paths) -> Sequence[Manager]:
    return [Manager(name="cargo", because=_RUST[0])] if paths.exists(_RUST[0]) else []


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _json(paths: Paths, name: str) -> Mapping[str, Any]:
    try:
        found = json.loads(_read(paths, name))
    except (ValueError, RecursionError) as error:
        raise _broken(name, error) from error
    return _table(found)


def _toml(paths: Paths, name: str) -> Mapping[str, Any]:
    if not paths.exists(name):
        return {}
    try:
        return tomllib.loads(_read(paths, name))
    except (ValueError, RecursionError) as error:
        raise _broken(name, error) from error


def _read(paths: Paths, name: str) -> str:
    with paths.open(name) as file:
        return file.read(_MANIFEST_LIMIT).decode("utf-8-sig")


def _broken(name: str, error: Exception) -> ToolError:
    return ToolError(f"Nothing was installed: {name} cannot be read ({error}). Correct it with apply_patch first.")
