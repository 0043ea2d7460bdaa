"""Safe names for downloaded files, from what a server says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    import httpx

_LONGEST = 200
"""Bytes of a name; file systems allow 255, and a number and an extension may follow."""
_LOOKED_AT = 4_000
"""Characters of a header or a name that are parsed: more than a file system allows, and few enough to parse fast."""
_MOST = 10_000
_DEFAULT = "download"
_UNSAFE = re.compile(r'[\x00-\x1f\x7f-\x9f<>:"|?*\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]')
"""Control characters, bidirectional marks (an .exe can look like a .pdf), and what other systems refuse in names."""
_EXTENDED = re.compile(r"filename\*\s*=\s*\"?([\w!#$&+^`{}~-]*)'[^']*'([^;\"\s]+)", re.IGNORECASE)
_QUOTED = re.compile(r'filename\s*=\s*"((?:[^"\\]|\\.)*)"', re.IGNORECASE)
_BARE = re.compile(r"filename\s*=\s*([^;\"\s][^;]*)", re.IGNORECASE)


def safe(name: str) -> str:
    """The name without folders and without invisible or forbidden characters, not hidden and not too long."""
    last = re.split(r"[/\\]", name)[-1][-_LOOKED_AT:]
    name = _UNSAFE.sub("", last).lstrip(". ").rstrip(". ")
    stem, ending = _split(name)
    room = _LONGEST - len(ending.encode())
    return stem.encode()[:room].decode("utf-8", "ignore") + ending


def of_response(response: httpx.Response) -> str:
    """The name that a server gives the file, or the end of its URL, with an extension that fits the type."""
    given = safe(_disposition(response.headers.get("content-disposition", "")[:_LOOKED_AT]))
    if given:
        return given
    name = safe(unquote(response.url.path)) or _DEFAULT
    return name if _split(name)[1] else name + _ending(response.headers.get("content-type", ""))


def numbered(name: str) -> Iterator[str]:
    """The name, then `name (1).ext` and so on."""
    stem, ending = _split(name)
    yield name
    for number in range(1, _MOST):
        yield f"{stem} ({number}){ending}"


def _disposition(header: str) -> str:
    extended = _EXTENDED.search(header)
    if extended:
        try:
            return unquote(extended[2], encoding=extended[1] or "utf-8", errors="strict")
        except (LookupError, ValueError):
            pass  # an unknown encoding, or bytes not in it; there may be a plain form as well
    quoted = _QUOTED.search(header)
    if quoted:
        # Browsers decode this form as well, against the standard.
        return unquote(re.sub(r"\\(.)", r"\1", quoted[1]))
    bare = _BARE.search(header)
    return unquote(bare[1].strip()) if bare else ""


def _split(name: str) -> tuple[str, str]:
    """Stem and extension; `.tar.gz` is one extension."""
    found = re.search(r"(?:\.tar)?\.[A-Za-z0-9]{1,10}$", name)
    return (name[: found.start()], found[0]) if found and found.start() else (name, "")


def _ending(content_type: str) -> str:
    import mimetypes

    kind = content_type.partition(";")[0].strip().lower()
    return "" if kind == "application/octet-stream" else mimetypes.guess_extension(kind) or ""
