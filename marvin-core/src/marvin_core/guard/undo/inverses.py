"""How calls are undone, and their form in the ledger."""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ...api.messages import Call
from ...api.record import Record
from .changes import FileState


class Span(Record):
    """The changes of commands: the trees of the snapshots before the first and after the last of them."""

    root: str
    before: str
    after: str = ""
    """Empty until they have finished."""
    is_shared: bool = False
    """Whether another Marvin worked in the folder at the same time. Then some of the changes may come from there."""
    others: Sequence[str] = ()
    """Files that were changed while none of the commands ran."""
    moved: Sequence[str] = ()
    """Files in whose place another one was moved, from a place that no snapshot shows."""
    left: str = ""
    """The files that an undo leaves as they are, shortened: it is unknown what the commands did to them."""
    modes: Mapping[str, int] = MappingProxyType({})
    """The earlier permissions of files that they changed or removed, and of their folders, if those were unusual. Until
    they have finished: of all files and folders."""
    modes_after: Mapping[str, int] | None = None
    """The unusual permissions of the files that they changed, when they had finished; None if they are unknown."""
    chmods: Mapping[str, tuple[int, int]] = MappingProxyType({})
    """The files of which they changed only the permissions, with those before and after."""
    since: int = 0
    """When the snapshot before was begun, in nanoseconds since the epoch; 0 if that is unknown."""
    top: str = ""
    """The folder to which the paths in the trees are relative; empty if that is unknown."""


class Inverse(Record):
    """How a call is undone: by another call, by the earlier files, or by snapshots of a folder."""

    call: Call | None = None
    files: Sequence[FileState] = ()
    span: Span | None = None


def packed(inverse: Inverse) -> dict[str, Any]:
    """The data of an inverse as JSON can hold them."""
    if inverse.call is not None:
        return {"call": inverse.call.as_dict()}
    if inverse.span is not None:
        span = inverse.span
        parts = {
            "modes": dict(span.modes),
            "chmods": dict(span.chmods),
            "others": [*span.others],
            "moved": [*span.moved],
        }
        after = None if span.modes_after is None else dict(span.modes_after)
        return {"span": span.as_dict() | parts | {"modes_after": after}}
    return {"files": [_packed_file(state) for state in inverse.files]}


def _packed_file(state: FileState) -> dict[str, Any]:
    contents = {name: _packed_bytes(content) for name, content in (("before", state.before), ("after", state.after))}
    return {**state.as_dict(), **contents}


def _packed_bytes(content: bytes | None) -> str | None:
    return None if content is None else b64encode(zlib.compress(content, 1)).decode()


def unpacked(data: Any) -> Inverse:
    """The inverse in such data. Raises ValueError if they are damaged."""
    try:
        if "call" in data:
            return Inverse(call=Call(name=str(data["call"]["name"]), arguments=dict(data["call"]["arguments"])))
        if "span" in data:
            return Inverse(span=_unpacked_span(data["span"]))
        return Inverse(files=[_unpacked_file(state) for state in data["files"]])
    except (TypeError, KeyError, AttributeError, OverflowError, zlib.error) as error:
        raise ValueError(f"it is damaged: {error}") from error


def _unpacked_file(data: Mapping[str, Any]) -> FileState:
    contents = {name: _unpacked_bytes(data[name]) for name in ("before", "after")}
    return FileState(**{**data, **contents})


def _unpacked_span(data: Mapping[str, Any]) -> Span:
    """The data of commands; what an earlier Marvin did not store is unknown."""
    names = {name: str(data[name]) for name in ("root", "before", "after")}
    others, moved = ([str(name) for name in data.get(kind, ())] for kind in ("others", "moved"))
    after = data.get("modes_after")
    return Span(
        **names,
        left=str(data.get("left", "")),
        is_shared=bool(data.get("is_shared")),
        others=others,
        moved=moved,
        modes=_unpacked_modes(data.get("modes", {})),
        modes_after=None if after is None else _unpacked_modes(after),
        chmods={str(name): (int(old), int(new)) for name, (old, new) in data.get("chmods", {}).items()},
        since=int(data.get("since", 0)),
        top=str(data.get("top", "")),
    )


def _unpacked_modes(data: Mapping[str, Any]) -> dict[str, int]:
    return {str(name): int(mode) for name, mode in data.items()}


def _unpacked_bytes(text: str | None) -> bytes | None:
    return None if text is None else zlib.decompress(b64decode(text))
