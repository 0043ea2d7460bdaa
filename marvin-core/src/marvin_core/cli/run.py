"""The context of one invocation of a sub-command, and helpers for sub-commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer
from typer.core import TyperGroup

from ..api.config import Config
from ..api.errors import MarvinError, UsageError
from ..config.secrets import SecretAccess, Secrets
from ..guard.redaction import Redactor
from ..plugins.manager import BUILT_IN
from ..util.streams import StandardStreams
from ..util.terminal_text import disarm
from ..util.text import unknown_name

if TYPE_CHECKING:
    from ..api.settings import Settings
    from ..api.tool_context import PackFolders
    from ..api.ui import Lead
    from ..app import App
    from ..engine.session import Session
    from ..plugins.pack_access import PackAccess
    from .unattended import Unattended

S = TypeVar("S", bound="Settings")


class CommandContext(SecretAccess):
    """The shared state of one invocation; Typer passes it on as the object of its context.

    For sub-commands of packs it implements `CliContext`.
    """

    def __init__(self, config: Config, secrets: Secrets, streams: StandardStreams) -> None:
        self.config = config
        self.timeouts = config.timeouts
        self.secrets = secrets
        self.streams = streams
        self.redactor = Redactor(secrets.known)
        streams.clean = self.redactor.text
        self._app: App | None = None
        self.own: Callable[[], PackAccess] | None = None
        """What the pack that provides the sub-command may access; None for the core."""
        self.again: Callable[[Sequence[str]], int] | None = None
        """Runs the program with other arguments."""
        self.load: Callable[[Path], tuple[Config, Secrets]] = lambda folder: (config, secrets)
        """Reads the configuration again, for another working directory."""
        self.unattended: Unattended | None = None
        """The run that this sub-command is to lead, if it has already started."""

    def app(self) -> App:
        """The application, created once."""
        from ..app import App

        if self._app is None:
            self._app = App(self.config, self.secrets, lambda text: self.warn(f"marvin: {text}"))
        return self._app

    def say(self, text: str) -> None:
        """Write a text of Marvin's own, without known secrets."""
        from ..ui.rendering import for_people

        self.streams.out(for_people(disarm(self.redactor.text(text)), self.streams.stdout))

    def write(self, text: str) -> None:
        """Write a text of tools, files, packs or services, without terminal sequences and known secrets."""
        self.streams.out(disarm(self.redactor.text(text)))

    def warn(self, text: str) -> None:
        """Write a line to standard error, without known secrets."""
        self.streams.err(text)

    @property
    def _own(self) -> PackAccess:
        return self.own() if self.own is not None else self.app().packs.named(BUILT_IN)

    @property
    def folders(self) -> PackFolders:
        """The folders of the pack that provides the sub-command."""
        return self._own.folders

    def settings(self, model: type[S]) -> S:
        """The settings of that pack."""
        return self._own.settings(model)

    def _secret(self, name: str, default: Any) -> Any:
        return self._own.secret(name, default)

    def lead(self, work: Lead) -> int:
        """Lead a non-interactive run in place of one prompt; returns the exit code."""
        if self.unattended is not None:
            return self.unattended.lead(self.app(), work)
        from ..app import App
        from .project import with_project
        from .unattended import Unattended

        config = self.config.replace(non_interactive=True)
        if config.project is None:
            with_project(config, lambda text: self.warn(f"marvin: {text}"))
        run = Unattended(config, self.streams)
        app = App(config, self.secrets, lambda text: self.warn(f"marvin: {text}"))
        return run.run(lambda: run.lead(app, work))

    def marvin(self, words: Sequence[str]) -> int:
        """Run Marvin with these words; returns the exit code."""
        if self.again is None:
            raise UsageError("Marvin cannot run another command line from here. Type it yourself.")
        return self.again(words)

    def session(self) -> Session:
        """A non-interactive session for calling tools."""
        return self.app().session(asker=None, interactive=False)


def application() -> typer.Typer:
    """The Typer application, without sub-commands."""
    made = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)
    made.callback()(lambda: None)
    return made


def ended(app: typer.Typer, words: Sequence[str], name: str, run: CommandContext) -> int:
    """Run a sub-command to its end; returns its exit code. Errors are printed without known secrets."""
    try:
        with _output_of(run):
            app(list(words), prog_name=name, obj=run)
    except SystemExit as leaving:  # Typer raises it for an exit code
        if isinstance(leaving.__context__, BrokenPipeError):
            raise leaving.__context__ from None  # Typer assumes that it is of standard output, and hides it
        return leaving.code if isinstance(leaving.code, int) else int(bool(leaving.code))
    except MarvinError as error:
        run.warn(f"marvin: {error}")
        return error.exit_code
    return 0


def _output_of(run: CommandContext) -> AbstractContextManager[None]:
    """Remove secrets from the output of a pack's sub-command."""
    if run.own is None:
        return nullcontext()
    from .redacted import redacted_output

    return redacted_output(run.redactor.text)


class _Group(TyperGroup):
    """A group of sub-commands. For an unknown name, the error suggests similar ones."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name not in self.commands and not name.startswith("-"):
            ctx.fail(unknown_name("sub-command", name, self.commands))
        return super().resolve_command(ctx, args)


def group(text: str, default: Callable[[typer.Context], None]) -> typer.Typer:
    """Create a group of sub-commands. `text` is its help; `default` runs if no sub-command is given."""
    made = typer.Typer(cls=_Group, invoke_without_command=True, help=text)

    @made.callback()
    def without_subcommand(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            default(context)

    return made
