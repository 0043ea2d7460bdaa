"""The meaning of a typed line: a request, a command, a manual tool call, a shell command."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from ..api.errors import NotActed
from ..api.events import Event, ToolExecutionEnd
from ..api.record import Record
from ..api.session import SessionControl
from ..config.program import command_name
from ..util.failures import is_failure, shown
from ..util.watchdog import attributed
from .manual_calls import call_by_hand, help_about, is_call, shell_tool

if TYPE_CHECKING:
    from .attach.sending import Confirm, Sending

LEAVE = frozenset({"exit", "quit", "/exit", "/quit", ":exit", ":quit"})
SHELL = frozenset({"shell", "sh"})
WORDS = frozenset({"preferences", "preferences edit", "profiles", "usage", "saved"})
"""Lines that are commands without a slash, if such a command exists."""
BANG_WORDS = frozenset({"code", "mode", "model", "pro", "voice", "v", "blender"})
"""Words after `!` that are commands and never programs."""
_LONGEST_COMMAND = 4
"""The maximum number of words of a shell command; a longer line is a sentence that begins like one."""
_HELP = frozenset({"/help", ":help", "/", "help", "?"})
_COLON = re.compile(r":[A-Za-z][\w-]*$")
"""A word that is a command, or is intended as one; `:smile:` is none."""
_CD = re.compile(r"cd(\s+[^;&|\n]*)?")
_FULL_SCREEN = frozenset("emacs helix htop hx micro nano nvim pico screen tmux vi vim".split())
"""Programs that use the whole terminal."""


class Display(Record):
    """The handlers of output that lines produce in addition to the session's events."""

    text: Callable[[str], None]
    """Receives a text of Marvin."""
    output: Callable[[str], None]
    """Receives the output of a manual call, to be shown unchanged."""
    error: Callable[[str], None]
    """Receives an error."""
    suggestion: Callable[[str], None]
    """Receives a line that does what was asked for if the user sends it."""
    raw: Callable[[str], None] | None = None
    """Runs `/raw` with its argument; None if nothing is drawn."""
    confirm: Confirm | None = None
    """Asks the user to choose; None if no user can be asked."""


