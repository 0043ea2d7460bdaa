"""One invocation of a sub-command, and what sub-commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from ..api.config import Config
from ..config.secrets import Secrets
from ..util.streams import StandardStreams
from ..util.terminal_text import disarm
from ..util.text import unknown_name

if TYPE_CHECKING:
    from ..app import App
    from ..engine.session import Session


class CommandContext:
    """What the sub-commands of one invocation share; typer hands it on as the context's object."""

    def __init__(self, config: Config, secrets: Secrets, streams: StandardStreams) -> None:
        self.config = config
        self.secrets = secrets
        self.streams = streams
        self._app: App | None = None

    def app(self) -> App:
        """The program, put together once."""
        from ..app import App

        if self._app is None:
            self._app = App(self.config, self.secrets, lambda text: self.streams.err(f"marvin: {text}"))
        return self._app

    def say(self, text: str) -> None:
        """Write a text of Marvin's own."""
        from ..ui.rendering import for_people

        self.streams.out(for_people(disarm(text), self.streams.stdout))

    def write(self, text: str) -> None:
        """Write a text of tools, files or services as it is, but for terminal sequences."""
        self.streams.out(disarm(text))

    def session(self) -> Session:
        """A session for calling tools; nobody is asked."""
        return self.app().session(asker=None, interactive=False)


class _Group(TyperGroup):
    """Sub-commands below one name; one that is unknown is answered as other unknown names are."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name not in self.commands and not name.startswith("-"):
            ctx.fail(unknown_name("sub-command", name, self.commands))
        return super().resolve_command(ctx, args)


def group(text: str, default: Callable[[typer.Context], None]) -> typer.Typer:
    """Sub-commands below one name; `text` is its help, `default` is done where none of them is asked for."""
    made = typer.Typer(cls=_Group, invoke_without_command=True, help=text)

    @made.callback()
    def without_subcommand(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            default(context)

    return made
