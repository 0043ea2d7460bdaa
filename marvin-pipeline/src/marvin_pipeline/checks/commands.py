"""Which commands test, build and serve a project, told from its files; nothing of it is run to find out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from marvin_core import ConfigError, Record

from .files import folders_in, is_file, text_of

CommandKind: TypeAlias = Literal["install", "build", "test", "e2e", "serve"]
"""What a command is for. install: fetches what the project depends on, where it is missing."""

_FOLDERS = 12
"""Folders below the project's own that are looked at, as in a project of `backend` and `frontend`."""
CONFIGURED = "packs.pipeline.test_command"
"""What told of the command that the configuration gives."""
PORT = "{port}"
"""Stands in the arguments and variables of a command that serves, for the port that it is to take."""


class ProjectCommand(Record):
    """A command of the project. It is run without a shell."""

    kind: CommandKind
    argv: tuple[str, ...]
    folder: str = "."
    """Where it is run, relative to the project."""
    why: str = ""
    """What told of it, for people."""
    environment: tuple[tuple[str, str], ...] = ()

    @property
    def shown(self) -> str:
        """The command as it would be typed in the project's folder."""
        import shlex

        line = shlex.join(self.argv)
        return line if self.folder == "." else f"cd {shlex.quote(self.folder)} && {line}"


class ProjectCommands(Record):
    """What there is to run in a project, in the order in which it is to be run."""

    found: tuple[ProjectCommand, ...] = ()

    def of(self, *kinds: CommandKind) -> tuple[ProjectCommand, ...]:
        """Those of some kinds."""
        return tuple(one for one in self.found if one.kind in kinds)

    @property
    def told(self) -> str:
        """All of them for a prompt, one a line."""
        return "\n".join(f"- {one.kind}: {one.shown} ({one.why})" for one in self.found) or "- none was found"


Which: TypeAlias = Callable[[str], str | None]
"""Where a program is, or None, as `Processes.which` tells."""


def find_commands(root: Path, which: Which, test_command: str = "") -> ProjectCommands:
    """The commands of a project. Blocks: it reads manifests and lists folders.

    The folders right below its own are looked at as well: for JavaScript where no workspace does that, and for all
    else where its own folder has no tests. Packages of a workspace are tested one by one where no script at its top
    does that.

    Args:
        test_command: the one that the configuration gives for its tests; it stands in for those that are found.
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
    """The test command that the configuration gives.

    Raises:
        ConfigError: it is no command.
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
    """What a Makefile offers, for a project that no other file tells of."""
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
