"""The arguments that the check of a pack tries tools with."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core import Field, tool
from marvin_core.testing.grading.fuzzing import MOST_CASES, cases
from marvin_core.testing.tool_runner import installed_tools
from marvin_core.tools.schema import describe
from tests.support.examples import examples


@tool(access=["read"])
async def several(
    kind: Literal["a", "b"],
    count: Annotated[int, Field(ge=2, le=9)],
    words: list[str] | None = None,
    deep: bool = False,
) -> str:
    """Take several parameters."""
    return f"{kind}{count}{words}{deep}"


def test_each_parameter_is_tried_at_its_edges() -> None:
    texts = cases(describe(several))
    assert len(texts) == len(set(texts)) <= MOST_CASES
    tried: dict[str, set[str]] = {}
    for text in texts[5:]:
        for name, value in json.loads(text).items():
            tried.setdefault(name, set()).add(json.dumps(value))
    assert {"2", "9", "0", "-1"} <= tried["count"]
    assert tried["kind"] == {'"a"', '"b"'}
    assert {"true", "false"} <= tried["deep"]
    assert "[]" in tried["words"]


def test_the_first_call_of_every_installed_tool_fits_its_schema() -> None:
    specs = installed_tools()
    assert specs
    for spec in specs:
        texts = cases(spec)
        jsonschema.validate(json.loads(texts[0]), dict(spec.parameters))
        assert len(texts) <= MOST_CASES
        assert texts == cases(spec)


SCHEMAS: st.SearchStrategy[dict[str, Any]] = st.recursive(
    st.one_of(
        st.fixed_dictionaries({"type": st.sampled_from(["string", "integer", "number", "boolean"])}),
        st.just({}),
        st.fixed_dictionaries({"enum": st.lists(st.text(max_size=3), min_size=1, max_size=3)}),
        st.fixed_dictionaries({"type": st.just(["string", "null"])}),
    ),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"type": st.just("object"), "properties": st.dictionaries(st.text(max_size=3), inner)}),
    ),
    max_leaves=4,
)


@examples(150)
@given(st.dictionaries(st.text(min_size=1, max_size=5), SCHEMAS, max_size=6))
def test_any_schema_gives_a_bounded_number_of_json_texts(properties: dict[str, Any]) -> None:
    spec = describe(several).replace(
        parameters={"type": "object", "properties": properties, "required": sorted(properties)[:2]}
    )
    texts = cases(spec)
    assert 1 <= len(texts) <= MOST_CASES
    for text in texts:
        if text != "{":
            json.loads(text)


@pytest.mark.parametrize("broken", ["{", "[]", '{"no_such_parameter": 1}'])
def test_what_is_no_object_is_tried_too(broken: str) -> None:
    assert broken in cases(describe(several))
