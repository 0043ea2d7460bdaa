"""What packs hand to interfaces can always be written as JSON, or is refused as a whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.util.plain_data import plain

ODD = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.binary()
    | st.complex_numbers()
)
KEYS = ODD | st.tuples(ODD)
VALUES = st.recursive(
    ODD, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner) | st.tuples(inner), max_leaves=10
)


@given(VALUES)
def test_whatever_it_holds_it_becomes_json(value: Any) -> None:
    text = json.dumps(plain(value), ensure_ascii=False, allow_nan=False)
    text.encode()
    assert plain(json.loads(text)) == json.loads(text)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({1: "a", None: "b", ("x",): "c"}, {"1": "a", "None": "b", "('x',)": "c"}),
        ([float("nan"), float("-inf"), 1.5], ["nan", "-inf", 1.5]),
        (2**2_000, f"{2**2_000:#x}"),
        ("a\ud83d", "a\\ud83d"),
        (Path("/a"), "/a"),
        (True, True),
    ],
)
def test_what_json_does_not_know_stands_as_text(value: Any, said: Any) -> None:
    assert plain(value) == said


def cycle() -> Any:
    inner: list[Any] = []
    inner.append({"again": inner})
    return inner


def nested(depth: int) -> Any:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def doubled(times: int) -> Any:
    """A small value of which the text would be larger than any disk."""
    value: list[Any] = []
    for _ in range(times):
        value = [value, value]
    return value


@pytest.mark.parametrize(
    ("value", "why"),
    [(cycle(), "contains itself"), (nested(10_000), "nested"), (doubled(90), "more than 100,000 values")],
)
def test_what_cannot_be_written_is_refused(value: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        plain(value)


def test_one_value_at_two_places_is_no_cycle() -> None:
    shared = {"a": 1}
    assert plain([shared, shared]) == [{"a": 1}, {"a": 1}]
