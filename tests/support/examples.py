"""How many examples a property is tried with: few in `make test`, all of them in `make test-slow`."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

USUAL = 100
"""How many a property has that asks for no number of its own."""
FEWEST = 5


def examples(count: int = USUAL, **others: Any) -> settings:
    """Settings for a property that deserves this many examples, of which the loaded profile takes its share.

    Args:
        others: further settings of hypothesis.
    """
    return settings(max_examples=max(FEWEST, count * settings().max_examples // USUAL), **others)
