"""What a demanding user once saw go wrong, in tmux and in GNU screen, at three widths."""

from __future__ import annotations

import shutil

import pytest

from marvin_core.testing import ModelServer
from tests.e2e.support_e2e import Marvin
from tests.e2e.support_screen import SCREEN, Screen
from tests.support import part_d

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed")]
needs_screen = pytest.mark.skipif(not SCREEN, reason="GNU screen is not installed")
# One width for each in the slow tests; the others with the real programs, where xterm.js is.
WINDOWS = [
    pytest.param(inside, columns, marks=marks, id=f"{'screen' if inside else 'tmux'}-{columns}")
    for inside, always, needs in ((False, 40, ()), (True, 80, (needs_screen,)))
    for columns in (40, 80, 120)
    for marks in [[*needs, *(() if columns == always else (pytest.mark.real,))]]
]


@pytest.mark.parametrize("scenario", part_d.EVERYWHERE.values(), ids=part_d.EVERYWHERE)
@pytest.mark.parametrize(("inside", "columns"), WINDOWS)
def test_it_holds(
    marvin: Marvin, marvin_model_server: ModelServer, inside: bool, columns: int, scenario: part_d.Scenario
) -> None:
    scenario(part_d.Place(marvin, marvin_model_server, part_d.opened(Screen, marvin, columns, inside=inside)))


@pytest.mark.parametrize("scenario", [part_d.a_typo_is_no_prompt, part_d.a_long_talk])
def test_it_holds_whatever_the_window(
    marvin: Marvin, marvin_model_server: ModelServer, scenario: part_d.Scenario
) -> None:
    scenario(part_d.Place(marvin, marvin_model_server, part_d.opened(Screen, marvin, 80)))
