"""A chat on a pseudo-terminal of its own, and what is typed and seen there."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pexpect

from marvin_core.testing import Answer, ModelServer, hang_after, text
from tests.e2e.support_e2e import LIMIT, PROGRAM, Marvin, conversation, end_of, put_away

ENTER, TAB, CTRL_C, CTRL_D, UP, ALT_ENTER = "\r", "\t", "\x03", "\x04", "\x1b[A", "\x1b\r"
CTRL_G, SHIFT_TAB = "\x07", "\x1b[Z"
ASKED = "/view]"
"""The end of what stands before the answer to a question about a call."""
BELL = "\a"
_STEERING = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


def bare(output: str) -> str:
    """The output without what steers the terminal."""
    output = re.sub(r"(.)\x08\x1b\[(\d+)C", lambda found: found[1] + " " * (int(found[2]) - 1), output)
    return _STEERING.sub("", output).replace("\r", "")


class Terminal:
    """A chat on a terminal of its own. Everything that it writes is kept."""

    def __init__(self, marvin: Marvin, *args: str, columns: int = 80, **env: str) -> None:
        self.output = ""
        self._mark = 0
        self.process: Any = pexpect.spawn(
            PROGRAM[0],
            [*PROGRAM[1:], *args],
            cwd=str(marvin.project),
            env={**marvin.env, "TERM": "xterm-256color", **env},
            encoding="utf-8",
            dimensions=(24, columns),
        )
        self.process.delaybeforesend = None

    def type(self, keys: str) -> None:
        """Press keys. What is shown from here on is what `until` looks at."""
        self._mark = len(self.output)
        self.process.send(keys)

    def enter(self, line: str) -> None:
        """Type a line as people do, Enter by itself, and wait until the chat took it; lines at once are one paste."""
        self.process.send(line)
        self._until(lambda shown: line in shown, line)
        self.process.send(ENTER)
        self._until(lambda shown: f"> {line}\n" in shown or f"(queued) {line}" in shown, f"{line} as a prompt")

    def _until(self, is_there: Callable[[str], bool], what: str) -> None:
        deadline = time.monotonic() + LIMIT
        while not is_there(bare(self.output)):
            assert time.monotonic() < deadline, f"waited for {what!r}: {self.output[-2000:]!r}"
            self._read()

    def until(self, expected: str, *, raw: bool = False) -> str:
        """Wait for a text among what was shown since the last keys; returns all that was shown since."""
        deadline = time.monotonic() + LIMIT
        while True:
            shown = self.output[self._mark :]
            shown = shown if raw else bare(shown)
            if expected in shown:
                return shown
            assert time.monotonic() < deadline, f"waited for {expected!r}, got: {shown[-2000:]!r}"
            self._read()

    def press_until(self, keys: str, expected: str) -> None:
        """Press the same keys again and again until a text is shown: what runs may not be over when it looks so."""
        self._mark = len(self.output)
        deadline = time.monotonic() + LIMIT
        while expected not in bare(self.output[self._mark :]):
            assert time.monotonic() < deadline, f"waited for {expected!r}: {self.output[-2000:]!r}"
            self.process.send(keys)
            time.sleep(0.1)
            self._read()

    def until_count(self, expected: str, count: int) -> None:
        """Wait until a text was written in so many finished rows since the last keys."""
        deadline = time.monotonic() + LIMIT
        while len(set(re.findall(rf"{expected}.*\n", bare(self.output[self._mark :])))) < count:
            assert time.monotonic() < deadline, f"waited for {count} of {expected!r}: {self.output[-2000:]!r}"
            self._read()

    def asked(self, sign: str = ASKED) -> None:
        """Wait until a question is open: what can be answered stands before the line, and nothing after it."""
        deadline = time.monotonic() + LIMIT
        while not bare(self.output).rstrip(f"{BELL} \n").endswith(sign):
            assert time.monotonic() < deadline, f"waited for a question: {self.output[-2000:]!r}"
            self._read()

    def ready(self) -> None:
        """Wait for the first prompt; keys before it are still the terminal's own."""
        self.until("works.\n")
        self.until("\n> ")

    def say(self, line: str, expected: str) -> str:
        """Type a line and wait for what it shows."""
        self.type(line + ENTER)
        return self.until(expected)

    def _read(self) -> bool:
        try:
            self.output += self.process.read_nonblocking(65_536, timeout=0.05)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        return True

    def ended(self) -> int:
        """Wait for the end; returns the exit code."""
        deadline = time.monotonic() + LIMIT
        while self._read():
            assert time.monotonic() < deadline, "the chat did not end"
        return end_of(self.process)

    def leave(self) -> int:
        """Ctrl+D; returns the exit code."""
        self.type(CTRL_D)
        return self.ended()


Open = Callable[..., Terminal]


def opening(marvin: Marvin) -> Iterator[Open]:
    """What opens chats; they are closed after the test, whose fixture yields from here."""
    opened: list[Terminal] = []

    def open_chat(*args: str, columns: int = 80, wait: bool = True, **env: str) -> Terminal:
        opened.append(Terminal(marvin, *args, columns=columns, **env))
        if wait:
            opened[-1].ready()
        return opened[-1]

    yield open_chat
    for one in opened:
        put_away(one.process)


def hanging(said: str) -> Answer:
    """An answer that never ends."""
    answer = text(said, chunks=1)
    return hang_after(answer.body.index(b'finish_reason": "stop'), answer)


def prompts(server: ModelServer) -> list[str]:
    """What the user said, as the last request has it."""
    return [message["content"] for message in conversation(server) if message["role"] == "user"]
