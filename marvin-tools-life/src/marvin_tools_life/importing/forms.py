"""The forms of the older Marvin's files: what they hold, as the tools keep it today.

The older program wrote JSON: an array of entries, or an object that holds the array, or one entry for each name. An
entry that is of today's form already stays as it is, so that what was taken over once is not changed by a second time.
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
"""A time above it is in milliseconds: in seconds it would be in the year 5138."""


_LATEST = 1e15
"""A time above it is none, be it in milliseconds."""


class FormError(ValueError):
    """What is in a file is not what the older Marvin kept there; the text says why."""


class Merged(NamedTuple):
    """What becomes of a file: its new content, None where it stays as it is, and what is told of it.

    `taken` counts entries that are new here, `there` those that are here already. `problems` are those that cannot be
    taken over, each with why.
    """

    content: bytes | None
    taken: int = 0
    there: int = 0
    problems: Sequence[str] = ()


class EntryForm(NamedTuple):
    """What the entries of a file are: what an object around them calls them, what one is named by, and its key."""

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
    """Data as the tools write them."""
    try:
        return json.dumps(data, ensure_ascii=False, indent=1).encode()
    except UnicodeEncodeError:  # half of a surrogate pair has no bytes of its own, only an escape
        return json.dumps(data, indent=1).encode()


def merged_entries(form: EntryForm, here: bytes | None, older: bytes, when: float) -> Merged:
    """The entries that are here, and behind them those of the older file whose keys are not here yet.

    Args:
        here: the file that is added to; the same bytes as `older` where it is that file itself.
        when: when the older file was written, in seconds since the epoch.

    Raises:
        FormError: one of the two files holds something else.
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
    """The tokens of services, those of the older file where a service has none here. Raises `FormError`."""
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
    """The entries of a file as they are kept today, each once, by their keys."""
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
    """The entries in a file, whatever is around them."""
    if isinstance(data, Mapping):
        inner = next((data[name] for name in form.around if isinstance(data.get(name), (list, Mapping))), None)
        if inner is not None:
            return _entries(form._replace(around=()), inner)
        return [_named(form, name, value) for name, value in data.items()]
    if not isinstance(data, list):
        raise FormError("it contains neither an array nor an object")
    return [entry if isinstance(entry, dict) else {form.named_by: entry} for entry in data]


def _named(form: EntryForm, name: str, value: Any) -> Entry:
    """An entry that stands below a name: that is what it is known by, unless it says so itself."""
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
    # What came before the older program wrote the file last, it has told.
    since = _time(entry, "since")
    read = {"topic": topic, "label": one_line(_text(entry, "label")), "since": when if since is None else since}
    return {**entry, **read}


SUBSCRIPTIONS = EntryForm(
    ("subscriptions", "ntfySubscriptions", "topics"), "topic", _subscription, lambda entry: str(entry["topic"])
)

# --- tokens ----------------------------------------------------------------------------------------------------------

_TOKEN_NAMES = {"accessToken": "access_token", "refreshToken": "refresh_token", "expiresAt": "expires_at"}
_ONLY_SERVICE = "spotify"
"""Whose tokens stand in a file without the name of a service."""


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
        # Without a time it counts as over, and is renewed when it is first used.
        token["expires_at"] = 0 if until is None else until
    return token


# --- values ----------------------------------------------------------------------------------------------------------


def _text(entry: Mapping[str, Any], *names: str) -> str:
    """The first of these values that is a text and not empty."""
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
    """The first of these values that is a time, in seconds since the epoch."""
    return next((time for name in names if (time := seconds(entry.get(name))) is not None), None)


def seconds(value: Any) -> float | None:
    """A time in seconds since the epoch: a number of seconds or milliseconds, or a text in the form of ISO 8601."""
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
