"""The file formats of the older Marvin, and their conversion to today's.

The older program wrote JSON: an array of entries, an object that contains the array, or one with an entry for each
name. An entry in today's format stays unchanged, so that importing twice changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeAlias

from marvin_core import is_topic, one_line

from ..bookmarks.store import split_tags
from ..names import folded

Entry: TypeAlias = dict[str, Any]

_SHOWN = 120
_MILLISECONDS = 1e11
"""Larger times are in milliseconds: in seconds they would be after the year 5138."""


_LATEST = 1e15
"""Larger times are invalid, even in milliseconds."""


class FormError(ValueError):
    """A file does not have the expected format; the text says why."""


class Merged(NamedTuple):
    """The result of merging a file: its new content, None if it stays unchanged, and counts for the report.

    `taken` counts new entries, `there` existing ones. `problems` are entries that cannot be imported, each with
    the reason.
    """

    content: bytes | None
    taken: int = 0
    there: int = 0
    problems: Sequence[str] = ()


class EntryForm(NamedTuple):
    """The entries of a file: the key of the array in an object around them, the property for a name, and the
    identity."""

    around: Sequence[str]
    named_by: str
    read: Callable[[Entry, float], Entry]
    key: Callable[[Entry], str]


def parsed(content: bytes) -> Any:
    """The value of a JSON text. Raises `FormError`."""
    try:
        return json.loads(content.decode("utf-8-sig"), parse_constant=lambda name: None)
    except RecursionError:
        raise FormError("it is nested too deeply") from None
    except ValueError as error:
        raise FormError(f"it is not valid JSON: {error}") from None


def written(data: Any) -> bytes:
    """Data in the format that the tools write."""
    try:
        return json.dumps(data, ensure_ascii=False, indent=1).encode()
    except UnicodeEncodeError:  # a lone surrogate has no bytes in UTF-8, only an escape
        return json.dumps(data, indent=1).encode()


def merged_entries(form: EntryForm, here: bytes | None, older: bytes, when: float) -> Merged:
    """The entries of today's file, followed by those of the older file whose keys it does not have.

    Args:
        here: today's file; the same bytes as `older` if it is that file itself.
        when: the modification time of the older file, in seconds since the epoch.

    Raises:
        FormError: one of the two files has another format.
    """
    own = _here(here) if here is not None and here.strip() else []
    problems: list[str] = []
    kept = _by_key(form, own, when, problems)
    if here == older:
        before = _entries(form, own)
        changed = sum(entry not in before for entry in kept.values())
        return Merged(_unless_same(list(kept.values()), own), changed, len(kept) - changed, problems)
    found = _by_key(form, parsed(older), when, problems)
    after = list({**kept, **{key: entry for key, entry in found.items() if key not in kept}}.values())
    return Merged(_unless_same(after, own), len(found.keys() - kept.keys()), len(found.keys() & kept.keys()), problems)


def merged_tokens(here: bytes | None, older: bytes) -> Merged:
    """The tokens of services; those of the older file where a service has none yet. Raises `FormError`."""
    own = _here(here) if here is not None and here.strip() else {}
    kept, found = _services(own), _services(parsed(older))
    content = _unless_same({**found, **kept}, own)
    if here == older:
        return Merged(content, len(kept) if content is not None else 0, 0 if content is not None else len(kept))
    return Merged(content, len(found.keys() - kept.keys()), len(found.keys() & kept.keys()))


def _here(content: bytes) -> Any:
    try:
        return parsed(content)
    except FormError as error:
        raise FormError(f"the current file is damaged: {error}") from None


def _unless_same(after: Any, before: Any) -> bytes | None:
    return None if after == before else written(after)


def _by_key(form: EntryForm, data: Any, when: float, problems: list[str]) -> dict[str, Entry]:
    """The entries of a file in today's format, without duplicates, by key."""
    found: dict[str, Entry] = {}
    for entry in _read(form, data, when, problems):
        found.setdefault(form.key(entry), entry)
    return found


def _read(form: EntryForm, data: Any, when: float, problems: list[str]) -> Iterator[Entry]:
    for given in _entries(form, data):
        try:
            yield form.read(given, when)
        except FormError as error:
            problems.append(f"{_shown(given)}: {error}")


def _entries(form: EntryForm, data: Any) -> list[Entry]:
    """The entries of a file, with or without an object around them."""
    if isinstance(data, Mapping):
        inner = next((data[name] for name in form.around if isinstance(data.get(name), (list, Mapping))), None)
        if inner is not None:
            return _entries(form._replace(around=()), inner)
        return [_named(form, name, value) for name, value in data.items()]
    if not isinstance(data, list):
        raise FormError("it contains neither an array nor an object")
    return [entry if isinstance(entry, dict) else {form.named_by: entry} for entry in data]


def _named(form: EntryForm, name: str, value: Any) -> Entry:
    """An entry stored under a name: that is its name unless it has one itself."""
    if isinstance(value, dict):
        return value if isinstance(value.get(form.named_by), str) else {form.named_by: name, **value}
    return {form.named_by: name, **({"title": value} if isinstance(value, str) else {})}


