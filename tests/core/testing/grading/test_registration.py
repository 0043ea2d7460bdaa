"""What a pack is told of how its tools are asked for."""

from __future__ import annotations

from typing import Any

from marvin_core.api.tools import ToolSpec
from marvin_core.testing.grading.registration import phrase_problems
from marvin_core.testing.tool_runner import installed_tools


def tool(name: str, *phrases: tuple[str, dict[str, str]]) -> ToolSpec:
    entries: tuple[dict[str, Any], ...] = tuple({"say": say, "arguments": {}, "slots": slots} for say, slots in phrases)
    return ToolSpec(name=name, description="", parameters={}, access=frozenset({"read"}), phrases=entries)


def test_a_tool_without_a_phrase_is_named() -> None:
    assert phrase_problems([tool("tides"), tool("moon", ("phase of the moon", {}))]) == ["tides has no phrase"]


def test_two_tools_with_the_same_phrase_are_named() -> None:
    (problem,) = phrase_problems(
        [
            tool("tides", ("Tides in {place}", {"place": "name"}), ("high water", {})),
            tool("ebb", ("tides in {where}", {"where": "name"})),
        ]
    )
    assert problem == "tides and ebb both have the phrase 'tides in {where}': neither is called"


def test_phrases_that_take_other_kinds_of_values_are_two() -> None:
    ours = [tool("tides", ("show {path}", {"path": "path"})), tool("ebb", ("show {url}", {"url": "url"}))]
    assert phrase_problems(ours) == []


def test_each_pack_of_ours_passes() -> None:
    packs: dict[str, list[ToolSpec]] = {}
    for spec in installed_tools():
        packs.setdefault(spec.source, []).append(spec)
    assert [
        problem for source, tools in packs.items() if source.startswith("marvin-") for problem in phrase_problems(tools)
    ] == []
