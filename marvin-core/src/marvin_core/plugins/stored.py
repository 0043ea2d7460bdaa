"""Packs and their registered objects as JSON: for the index, and from the process that loads them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, overload

from ..api.providers import ProviderSpec
from ..api.record import Record
from ..api.session import UISpec
from ..api.tools import ToolSpec
from .model import DeclaredSettings, Index, Loaded, Owned, Pack

_TEXT = "parameters in lines"
FIELDS = (
    _TEXT,
    *(name for kind in (Pack, ToolSpec, ProviderSpec, UISpec, DeclaredSettings) for name in kind._defaults),
)
"""The identifier of this version of the format."""
_TOOL_TUPLES = frozenset(
    name for name, default in ToolSpec._defaults.items() if isinstance(default, tuple) and name != "phrases"
)


class LatePhrases(Sequence[Mapping[str, Any]]):
    """The phrases of a tool, parsed on first use: a start with a model does not need them.

    Args:
        all_of_them: gives those of all tools.
        place: where those of this tool are among them.
    """

    def __init__(self, all_of_them: Callable[[], Sequence[Sequence[Mapping[str, Any]]]], place: int) -> None:
        self._all = all_of_them
        self._place = place

    @overload
    def __getitem__(self, key: int) -> Mapping[str, Any]: ...
    @overload
    def __getitem__(self, key: slice) -> Sequence[Mapping[str, Any]]: ...
    def __getitem__(self, key: int | slice) -> Mapping[str, Any] | Sequence[Mapping[str, Any]]:
        return self._all()[self._place][key]

    def __len__(self) -> int:
        return len(self._all()[self._place])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __hash__(self) -> int:
        return len(self)


class LateTool(ToolSpec):
    """A tool of the index whose parameters are parsed on first use: a start with hundreds of tools needs few.

    After that it is a `ToolSpec` like any other.
    """

    @cached_property  # type: ignore[misc]  # it may be one field or the other, and reads the same
    def parameters(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = json.loads(self.__dict__[_TEXT])
        return found

    def whole(self) -> ToolSpec:
        """The same object with its parameters, which is late no more. Another thread may do so at the same time."""
        fields = self.__dict__
        fields["parameters"] = self.parameters
        fields.pop(_TEXT, None)
        object.__setattr__(self, "__class__", ToolSpec)
        return self

    def as_dict(self) -> dict[str, Any]:
        return self.whole().as_dict()

    def replace(self, **changes: Any) -> Any:
        return self.whole().replace(**changes)

    def __eq__(self, other: object) -> bool:
        return self.whole() == (other.whole() if isinstance(other, LateTool) else other)

    def __hash__(self) -> int:
        return hash(self.whole())

    def __repr__(self) -> str:
        return repr(self.whole())


def index_to_json(index: Index) -> dict[str, Any]:
    """The index as JSON, without the data of `late_to_json`; tools have the positions of their phrases instead."""
    return {
        "packs": [stated(pack) for pack in index.packs],
        "others": [stated(pack) for pack in index.others],
        "tools": [[key, _with_place(_tool(spec), place)] for place, (key, spec) in enumerate(index.tools)],
        "providers": [[key, stated(spec)] for key, spec in index.providers],
        "uis": [[key, stated(spec)] for key, spec in index.uis],
        "settings": [[key, stated(declared)] for key, declared in index.settings],
        "sources": index.sources,
        "secrets": index.secrets,
    }


def late_to_json(index: Index) -> list[Any]:
    """The data that a start needs for few tools: the phrases of all tools, and the parameters of each."""
    return [[list(spec.phrases) for _, spec in index.tools], *(spec.parameters for _, spec in index.tools)]


def index_from_json(data: Mapping[str, Any], late: bytes) -> Index:
    """The index from the results of `index_to_json` and `late_to_json`, the latter as one line for each.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: the data has another form.
    """
    phrases, *parameters = late.split(b"\n")
    parsed = cache(lambda: json.loads(phrases))
    for _, entry in data["tools"]:
        if "phrases" in entry:
            entry["phrases"] = LatePhrases(parsed, entry["phrases"])
    return Index(
        packs=tuple(pack_from_json(entry) for entry in data["packs"]),
        others=tuple(pack_from_json(entry) for entry in data["others"]),
        tools=tuple(
            (key, _late_tool(entry, text)) for (key, entry), text in zip(data["tools"], parameters, strict=True)
        ),
        providers=tuple((key, ProviderSpec(**tuples(entry))) for key, entry in data["providers"]),
        uis=tuple((key, UISpec(**entry)) for key, entry in data["uis"]),
        settings=tuple((key, DeclaredSettings(**entry)) for key, entry in data["settings"]),
        sources=tuple(data["sources"]),
        secrets=tuple(data["secrets"]),
    )


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


def _with_place(entry: dict[str, Any], place: int) -> dict[str, Any]:
    """A tool without the data that a start needs for few."""
    phrases = {"phrases": place} if "phrases" in entry else {}
    return {**{name: value for name, value in entry.items() if name != "parameters"}, **phrases}


def _tool(spec: ToolSpec) -> dict[str, Any]:
    return {**stated(spec), "access": sorted(spec.access)}


def _tool_from_json(entry: dict[str, Any]) -> ToolSpec:
    return ToolSpec(**_as_fields(entry))


def _as_fields(entry: dict[str, Any]) -> dict[str, Any]:
    """The fields of a tool: there are hundreds at every start, so the entry itself becomes what JSON could not say."""
    for name, value in entry.items():
        if type(value) is list and name in _TOOL_TUPLES:
            entry[name] = tuple(value)
    entry["access"] = frozenset(entry["access"])
    return entry


def _late_tool(entry: dict[str, Any], parameters: bytes) -> ToolSpec:
    """A tool of the index, from its entry and the line with its parameters."""
    late = LateTool(**_as_fields(entry), parameters={})
    fields = late.__dict__
    del fields["parameters"]
    fields[_TEXT] = parameters
    return late


def tuples(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a record in their types: lists in JSON are tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}