# --- bookmarks -------------------------------------------------------------------------------------------------------


def _bookmark(entry: Entry, when: float) -> Entry:
    url = _text(entry, "url", "link", "href", "address")
    if "://" not in url:
        raise FormError("it has no address")
    tags = entry.get("tags", entry.get("tag"))
    if isinstance(tags, list):
        tags = ",".join(str(tag) for tag in tags if isinstance(tag, (str, int)))
    saved = _time(entry, *_TIMES)
    read = {
        "url": url,
        "saved": when if saved is None else saved,
        "title": _text(entry, "title", "name"),
        "tags": split_tags(tags) if isinstance(tags, str) else [],
        "notes": _text(entry, "notes", "note", "description"),
    }
    return {**entry, **read}


_TIMES = ("saved", "saved_at", "savedAt", "created", "created_at", "createdAt", "added", "date", "time")
BOOKMARKS = EntryForm(("bookmarks", "items"), "url", _bookmark, lambda entry: str(entry["url"]))

# --- places ----------------------------------------------------------------------------------------------------------

_PLACE_TEXTS = {
    "name": ("name",),
    "address": ("address", "formatted_address"),
    "phone": ("phone", "phone_number"),
    "website": ("website", "url"),
    "notes": ("notes", "note"),
}


def _place(entry: Entry, when: float) -> Entry:
    label = " ".join(_text(entry, "label", "name", "title").split())
    if not label:
        raise FormError("it has no label")
    texts = {name: _text(entry, *names) for name, names in _PLACE_TEXTS.items()}
    read: Entry = {"label": label, **{name: text for name, text in texts.items() if text}}
    spot = entry["location"] if isinstance(entry.get("location"), dict) else entry
    lat, lng = _degrees(spot, 90, "lat", "latitude"), _degrees(spot, 180, "lng", "lon", "longitude")
    if lat is not None and lng is not None:
        read |= {"lat": lat, "lng": lng}
    return {**{name: value for name, value in entry.items() if name not in ("lat", "lng")}, **read}


PLACES = EntryForm(
    ("saved_places", "savedPlaces", "places"), "label", _place, lambda entry: folded(str(entry["label"]))
)

# --- subscriptions ---------------------------------------------------------------------------------------------------


def _subscription(entry: Entry, when: float) -> Entry:
    topic = _text(entry, "topic", "name").rstrip("/").rpartition("/")[2]
    if not is_topic(topic):
        raise FormError("it has no topic")
    # The older program has already shown what came before it last wrote the file.
    since = _time(entry, "since")
    read = {"topic": topic, "label": one_line(_text(entry, "label")), "since": when if since is None else since}
    return {**entry, **read}


SUBSCRIPTIONS = EntryForm(
    ("subscriptions", "ntfySubscriptions", "topics"), "topic", _subscription, lambda entry: str(entry["topic"])
)

# --- tokens ----------------------------------------------------------------------------------------------------------

_TOKEN_NAMES = {"accessToken": "access_token", "refreshToken": "refresh_token", "expiresAt": "expires_at"}
_ONLY_SERVICE = "spotify"
"""The service of a token file without service names."""


def _services(data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise FormError("it contains no object")
    if isinstance(data.get("access_token", data.get("accessToken")), str):
        data = {_ONLY_SERVICE: data}
    return {name: _token(value) if isinstance(value, dict) else value for name, value in data.items()}


def _token(given: Mapping[str, Any]) -> dict[str, Any]:
    token = {_TOKEN_NAMES.get(name, name): value for name, value in given.items()}
    if "access_token" in token:
        until = _time(token, "expires_at", "expiry", "expiry_date")
        # A token without an expiry counts as expired, and is renewed on first use.
        token["expires_at"] = 0 if until is None else until
    return token


# --- values ----------------------------------------------------------------------------------------------------------


def _text(entry: Mapping[str, Any], *names: str) -> str:
    """The first value that is a non-empty text."""
    found = (entry.get(name) for name in names)
    return next((text.strip() for text in found if isinstance(text, str) and text.strip()), "")


def _degrees(entry: Any, most: float, *names: str) -> float | None:
    for name in names:
        try:
            value = float(entry[name])
        except (KeyError, TypeError, ValueError, OverflowError):
            continue
        if abs(value) <= most:
            return value
    return None


def _time(entry: Mapping[str, Any], *names: str) -> float | None:
    """The first value that is a time, in seconds since the epoch."""
    return next((time for name in names if (time := seconds(entry.get(name))) is not None), None)


def seconds(value: Any) -> float | None:
    """A time in seconds since the epoch, from a number of seconds or milliseconds, or a text in ISO 8601."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if not 0 <= value < _LATEST:
            return None
        return value / 1_000 if value > _MILLISECONDS else value
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value.strip())
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _shown(entry: Any) -> str:
    return one_line(json.dumps(entry, ensure_ascii=False, default=str), _SHOWN)
