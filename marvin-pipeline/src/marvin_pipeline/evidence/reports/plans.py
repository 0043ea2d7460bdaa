"""How to run a test command so that its runner reports each test in a structured form."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from marvin_core import Record

from ...checks.commands import ProjectCommand
from ...checks.javascript import package_of

Form: TypeAlias = Literal["lines", "go", "cargo", "exit code"]
"""lines: our reporter writes them to a file. go: Go's events on standard output.
cargo: messages of the build, and then the exit code."""
REPORT = "MARVIN_REPORT"
"""The variable with the path of a reporter's file."""
_ADDED = "MARVIN_ADDED"
"""The variable with the text that is appended to another variable."""
RUNNERS = Path(__file__).parent / "runners"
"""The reporters, in a folder of their own, which is added to the import path of the project's programs."""
OF_PYTHON = "marvin_reporters"
"""The package of the Python reporters."""
_MANAGERS = ("npm", "pnpm", "yarn", "bun")
_SHELL = frozenset("&|;<>()$`\n*?")
"""A script with one of these characters is more than one command with its arguments."""
_PYTEST = ("-p", f"{OF_PYTHON}.pytest_plugin", "--continue-on-collection-errors", "--maxfail=0")
"""Report all tests, also after a failure or a file that cannot be imported."""

_FRESH = ("-count=1",)
"""Go runs the tests rather than use cached results, in a folder to which tests can write."""


class Plan(Record):
    """A command that was changed to report. `runner` is empty if only the exit code is available."""

    command: ProjectCommand
    runner: str
    form: Form


def plan_of(command: ProjectCommand, root: Path, report: Path) -> Plan:
    """How to run a command to get a report. Blocks: it may read a package.json.

    Args:
        report: the file for our reporter.
    """
    words = _words(command, root)
    program = os.path.basename(words[0]) if words else ""
    module = _module(words)
    if program in ("pytest", "py.test") or module == "pytest":
        if command.argv == tuple(words):
            return _python(command, "pytest", (*command.argv, *_PYTEST), report)
    elif module == "unittest":
        if command.argv == tuple(words):
            place = command.argv.index("unittest")
            argv = (*command.argv[:place], f"{OF_PYTHON}.unittest_runner", *command.argv[place + 1 :])
            return _python(command, "unittest", argv, report)
    elif program == "node" and "--test" in words and not any("reporter" in word for word in words):
        return _node(command, report)
    elif program == "jest":
        flags = ("--runInBand", f"--reporters={RUNNERS / 'jest_reporter.cjs'}")
        return _with_flags(command, "jest", flags, report)
    elif program == "vitest":
        return _with_flags(command, "vitest", (f"--reporter={RUNNERS / 'vitest_reporter.mjs'}",), report)
    elif program == "go" and words[1:2] == ["test"] and command.argv == tuple(words):
        argv = (*words[:2], *(() if "-json" in words else ("-json",)), *_FRESH, *words[2:])
        return Plan(command=command.replace(argv=argv), runner="go", form="go")
    elif program == "cargo" and words[1:2] == ["test"] and command.argv == tuple(words):
        return Plan(command=command, runner="cargo", form="cargo")
    return Plan(command=command, runner="", form="exit code")


def _words(command: ProjectCommand, root: Path) -> Sequence[str]:
    """The program that runs the tests and its arguments, also inside a script of a package.json."""
    argv = command.argv
    if argv[0] in _MANAGERS and argv[1:2] == ("run",) and len(argv) > 2:
        scripts = package_of(root / command.folder).get("scripts")
        text = scripts.get(argv[2]) if isinstance(scripts, dict) else ""
        return _without_prefix(_split(text if isinstance(text, str) else ""))
    return _without_prefix(argv)


def _split(script: str) -> Sequence[str]:
    if _SHELL & set(script):
        return ()
    try:
        return shlex.split(script)
    except ValueError:
        return ()


def _without_prefix(words: Sequence[str]) -> Sequence[str]:
    """The words without variable assignments and without wrappers such as environment managers."""
    left = list(words)
    while left and (left[0] in ("npx", "cross-env", "--no-install") or ("=" in left[0] and left[0][0] not in "-/.")):
        left.pop(0)
    return left if left else words


def _module(words: Sequence[str]) -> str:
    """The module that a Python command runs."""
    if not words or not os.path.basename(words[0]).startswith(("python", "pypy")) or "-m" not in words[:-1]:
        return ""
    return words[list(words).index("-m") + 1]


def _python(command: ProjectCommand, runner: str, argv: tuple[str, ...], report: Path) -> Plan:
    return _planned(command, runner, _with_more("PYTHONPATH", ":", argv), report, str(RUNNERS))


def _node(command: ProjectCommand, report: Path) -> Plan:
    flags = f"--require {_quoted(RUNNERS / 'node_uncaught.cjs')}"
    flags += f" --test-reporter={_quoted(RUNNERS / 'node_reporter.mjs')} --test-reporter-destination=stdout"
    return _planned(command, "node", _with_more("NODE_OPTIONS", " ", command.argv), report, flags)


def _with_more(variable: str, between: str, argv: Sequence[str]) -> tuple[str, ...]:
    """A command that appends a text to a variable, whose value is only known when it runs."""
    script = f'export {variable}="${{{variable}:+${variable}{between}}}${_ADDED}"; unset {_ADDED}; exec "$@"'
    return ("sh", "-c", script, "sh", *argv)


def _quoted(path: Path) -> str:
    """A value with spaces, quoted for NODE_OPTIONS."""
    return json.dumps(str(path), ensure_ascii=False)


def _with_flags(command: ProjectCommand, runner: str, flags: Sequence[str], report: Path) -> Plan:
    handed = ("--", *flags) if command.argv[0] == "npm" else tuple(flags)
    return _planned(command, runner, (*command.argv, *handed), report)


def _planned(command: ProjectCommand, runner: str, argv: tuple[str, ...], report: Path, added: str = "") -> Plan:
    variables = ((REPORT, str(report)), *(((_ADDED, added),) if added else ()))
    changed = command.replace(argv=argv, environment=(*command.environment, *variables))
    return Plan(command=changed, runner=runner, form="lines")
