"""Packs and what they bring as JSON: in the index, and on the way from the process that loads them."""

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
"""The last line of what is read late. Nothing else ends so, so a file that was cut is known as such."""
FIELDS = (
    _TEXT,
    *(name for kind in (Pack, ToolSpec, ProviderSpec, UISpec, DeclaredSettings) for name in kind._defaults),
)
"""What tells the form of this version from that of another one."""
_LATE = ("description", "parameters", "phrases", "probe", "labels", "module", "too_long")
"""The fields of a tool that a start reads of those alone that its first request carries, if of any."""
_EARLY = {name: default for name, default in ToolSpec._defaults.items() if name not in _LATE}
_LATE_DEFAULTS = {name: ToolSpec._defaults[name] for name in _LATE if name not in ToolSpec._required}
_SHARED = frozenset(_EARLY) - {"name"}
_TOOL_TUPLES = frozenset(
    name for name, default in ToolSpec._defaults.items() if isinstance(default, tuple) and name != "phrases"
)


class _LateText:
    """What a start needs of few tools, or of none, as it stands in the index."""

    def __init__(self, text: bytes) -> None:
        self._text = text

    @cached_property
    def _lines(self) -> list[bytes]:
        return self._text.split(b"\n")

    @cached_property
    def phrases(self) -> Sequence[Sequence[Mapping[str, Any]]]:
        """Those of all tools, in the places of these."""
        found: Sequence[Sequence[Mapping[str, Any]]] = json.loads(self._lines[-2])
        return found

    def fields(self, place: int) -> dict[str, Any]:
        """The late fields of the tool in that place."""
        found: dict[str, Any] = json.loads(self._lines[place])
        if "phrases" in found:
            found["phrases"] = LatePhrases(self, place)
        return found


class LatePhrases(Sequence[Mapping[str, Any]]):
    """The phrases of a tool, parsed when somebody asks: a start with a model does not.

    Args:
        text: has those of all tools.
        place: where those of this tool are among them.
    """

    def __init__(self, text: _LateText, place: int) -> None:
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
    """A field of a `LateTool`: whoever asks for one gets the whole tool made."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, tool: Any, owner: type) -> Any:
        return LateTool.whole(tool).__dict__[self._name]  # another thread may have made it whole just now


class LateTool(ToolSpec):
    """A tool of the index, some fields of which are parsed when somebody asks: a start with hundreds asks for few.

    From then on it is a `ToolSpec` like any other.
    """

    @classmethod
    def of(cls, fields: dict[str, Any]) -> LateTool:
        """The tool with these fields, as they are: checking those of hundreds takes time at each start."""
        late = object.__new__(cls)
        object.__setattr__(late, "__dict__", fields)
        return late

    def whole(self) -> ToolSpec:
        """The same object with all its fields, which is late no more. Another thread may do so at the same time."""
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
    """The index as JSON, without what `late_to_json` gives. Tools that differ in nothing else share what they have."""
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
    """What a start needs of few tools: the late fields of each, the phrases of all in their places, and the end."""
    tools = [_tool(spec) for _, spec in index.tools]
    fields = [{name: tool[name] for name in _LATE if name in tool} for tool in tools]
    said = [{**each, "phrases": True} if "phrases" in each else each for each in fields]
    return [*said, [list(each.get("phrases", ())) for each in fields], _END]


def index_from_json(data: Mapping[str, Any], late: bytes) -> Index:
    """The index, from what `index_to_json` made of it, and what `late_to_json` did, a line for each.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: where it is something else, or not all of it.
    """
    tools = _late_tools(data["tools"], _LateText(late))
    if late.count(b"\n") != len(tools) + 1 or not late.endswith(b'\n"%b"' % _END.encode()):
        raise ValueError("the index was cut")
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
    """The key of a pack, what its next tools share, and their names; and so on, in the order of the tools."""
    runs: list[Any] = []
    for key, spec in tools:
        shared = {name: value for name, value in _tool(spec).items() if name in _SHARED}
        if not runs or runs[-1][:2] != [key, shared]:
            runs.append([key, shared, []])
        runs[-1][2].append(spec.name)
    return runs


def _late_tools(runs: Sequence[Any], text: _LateText) -> tuple[Owned[ToolSpec], ...]:
    """The tools of the index, from what `_runs` made of them."""
    found: list[Owned[ToolSpec]] = []
    for key, entry, names in runs:
        if not entry.keys() <= _SHARED:
            raise ValueError("a tool of the index has a field that is none")
        fields = {**_EARLY, **_as_fields(entry)}
        for name in names:
            found.append((key, LateTool.of({**fields, "name": name, _TEXT: (text, len(found))})))
    return tuple(found)


def loaded_to_json(loaded: Loaded) -> dict[str, Any]:
    """A pack and what it brings as JSON."""
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
    """A pack and what it brings, from what `loaded_to_json` made of them."""
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
    """The fields that are not at their default: each one that is read costs time at every start."""
    return {name: value for name, value in record.as_dict().items() if value != type(record)._defaults[name]}


def pack_from_json(entry: Mapping[str, Any]) -> Pack:
    """A pack, from its fields."""
    return Pack(**tuples(entry))


def owned(key: str, specs: Sequence[Any]) -> tuple[Owned[Any], ...]:
    """What one pack brings, with its key."""
    return tuple((key, spec) for spec in specs)


def _tool(spec: ToolSpec) -> dict[str, Any]:
    return {**stated(spec), "access": sorted(spec.access)}


def _tool_from_json(entry: dict[str, Any]) -> ToolSpec:
    return ToolSpec(**_as_fields(entry))


def _as_fields(entry: dict[str, Any]) -> dict[str, Any]:
    """The fields of a tool: there are hundreds at every start, so the entry itself becomes what JSON could not say."""
    entry["access"] = frozenset(entry["access"])
    return _lists_as_tuples(entry)


def _lists_as_tuples(entry: dict[str, Any]) -> dict[str, Any]:
    for name, value in entry.items():
        if type(value) is list and name in _TOOL_TUPLES:
            entry[name] = tuple(value)
    return entry


def tuples(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a record as it has them: what JSON knows as lists are tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}
