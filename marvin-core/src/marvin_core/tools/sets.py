"""Tool sets, and selections such as `coding,-git`. Both depend on declarations only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from ..api.errors import UsageError
from ..api.tools import ToolSpec
from ..config.program import command_name
from ..util.text import hint_at


def _in_coding(spec: ToolSpec) -> bool:
    return "coding" in spec.sets


def _in_readonly(spec: ToolSpec) -> bool:
    return _in_coding(spec) and (not spec.changes or "readonly" in spec.passes)


def _in_surf(spec: ToolSpec) -> bool:
    """Whether a tool declares the set, or declares no set and changes nothing."""
    return "surf" in spec.sets or not (spec.sets or spec.changes)


def _in_lockin(spec: ToolSpec) -> bool:
    return "lockin" in spec.sets or _in_coding(spec)


SETS: Mapping[str, Callable[[ToolSpec], bool]] = {
    "all": lambda spec: True,
    "coding": _in_coding,
    "readonly": _in_readonly,
    "surf": _in_surf,
    "lockin": _in_lockin,
}
"""The tool sets by name."""


def select(specs: Sequence[ToolSpec], selection: str, lost: Mapping[str, str] = MappingProxyType({})) -> frozenset[str]:
    """The names in a selection such as `coding,pages,-git`.

    A selection of exclusions only starts from all tools. `lost` has the reasons for tools that are gone.

    Raises:
        UsageError: an unknown set, group or name.
    """
    words = [word.strip() for word in selection.split(",") if word.strip()]
    chosen: set[str] = set()
    if all(word.startswith("-") for word in words):
        chosen = {spec.name for spec in specs}
    for word in words:
        if word in lost:
            raise UsageError(f"There is no tool {word!r}: {lost[word]}.")
        names = set() if word.removeprefix("-") in lost else _named(specs, word.removeprefix("-"))
        chosen = chosen - names if word.startswith("-") else chosen | names
    return frozenset(chosen)


def _named(specs: Sequence[ToolSpec], word: str) -> set[str]:
    if word in SETS:
        return {spec.name for spec in specs if SETS[word](spec)}
    found = {spec.name for spec in specs if word in (spec.group, spec.name)}
    if found:
        return found
    known = [*SETS, *{spec.group for spec in specs}, *(spec.name for spec in specs)]
    hint = hint_at(word, known, f"`{command_name()} tools list` lists them all.")
    raise UsageError(f"There is no set, group or tool {word!r}. {hint}")
