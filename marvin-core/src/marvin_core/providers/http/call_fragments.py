"""Assigns streamed fragments to tool calls, however a server numbers and names them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator
from itertools import count
from typing import Any

from ...api.messages import ProviderData
from ...api.providers import CallDelta

_MARKS = re.compile(r'\\.|["\\{}\[\]]', re.DOTALL)
_LONGEST_NAME = 1_000
"""Far more than any service accepts for the name of a tool: a longer text is not a name."""
_CALL_SIZE = 200
"""The size in characters that is counted for a call without arguments."""


class PartialCall:
    """One tool call while it is streamed."""

    def __init__(self, key: int, index: object, call_id: str, *, made_up: bool) -> None:
        self.index = index
        self.id = call_id
        self.made_up = made_up
        self.name = ""
        self.extra: ProviderData | None = None
        self._key = key
        self._fragments: list[str] = []
        self._announced = False
        self.has_arguments = False
        """Whether any of its arguments have come, so that its name is complete."""
        self._looked_at = 0
        self._object = _FirstObject()

    def add(self, fragment: str) -> None:
        """Take a fragment of the arguments."""
        self._fragments.append(fragment)
        self.has_arguments = self.has_arguments or bool(fragment)

    def add_to_name(self, name: object) -> None:
        """Add to the name: the whole name, a repetition, or a piece. Raises `TypeError` if it is not a name."""
        if not isinstance(name, str) or len(self.name) + len(name) > _LONGEST_NAME:
            raise TypeError
        if not self.name:
            self.name = name
        elif not (self.has_arguments or self._announced):
            self.name = name if name.startswith(self.name) else self.name + name

    def is_whole(self) -> bool:
        """Whether its arguments are complete, so that further fragments must belong to another call."""
        self._look()
        return self._object.is_whole

    def _look(self) -> None:
        """Check the new fragments, each once, so that the time stays linear."""
        for fragment in self._fragments[self._looked_at :]:
            self._object.feed(fragment)
        self._looked_at = len(self._fragments)

    def piece(self, *, last: bool = False) -> CallDelta | None:
        """The part since the last piece; None while there is none, or the name may not be complete yet."""
        if not last and not (self.name and (self.has_arguments or self._announced)):
            return None
        if self._announced and not self._fragments and self.extra is None:
            return None
        self._look()
        text = "".join(self._fragments)
        self._fragments.clear()
        self._looked_at = 0
        first, self._announced = not self._announced, True
        extra, self.extra = self.extra, None
        return CallDelta(
            key=self._key,
            id=self.id if first else "",
            name=self.name if first else "",
            arguments=text,
            provider_data=extra,
        )


class _FirstObject:
    """Finds the end of the object at the beginning of a text that arrives in pieces; `is_whole` if nothing follows
    it."""

    def __init__(self) -> None:
        self.is_whole = False
        self._depth = 0
        self._in_string = self._escaped = self._is_over = False

    def feed(self, fragment: str) -> None:
        """Process the next part of the text."""
        if self._is_over or (self.is_whole and fragment.strip()):
            self._is_over, self.is_whole = True, False
            return
        if self._escaped and fragment:
            self._escaped, fragment = False, fragment[1:]
        for found in _MARKS.finditer(fragment):
            mark = found[0]
            if mark == "\\":
                self._escaped = True  # what follows it is in the next fragment
            elif mark == '"':
                self._in_string = not self._in_string
            elif not self._in_string and len(mark) == 1:
                self._depth += 1 if mark in "{[" else -1
                if not self._depth:
                    rest = fragment[found.end() :].strip()
                    self.is_whole, self._is_over = mark == "}" and not rest, bool(rest)
                    return


class CallAssembler:
    """The calls of one answer. `taken` returns the ids that the conversation already uses."""

    def __init__(self, provider: str, taken: Callable[[], Collection[str]]) -> None:
        self._provider = provider
        self._taken = taken
        self._by_index: dict[object, PartialCall] = {}
        self._by_id: dict[str, PartialCall] = {}
        self._last: PartialCall | None = None
        self._free: Iterator[str] | None = None
        self.size = 0
        """The size of all arguments and of the data sent back with the calls in characters, with some for each call."""
        self.all: list[PartialCall] = []

    def take(self, item: dict[str, Any]) -> PartialCall:
        """The call that an entry of `tool_calls` belongs to, after its fragment was added.

        Raises TypeError if its name is not one.
        """
        function = item.get("function") or {}
        name = function.get("name") or ""
        fragment = function.get("arguments")
        if not isinstance(fragment, str):
            # Some servers send the whole arguments as an object.
            fragment = "" if fragment is None else json.dumps(fragment, ensure_ascii=False)
        call = self._find(item, name, fragment)
        if name and name != call.name:
            call.add_to_name(name)
            self.size += len(name)
        call.add(fragment)
        self.size += len(fragment)
        if item.get("extra_content"):
            # Gemini's thought signature, which must be sent back with the call.
            call.extra = ProviderData(provider=self._provider, data={"extra_content": item["extra_content"]})
            self.size += len(str(item["extra_content"]))
        self._last = call
        return call

    def _find(self, item: dict[str, Any], name: str, fragment: str) -> PartialCall:
        index, call_id = item.get("index"), str(item.get("id") or "")
        known = self._by_id.get(call_id)
        if known is not None and index in (None, known.index):
            return known
        call = self._last if index is None else self._by_index.get(index)
        if call is None or _begins_another(call, item, name, fragment):
            call = self._new(index, call_id)
        return call

    def _new(self, index: object, call_id: str) -> PartialCall:
        made_up = not call_id or call_id in self._by_id
        call = PartialCall(len(self.all), index, self._free_id() if made_up else call_id, made_up=made_up)
        self.all.append(call)
        self.size += _CALL_SIZE + len(call_id)
        self._by_index[index] = self._by_id[call.id] = call
        return call

    def _free_id(self) -> str:
        if self._free is None:
            taken = frozenset(self._taken())
            self._free = (name for number in count() if (name := f"call_{number}") not in taken)
        return next(name for name in self._free if name not in self._by_id)


def _begins_another(call: PartialCall, item: dict[str, Any], name: str, fragment: str) -> bool:
    if item.get("id") and not call.made_up:
        return True
    if name and call.name and name != call.name:
        # Else a piece of its name, which a few servers cut.
        return call.has_arguments or bool(fragment or item.get("id") or item.get("type")) or item.get("index") is None
    return bool(name) and fragment.lstrip().startswith("{") and call.is_whole()
