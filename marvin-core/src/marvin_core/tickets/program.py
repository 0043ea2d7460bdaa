"""The ticket program: `marvin tk`, and the scripts `marvin-tk` and `marvin-ticket`.

It starts hardly slower than Python itself, since it imports next to nothing. Agents and scripts call it often.
"""

from __future__ import annotations

import os
import sys

from .commands import UNKNOWN, TicketPlace, run_tickets
from .help import help_lines
from .ticket import TicketError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .commands import TicketOutcome

_HELP = ("help", "--help", "-h")
_SCRIPT = "marvin-ticket"
_INTERRUPTED = 130
_NOT_FOUND = 127
_PIECE = 1_000
"""The number of lines written at a time."""


class TicketProgram:
    """One run of the program.

    Args:
        env: the environment.
        script: the path of the executed file.
        name: the name of the program; empty for the sub-command of Marvin.
    """

    def __init__(self, env: Mapping[str, str], script: str, name: str = "") -> None:
        self._env = env
        self._script = script
        self._name = name

    def run(self, words: Sequence[str]) -> int:
        """Run a command line; returns the exit code."""
        try:
            return self._run([*words])
        except TicketError as error:
            _write(2, str(error))
            if error.exit_code != UNKNOWN:
                return error.exit_code
            _write_lines(2, self._help())
            return 1
        except KeyboardInterrupt:
            return _INTERRUPTED
        except BrokenPipeError:  # nobody reads the rest
            return 1
        except OSError as error:
            _write(2, f"Error: {error.strerror or error}")
            return 1

    def _run(self, words: list[str]) -> int:
        if words[:1] == ["super"]:
            del words[0]
        elif words and words[0] not in _HELP:
            self._run_plugin(words)
        if not words or words[0] in _HELP:
            _write_lines(1, self._help())
            return 0
        place = TicketPlace(
            os.getcwd(), self._env.get("TICKETS_DIR", ""), program=self._program_name, user=self._user, stdin=_piped
        )
        return self._finish(run_tickets(words, place))

    def _finish(self, outcome: TicketOutcome) -> int:
        pager = self._env.get("TICKET_PAGER") or self._env.get("PAGER", "")
        if outcome.edits and os.isatty(0) and os.isatty(1):
            return self._edit(outcome.edits)
        if outcome.jq:
            return self._filtered(outcome)
        if outcome.paged and pager.split() and os.isatty(1):
            return self._fed(pager.split(), outcome.lines, shown=True)
        _write_lines(1, outcome.lines)
        return outcome.exit_code

    def _program_name(self) -> str:
        if self._name:
            return self._name
        from ..config.program import command_name

        return f"{command_name()} tk"

    def _help(self) -> Iterable[str]:
        from .plugins import described

        return help_lines(self._program_name(), "\n".join(described(self._env.get("PATH", ""))))

    def _run_plugin(self, words: list[str]) -> None:
        """Replace this process by the plugin for the command; return if there is none."""
        path = _on_path(self._env.get("PATH", ""), [f"tk-{words[0]}", f"ticket-{words[0]}"])
        if not path:
            return
        from .folder import find_ticket_folder

        folder = find_ticket_folder(os.getcwd(), self._env.get("TICKETS_DIR", ""))
        if folder is not None and not os.path.isdir(folder):
            raise TicketError(f"Error: tickets directory '{folder}' does not exist")
        more = {"TK_SCRIPT": self._own_path()} | ({"TICKETS_DIR": folder} if folder is not None else {})
        from signal import SIG_DFL, SIGPIPE, signal

        signal(SIGPIPE, SIG_DFL)  # Python ignores it, and the plugin would as well
        os.execve(path, [path, *words[1:]], {**self._env, **more})

    def _own_path(self) -> str:
        """The path for plugins to call this program: a file that needs no further word before a command."""
        for folder in (os.path.dirname(os.path.abspath(self._script)), os.path.dirname(sys.executable)):
            if os.access(os.path.join(folder, _SCRIPT), os.X_OK):
                return os.path.join(folder, _SCRIPT)
        return os.path.abspath(self._script)

    def _user(self) -> str:
        """The user's name from git; empty if git is missing or has none."""
        git = _on_path(self._env.get("PATH", ""), ["git"])
        if not git:
            return ""
        reading, writing = os.pipe()
        nowhere = os.open(os.devnull, os.O_RDWR)
        actions = [
            (os.POSIX_SPAWN_DUP2, nowhere, 0),
            (os.POSIX_SPAWN_DUP2, writing, 1),
            (os.POSIX_SPAWN_DUP2, nowhere, 2),
        ]
        child = os.posix_spawn(git, ["git", "config", "--get", "user.name"], self._env, file_actions=actions)
        os.close(writing)
        os.close(nowhere)
        with open(reading, "rb") as stream:
            name = stream.read()
        os.waitpid(child, 0)
        return name.decode("utf-8", "surrogateescape").strip()

    def _edit(self, path: str) -> int:
        from shlex import split

        try:
            editor = split(self._env.get("EDITOR") or "vi")
        except ValueError as error:
            raise TicketError(f"Error: EDITOR cannot be read: {error}") from None
        return self._started(editor, [path])

    def _filtered(self, outcome: TicketOutcome) -> int:
        return self._fed(["jq", "-c", f"select({outcome.jq})"], outcome.lines, shown=False)

    def _started(self, words: list[str], more: Sequence[str]) -> int:
        """Run a program on the terminal; returns its exit code."""
        program = self._program_file(words)
        child = os.posix_spawn(program, [*words, *more], self._env, setsigdef=_signals_for_children())
        return _exit_code_of(child)

    def _fed(self, words: list[str], lines: Iterable[str], *, shown: bool) -> int:
        """Run a program that reads these lines; returns its exit code."""
        program = self._program_file(words)
        reading, writing = os.pipe()
        actions = [(os.POSIX_SPAWN_DUP2, reading, 0)]
        child = os.posix_spawn(program, words, self._env, file_actions=actions, setsigdef=_signals_for_children())
        os.close(reading)
        try:
            _write_lines(writing, lines, shown=shown)
        except BrokenPipeError:  # a pager was left before the end
            pass
        finally:
            os.close(writing)
        return _exit_code_of(child)

    def _program_file(self, words: Sequence[str]) -> str:
        found = _on_path(self._env.get("PATH", ""), words[:1])
        if not found:
            name = words[0] if words else ""
            raise TicketError(f"Error: the program '{name}' is not installed, or not on PATH", _NOT_FOUND)
        return found


