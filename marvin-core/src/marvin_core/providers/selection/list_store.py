"""The model lists of services, in the cache folder: one file for each address.

Beside the lists it stores which default models are gone and their replacements, and the end dates that the user was
notified of.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...api.providers import ModelFacts, ServedModel
from ...api.record import Record
from ...util.state_files import read_trusted_json, write_cache

FRESH = 24 * 3600
"""The number of seconds after which a list is requested again."""
_WEEK = 7 * FRESH
_FOREVER = 0.0
_SHOWN = 80
"""The number of characters of an address at the beginning of its file's name."""


class ServiceList(Record):
    """The models that a service listed at a time, in seconds since 1970."""

    since: float
    models: tuple[ServedModel, ...]

    @property
    def is_fresh(self) -> bool:
        """Whether the list need not be requested again."""
        return 0 <= time.time() - self.since < FRESH


class ListStore:
    """The lists and notes in a folder. Unreadable or unwritable ones are requested, or shown, again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, ServiceList | None] = {}

    def read(self, address: str) -> ServiceList | None:
        """The list of the service at this address; None if none is stored."""
        if address not in self._read:
            self._read[address] = _service_list(read_trusted_json(self._path(address)), address)
        return self._read[address]

    def keep(self, address: str, models: Sequence[ServedModel], *, on_disk: bool = True) -> None:
        """Store the list of a service; an empty one is ignored. If not `on_disk`, it is stored for this run only."""
        if not models:
            return
        self._read[address] = made = ServiceList(since=time.time(), models=tuple(models))
        if on_disk:
            entries = [{"name": model.name, **_said(model.facts)} for model in models]
            write_cache(self._path(address), {"address": address, "since": made.since, "models": entries})

    def facts(self, address: str, model: str) -> ModelFacts:
        """The facts about a model in the list of a service."""
        kept = self.read(address)
        found = (entry.facts for entry in kept.models if entry.name == model) if kept is not None else iter(())
        return next(found, ModelFacts())

    def successor(self, address: str, model: str) -> str:
        """The replacement of a default model that is gone at this address; empty if there is none."""
        match self._notes("successors").get(f"{model} {address}"):
            case [str(successor), float(until)] if until == _FOREVER or time.time() < until:
                return successor
        return ""

    def remember_successor(self, address: str, model: str, successor: str, *, listed: bool) -> None:
        """Store the replacement of a model that is gone.

        Args:
            listed: the service still lists the model, so another account may have it: it is tried again after a day.
        """
        self._note("successors", f"{model} {address}", [successor, time.time() + FRESH if listed else _FOREVER])

    def forget_gone(self, address: str, model: str) -> None:
        """Count a model as available again since the service lists it, unless the service refused it although it was
        listed.
        """
        note = self._notes("successors").get(f"{model} {address}")
        if isinstance(note, list) and note[1:] == [_FOREVER]:
            self._note("successors", f"{model} {address}", None)

    def tell_once(self, what: str) -> bool:
        """Whether this was not shown yet; from now on it counts as shown."""
        if what in self._notes("told"):
            return False
        self._note("told", what, True)
        return True

    def window_in_table(self, key: str) -> int | None:
        """The context window looked up in the price table within the last week; None if there was no look-up."""
        match self._notes("windows").get(key):
            case [int(window), float(since)] if window > 0 and 0 <= time.time() - since < _WEEK:
                return window
        return None

    def keep_window_of_table(self, key: str, window: int) -> None:
        """Store a context window from the price table."""
        self._note("windows", key, [window, time.time()])

    def _path(self, address: str) -> Path:
        from urllib.parse import quote
        from zlib import crc32

        name = quote(address, safe="", errors="replace")
        return self._folder / f"{name[:_SHOWN]}-{crc32(name.encode()):08x}.json"

    def _notes(self, kind: str) -> dict[str, Any]:
        notes = read_trusted_json(self._folder / f"{kind}.json")
        return notes if isinstance(notes, dict) else {}

    def _note(self, kind: str, key: str, value: Any) -> None:
        notes = {name: note for name, note in self._notes(kind).items() if name != key}
        if value is not None:
            notes[key] = value
        write_cache(self._folder / f"{kind}.json", notes)


def _said(facts: ModelFacts) -> dict[str, Any]:
    return {name: value for name, value in facts.as_dict().items() if value not in (None, "")}


def _service_list(data: Any, address: str) -> ServiceList | None:
    if not isinstance(data, dict) or data.get("address") != address or not isinstance(data.get("since"), float):
        return None
    entries = data.get("models")
    models = [_served(entry) for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    found = tuple(model for model in models if model is not None)
    return ServiceList(since=data["since"], models=found) if found else None


def _served(entry: Mapping[str, Any]) -> ServedModel | None:
    name = entry.get("name")
    if not isinstance(name, str) or not name:
        return None
    facts: dict[str, Any] = {
        key: value for key, value in entry.items() if key in _KINDS and isinstance(value, _KINDS[key])
    }
    return ServedModel(name=name, facts=ModelFacts(**facts))


_KINDS: Mapping[str, type] = {
    "window": int,
    "longest": int,
    "input": float,
    "output": float,
    "cache_write": float,
    "request": float,
    "thinks": bool,
    "images": bool,
    "ends": str,
}
