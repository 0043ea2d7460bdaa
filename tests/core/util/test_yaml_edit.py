"""Changes of YAML files that people write: the data are what was asked for, and no comment is lost."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.util.yaml.edit import load_mapping, with_mapping, with_value
from tests.support.examples import examples

TEXT = "# top\n\na: 1  # of a\n# about b\nb:\n  - x\n  # about y\n  - y\n# about c\nc: {d: 1}\n# the end\n"


def comments(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.lstrip().startswith("#")]


@pytest.mark.parametrize("key", ["a", "b", "c"])
@pytest.mark.parametrize("value", [None, 5, ["q"], {"z": 1}])
def test_comments_beside_a_value_stay_when_it_goes(key: str, value: Any) -> None:
    after = with_value(TEXT, [key], value)
    assert comments(after) == comments(TEXT)
    expected = {"a": 1, "b": ["x", "y"], "c": {"d": 1}}
    assert load_mapping(after) == {name: one for name, one in (expected | {key: value}).items() if one is not None}
    for following, remark in (("b", "# about b"), ("c", "# about c")):
        if following != key or value is not None:
            lines = after.splitlines()
            assert lines[lines.index(remark) + 1].startswith(f"{following}:")


def test_what_only_looks_like_a_comment_goes_with_its_text() -> None:
    text = 'a: |\n  # no comment\n  x\n# yes\nb: "two\n  # lines"\nc: 3\n'
    assert comments(with_value(text, ["a"], None)) == ["# yes"]
    assert with_value(text, ["b"], None) == "a: |\n  # no comment\n  x\n# yes\nc: 3\n"
    assert with_value("a: |\n  # no comment\n# yes\n", ["a"], None) == "# yes\n"


def test_the_last_value_leaves_the_comments() -> None:
    assert with_value("# top\na: 1\n# end\n", ["a"], None) == "# top\n# end\n"
    assert with_value("# top\n", ["a"], 1) == "# top\n\na: 1\n"


def test_a_list_that_is_emptied_keeps_the_comments_in_it_and_the_lines_below() -> None:
    text = "a:\n# why\n- 1\nb: 1\nc: 1\n"
    after = with_value(text, ["a"], [])
    assert load_mapping(after) == {"a": [], "b": 1, "c": 1}
    assert comments(after) == ["# why"]


def test_a_list_that_is_emptied_leaves_what_is_shared_with_an_anchor() -> None:
    text = "base: &all {x: 1}\nuse:\n  <<: *all\n  y: 2\na:\n# why\n- 1\nb: 1\nc: 1\n"
    after = with_value(text, ["a"], [])
    assert after == "base: &all {x: 1}\nuse:\n  <<: *all\n  y: 2\na: []\n# why\nb: 1\nc: 1\n"


NAMES = st.sampled_from(["a", "b", "c", "d"])
VALUES = st.recursive(
    st.sampled_from([1, "x", True, "# no comment", "two\nlines\n"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


@examples(40)
@given(st.dictionaries(NAMES, VALUES, min_size=1), st.data())
def test_no_comment_is_ever_lost(data: dict[str, Any], draw: st.DataObject) -> None:
    lines = with_mapping("", data).splitlines()
    places = draw.draw(st.lists(st.integers(0, len(lines)), max_size=4))
    for number, place in enumerate(sorted(places, reverse=True)):
        indent = " " * draw.draw(st.sampled_from([0, 0, 2]))
        lines.insert(place, f"{indent}# remark {number}")
    text = "".join(f"{line}\n" for line in lines)
    try:
        before = load_mapping(text)
    except ValueError:
        return  # a comment in a place where none may be
    if before != data:
        return  # one that became part of a text
    key, value = draw.draw(NAMES), draw.draw(st.none() | VALUES)
    after = with_value(text, [key], value)
    expected = {name: one for name, one in ({**data, key: value}).items() if one is not None}
    assert (load_mapping(after) or {}) == expected
    told = Counter(line for line in comments(text) if line.startswith("# remark"))
    assert not told - Counter(comments(after))
