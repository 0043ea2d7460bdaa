"""Detects the format of a patch, and removes Markdown fences and here-documents around it."""

from __future__ import annotations

import re

from . import block_format, codex_format, unified_format
from .patch import FilePatch, PatchError

_HERE_DOCUMENT = re.compile(
    r"^[^\n<]{0,200}<<-?\s*(['\"]?)(\w{1,40})\1[^\n]*\n(.*?)^\s*\2\s*$", re.DOTALL | re.MULTILINE
)
_FENCE = re.compile(r"^(`{3,}|~{3,})[^\n]*\n(.*)^\1\s*$", re.DOTALL | re.MULTILINE)
_FORMS = (
    "a Codex patch (*** Begin Patch), SEARCH/REPLACE blocks (<<<<<<< SEARCH, =======, >>>>>>> REPLACE) "
    "or a unified diff (--- a/PATH, +++ b/PATH, @@)"
)


_MARKS = re.compile(
    rf"^(?:(?P<codex>{codex_format.MARK})|(?P<blocks>(?:@@.*\n)*{block_format.MARK})|(?P<unified>{unified_format.MARK}))",
    re.MULTILINE,
)
"""Lines with `@@` above a block have no meaning: lines of a diff begin with a sign."""


def _kind(text: str) -> str | None:
    """The format whose marker comes first: later markers may be part of the changed text."""
    found = _MARKS.search(text)
    return None if found is None else found.lastgroup


def is_patch(text: str) -> bool:
    """Whether a text has the markers of a patch format."""
    return "\n" in text and _kind(text) is not None


def read_patch(text: str, path: str = "") -> list[FilePatch]:
    """The patches of all files in a text, in order.

    Args:
        path: the file, if the text names none.

    Raises:
        PatchError: the text cannot be parsed; the message says what to send.
    """
    text = _unwrapped(text)
    if not text.strip():
        raise PatchError(f"The patch is empty. Send {_FORMS}.")
    kind = _kind(text)
    if kind == "codex":
        inner = codex_format.envelope(text)
        if inner is not text and _kind(inner) in ("blocks", "unified"):
            return read_patch(inner, path)
        return codex_format.read_codex(text)
    if kind == "blocks":
        return block_format.read_blocks(text, path)
    if kind == "unified":
        return unified_format.read_unified(text, path)
    raise PatchError(f"The format of the patch is unknown. Send {_FORMS}, or path, old_str and new_str.")


def paths_in(text: str, path: str = "") -> list[str]:
    """Every path in a patch, including targets of moves; nothing if it cannot be parsed."""
    try:
        patches = read_patch(text, path)
    except PatchError:
        return []
    named = [name for patch in patches for name in (patch.path, patch.move_to) if name]
    return list(dict.fromkeys(named))


def _unwrapped(text: str) -> str:
    text = text.removeprefix("\ufeff")
    if text.count("\r\n") == text.count("\n"):  # else they are those of the lines of a file
        text = text.replace("\r\n", "\n")
    bare = text.strip()
    first = bare.partition("\n")[0]
    here = _HERE_DOCUMENT.match(bare) if "<<" in first and not block_format.has_blocks(first) else None
    if here:
        return here[3]
    if _kind(bare) == "blocks":
        return text  # what stands around them may name the file
    fenced = _FENCE.match(bare) if first.startswith(("```", "~~~")) else None
    return fenced[2] if fenced and bare.endswith(fenced[1]) else text
