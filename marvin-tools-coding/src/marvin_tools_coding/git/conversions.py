"""What git converts of a file before it stores it: line ends, `$Id$`, encodings and filters."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

from marvin_core import GIT_PROGRAMS, Record, ToolContext, in_thread, open_without_links

from .aside import aside
from .running import failure, names, try_read

_LARGEST = 100_000_000
"""The size in bytes up to which the content of a file is compared if it is not stored as it is."""
_PIECE = 1 << 20
_ATTRIBUTES = ("filter", "working-tree-encoding", "text", "crlf", "eol", "ident")
"""The attributes that say how git converts a file."""
_NONE = {"unspecified": "!", "unset": "-", "set": ""}
"""The values of an attribute that name no filter and no encoding, and what stands before its name for each."""
_IDENT = re.compile(rb"\$Id:[^$\n]*\$")
_NO_CHARSETS = ("idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape")
"""Codecs of Python for other things than the text of files."""
_LFS = re.compile(rb"version https://git-lfs\.github\.com/spec/v1\n(?:.*\n)*?oid sha256:([0-9a-f]{64})\n")
_POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:%b\nsize %d\n"
"""What Git LFS stores of a file: https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md"""


class Conversion(Record):
    """How git converts a file before it stores it, besides line ends and `$Id$`."""

    encoding: str
    """The encoding that git converts from; empty if it does not."""
    is_filtered: bool
    """Whether settings define the file's filter."""
    attributes: str
    """The attributes that count, as a line of .gitattributes has them after the pattern."""


async def conversions(context: ToolContext, paths: Sequence[str], *, alone: bool = False) -> dict[str, Conversion]:
    """The conversion of each file, by its path.

    Args:
        alone: whether filters of the repository are switched off.

    Raises:
        ToolError: git fails, or there are too many files.
    """
    if not paths:
        return {}
    stdin = "\0".join(paths).encode("utf-8", "surrogateescape")
    asked = ["check-attr", "-z", "--stdin", *_ATTRIBUTES]
    result = await try_read(context, asked, _LARGEST, stdin=stdin)
    fields = result.output.decode("utf-8", "surrogateescape").split("\0")
    if result.exit_code != 0 or len(fields) != 3 * len(_ATTRIBUTES) * len(paths) + 1:
        raise failure(context, "git check-attr", result)
    filters = await _filters(context, alone=alone)
    count = len(_ATTRIBUTES)
    values = [fields[start : start + 3 * count : 3] for start in range(2, len(fields), 3 * count)]
    return {path: _conversion(given, filters) for path, given in zip(paths, values, strict=True)}


def _conversion(values: Sequence[str], filters: Collection[str]) -> Conversion:
    name, encoding = values[:2]
    given = [
        f"{_NONE[value]}{attribute}" if value in _NONE else f"{attribute}={value}"
        for attribute, value in zip(_ATTRIBUTES, values, strict=True)
    ]
    return Conversion(
        encoding="" if encoding in _NONE else encoding, is_filtered=name in filters, attributes=" ".join(given)
    )


async def _filters(context: ToolContext, *, alone: bool) -> set[str]:
    """The names of the filters that settings define."""
    fields = await names(context, "git config", GIT_PROGRAMS)
    scopes = zip(fields[::2], fields[1::2], strict=False)
    keys = [key.partition("\n")[0] for scope, key in scopes if not alone or scope not in ("local", "worktree")]
    return {key.removeprefix("filter.").rpartition(".")[0] for key in keys if key.startswith("filter.")}


async def is_stored_as(
    context: ToolContext, path: str, blob: str, conversion: Conversion, *, alone: bool, grows: bool
) -> bool:
    """Whether a blob is what git makes of a file.

    Args:
        blob: its hash.
        alone: whether filters of the repository are switched off.
        grows: whether the beginning of a text suffices, as a log may grow while git stores it.

    Raises:
        ToolError: git cannot be run.
    """
    stored = await try_read(context, ["cat-file", "blob", blob], _LARGEST)
    if stored.exit_code != 0 or stored.omitted:
        return False
    if conversion.is_filtered:
        return await _is_filtered(context, path, (blob, stored.output), conversion, alone=alone)
    text = plain(stored.output)
    content = await _read(context, path, lambda file: plain(converted(file, conversion.encoding)))
    return content is not None and (content == text or (grows and text != b"" and content.startswith(text)))


