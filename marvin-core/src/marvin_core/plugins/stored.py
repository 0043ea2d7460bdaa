"""Packs and their registered objects as JSON: for the index, and from the process that loads them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, overload

from ..api.providers import ProviderSpec
from ..api.record import Record
from ..api.session import UISpec
from ..api.tools import ToolSpec
from .model import DeclaredSettings, Index, Loaded, Owned, Pack

_TEXT = "late fields in lines"
_END = "end"
"""The last line of the late data. If it is missing, the file is incomplete."""
FIELDS = (
    _TEXT,
    *(name for kind in (Pack, ToolSpec, ProviderSpec, UISpec, DeclaredSettings) for name in kind._defaults),
)
"""The identifier of this version of the format."""
_LATE = ("description", "parameters", "phrases", "probe", "labels", "module", "too_long", "known_as")
"""The fields that a start reads only for the tools of its first request, if it has any."""
_EARLY = {name: default for name, default in ToolSpec._defaults.items() if name not in _LATE}
_LATE_DEFAULTS = {name: ToolSpec._defaults[name] for name in _LATE if name not in ToolSpec._required}
_SHARED = frozenset(_EARLY) - {"name"}
_TOOL_TUPLES = frozenset(
    name for name, default in ToolSpec._defaults.items() if isinstance(default, tuple) and name != "phrases"
)


class LateText:
    """The data that a start needs for few tools, unparsed: all lines of a file but the first."""

    def __init__(self, text: bytes) -> None:
        self._text = text

    @cached_property
    def _lines(self) -> list[bytes]:
        return self._text.split(b"\n")[1:]

    @cached_property
    def phrases(self) -> Sequence[Sequence[Mapping[str, Any]]]:
        """The phrases of all tools, in the order of the tools."""
        found: Sequence[Sequence[Mapping[str, Any]]] = json.loads(self._lines[-2])
        return found

    def lines(self, first: int, count: int) -> list[bytes]:
        """So many lines from that position on."""
        return self._lines[first : first + count]

    def fields(self, place: int) -> dict[str, Any]:
        """The late fields of the tool with that position."""
        found: dict[str, Any] = json.loads(self._lines[place])
        if "phrases" in found:
            found["phrases"] = LatePhrases(self, place)
        return found


class LatePhrases(Sequence[Mapping[str, Any]]):
    """The phrases of a tool, parsed on first use: a start with a model does not need them.

    Args:
        text: the phrases of all tools.
        place: the position of this tool.
    """

    def __init__(self, text: LateText, place: int) -> None:
        self._text = text
        self._place = place

    @overload
    def __getitem__(self, key: int) -> Mapping[str, Any]: ...
    @overload
    def __getitem__(self, key: slice) -> Sequence[Mapping[str, Any]]: ...
    def __getitem__(self, key: int | slice) -> Mapping[str, Any] | Sequence[Mapping[str, Any]]:
        return self._text.phrases[self._place][key]

    def __len__(self) -> int:
        return len(self._text.phrases[self._place])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __hash__(self) -> int:
        return len(self)


class _LateField:
    """A field of a `LateTool`. The first access parses all late fields of the tool."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, tool: Any, owner: type) -> Any:
        return LateTool.whole(tool).__dict__[self._name]  # another thread may have parsed the fields just now


class LateTool(ToolSpec):
    """A tool of the index with some fields that are parsed on first use: a start with hundreds of tools needs few.

    After that it is a `ToolSpec` like any other.
    """

    @classmethod
    def of(cls, fields: dict[str, Any]) -> LateTool:
        """The tool with these fields, unchecked: checking hundreds of tools takes time at each start."""
        late = object.__new__(cls)
        object.__setattr__(late, "__dict__", fields)
        return late

    def whole(self) -> ToolSpec:
        """The same object with all its fields parsed. Another thread may do the same at the same time."""
        fields = self.__dict__
        if late := fields.get(_TEXT):
            text, place = late
            fields.update({**_LATE_DEFAULTS, **_lists_as_tuples(text.fields(place))})
            fields.pop(_TEXT, None)
        object.__setattr__(self, "__class__", ToolSpec)
        return self

    def as_dict(self) -> dict[str, Any]:
        return LateTool.whole(self).as_dict()

    def replace(self, **changes: Any) -> Any:
        return LateTool.whole(self).replace(**changes)

    def __eq__(self, other: object) -> bool:
        return LateTool.whole(self) == (LateTool.whole(other) if isinstance(other, LateTool) else other)

    def __hash__(self) -> int:
        return hash(LateTool.whole(self))

    def __repr__(self) -> str:
        return repr(LateTool.whole(self))


for _name in _LATE:
    setattr(LateTool, _name, _LateField(_name))


def index_to_json(index: Index) -> dict[str, Any]:
    """The index as JSON, without the data of `late_to_json`. Consecutive tools with equal fields store them once."""
    return {
        "packs": [stated(pack) for pack in index.packs],
        "others": [stated(pack) for pack in index.others],
        "tools": _runs(index.tools),
        "providers": [[key, stated(spec)] for key, spec in index.providers],
        "uis": [[key, stated(spec)] for key, spec in index.uis],
        "settings": [[key, stated(declared)] for key, declared in index.settings],
        "secrets": index.secrets,
    }


