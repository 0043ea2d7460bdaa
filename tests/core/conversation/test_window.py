"""The budget of a context window: thresholds, estimates, and tool results cut to what is left."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.api.tools import LONGEST_DESCRIPTION
from marvin_core.conversation.window import UNKNOWN_WINDOW, ToolSizes, Window
from tests.support.engine import spec


@pytest.mark.parametrize(
    ("size", "thresholds"),
    [
        (1_000_000, (180_000, 200_000, 226_000)),
        (250_000, (180_000, 200_000, 226_000)),
        (200_000, (144_000, 160_000, 180_800)),
        (8_000, (5_760, 6_400, 7_232)),
    ],
)
def test_thresholds_hold_as_they_are_or_shrink_with_the_window(size: int, thresholds: tuple[int, ...]) -> None:
    window = Window(size)
    assert (window.warn, window.compact, window.refuse) == thresholds


@pytest.mark.parametrize("size", [None, 0])
def test_an_unknown_window_is_taken_as_a_small_one(size: int | None) -> None:
    assert Window(size).size == UNKNOWN_WINDOW == 32_768


def test_tokens_are_a_quarter_of_the_characters_until_the_provider_counts() -> None:
    window = Window(100_000)
    assert window.tokens(4_000) == 1_000
    window.calibrate(4_000, 1_500)
    assert window.tokens(4_000) == 1_500


@pytest.mark.parametrize(("counted", "factor"), [(1_000_000, 2.0), (1, 0.5), (0, 1.0)])
def test_a_count_that_cannot_be_right_moves_the_estimate_only_so_far(counted: int, factor: float) -> None:
    window = Window(100_000)
    window.calibrate(4_000, counted)
    assert window.tokens(4_000) == 1_000 * factor


def test_what_fits_is_left_alone() -> None:
    assert Window(100_000).fit("short", 0) == "short"


def test_what_does_not_fit_is_cut_and_says_by_how_much() -> None:
    """I9: a large result is bounded by what the window has room for."""
    window = Window(8_000)
    room = window.warn * 4
    got = window.fit("x" * (room + 1_234), 0)
    assert got.startswith("x" * room + "\n[Result truncated: 1,234 characters left out")
    assert "Ask for a smaller part" in got


def test_above_the_warning_a_result_still_has_room_since_older_messages_make_some_before_the_next_request() -> None:
    window = Window(250_000)
    assert window.fit("x" * 100_000, window.warn) == "x" * 100_000
    assert len(window.fit("x" * 1_000_000, window.warn)) < (window.refuse - window.warn) * 4 + 200


def test_characters_and_tokens_are_each_other_s_reverse() -> None:
    window = Window(100_000)
    window.calibrate(4_000, 1_500)
    assert window.room(1_500) == 4_000


def test_near_the_limit_a_short_piece_still_gets_through() -> None:
    window = Window(8_000)
    assert window.fit("x" * 10_000, window.refuse - 1).startswith("x" * 500 + "\n[Result truncated")
    assert window.fit("x" * 400, window.refuse - 1) == "x" * 400


def test_beyond_the_limit_a_result_is_left_out_with_a_way_on() -> None:
    """I10: even then the model is told what to do."""
    window = Window(8_000)
    got = window.fit("secret content", window.refuse)
    assert got.startswith("Error: the context budget of 7,232 tokens is used up")
    assert "compact_history" in got
    assert "secret content" not in got


@given(st.integers(1_000, 300_000), st.integers(0, 400_000), st.integers(0, 2_000_000), st.floats(0.4, 2.5))
def test_what_is_let_through_never_exceeds_the_refusal_threshold_by_more_than_a_note(
    size: int, used: int, length: int, factor: float
) -> None:
    """I9: whatever the window, the estimate and the result."""
    window = Window(size)
    window.calibrate(4_000, int(1_000 * factor))
    got = window.fit("x" * length, used)
    if used < window.refuse:
        assert len(got) <= max((window.refuse - used) * 8, 500) + 200
    else:
        assert len(got) < 300


def test_a_tool_is_measured_anew_only_where_it_is_another_one() -> None:
    sizes, look = ToolSizes(), spec("look")
    plain = sizes.of(look)
    assert plain == sizes.of(look) == len("look") + len("A tool.") + len('{"type": "object", "properties": {}}')
    assert sizes.of(look.replace(description="A tool. 118 tools wait.")) == plain + len(" 118 tools wait.")
    assert sizes.of(look) == plain
    both = (look, spec("mark"))
    assert sizes.of_all(both) == sizes.of_all(both) == 2 * plain
    assert sizes.of_all(()) == 0


def test_what_no_model_is_told_takes_nothing() -> None:
    endless = spec("look").replace(description="x" * 1_000_000)
    assert LONGEST_DESCRIPTION < ToolSizes().of(endless) < LONGEST_DESCRIPTION + 100
