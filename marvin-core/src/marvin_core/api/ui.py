"""The interfaces that a user interface and a sub-command implement."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from .config import Config
from .session import SessionControl, TurnResult
from .tool_context import Clock, PackContext

if TYPE_CHECKING:
    from .controls import Picking


class UI(Protocol):
    """A user interface. It owns the event loop, since each toolkit brings its own."""

    def run(self, session: SessionControl, prompt: str | None) -> int:
        """Show the session until the user leaves; returns the exit code.

        `prompt`, where given, is submitted first.
        """
        ...

    async def ask(self, question: str, choices: Sequence[str]) -> str:
        """Ask the user; the answer is one of the choices."""
        ...


@runtime_checkable
class AsksSecrets(Protocol):
    """An interface that can read a key without showing it; required by `/login`."""

    async def ask_secret(self, question: str) -> str:
        """Read a line without echo, and do not store it; empty if the user gives none."""
        ...


@runtime_checkable
class AsksText(Protocol):
    """An interface that supports free text as an answer. Without this, a question needs choices."""

    async def ask_text(self, question: str, choices: Sequence[str]) -> str:
        """Ask the user for free text; the choices are suggestions, and may be empty.

        Returns one of the choices or the typed text; empty without an answer. The question comes from a model or a
        tool, so mark it as such. Input typed before the question must not count as an answer.
        """
        ...


@runtime_checkable
class CopiesText(Protocol):
    """An interface with a clipboard; required by `/copy`."""

    def copy(self, text: str) -> bool:
        """Copy a text to the clipboard; False if that is not possible now."""
        ...


@runtime_checkable
class PicksChoices(Protocol):
    """An interface with a list to select from with keys; without one `/resume` asks for a number."""

    async def pick(self, picking: Picking) -> str | None:
        """Let the user select an item; returns its key, an empty string for none, None if not possible now.

        Texts and facts may come from a model: mark them as such.
        """
        ...


@runtime_checkable
class OpensEditors(Protocol):
    """An interface that can give the terminal to an editor; required by `/preferences edit`."""

    async def run_editor(self, command: Sequence[str], environment: Mapping[str, str]) -> int:
        """Run a program on the terminal until it ends; returns its exit code. Raises OSError if it cannot start."""
        ...


class RunControl(Protocol):
    """A non-interactive run that a sub-command controls, instead of one prompt."""

    @property
    def config(self) -> Config:
        """The configuration: flags, environment and config.yaml."""
        ...

    @property
    def session(self) -> SessionControl:
        """The session: its agents, its programs, and its usage so far."""
        ...

    @property
    def clock(self) -> Clock: ...
    @property
    def model_flags(self) -> Sequence[str]:
        """Flags with which another Marvin uses the same service and models as this run."""
        ...

    async def prompt(self, *, required: bool = True) -> str:
        """The prompt from a flag, a file or arguments, or from standard input if that is not a terminal.

        Empty if there is none. Known secrets are redacted.

        Args:
            required: whether to wait for standard input; then empty input is an error. Otherwise only data that has
                already arrived is read, and empty input is allowed.
        """
        ...

    async def price(self, model: str, input_tokens: int, output_tokens: int) -> float | None:
        """The price of so many tokens, in USD; None if unknown.

        `model` is a tier, or a model as `--model` takes it.
        """
        ...

    def count(self, cost_line: str) -> float | None:
        """Add the usage of a Marvin process that this run started itself; returns USD, None if unknown.

        Args:
            cost_line: its MARVIN_COST line, the last one of its standard error.
        """
        ...

    def warn(self, text: str) -> None:
        """Report something in one line: on standard error, and as a notice event where events are written."""
        ...

    def notify(self, text: str, *, title: str = "", priority: str = "default") -> None:
        """Send a notification to the topic of --ntfy, if it is set.

        Returns at once. A failure is reported on standard error, and has no other effect.
        """
        ...


Lead: TypeAlias = "Callable[[RunControl], Awaitable[TurnResult]]"
"""Runs the sub-command to its end. The text of the result is printed; its error, if any, sets the exit code."""


class CliContext(PackContext, Protocol):
    """The context of a pack's sub-command: `obj` of typer's context.

    A sub-command declares a parameter `context: typer.Context` and takes `run: CliContext = context.obj`. Settings,
    secrets and folders are those of its pack.
    """

    @property
    def config(self) -> Config:
        """The configuration: flags, environment and config.yaml."""
        ...

    def write(self, text: str) -> None:
        """Write to standard output, without terminal control sequences. No newline is added."""
        ...

    def warn(self, text: str) -> None:
        """Write a line to standard error."""
        ...

    def lead(self, work: Lead) -> int:
        """Run `lead` as a non-interactive run instead of one prompt; returns the exit code.

        It ends like every such run: signals are handled, agents and programs are stopped, and MARVIN_COST is the
        last line of standard error. It fails if no model is configured.
        """
        ...

    def marvin(self, words: Sequence[str]) -> int:
        """Run Marvin with these arguments instead of the sub-command; returns the exit code."""
        ...
