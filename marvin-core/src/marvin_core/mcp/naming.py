"""The names of servers' tools: `SERVER__TOOL`, in characters that every model service accepts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_LONGEST = 64
_HASH = 8
_OTHER = re.compile(r"[^A-Za-z0-9_-]+")


def tool_name(server: str, tool: str) -> str:
    """The name of a server's tool. A name that had to be changed ends with a hash of the original."""
    plain = f"{server}__{tool}"
    name = _OTHER.sub("_", plain)
    if name == plain and len(name) <= _LONGEST:
        return name
    from hashlib import sha256

    mark = sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
    return f"{name[: _LONGEST - _HASH - 1]}_{mark}"


def tool_names(server: str, tools: Iterable[str]) -> Mapping[str, str]:
    """The tools of a server by their names in Marvin. Of two tools with the same name, the first is kept."""
    named: dict[str, str] = {}
    for tool in tools:
        named.setdefault(tool_name(server, tool), tool)
    return named