def _signals_for_children() -> Sequence[int]:
    """The signals with their default effect in a child. From now on Ctrl+C is for the child alone."""
    from signal import SIG_IGN, SIGINT, SIGPIPE, signal

    signal(SIGINT, SIG_IGN)
    return (SIGINT, SIGPIPE)


def _exit_code_of(child: int) -> int:
    """The exit code of an ended child, as shells report it."""
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code if code >= 0 else 128 - code


def _on_path(path: str, names: Sequence[str]) -> str:
    """The first program with one of these names, in this order; empty if there is none."""
    for name in names:
        if "/" in name:
            if os.access(name, os.X_OK):
                return name
            continue
        for folder in path.split(os.pathsep):
            found = os.path.join(folder or ".", name)
            if os.access(found, os.X_OK) and os.path.isfile(found):
                return found
    return ""


def _piped() -> str | None:
    """The piped input; None if standard input is a terminal."""
    if os.isatty(0):
        return None
    with open(0, "rb", closefd=False) as stream:
        return stream.read().decode("utf-8", "surrogateescape")


def _write_lines(descriptor: int, lines: Iterable[str], *, shown: bool = False) -> None:
    lines = list(lines)
    for start in range(0, len(lines), _PIECE):
        _write(descriptor, "\n".join(lines[start : start + _PIECE]), shown=shown)


def _write(descriptor: int, text: str, *, shown: bool = False) -> None:
    """Write lines. Output to a terminal contains no terminal sequences: anybody may have written a ticket."""
    errors = "surrogateescape"  # what is no UTF-8 leaves as it came
    if shown or os.isatty(descriptor):
        from ..util.terminal_text import disarm

        text, errors = disarm(text), "replace"
    data = memoryview(f"{text}\n".encode("utf-8", errors))
    while data:
        data = data[os.write(descriptor, data) :]
