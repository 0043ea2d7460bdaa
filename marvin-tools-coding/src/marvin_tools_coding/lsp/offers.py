"""What happens if a server is missing: one line a session, a question in a chat, an installation in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Literal

from marvin_core import ToolContext, ToolError, in_thread, one_line, output_text

from . import installing
from .catalog import ServerKind, offered_for

_LIMIT = 600.0
_ANSWERS = ("yes", "not now", "never")
_NEVER = "lsp_not_wanted"


class Offers:
    """The servers that a session offered, and those that are being installed."""

    def __init__(self) -> None:
        self._offered: set[str] = set()
        self._installing: list[asyncio.Task[str]] = []

    async def offer(self, context: ToolContext, install: Literal["ask", "auto", "never"], paths: Sequence[str]) -> str:
        """The message about files that no server checks, and about finished installations."""
        said = [task.result() for task in self._installing if task.done() and not task.cancelled()]
        self._installing = [task for task in self._installing if not task.done()]
        kinds = {kind.name: kind for path in paths if (kind := offered_for(path)) is not None}
        for name, kind in kinds.items():
            if name not in self._offered:
                self._offered.add(name)
                said.append(await self._one(context, install, kind))
        return "\n".join(filter(None, said))

    async def _one(self, context: ToolContext, install: Literal["ask", "auto", "never"], kind: ServerKind) -> str:
        if not kind.source:
            return f"[No {kind.name} is in PATH, so edits have no diagnostics. The user can install it: {kind.how}]"
        line = f"[No language server for {kind.role} is installed. The user can run: marvin lsp install {kind.name}]"
        if install == "never" or not (install == "auto" or context.session.interactive):
            return line
        if install == "ask" and await self._answer(context, kind) != _ANSWERS[0]:
            return line
        self._installing.append(asyncio.ensure_future(_installed(context, kind)))
        return f"[{kind.name} is being installed; after that, edits show its diagnostics.]"

    async def _answer(self, context: ToolContext, kind: ServerKind) -> str:
        noted = context.folders.state / _NEVER
        if await in_thread(noted.exists):
            return _ANSWERS[2]
        question = (
            f"Install the language server {kind.name} from {kind.source} for use by Marvin only? It reports errors "
            "in files after each edit."
        )
        try:
            answer = await context.ask(question, _ANSWERS)
        except ToolError:  # a non-interactive run
            return _ANSWERS[1]
        if answer == _ANSWERS[2]:
            await in_thread(noted.touch)
        return answer

    async def close(self) -> None:
        """Cancel running installations."""
        for task in self._installing:
            task.cancel()
        await asyncio.gather(*self._installing, return_exceptions=True)


async def _installed(context: ToolContext, kind: ServerKind) -> str:
    """Install a server; returns the message about it."""
    try:
        folder = context.config_folder
        commands = installing.steps(kind, folder, lambda name: context.processes.which(name, outside=True))
        installation = installing.Installation(kind, folder)
        try:
            await in_thread(installation.begin, to_the_end=True)
            for command in commands:
                # A person agreed, and neither a model nor the repository influences what is fetched.
                result = await context.processes.run(
                    command, cwd=folder, timeout=_LIMIT, merge_stderr=True, outside=True, output_limit=20_000
                )
                if result.exit_code != 0:
                    return f"[{kind.name} was not installed: {one_line(output_text(result.output), 500)}]"
            await in_thread(installation.finish, to_the_end=True)
        finally:
            await in_thread(installation.end, to_the_end=True)
    except (ToolError, OSError) as error:
        return f"[{kind.name} was not installed: {error}]"
    return f"[{kind.name} is installed.]"
