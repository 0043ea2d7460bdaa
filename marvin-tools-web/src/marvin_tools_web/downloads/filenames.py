"""Names for downloaded files: out of what a server says, made safe."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    import httpx

_LONGEST = 200
"""Bytes; file systems take 255, and a number and an ending may follow."""
_LOOKED_AT = 4_000
"""Characters of a header or a name: more than a file system takes, and nothing that takes long to read."""
_MOST = 10_000
_DEFAULT = "download"
_UNSAFE = re.compile(r'[\x00-\x1f\x7f-\x9f<>:"|?*\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]')
"""Control characters, what turns the direction of writing (an .exe can look like a .pdf), what other systems refuse."""
_EXTENDED = re.compile(r"filename\*\s*=\s*\"?([\w!#$&+^`{}~-]*)'[^']*'([^;\"\s]+)", re.IGNORECASE)
_QUOTED = re.compile(r'filename\s*=\s*"((?:[^"\\]|\\.)*)"', re.IGNORECASE)
_BARE = re.compile(r"filename\s*=\s*([^;\"\s][^;]*)", re.IGNORECASE)


def safe(name: str) -> str:
    """The name without folders, without what is invisible or not allowed, never hidden and not too long."""
    last = re.split(r"[/\\]", name)[-1][-_LOOKED_AT:]
    name = _UNSAFE.sub("", last).lstrip(". ").rstrip(". ")
    stem, ending = _split(name)
    room = _LONGEST - len(ending.encode())
    return stem.encode()[:room].decode("utf-8", "ignore") + ending


def of_response(response: httpx.Response) -> str:
    """What a server calls the file, else the end of its address, with an ending that fits the type."""
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
            pass  # no encoding, or not in it; the plain form beside it may do
    quoted = _QUOTED.search(header)
    if quoted:
        # Browsers decode this form, too, against the standard.
        return unquote(re.sub(r"\\(.)", r"\1", quoted[1]))
    bare = _BARE.search(header)
    return unquote(bare[1].strip()) if bare else ""


def _split(name: str) -> tuple[str, str]:
    """Stem and ending; `.tar.gz` is one ending."""
    found = re.search(r"(?:\.tar)?\.[A-Za-z0-9]{1,10}$", name)
    return (name[: found.start()], found[0]) if found and found.start() else (name, "")


def _ending(content_type: str) -> str:
    import mimetypes

    kind = content_type.partition(";")[0].strip().lower()
    return "" if kind == "application/octet-stream" else mimetypes.guess_extension(kind) or ""
