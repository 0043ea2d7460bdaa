"""A chat in xterm.js, the terminal of many editors and web pages, without a browser around it."""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import subprocess
import threading
from base64 import b64encode
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import pexpect

from tests.e2e.support_e2e import LIMIT, PROGRAM, Marvin, put_away, wait_until
from tests.e2e.support_screen import Window
from tests.real.components import REAL

NODE = Path(shutil.which("node") or "node")
HEADLESS = REAL / "npm" / "node_modules" / "@xterm" / "headless"
_SCRIPT = Path(__file__).with_name("xterm.cjs")
_KEYS = {
    "Enter": "\r",
    "Tab": "\t",
    "BTab": "\x1b[Z",
    "Escape": "\x1b",
    "BSpace": "\x7f",
    "M-Enter": "\x1b\r",
    "Home": "\x1b[H",
    "End": "\x1b[F",
    "PageUp": "\x1b[5~",
    "PageDown": "\x1b[6~",
    **{name: f"\x1b[{letter}" for name, letter in zip(("Up", "Down", "Right", "Left"), "ABCD", strict=True)},
}


class Xterm(Window):
    """A window of xterm.js. `sent` has every byte that the chat wrote."""

    def __init__(self, marvin: Marvin, *args: str, columns: int = 80, rows: int = 24) -> None:
        self._env = {**marvin.env, "LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}
        self._folder = str(marvin.project)
        self._args = [*PROGRAM[1:], *args]
        self._size = columns, rows
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self.sent = b""

    def __enter__(self) -> Self:
        columns, rows = map(str, self._size)
        self._emulator = subprocess.Popen(
            [NODE, _SCRIPT, HEADLESS, columns, rows], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._lock = threading.Lock()
        self._program: Any = pexpect.spawn(
            PROGRAM[0], self._args, env=self._env, cwd=self._folder, dimensions=(self._size[1], self._size[0])
        )
        self._program.delaybeforesend = None
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._forward, self._listen)]
        for thread in self._threads:
            thread.start()
        self.until("works.")
        self.at_prompt("")
        return self

    def __exit__(self, *exc_info: object) -> None:
        put_away(self._program)
        self._emulator.kill()
        self._emulator.wait()
        for thread in self._threads:
            thread.join(LIMIT)
        for stream in filter(None, (self._emulator.stdin, self._emulator.stdout)):
            with suppress(BrokenPipeError):
                stream.close()

    def _forward(self) -> None:
        """Give the emulator what the chat writes."""
        with suppress(OSError, ValueError):  # the chat has ended
            while data := os.read(self._program.child_fd, 65_536):
                self.sent += data
                self._tell(write=b64encode(data).decode())

    def _listen(self) -> None:
        """Take what the emulator tells, and give the chat what a terminal sends back."""
        assert self._emulator.stdout is not None
        for line in self._emulator.stdout:
            told = json.loads(line)
            if "reply" in told:
                os.write(self._program.child_fd, told["reply"].encode())
            else:
                self._answers.put(told)

    def _tell(self, **what: Any) -> None:
        assert self._emulator.stdin is not None
        with self._lock:
            self._emulator.stdin.write(json.dumps(what).encode() + b"\n")
            self._emulator.stdin.flush()

    def look(self) -> dict[str, Any]:
        """What the emulator knows: rows, all of them, the title, bells, the kind of screen, the modes."""
        self._tell(look=True)
        return self._answers.get(timeout=LIMIT)

    def rows(self) -> list[str]:
        return "\n".join(self.look()["rows"]).rstrip("\n").split("\n")

    def everything(self) -> list[str]:
        return "\n".join(self.look()["all"]).rstrip("\n").split("\n")

    def type(self, text: str) -> None:
        self._program.send(text.encode())

    def press(self, *keys: str) -> None:
        for key in keys:
            letter = key.removeprefix("C-")
            self.type(chr(ord(letter.upper()) ^ 0x40) if key.startswith("C-") else _KEYS.get(key, key))

    def paste(self, text: str) -> None:
        text = text.replace("\n", "\r")
        self.type(f"\x1b[200~{text}\x1b[201~" if self.look()["modes"]["bracketedPasteMode"] else text)

    def resize(self, columns: int, rows: int = 24) -> None:
        self._tell(resize=[columns, rows])
        self._program.setwinsize(rows, columns)

    def close(self) -> None:
        """Close the window; the chat is told by the kernel."""
        self._program.kill(signal.SIGHUP)

    def ended(self) -> int:
        wait_until(lambda: not self._program.isalive(), "the end")
        return int(self._program.exitstatus or 0)
