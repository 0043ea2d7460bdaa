"""Reads texts that were written for models: limited in size, in any encoding, without invisible characters."""

from __future__ import annotations

import os
import re
from codecs import BOM_UTF8, getincrementaldecoder
from functools import cache

from ...api.errors import ToolError
from ...api.record import Record
from ...guard.files.key_files import is_key_file
from ...guard.files.sandbox import SandboxPaths
from ...util.terminal_text import disarm
from ...util.text import counted, storable

MOST_BYTES = 1_000_000
"""Bytes of one file that are read."""
_PDF = b"%PDF-"
"""The beginnings of documents that may also be text, but are not readable as such."""


class ReadText(Record):
    """A text for models. `size` is the size of its file in bytes, `notes` are remarks for a person."""

    text: str
    size: int
    notes: tuple[str, ...] = ()


def read_text(paths: SandboxPaths, path: str) -> ReadText:
    """The text of a file below the root of `paths`; links do not lead out of it.

    Raises:
        ToolError: there is no text that a model may read; the error says why, in one line.
    """
    try:
        with paths.open(path) as stream:
            status = os.fstat(stream.fileno())
            real = os.path.realpath(paths.root / path)
            if not os.path.samestat(os.stat(real), status):
                raise ToolError("it was replaced while it was read")
            if is_key_file(path) or is_key_file(os.path.relpath(real, paths.root)):
                raise ToolError("it may hold keys or passwords")
            data = stream.read(MOST_BYTES)
    except OSError as error:
        raise ToolError(f"it cannot be read: {error.strerror}") from error
    text = _decoded(data, whole=status.st_size <= len(data))
    notes = []
    if text is None:
        from ...kit.files.encodings import binary_kind, codec_of  # nearly all files are UTF-8

        if kind := binary_kind(data):
            raise ToolError(f"it is {kind}, not text")
        codec = codec_of(data)
        if codec is None:
            notes.append("its encoding is unknown: save it as UTF-8")
        text = codec.decode(data) if codec is not None else data.decode("utf-8", "replace")
    text = text.replace("\r\n", "\n")
    shown = seen(text)
    if len(shown) < len(text):
        notes.append(f"{counted(len(text) - len(shown), 'invisible character')} left out")
    if status.st_size > len(data):
        notes.append(f"only its first {len(data):,} bytes are read")
    return ReadText(text=storable(shown).strip(), size=status.st_size, notes=tuple(notes))


def seen(text: str) -> str:
    """The text without invisible characters."""
    clean = disarm(text)
    return clean if clean.isascii() else _invisible().sub("", clean)


def _decoded(data: bytes, *, whole: bool) -> str | None:
    """The text of a file in UTF-8; None if it is not UTF-8."""
    if b"\0" in data or data.startswith(_PDF):
        return None
    try:
        return getincrementaldecoder("utf-8")().decode(data.removeprefix(BOM_UTF8), final=whole)
    except UnicodeDecodeError:
        return None


@cache
def _invisible() -> re.Pattern[str]:
    """Invisible characters with which a text could give a model hidden instructions.

    Characters that join letters, as in Persian and in emoji, are kept.
    """
    return re.compile("[\u200b\u200e\u200f\u2060-\u2064\u206a-\u206f\ufeff\U000e0000-\U000e007f]")