class LineInterpreter:
    """Executes lines, one at a time."""

    def __init__(self, session: SessionControl, shown: Display) -> None:
        self._session = session
        self._show = shown.text
        self._show_output = shown.output
        self._show_error = shown.error
        self._suggest = shown.suggestion
        self._raw = shown.raw
        self._confirm = shown.confirm
        self.shell = False
        """Whether every line is a shell command."""

    def leaves(self, line: str) -> bool:
        """Whether the line ends the chat; in shell mode, `exit` ends only that mode."""
        if self.shell and line in ("exit", "quit"):
            return False
        return line in LEAVE

    async def run(self, line: str) -> None:
        """Execute a line completely; errors are shown, since the chat must continue."""
        try:
            await self._run(line)
        except BaseException as error:
            if not is_failure(error):
                raise
            self._show_error(f"Error: {shown(error)}")

    async def _run(self, line: str) -> None:
        head, _, rest = line.partition(" ")
        commands = self._session.commands
        if head in ("/help", ":help") or line in _HELP:
            self._show(help_about(self._session, rest))
        elif head in ("/raw", ":raw") and self._raw is not None:
            self._raw(rest.strip())
        elif head.startswith("!") and head[1:] in BANG_WORDS:
            await self._command(head[1:], rest)
        elif line.startswith("!"):
            await self._shell_line(line[1:].strip())
        elif head.startswith(("/", ":")) and head[1:] in commands and not is_call(self._session, head[1:], rest):
            await self._command(head[1:], rest)
        elif head in ("/tool", ":tool") and head[1:] not in commands and rest.strip():
            name, _, values = rest.strip().partition(" ")
            await self._call(name, values)
        elif (line.startswith("/") and "/" not in head[1:]) or _COLON.match(head):  # /etc/hosts begins a request
            await self._call(head[1:], rest)
        elif self.shell:
            await self._shell_line("shell" if line in ("exit", "quit") else line)
        elif line in WORDS and head in commands:
            await self._command(head, rest)
        elif _is_for_a_shell(line):
            run = f"!{line} runs it here" if shell_tool(self._session) else "leave the chat with /exit first"
            self._show(f"That is a shell command: {run}. Nothing was sent to a model.")
        else:
            await self._submit(line)

    @cached_property
    def _sending(self) -> Sending:
        """Turns lines into messages; imported for the first one."""
        from .attach.sending import Sending

        return Sending(self._session, self._show, self._confirm)

    async def _submit(self, line: str) -> None:
        message = await self._sending.message(line)
        if message is None:
            self._show("Nothing was sent. Press Up to get the message back.")
            return
        result = await self._session.submit(message.text, message.attached)
        if isinstance(result.error, NotActed):
            self._show(str(result.error))
            if result.error.line:
                self._suggest(result.error.line)
        elif result.error is not None:
            self._show_error(f"Error: {shown(result.error)}")

    async def _command(self, name: str, rest: str) -> None:
        command = self._session.commands.get(name)
        if command is None:
            self._show(f"There is no command {name} here. /help lists all commands.")
            return
        answer: object = await attributed(f"the command /{name}", command.run(self._session, rest.strip()))
        if answer:
            self._show(str(answer))

    async def _call(self, name: str, words: str) -> None:
        output = await call_by_hand(self._session, name, words)
        (self._show_error if output.is_error else self._show_output)(output.text)

    async def _shell_line(self, command: str) -> None:
        if command in SHELL:
            self.shell = not self.shell
            on = "Shell mode is on: every line is a command. !shell or exit ends it; /name and /help still work."
            self._show(on if self.shell else "Shell mode is off.")
        elif not command:
            self._show("Write a command after the !, as in !ls -l.")
        elif _CD.fullmatch(command):
            self._show(
                f"cd affects only its own command: each command starts in {self._session.working_dir}. `!cd FOLDER "
                f"&& COMMAND` runs one elsewhere; `{command_name()} --working-dir FOLDER` opens a chat there."
            )
        elif (program := command.split()[0]) in _FULL_SCREEN:
            self._show(f"{program} needs the whole terminal. Press Ctrl+Z to suspend Marvin, and type fg to return.")
        else:
            await self._run_command(command)

    async def _run_command(self, command: str) -> None:
        spec = shell_tool(self._session)
        if spec is None:
            selected = self._session.toolbox.selection
            self._show(
                'No available tool runs commands. Install a pack with one: pip install "marvin-core[coding]"'
                if selected in ("", "all")
                else f"None of the selected tools ({selected}) runs commands. !mode all selects all tools."
            )
            return
        asides: list[str] = []
        stop_listening = self._session.subscribe(lambda event: asides.extend(_asides(event)))
        try:
            output = await self._session.call_tool(spec.name, {spec.command: command}, "typed")
        finally:
            stop_listening()
        self._show_output(output.text.removesuffix("".join(asides)))
        self._sending.ran(command, output.text)


def _is_for_a_shell(line: str) -> bool:
    """Whether a line calls a sub-command of Marvin, as texts name them: this needs no model."""
    from ..config.flags import SUBCOMMANDS
    from ..config.program import command_name

    words = line.strip("`").split()
    named = next((n for n in (command_name().split(), ["marvin"], ["./marvin"]) if words[: len(n)] == n), None)
    rest = words[len(named) :] if named else []
    return bool(rest) and rest[0] in SUBCOMMANDS and len(rest) <= _LONGEST_COMMAND


def _asides(event: Event) -> list[str]:
    """The end of a typed command's output, which is irrelevant to users."""
    if not isinstance(event, ToolExecutionEnd) or event.origin != "typed":
        return []
    aside = (event.details or {}).get("aside")
    return [aside] if isinstance(aside, str) else []
