"""YAML that would take hours or all memory is refused before it is loaded, and nothing else is."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from marvin_core import ConfigError, ToolError, YamlFile
from marvin_core.config.settings import parse_settings
from marvin_core.util.yaml.checked import check_yaml


def aliases(width: int, levels: int) -> str:
    """Lists that each hold the one before many times."""
    lists = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * width)}]\n" for n in range(1, levels)]
    return "a0: &a0 [word, word]\n" + "".join(lists)


def merges(levels: int) -> str:
    """Mappings that each merge the one before twice."""
    return "m0: &m0 {k: 1}\n" + "".join(
        f"m{n}: &m{n}\n  <<: [*m{n - 1}, *m{n - 1}]\n  k{n}: 1\n" for n in range(1, levels)
    )


DEEP = "nested more than 100 deep"
GROWS = "its aliases .* add more than 1,000,000 characters"
REFUSED = {
    "brackets": ("a: " + "[" * 2_000 + "]" * 2_000, DEEP),
    "braces": ("a: " + "{a: " * 2_000 + "1" + "}" * 2_000, DEEP),
    "brackets that never end": ("a: " + "[" * 2_000, DEEP),
    "brackets behind strings that close others": ("a: [" + "']', [" * 2_000, DEEP),
    "dashes": ("a:\n" + "- " * 2_000 + "1", DEEP),
    "questions": ("? " * 2_000 + "1", DEEP),
    "blocks": ("".join(f"{' ' * n}a:\n" for n in range(150)), DEEP),
    "blocks and sequences": ("".join(f"{' ' * n}a:\n{' ' * n}- b:\n" for n in range(0, 300, 3)), DEEP),
    "aliases": (aliases(9, 9), GROWS),
    "merged mappings": (merges(30), GROWS),
    "a long text many times": (f"a: &a {'x' * 10_000}\nb: [{', '.join(['*a'] * 200)}]\n", GROWS),
    "a list that holds itself": ("a: &a [*a]\n", "the value of &a contains itself"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", REFUSED)
def test_what_no_person_writes_is_refused(kind: str, tmp_path: Path) -> None:
    text, why = REFUSED[kind]
    with pytest.raises(ValueError, match=why):
        check_yaml(text)
    with pytest.raises(ConfigError, match=why):
        parse_settings(text.encode(), tmp_path / "config.yaml")
    path = tmp_path / "data.yaml"
    path.write_text(text)
    with pytest.raises(ToolError, match=why):
        asyncio.run(YamlFile(path).read())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a: 1",
        "not: [yaml",
        "a: *missing",
        "a: '" + "[" * 2_000 + "'",
        "# " + "{" * 2_000,
        "a: |\n  " + "- " * 2_000,
        f"a: &a {'x' * 10_000}\nb: *a\n",
        aliases(3, 5),
        "".join(f"- [{n}]\n" for n in range(500)),
        "a: " + "[" * 90 + "]" * 90,
    ],
)
def test_what_a_person_may_write_passes(text: str) -> None:
    check_yaml(text)


@given(st.recursive(st.text(max_size=3), lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner)))
def test_whatever_was_written_from_data_passes(data: object) -> None:
    from io import StringIO

    stream = StringIO()
    YAML().dump({"data": data}, stream)
    check_yaml(stream.getvalue())
