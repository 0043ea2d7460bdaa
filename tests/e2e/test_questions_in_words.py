"""Questions in the middle of words, in the whole program: nothing typed changes, and no key of a word answers."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

import pytest

from marvin_core.testing import ModelServer, calls, pause, text
from tests.e2e.support_e2e import Marvin, conversation, posts, put_away, told, wait_until
from tests.e2e.support_terminal import ASKED, BELL, Terminal, bare

pytestmark = pytest.mark.slow

WORDS = [
    "yes",
    "no",
    "session",
    "always",
    "edit",
    "view",
    "please",
    "say",
    "notes",
    "you",
    "a",
    "y",
    "yy",
    "each",
    "nay!",
]
PAUSE = 0.12
"""Seconds after which a question opens: so short that a thousand of them take minutes."""
QUICK = PAUSE * 0.3
"""The longest time between two letters of somebody who types."""


class Typist:
    """Types words into a chat whose model asks for a command in the middle of them."""

    def __init__(self, marvin: Marvin, server: ModelServer, seed: int) -> None:
        self._marvin = marvin
        self._server = server
        self._chosen = random.Random(seed)
        self._terminal = Terminal(marvin)
        self._terminal.ready()

    def round(self, number: int) -> None:
        """One word, which must arrive as it was typed, and the question, which only its own key answers."""
        gate, chosen = threading.Event(), self._chosen
        asks = calls(("run_command", {"command": f"touch made{number}"}))
        self._server.script(pause(gate, asks), text(f"Refused {number}."), text(f"Heard {number}."))
        word = " ".join(chosen.choice(WORDS) for _ in range(chosen.randint(1, 3)))
        self._press("g\r")
        self._until(lambda _: posts(self._server) == 3 * number + 1, "the request")
        appears = threading.Timer(chosen.uniform(0, QUICK * (len(word) + 1)), gate.set)
        self._press(word[0])
        appears.start()
        for letter in word[1:]:
            time.sleep(chosen.uniform(0, QUICK))
            self._press(letter)
        self._until(lambda shown: f"touch made{number}" in shown, "the question")
        time.sleep(chosen.choice([0.0, 0.0, PAUSE * 2]))
        self._press("\r")
        self._until(lambda shown: shown.rstrip(f"{BELL} \n").endswith(ASKED), "an open question")
        self._press("n")
        self._until(lambda shown: f"Heard {number}." in shown, f"the answer to {word!r}")
        self._until(lambda shown: shown.rstrip().endswith(">"), "the prompt")
        last = conversation(self._server)[-1]
        assert (last["role"], last["content"]) == ("user", word)
        assert "the user said no" in told(self._server, -2)[0]
        assert not (self._marvin.project / f"made{number}").exists()

    def _press(self, keys: str) -> None:
        self._terminal.process.send(keys)
        self._terminal._read()

    def _until(self, reached: Callable[[str], bool], what: str) -> None:
        def look() -> bool:
            self._terminal._read()
            return reached(bare(self._terminal.output[-4_000:]))

        wait_until(look, what)

    def close(self) -> None:
        put_away(self._terminal.process)


def typed(marvin: Marvin, server: ModelServer, count: int, seed: int) -> None:
    """So many rounds in one chat."""
    marvin.config(
        f"ui: {{attention: [], completion: tab}}\nsandbox: off\ntimeouts: {{answer_key: {PAUSE}, redraw: 0.01}}\n"
    )
    typist = Typist(marvin, server, seed)
    try:
        for number in range(count):
            try:
                typist.round(number)
            except AssertionError as error:
                raise AssertionError(f"round {number} of seed {seed}: {error}") from None
    finally:
        typist.close()


# A tenth of them in each run of the slow tests, and all of them with the real programs.
@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.real) for part in range(1, 10))])
def test_a_thousand_timings(marvin: Marvin, marvin_model_server: ModelServer, part: int) -> None:
    typed(marvin, marvin_model_server, 100, random.SystemRandom().randrange(1_000_000))
