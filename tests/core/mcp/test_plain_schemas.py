"""The fast check accepts only what the whole schema accepts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from marvin_core.mcp.arguments.plain import accepting

NAMES = st.sampled_from(["a", "b", "c"])
WORDS = st.sampled_from(["", "x", "yes"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, 1.0, 1.5]) | WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
KINDS = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])
LEAVES = st.one_of(
    st.just({}),
    st.booleans(),
    st.builds(lambda kind: {"type": kind}, KINDS),
    st.builds(lambda kinds: {"type": kinds}, st.lists(KINDS, min_size=1, max_size=2, unique=True)),
    st.builds(lambda words: {"type": "string", "enum": words}, st.lists(WORDS, min_size=1, unique=True)),
    st.builds(lambda value: {"const": value}, VALUES),
    st.builds(lambda kind: {"type": kind, "minLength": 1, "minimum": 1, "minItems": 1}, KINDS),
    st.builds(lambda kind: {"type": kind, "description": "said"}, KINDS),
)


def larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Schemas of lists and objects."""
    lists = st.builds(lambda items: {"type": "array", "items": items}, inner)
    objects = st.builds(
        lambda fields, required, more: {
            "type": "object",
            "properties": fields,
            "required": required,
            "additionalProperties": more,
        },
        st.dictionaries(NAMES, inner, max_size=3),
        st.lists(NAMES, max_size=2, unique=True),
        st.booleans() | inner,
    )
    return lists | objects


SCHEMAS = st.recursive(LEAVES, larger, max_leaves=6)


@given(SCHEMAS, VALUES)
def test_what_it_accepts_the_schema_accepts(schema: Any, value: Any) -> None:
    accepts = accepting(schema)
    if accepts is not None and accepts(value):
        assert Draft202012Validator(schema).is_valid(value)


@pytest.mark.parametrize(
    "value",
    [{"a": 2, "b": "x"}, {"a": 2}, {"a": 2, "c": [1.5, 2]}, {"a": 2, "d": {"e": "on"}, "f": None}],
)
def test_usual_arguments_are_accepted(value: Any) -> None:
    accepts = accepting(
        {
            "type": "object",
            "title": "Arguments",
            "properties": {
                "a": {"type": "integer", "description": "A number."},
                "b": {"type": "string"},
                "c": {"type": "array", "items": {"type": "number"}},
                "d": {"type": "object", "properties": {"e": {"type": "string", "enum": ["on", "off"]}}},
            },
            "required": ["a"],
        }
    )
    assert accepts is not None
    assert accepts(value)
    assert not accepts({"b": "x"})
    assert not accepts({"a": True})
    assert not accepts([])


def test_a_deep_schema_is_left_to_the_whole_check() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(10_000):
        schema = {"type": "array", "items": schema}
    assert accepting(schema) is None
