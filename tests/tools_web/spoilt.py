"""Replies of services with anything in the place of their values."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from marvin_core import RequestFailed

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def read_or_refused(data: st.DataObject, readers: Sequence[tuple[Any, Callable[[Any], object]]]) -> None:
    """Spoil the good reply of one of the readers, and have it read: nothing but what clients expect is raised."""
    good, read = data.draw(st.sampled_from(readers))
    answer = json.loads(json.dumps(good))
    for _ in range(data.draw(st.integers(1, 3))):
        _spoil(answer, data)
    try:
        read(answer)
    except (RequestFailed, ValueError, LookupError, TypeError, AttributeError, OverflowError):
        pass


def _spoil(value: Any, data: st.DataObject) -> None:
    """Put something else into a random place."""
    while isinstance(value, (dict, list)) and value:
        key = data.draw(st.sampled_from(list(value) if isinstance(value, dict) else list(range(len(value)))))
        if not isinstance(value[key], (dict, list)) or data.draw(st.booleans()):
            value[key] = data.draw(_VALUES)
            return
        value = value[key]
