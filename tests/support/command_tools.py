"""A tool that runs commands, for tests of the core: the coding pack has the real one."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from marvin_core import ToolContext, tool


@tool(access=["write", "exec"], typed="!")
async def shell(context: ToolContext, command: str) -> str:
    """Run a command."""
    result = await context.processes.run(["bash", "-c", command], merge_stderr=True, timeout=60)
    return f"{result.output.decode()}[{result.exit_code}]"


@tool(access=["write", "exec"], snapshot=True)
async def add_names(context: ToolContext, names: list[str], note: str = "") -> str:
    """Have a program add names to a manifest."""
    words = ["bash", "-c", 'printf "%s\\n" "$@" >>manifest; echo >new.lock', "bash", *names]
    return f"{(await context.processes.run(words)).exit_code}{note}"


@tool(access=["write", "exec"])
async def logged(context: ToolContext, command: str) -> str:
    """Run a command whose long output goes to a file, and whose jobs stay."""
    words = ["bash", "-c", command]
    result = await context.processes.run(
        words, merge_stderr=True, timeout=60, output_limit=50_000, keep_output=True, leave_jobs=True, title=command
    )
    return f"[{result.exit_code}]"


ALL: tuple[Any, ...] = (shell, add_names, logged)


def runs_a_command(home: Path, project: Path, command: str) -> None:
    """A Marvin in a process of its own, which runs one command."""
    from marvin_core.testing import ToolRunner

    with ToolRunner(home, project) as runner:
        runner.call(shell, command=command)


def goes_back_and_forth(home: Path, project: Path) -> None:
    """A process that runs commands and undoes them until it is killed."""
    from marvin_core.testing import ToolRunner

    with ToolRunner(home, project) as runner:
        while True:
            runner.call(shell, command="rm -rf src; echo new >new")
            (home / "going").touch()
            runner.take_back()


def runs_commands(home: Path, project: Path, name: str) -> None:
    """One that makes files of its own."""
    from marvin_core.testing import ToolRunner

    with ToolRunner(home, project) as runner:
        runner.call(shell, command=f"printf {name} >{name}.kept")
        for number in range(5):
            runner.call(shell, command=f"echo {number} >{name}.{number}")


def swaps_a_folder(home: Path, project: Path) -> None:
    """A process that makes `sub` a folder and a link alternately, for as long as its parent lives."""
    while os.getppid() != 1:
        for _ in range(100):
            for old, new in (("sub", "aside"), ("link", "sub"), ("sub", "link"), ("aside", "sub")):
                with suppress(OSError):
                    (project / old).rename(project / new)
        (home / "going").touch()
