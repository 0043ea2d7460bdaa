"""Which tool call a streamed fragment belongs to, however a server numbers and names them."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Any

from ...api.messages import ProviderData
from ...api.providers import CallDelta


class PartialCall:
    """One tool call while it streams in."""

    def __init__(self, key: int, index: object, call_id: str, *, made_up: bool) -> None:
        self.index = index
        self.id = call_id
        self.made_up = made_up
        self.name = ""
        self.extra: ProviderData | None = None
        self._key = key
        self._fragments: list[str] = []
        self._sent = 0
        self._announced = False

    def add(self, fragment: str) -> None:
        """Take a fragment of the arguments."""
        self._fragments.append(fragment)

    def is_whole(self) -> bool:
        """Whether its arguments are complete, so that more of them can only belong to another call."""
        if not self._fragments or not self._fragments[-1].rstrip().endswith("}"):
            return False
        try:
            return isinstance(json.loads("".join(self._fragments)), dict)
        except ValueError:
            return False

    def piece(self, *, last: bool = False) -> CallDelta | None:
        """What came since the last piece; None while there is nothing, or the name is not known yet."""
        text = "".join(self._fragments[self._sent :])
        if not (self.name or last) or (self._announced and not text and self.extra is None):
            return None
        first, self._announced = not self._announced, True
        self._sent = len(self._fragments)
        extra, self.extra = self.extra, None
        return CallDelta(
            key=self._key,
            id=self.id if first else "",
            name=self.name if first else "",
            arguments=text,
            provider_data=extra,
        )


class CallAssembler:
    """The calls of one answer. `taken` gives the ids that the conversation uses already."""

    def __init__(self, provider: str, taken: Callable[[], Collection[str]]) -> None:
        self._provider = provider
        self._taken = taken
        self._by_index: dict[object, PartialCall] = {}
        self._by_id: dict[str, PartialCall] = {}
        self._last: PartialCall | None = None
        self.all: list[PartialCall] = []

    def take(self, item: dict[str, Any]) -> PartialCall:
        """The call that an entry of `tool_calls` belongs to, with its fragment added."""
        function = item.get("function") or {}
        name = function.get("name") or ""
        fragment = function.get("arguments")
        if not isinstance(fragment, str):
            # Some servers send the whole arguments as an object.
            fragment = "" if fragment is None else json.dumps(fragment, ensure_ascii=False)
        call = self._find(item.get("index"), str(item.get("id") or ""), name, fragment)
        call.name = call.name or name
        call.add(fragment)
        if item.get("extra_content"):
            # Gemini's thought signature, which it wants back with the call.
            call.extra = ProviderData(provider=self._provider, data={"extra_content": item["extra_content"]})
        self._last = call
        return call

    def _find(self, index: object, call_id: str, name: str, fragment: str) -> PartialCall:
        known = self._by_id.get(call_id)
        if known is not None and index in (None, known.index):
            return known
        call = self._last if index is None else self._by_index.get(index)
        if call is None or _begins_another(call, call_id, name, fragment):
            call = self._new(index, call_id)
        return call

    def _new(self, index: object, call_id: str) -> PartialCall:
        made_up = not call_id or call_id in self._by_id
        call = PartialCall(len(self.all), index, self._free_id() if made_up else call_id, made_up=made_up)
        self.all.append(call)
        self._by_index[index] = self._by_id[call.id] = call
        return call

    def _free_id(self) -> str:
        taken = {*self._taken(), *self._by_id}
        number = 0
        while f"call_{number}" in taken:
            number += 1
        return f"call_{number}"


def _begins_another(call: PartialCall, call_id: str, name: str, fragment: str) -> bool:
    if call_id and not call.made_up:
        return True
    if name and call.name and name != call.name:
        return True
    return bool(name) and fragment.lstrip().startswith("{") and call.is_whole()
