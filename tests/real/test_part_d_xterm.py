"""What a demanding user once saw go wrong, in xterm.js, at three widths."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from marvin_core.testing import ModelServer, calls, pause, text
from tests.e2e.support_e2e import Marvin, wait_until
from tests.real.components import required
from tests.real.xterm import HEADLESS, NODE, Xterm
from tests.support import part_d

pytestmark = pytest.mark.real


@pytest.fixture
def talking(tmp_path: Path, index: Path) -> Iterator[tuple[Marvin, ModelServer]]:
    """Marvin with a scripted model."""
    required(NODE, HEADLESS)
    with ModelServer() as server:
        yield Marvin(tmp_path / "talking", server, index), server


@pytest.mark.parametrize("scenario", part_d.EVERYWHERE.values(), ids=part_d.EVERYWHERE)
@pytest.mark.parametrize("columns", [40, 80, 120])
def test_it_holds(talking: tuple[Marvin, ModelServer], columns: int, scenario: part_d.Scenario) -> None:
    marvin, server = talking
    scenario(part_d.Place(marvin, server, part_d.opened(Xterm, marvin, columns)))


def test_somebody_who_looks_elsewhere_is_called(talking: tuple[Marvin, ModelServer]) -> None:
    """M5: by the bell and the title, which is given back."""
    marvin, server = talking
    marvin.config("ui: {attention: [bell, title]}\ntimeouts: {attention: 0.5}\n")
    server.script(calls(("run_command", {"command": "true"})), text("Done."))
    with Xterm(marvin, columns=80) as window:
        assert window.look()["title"] == "marvin"
        window.type("go")
        window.press("Enter")
        wait_until(lambda: window.look()["title"] == "marvin: asks", "the title")
        wait_until(lambda: window.look()["bells"] == 1, "the bell")
        window.press("y")
        window.until("■ Done.")
        wait_until(lambda: window.look()["title"] == "marvin", "the title")


def test_the_terminal_is_asked_for_nothing_and_left_as_it_was(talking: tuple[Marvin, ModelServer]) -> None:
    """No mouse, no keys of an application; the other screen belongs to the pager; the end switches all off."""
    marvin, server = talking
    import threading

    gate = threading.Event()
    server.script(pause(gate, text("# Done\n\n```py\nx = 1\n```")))
    with Xterm(marvin, columns=80) as window:
        window.type("go")
        window.press("Enter")
        window.until("waiting")
        for _ in range(2):
            told = window.look()
            modes = told["modes"]
            assert (told["kind"], modes["mouseTrackingMode"], modes["applicationCursorKeysMode"]) == (
                "normal",
                "none",
                False,
            )
            assert modes["bracketedPasteMode"]
            gate.set()
            window.until("x = 1")
        window.press("C-o")
        window.until("q returns")
        assert window.look()["kind"] == "alternate"
        window.press("q")
        window.at_prompt("")
        assert window.look()["kind"] == "normal"
        window.press("C-d")
        assert window.ended() == 0
        modes = window.look()["modes"]
        assert not modes["bracketedPasteMode"]
        assert modes["wraparoundMode"]
