"""Only finite numbers from 0 on are numbers, wherever they come from."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from marvin_core import Usage
from marvin_core.util.numbers import amount, count, count_at, sound

NO_NUMBERS: list[Any] = [
    None,
    True,
    False,
    "1",
    "",
    b"1",
    [],
    {},
    [1],
    -1,
    -0.1,
    1e999,
    -1e999,
    math.nan,
    10**400,
    1e13,
]
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=6,
)


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_what_is_no_number_from_zero_on_is_none(value: Any) -> None:
    assert amount(value) is None
    assert count(value) == 0


@pytest.mark.parametrize(("value", "whole"), [(0, 0), (-0.0, 0), (5, 5), (0.25, 1), (12.0, 12), (10**12, 10**12)])
def test_numbers_stay_what_they_are_and_counts_are_rounded_up(value: float, whole: int) -> None:
    assert amount(value) == value
    assert str(amount(value))[0] != "-"
    assert count(value) == whole


@given(ANYTHING, st.lists(st.text(), max_size=3))
def test_whatever_stands_there_a_count_is_a_whole_number_from_zero_on(value: Any, path: list[str]) -> None:
    found = count_at(value, *path)
    assert type(found) is int
    assert found >= 0


def test_counts_are_found_in_nested_objects() -> None:
    assert count_at({"a": {"b": 3}}, "a", "b") == 3
    assert count_at({"a": [3]}, "a", "b") == 0
    assert count_at(None, "a") == 0


@given(st.builds(dict, input_tokens=ANYTHING, output_tokens=ANYTHING, reasoning_tokens=ANYTHING, cost=ANYTHING))
@example({"input_tokens": False, "output_tokens": False, "reasoning_tokens": False, "cost": None})
def test_a_sound_usage_holds_nothing_else(values: dict[str, Any]) -> None:
    usage = sound(Usage(**values))
    assert all(type(n) is int and n >= 0 for n in (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens))
    assert usage.cost is None or (math.isfinite(usage.cost) and usage.cost >= 0)
    assert sound(usage) is usage
