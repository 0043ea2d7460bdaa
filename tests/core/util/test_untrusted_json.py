"""JSON of strangers is a value of a bounded size, or an error of one kind."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.util.untrusted_json import parse_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES)
def test_json_is_read_as_it_is(value: Any) -> None:
    assert parse_json(json.dumps(value)) == parse_json(json.dumps(value).encode()) == value


def test_the_mark_that_some_programs_begin_a_file_with_is_no_part_of_it() -> None:
    assert parse_json(b'\xef\xbb\xbf{"a": 1}') == parse_json(bytearray(b'\xef\xbb\xbf{"a": 1}')) == {"a": 1}


@given(st.binary() | st.text())
def test_anything_else_is_one_kind_of_error(text: bytes | str) -> None:
    try:
        parse_json(text)
    except ValueError:
        return


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[" * 100_000, "nested"),
        ("[" * 101 + "]" * 101, "nested"),
        ('{"a":' * 500 + "1" + "}" * 500, "nested"),
        (b"[" + b"[]," * 300_000 + b"[]]", "more than 500,000 values"),
        (b'"' + b"a" * 2_000 + b'"', "larger than 1,000 bytes"),
        (b"\xff", "utf-8"),
        (b"\0" * 1_000, "Expecting value"),
        ("1" * 5_000, "4300 digits"),
        ("", "Expecting value"),
    ],
)
def test_what_is_hostile_is_refused(text: bytes | str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_json(text, largest=1_000 if "larger" in why else 10_000_000)


def test_what_is_no_number_is_null() -> None:
    assert parse_json('[NaN, Infinity, -Infinity, {"a": NaN}]') == [None, None, None, {"a": None}]


def test_long_texts_with_many_brackets_are_no_many_values() -> None:
    text = "[{,]}" * 50_000
    assert parse_json(json.dumps({"text": text})) == {"text": text}