async def has_known_lines(context: ToolContext, path: str, blobs: tuple[str, str], conversion: Conversion) -> bool:
    """Whether a blob has no lines but those of another one and of a file. A filter may make anything of the file.

    Args:
        blobs: the hash of the blob, and that of the other one.

    Raises:
        ToolError: git cannot be run.
    """
    stored = [await try_read(context, ["cat-file", "blob", blob], _LARGEST) for blob in blobs]
    content = await _read(context, path, lambda file: plain(converted(file, conversion.encoding)))
    if conversion.is_filtered or content is None or any(one.exit_code != 0 or one.omitted for one in stored):
        return False
    made, other = (plain(one.output).split(b"\n") for one in stored)
    return {*made} <= {b"", *other, *content.split(b"\n")}


async def _is_filtered(
    context: ToolContext, path: str, blob: tuple[str, bytes], conversion: Conversion, *, alone: bool
) -> bool:
    """Whether a blob is what its filter makes of a file: the filter runs once more, on what is read here.

    Only line ends may differ: git may keep those of what is staged.
    """
    name, stored = blob
    pointer = _LFS.match(stored)
    if pointer is not None and await _read(context, path, _sha256) == pointer[1]:  # such files are large
        return True
    content = await content_of(context, path)
    if content is None:
        return False
    async with aside(context, alone=alone) as kept:
        made = await kept.hash(path, content, conversion.attributes)
        if not made or made == name or b"\r\n" not in stored:
            return made == name
        made = await kept.store(path, content, conversion.attributes)
        other = (await kept.read([made])).get(made)
    return other is not None and plain(other) == plain(stored)


async def content_of(context: ToolContext, path: str) -> bytes | None:
    """The content of a file that no link leads to; None if it cannot be read, or is too large to be compared."""
    content = await _read(context, path, lambda file: file.read(_LARGEST + 1))
    return content if content is not None and len(content) <= _LARGEST else None


def lfs_pointer(file: BinaryIO) -> bytes:
    """What Git LFS stores of a file, unless an extension converts the file first."""
    return _POINTER % (_sha256(file), file.tell())


async def _read(context: ToolContext, path: str, read: Callable[[BinaryIO], bytes]) -> bytes | None:
    """What a function makes of a file that no link leads to; None if the file cannot be read."""
    return await in_thread(partial(_read_now, context.paths.root, path, read))


def _read_now(root: Path, path: str, read: Callable[[BinaryIO], bytes]) -> bytes | None:
    try:
        with open_without_links(root, path) as file:
            return read(file)
    except (OSError, LookupError):
        return None


def _sha256(file: BinaryIO) -> bytes:
    made = hashlib.sha256(usedforsecurity=False)
    for piece in iter(partial(file.read, _PIECE), b""):
        made.update(piece)
    return made.hexdigest().encode()


def converted(file: BinaryIO, encoding: str) -> bytes:
    """The content of a file, in UTF-8 if it has another encoding; of a large file the beginning.

    Raises:
        LookupError: the encoding is unknown here, or not one of texts.
    """
    content = file.read(_LARGEST)
    if not encoding:
        return content
    name = encoding.lower().partition("//")[0].removesuffix("-bom").replace("ucs-2", "utf-16")
    if name.replace("-", "_") in _NO_CHARSETS:
        raise LookupError(encoding)
    return content.decode(name, "replace").removeprefix("\ufeff").encode("utf-8", "replace")


def plain(text: bytes) -> bytes:
    """A text without what git may convert besides its encoding."""
    return _IDENT.sub(b"$Id$", text.replace(b"\r\n", b"\n"))