def late_to_json(index: Index) -> list[Any]:
    """The data that a start needs for few tools: the late fields of each, the phrases of all, and the end mark."""
    tools = [_tool(spec) for _, spec in index.tools]
    fields = [{name: tool[name] for name in _LATE if name in tool} for tool in tools]
    said = [{**each, "phrases": True} if "phrases" in each else each for each in fields]
    return [*said, [list(each.get("phrases", ())) for each in fields], _END]


def index_from_json(data: Mapping[str, Any], text: bytes) -> Index:
    """The index from the results of `index_to_json` and `late_to_json`.

    Args:
        text: the whole file: one line, and the result of `late_to_json`, a line for each of its parts. It is large,
            and a start that copies it is slower.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: the data has another form, or is incomplete.
    """
    tools = _late_tools(data["tools"], LateText(text))
    if text.count(b"\n") != len(tools) + 2 or not text.endswith(b'\n"%b"' % _END.encode()):
        raise ValueError("the index is incomplete")
    return Index(
        packs=tuple(pack_from_json(entry) for entry in data["packs"]),
        others=tuple(pack_from_json(entry) for entry in data["others"]),
        tools=tools,
        providers=tuple((key, ProviderSpec(**tuples(entry))) for key, entry in data["providers"]),
        uis=tuple((key, UISpec(**entry)) for key, entry in data["uis"]),
        settings=tuple((key, DeclaredSettings(**entry)) for key, entry in data["settings"]),
        secrets=tuple(data["secrets"]),
    )


def _runs(tools: Sequence[Owned[ToolSpec]]) -> list[Any]:
    """Runs of tools with equal fields, in the order of the tools: the key of the pack, the fields, the names."""
    runs: list[Any] = []
    for key, spec in tools:
        shared = {name: value for name, value in _tool(spec).items() if name in _SHARED}
        if not runs or runs[-1][:2] != [key, shared]:
            runs.append([key, shared, []])
        runs[-1][2].append(spec.name)
    return runs


def _late_tools(runs: Sequence[Any], text: LateText) -> tuple[Owned[ToolSpec], ...]:
    """The tools of the index, from the result of `_runs`."""
    found: list[Owned[ToolSpec]] = []
    for key, entry, names in runs:
        found += owned(key, late_tools(names, entry, text, len(found)))
    return tuple(found)


def late_tools(names: Sequence[str], entry: dict[str, Any], text: LateText, first: int) -> list[ToolSpec]:
    """Tools with equal fields, each with its late fields in a line of the text, beginning with the line `first`.

    Raises:
        ValueError: a field is none that a start reads.
    """
    if not entry.keys() <= _SHARED:
        raise ValueError("a tool of the index has an unknown field")
    fields = {**_EARLY, **_as_fields(entry)}
    return [LateTool.of({**fields, "name": name, _TEXT: (text, place)}) for place, name in enumerate(names, first)]


def loaded_to_json(loaded: Loaded) -> dict[str, Any]:
    """A loaded pack as JSON."""
    return {
        "pack": stated(loaded.pack),
        "tools": [_tool(spec) for spec in loaded.tools],
        "providers": [stated(spec) for spec in loaded.providers],
        "uis": [stated(spec) for spec in loaded.uis],
        "settings": [stated(declared) for declared in loaded.settings],
        "sources": loaded.sources,
        "read": loaded.read,
    }


def loaded_from_json(data: Mapping[str, Any]) -> Loaded:
    """A loaded pack from the result of `loaded_to_json`."""
    return Loaded(
        pack=pack_from_json(data["pack"]),
        tools=tuple(map(_tool_from_json, data["tools"])),
        providers=tuple(ProviderSpec(**tuples(entry)) for entry in data["providers"]),
        uis=tuple(UISpec(**entry) for entry in data["uis"]),
        settings=tuple(DeclaredSettings(**entry) for entry in data["settings"]),
        sources=tuple(data["sources"]),
        read=tuple(data["read"]),
    )


def stated(record: Record) -> dict[str, Any]:
    """The fields that are not at their default: each one costs time at every start."""
    return {name: value for name, value in record.as_dict().items() if value != type(record)._defaults[name]}


def pack_from_json(entry: Mapping[str, Any]) -> Pack:
    """A pack, from its fields."""
    return Pack(**tuples(entry))


def owned(key: str, specs: Sequence[Any]) -> tuple[Owned[Any], ...]:
    """The registered objects of one pack, with its key."""
    return tuple((key, spec) for spec in specs)


def _tool(spec: ToolSpec) -> dict[str, Any]:
    return {**stated(spec), "access": sorted(spec.access)}


def _tool_from_json(entry: dict[str, Any]) -> ToolSpec:
    return ToolSpec(**_as_fields(entry))


def _as_fields(entry: dict[str, Any]) -> dict[str, Any]:
    """The fields of a tool. The entry is converted in place, since each start reads hundreds of tools."""
    entry["access"] = frozenset(entry["access"])
    return _lists_as_tuples(entry)


def _lists_as_tuples(entry: dict[str, Any]) -> dict[str, Any]:
    for name, value in entry.items():
        if type(value) is list and name in _TOOL_TUPLES:
            entry[name] = tuple(value)
    return entry


def tuples(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a record in their types: lists in JSON are tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}
