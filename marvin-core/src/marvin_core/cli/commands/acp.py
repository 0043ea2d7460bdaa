"""The sub-command `marvin acp`: Marvin as an agent of an editor."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ...api.config import McpServer
from ...api.errors import ConfigError
from ...util.streams import keep_stdout, silence_packs
from ...util.watchdog import owner_of
from ..project import with_project
from ..run import CommandContext
from ..watched import run_watched

if TYPE_CHECKING:
    from ...acp.session import Opened
    from ...api.ui import UI


def extend(app: typer.Typer) -> None:
    """Add the sub-command."""
    app.command("acp")(acp)


def acp(context: typer.Context) -> None:
    """Serve an editor by the Agent Client Protocol, on standard input and output.

    The editor starts this by itself: add `marvin acp` to its settings as an agent.
    """
    run: CommandContext = context.obj
    try:
        from ...acp.agent import EditorAgent, how_keys_are_set
    except ImportError as error:
        raise ConfigError(f"This needs the Python package {error.name}: pip install 'marvin-core[acp]'") from error
    streams = run.streams
    if streams.stdin_is_terminal():
        run.warn("marvin: this waits for an editor, which starts it by itself. Ctrl+D ends it.")
    keep_stdout(streams, owner_of)
    reading = os.dup(streams.stdin)
    _leave_stdin(streams.stdin)
    agent: EditorAgent | None = None

    async def served() -> None:
        nonlocal agent
        agent = EditorAgent(_Opener(run), run.config.data_folder / "sessions", how_keys_are_set())
        await agent.serve(reading, streams.stdout, run.timeouts.close)

    async def close() -> None:
        if agent is not None:
            await agent.close()

    try:
        run_watched(run, served(), close=close, rescue=lambda: agent.rescue() if agent is not None else None)
    finally:
        silence_packs()


def _leave_stdin(descriptor: int) -> None:
    """Replace standard input with `/dev/null`, since only the editor's connection may read the original."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, descriptor)
    os.close(nothing)


class _Opener:
    """Opens sessions, each with the current configuration of its folder."""

    def __init__(self, run: CommandContext) -> None:
        self._run = run

    def __call__(self, cwd: Path, servers: Mapping[str, McpServer], ui: UI, warn: Callable[[str], None], /) -> Opened:
        from ...acp.session import Opened
        from ...app import App

        config, secrets = self._run.load(cwd)
        if cwd.resolve() == config.home.resolve():  # no project: calls that write or run commands need approval
            config = config.replace(in_home=True)
        told: list[str] = []
        config = with_project(config, told.append, attended=True)
        if config.project is not None:  # else the first prompt asks about the same
            for text in told:
                warn(text)
        config = config.replace(mcp_servers={**servers, **config.mcp_servers})
        app = App(config, secrets, warn, chat=True)
        if app.choice.endpoint is None:
            warn(app.choice.how_to)
        return Opened(session=app.session(asker=ui.ask, interactive=True, ui=ui), saved=app.save_usage)
