"""A chat in a real terminal emulator: what is seen is looked at, not what is sent to the terminal."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from tests.e2e.support_e2e import LIMIT, PROGRAM, Marvin, wait_until

SCREEN = shutil.which("screen") or ""
"""GNU screen, where it is installed."""
_SCREENRC = "startup_message off\ndefutf8 on\nescape ^]^]\nvbell off\nmsgwait 0\n"


class Window(ABC):
    """A window with the chat in it; to be used with `with`. `Screen` says what each method does."""

    restores = True
    """Whether what the pager covered is seen again afterwards."""

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(self, *exc_info: object) -> None: ...

    @abstractmethod
    def type(self, text: str) -> None:
        """Press the keys of a text."""

    @abstractmethod
    def press(self, *keys: str) -> None:
        """Press keys by their names in tmux: Enter, C-a, M-Enter, Up."""

    @abstractmethod
    def paste(self, text: str) -> None:
        """Paste a text, as a terminal does with one from the clipboard."""

    @abstractmethod
    def resize(self, columns: int, rows: int = 24) -> None:
        """Change the size of the window."""

    @abstractmethod
    def rows(self) -> list[str]:
        """The rows that are seen, without those that are empty at the bottom."""

    @abstractmethod
    def ended(self) -> int:
        """Wait until the chat has ended; returns its exit code."""

    def until(self, expected: str) -> list[str]:
        """Wait until a text is seen; returns the rows."""
        rows: Sequence[str] = ()

        def seen() -> bool:
            nonlocal rows
            rows = self.rows()
            return expected in "\n".join(rows)

        try:
            wait_until(seen, f"{expected!r} on the screen")
        except AssertionError as error:
            raise AssertionError(f"{error}\n" + "\n".join(rows)) from None
        return list(rows)

    def until_written(self, word: str) -> None:
        """Wait until a word is seen, also in two rows."""
        wait_until(lambda: word in "".join(self.rows()), f"{word!r} on the screen")

    def until_seen(self, expected: str) -> None:
        """The same, wherever the terminal or the chat broke the text into rows, and with a prompt at the end."""
        wanted = "".join(expected.split())

        def seen() -> bool:
            rows = self.rows()
            return wanted in "".join("".join(rows[1:]).split()) and rows[-1].rstrip() in (">", "$")

        try:
            wait_until(seen, f"{expected!r} on the screen")
        except AssertionError as error:
            raise AssertionError(f"{error}\n" + "\n".join(self.rows())) from None

    def at_prompt(self, line: str) -> list[str]:
        """Wait until the line that is typed is this one; returns the rows. A menu may be below it."""
        sign = f"> {line}".rstrip()

        def typed() -> bool:
            return next((row.rstrip() for row in reversed(self.rows()) if row.startswith(">")), "") == sign

        try:
            wait_until(typed, f"{sign!r} at the bottom")
        except AssertionError as error:
            raise AssertionError(f"{error}\n" + "\n".join(self.rows())) from None
        return self.rows()


class Screen(Window):
    """A window of tmux; with `inside`, one of GNU screen within it."""

    def __init__(self, marvin: Marvin, *args: str, columns: int = 80, rows: int = 24, inside: bool = False) -> None:
        self._env = {**marvin.env, "LC_ALL": "C.UTF-8"}
        folder = marvin.home.parent
        number = len(list(folder.glob("tmux*")))
        self._socket, self._status = str(folder / f"tmux{number}"), folder / f"status{number}"
        self._folder = str(marvin.project)
        # The shell outlives the closing of its window, to say how the chat ended; the chat is told of it all the same.
        self._command = f"trap : HUP; {shlex.join([*PROGRAM, *args])}; echo $? > {shlex.quote(str(self._status))}"
        self.restores = not inside
        if inside:
            sockets, settings = folder / f"screen{number}", folder / "screenrc"
            sockets.mkdir(mode=0o700)
            settings.write_text(_SCREENRC)
            self._env["SCREENDIR"] = str(sockets)
            self._command = shlex.join([SCREEN, "-U", "-S", "chat", "-c", str(settings), "sh", "-c", self._command])
        self._size = ("-x", str(columns), "-y", str(rows))

    def __enter__(self) -> Self:
        tmux = ("new-session", "-d", *self._size, "-c", self._folder, self._command)
        options = ("history-limit 20000", "remain-on-exit on", "escape-time 0")
        self._tmux(*(word for option in options for word in ("set-option", "-g", *shlex.split(option), ";")), *tmux)
        self.until("works.")
        wait_until(lambda: self.rows() and self.rows()[-1].startswith(">"), "the prompt")
        return self

    def __exit__(self, *exc_info: object) -> None:
        if not self.restores:  # it would go on by itself without a terminal
            subprocess.run([SCREEN, "-S", "chat", "-X", "quit"], env=self._env, capture_output=True, check=False)
        subprocess.run([*self._base(), "kill-server"], env=self._env, capture_output=True, timeout=LIMIT, check=False)

    def _base(self) -> list[str]:
        return ["tmux", "-u", "-f", os.devnull, "-S", self._socket]

    def _tmux(self, *args: str, given: str | None = None) -> str:
        done = subprocess.run(
            [*self._base(), *args],
            env=self._env,
            input=given,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=True,
        )
        return done.stdout

    def type(self, text: str) -> None:
        """Press the keys of a text."""
        self._tmux("send-keys", "-l", text)

    def press(self, *keys: str) -> None:
        """Press keys by their names in tmux: Enter, C-a, M-Enter, Up."""
        self._tmux("send-keys", *keys)

    def paste(self, text: str) -> None:
        """Paste a text, as a terminal does with one from the clipboard."""
        self._tmux("load-buffer", "-", given=text)
        self._tmux("paste-buffer", "-p")

    def resize(self, columns: int, rows: int = 24) -> None:
        """Change the size of the window, and wait until the programs in it could know: tmux may tell them later."""
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))
        terminal = os.open(self._tmux("display-message", "-p", "#{pane_tty}").strip(), os.O_RDONLY | os.O_NOCTTY)
        try:
            wait_until(lambda: os.get_terminal_size(terminal) == (columns, rows), "the size")
        finally:
            os.close(terminal)

    def record(self, path: Path) -> None:
        """Have all that is sent to the terminal from here on written to a file, byte by byte."""
        self._tmux("pipe-pane", "-o", f"exec cat > {shlex.quote(str(path))}")

    def colored(self) -> str:
        """All rows, as `everything` gives them, with their colours as escape sequences."""
        return self._tmux("capture-pane", "-p", "-e", "-J", "-S", "-").rstrip("\n")

    def close(self) -> None:
        """Close the window, as with a mouse; the chat is told by the kernel."""
        self._tmux("kill-session")

    def ended(self) -> int:
        """Wait until the chat has ended; returns its exit code."""
        wait_until(lambda: self._status.exists() and self._status.read_text(), "the end")
        return int(self._status.read_text())

    def rows(self) -> list[str]:
        """The rows that are seen, without those that are empty at the bottom."""
        return self._tmux("capture-pane", "-p").rstrip("\n").split("\n")

    def everything(self) -> list[str]:
        """The rows, and those that have left the window at the top; what the terminal broke is joined."""
        return self._tmux("capture-pane", "-p", "-J", "-S", "-").rstrip("\n").split("\n")
