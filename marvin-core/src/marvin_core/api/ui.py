"""The contracts of an interface and of a sub-command."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from .config import Config
from .session import SessionControl, TurnResult
from .tool_context import Clock, PackContext

if TYPE_CHECKING:
    from .controls import Picking


class UI(Protocol):
    """An interface. It owns the event loop, since each toolkit brings its own."""

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
    """An interface that can read a key without showing it; `/login` needs one."""

    async def ask_secret(self, question: str) -> str:
        """Read a line that is neither shown nor kept; empty where the user gives none."""
        ...


@runtime_checkable
class AsksText(Protocol):
    """An interface that takes any text as an answer. With one that does not, a question has to have choices."""

    async def ask_text(self, question: str, choices: Sequence[str]) -> str:
        """Ask the user what may be answered in any words; the choices are suggestions, and there may be none.

        Gives one of the choices, or what was typed instead; empty where the user gives no answer. The words of the
        question are those of a model or a tool, so show them as such. What was typed before it is no answer.
        """
        ...


@runtime_checkable
class CopiesText(Protocol):
    """An interface that reaches a clipboard; `/copy` needs one."""

    def copy(self, text: str) -> bool:
        """Put a text on the clipboard; False where that is not possible just now."""
        ...


@runtime_checkable
class PicksChoices(Protocol):
    """An interface with a list that keys go up and down in; without one `/resume` asks for a number."""

    async def pick(self, picking: Picking) -> str | None:
        """Show what can be picked until one was, by its key; empty for none, None where that is not possible just now.

        Texts and facts may be those of a model: show them as such.
        """
        ...


@runtime_checkable
class OpensEditors(Protocol):
    """An interface that can leave the terminal to an editor; `/preferences edit` needs one."""

    async def run_editor(self, command: Sequence[str], environment: Mapping[str, str]) -> int:
        """Run a program on the terminal until it ends; returns its exit code. Raises OSError where it cannot start."""
        ...


class RunControl(Protocol):
    """A non-interactive run that a sub-command leads, in place of one prompt."""

    @property
    def config(self) -> Config:
        """What flags, variables and config.yaml ask for."""
        ...

    @property
    def session(self) -> SessionControl:
        """The session: its agents, its programs, and what was used so far."""
        ...

    @property
    def clock(self) -> Clock: ...
    @property
    def model_flags(self) -> Sequence[str]:
        """Flags by which another Marvin has the service and the models that flags and settings name for this run."""
        ...

    async def prompt(self, *, waits: bool = True) -> str:
        """What was asked for by a flag, a file or words, else by standard input where that is no terminal.

        Empty where nothing was. Known secrets are taken out.

        Args:
            waits: whether standard input has to say something. Else it counts where something has come already, and a
                silent or empty one is no mistake.
        """
        ...

    async def price(self, model: str, input_tokens: int, output_tokens: int) -> float | None:
        """What so many tokens cost, in USD; None where that is not known.

        `model` is a tier, or a model as `--model` takes it.
        """
        ...

    def count(self, cost_line: str) -> float | None:
        """Add what a Marvin used that this run started by itself; returns USD, None where that is not told.

        Args:
            cost_line: its MARVIN_COST, the last line of its standard error.
        """
        ...

    def warn(self, text: str) -> None:
        """Tell of something in a line: on standard error, and as a notice where events are written."""
        ...

    def notify(self, text: str, *, title: str = "", priority: str = "default") -> None:
        """Send a notice to the topic of --ntfy, where there is one.

        Returns at once. A notice that does not arrive is told on standard error, and changes nothing else.
        """
        ...


Lead: TypeAlias = "Callable[[RunControl], Awaitable[TurnResult]]"
"""Leads a run to its end. The text of the result is printed; its error, if any, gives the exit code."""


class CliContext(PackContext, Protocol):
    """What a sub-command of a pack gets, as `obj` of typer's context.

    A sub-command declares a parameter `context: typer.Context` and takes `run: CliContext = context.obj`. Settings,
    secrets and folders are those of the pack that brings it.
    """

    @property
    def config(self) -> Config:
        """What flags, variables and config.yaml ask for."""
        ...

    def write(self, text: str) -> None:
        """Write to standard output, without what a terminal would take for a command. No newline is added."""
        ...

    def warn(self, text: str) -> None:
        """Write a line to standard error."""
        ...

    def lead(self, work: Lead) -> int:
        """Lead a non-interactive run in place of one prompt; returns the exit code.

        It ends as every such run does: signals are heeded, agents and programs end with it, and MARVIN_COST is the
        last line of standard error. Where no model is configured the run fails.
        """
        ...

    def marvin(self, words: Sequence[str]) -> int:
        """Run Marvin with these words, as if they had been typed in place of the sub-command; returns the exit code."""
        ...
