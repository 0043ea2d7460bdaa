"""Which tools there are in play mode, and what becomes of questions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from marvin_core.api.hooks import Ask, Deny
from marvin_core.api.tools import Access, Gate
from marvin_core.guard.gates.play import closed_in_play, verdict_in_play
from marvin_core.guard.permissions.verdicts import Allow
from tests.support.engine import spec


@pytest.mark.parametrize(
    ("access", "passes", "more", "in_sandbox", "without"),
    [
        (["read"], [], {}, True, True),
        (["net"], [], {}, True, True),
        (["state"], [], {}, True, True),
        (["write"], [], {}, False, False),
        (["write"], ["writable-files"], {}, True, True),
        (["write", "net"], [], {}, False, False),
        (["exec"], [], {}, True, False),
        (["exec", "read", "state"], [], {}, True, False),
        (["exec", "net"], [], {}, False, False),
        (["write", "exec"], [], {}, False, False),
        (["write", "exec", "net"], [], {"typed": "!", "confirm": True}, True, False),
        (["state"], [], {"interactive": True}, False, False),
        (["read"], [], {"confirm": True}, False, False),
        (["write"], ["writable-files"], {"confirm": True}, False, False),
    ],
)
def test_what_stays_in_the_playground_is_offered(
    access: Sequence[Access], passes: Sequence[Gate], more: dict[str, Any], in_sandbox: bool, without: bool
) -> None:
    one = spec("x", access=access).replace(passes=tuple(passes), **more)
    assert (closed_in_play(one, holds=True) == "") is in_sandbox
    assert (closed_in_play(one, holds=False) == "") is without


def test_nobody_is_asked() -> None:
    assert verdict_in_play(None, by_declaration=False) is None
    assert verdict_in_play(Allow(rule="x"), by_declaration=False) == Allow(rule="x")
    assert verdict_in_play(Deny(reason="no"), by_declaration=True) == Deny(reason="no")
    assert verdict_in_play(Ask(reason="it asks"), by_declaration=True) is None
    denied = verdict_in_play(Ask(reason="a rule wants a yes"), by_declaration=False)
    assert denied == Deny(reason="a rule wants a yes, and nobody can answer in play mode")
