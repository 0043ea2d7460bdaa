"""Finds the commands that test, build and serve a project from its files, without running any."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from marvin_core import ConfigError, Record

from .files import folders_in, is_file, text_of

CommandKind: TypeAlias = Literal["install", "build", "test", "e2e", "serve"]
"""What a command is for. install: fetches missing dependencies of the project."""

_FOLDERS = 12
"""Subfolders that are examined, as in a project of `backend` and `frontend`."""
CONFIGURED = "packs.pipeline.test_command"
"""The source of the command that the configuration sets."""
PORT = "{port}"
"""The placeholder for the port in arguments and variables of a command that serves."""


class ProjectCommand(Record):
    """A command of the project, which is run without a shell."""

    kind: CommandKind
    argv: tuple[str, ...]
    folder: str = "."
    """Its working directory, relative to the project."""
    why: str = ""
    """Where it was found, for people."""
    environment: tuple[tuple[str, str], ...] = ()

    @property
    def shown(self) -> str:
        """The command as it would be typed in the project's folder."""
        import shlex

        line = shlex.join(self.argv)
        return line if self.folder == "." else f"cd {shlex.quote(self.folder)} && {line}"


class ProjectCommands(Record):
    """The commands of a project, in the order in which they are run."""

    found: tuple[ProjectCommand, ...] = ()

    def of(self, *kinds: CommandKind) -> tuple[ProjectCommand, ...]:
        """The commands of some kinds."""
        return tuple(one for one in self.found if one.kind in kinds)

    @property
    def told(self) -> str:
        """All commands for a prompt, one a line."""
        return "\n".join(f"- {one.kind}: {one.shown} ({one.why})" for one in self.found) or "- none was found"


Which: TypeAlias = Callable[[str], str | None]
"""Finds a program, as `Processes.which`; None if it is missing."""


def find_commands(root: Path, which: Which, test_command: str = "") -> ProjectCommands:
    """The commands of a project. Blocks: it reads manifests and lists folders.

    Subfolders are examined as well: for JavaScript unless a workspace covers them, and for all other
    languages unless the project's own folder has tests. Packages of a workspace are tested one by one unless a script
    at its top tests them.

    Args:
        test_command: the configured one, which replaces the test commands that are found.
    """
    from .javascript import has_workspaces, javascript_commands, workspace_tests

    of_packages = workspace_tests(root, which)
    at_top = (one for one in javascript_commands(root, ".", which) if one.kind != "test" or not of_packages)
    found = [*at_top, *of_packages, *_not_javascript(root, ".", which)]
    is_tested = any(one.kind == "test" for one in _not_javascript(root, ".", which))
    for folder in folders_in(root)[:_FOLDERS]:
        if is_file(folder / "package.json") and not has_workspaces(root):
            found += javascript_commands(folder, folder.name, which)
        if any(is_file(folder / name) for name in _MANIFESTS) and not is_tested:
            found += _not_javascript(folder, folder.name, which)
    if test_command:
        found = [*(one for one in found if one.kind != "test"), configured_test(test_command)]
    elif not any(one.kind == "test" for one in found):
        found += _by_makefile(root)
    order = get_args(CommandKind)
    return ProjectCommands(found=tuple(sorted(found, key=lambda one: order.index(one.kind))))


def configured_test(line: str) -> ProjectCommand:
    """The configured test command.

    Raises:
        ConfigError: it is not a valid command.
    """
    import shlex

    try:
        argv = tuple(shlex.split(line))
    except ValueError as error:
        raise ConfigError(f"packs.pipeline.test_command is not a command: {error}. Its value is {line!r}.") from error
    if not argv:
        raise ConfigError("packs.pipeline.test_command is not a command: it is blank. Name one, or leave the key out.")
    return ProjectCommand(kind="test", argv=argv, why=CONFIGURED)


def _not_javascript(folder: Path, name: str, which: Which) -> list[ProjectCommand]:
    from .python import python_commands

    return [*python_commands(folder, name, which), *_others(folder, name)]


_MANIFESTS = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Cargo.toml", "go.mod")
_OTHER_LANGUAGES = (("Cargo.toml", ("cargo", "test", "--quiet")), ("go.mod", ("go", "test", "./...")))


def _others(folder: Path, name: str) -> list[ProjectCommand]:
    return [
        ProjectCommand(kind="test", argv=argv, folder=name, why=manifest)
        for manifest, argv in _OTHER_LANGUAGES
        if is_file(folder / manifest)
    ]


def _by_makefile(root: Path) -> list[ProjectCommand]:
    """The targets of a Makefile, for a project without other known files."""
    lines = text_of(root / "Makefile").splitlines()
    targets = {
        line.partition(":")[0].strip() for line in lines if ":" in line and not line.startswith(("\t", " ", "#"))
    }
    wanted: tuple[tuple[CommandKind, str], ...] = (("build", "build"), ("test", "test"), ("e2e", "e2e"))
    return [
        ProjectCommand(kind=kind, argv=("make", target), why=f"the target {target} of the Makefile")
        for kind, target in wanted
        if target in targets
    ]
