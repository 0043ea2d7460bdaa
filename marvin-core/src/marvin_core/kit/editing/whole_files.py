"""Writing whole text files, and appending to them."""

from __future__ import annotations

import os
from contextlib import ExitStack

from ...api.errors import FileChanged, ToolError
from ...api.record import Record
from ...api.tool_context import FileWrite, Paths
from ..files.diffs import unified_diff
from ..files.encodings import UTF8, Codec, utf16_codec
from .known import KnownFiles, ReadLines
from .snapshot import LARGEST, Snapshot, note_content

_DIFF_LIMIT = 1_000_000
"""The maximum size of a file for a diff, in bytes."""
_RANGES = 5
"""The number of ranges that a message names."""


class WrittenFile(Record):
    """A written file: its bytes now and before, the latter None for a new file.

    `diff` is empty if nothing changed, and if one of the two is too large or is not text. `changes_line_ends` says that
    all lines of the file ended in CRLF, and those of the text end in LF.
    """

    size: int
    old_size: int | None = None
    changes_line_ends: bool = False
    diff: str = ""


class AppendedText(Record):
    """The result of appending: the bytes of the text, and those of the whole file now.

    `joins_line` says that the file did not end in a newline, so that the text continues its last line;
    `mixes_line_ends` that the file has CRLF line endings and the text LF.
    """

    size: int
    total: int
    joins_line: bool = False
    mixes_line_ends: bool = False
    diff: str = ""


def write_text_file(
    paths: Paths, path: str, text: str, *, create_only: bool = False, known: KnownFiles | None = None
) -> WrittenFile:
    """Write a whole text file, and create its missing folders.

    An existing file keeps its encoding, a new one is UTF-8.

    Args:
        create_only: it must not exist yet.
        known: the files that the session knows; then one with content is replaced only if it is unchanged since
            all of it was read. It is noted there.

    Raises:
        FileChanged: another program wrote it meanwhile, or not all of it was read.
        ToolError: it cannot be written, or with `create_only` it exists (the cause is then a `FileExistsError`).
    """
    _refuse_nul(text)
    if create_only:
        data = UTF8.encode(text, path)
        paths.replace(path, data, create_only=True)
        note_content(paths, path, data, known)
        return WrittenFile(size=len(data), diff=_diff(path, "", text, len(data)))
    with ExitStack() as stack:
        old = _snapshot(paths, path, stack)
        if old is None:
            data = UTF8.encode(text, path)
            paths.write_together([FileWrite(path=path, data=data, create_only=True)])
            note_content(paths, path, data, known)
            return WrittenFile(size=len(data), diff=_diff(path, "", text, len(data)))
        require_known(old, known, whole=True)
        codec, before = _codec_of(old)
        data = codec.encode(text, path)
        paths.write_together([FileWrite(path=path, data=data, expected=old.status, content=old.content)])
        note_content(paths, path, data, known)
        size = old.status.st_size
        diff = "" if before is None else _diff(path, before, text, max(size, len(data)))
        was_crlf = before is not None and 0 < before.count("\n") == before.count("\r\n")
        return WrittenFile(
            size=len(data), old_size=size, changes_line_ends=was_crlf and "\n" in text.replace("\r\n", ""), diff=diff
        )


def append_to_file(paths: Paths, path: str, text: str, *, known: KnownFiles | None = None) -> AppendedText:
    """Append a text to an existing text file, unchanged, in the encoding of the file.

    Args:
        known: the files that the session knows; then one with content must be unchanged since it was read. It is noted
            there.

    Raises:
        FileChanged: another program wrote it since it was read, or it was not read.
        ToolError: it does not exist (the cause is a `FileNotFoundError`), is not text, or cannot be written.
    """
    _refuse_nul(text)
    with ExitStack() as stack:
        old = Snapshot(paths, path, stack)
        require_known(old, known)
        read = old.read(known) if known is not None else None
        size = old.status.st_size
        if size > LARGEST:
            return _append_to_large(paths, old, text, known)
        addition = old.codec.replace(mark=b"").encode(text, path)
        before = old.document.raw
        if old.other_names:
            paths.write_together(
                [FileWrite(path=path, data=old.data + addition, expected=old.status, content=old.data)]
            )
        else:
            paths.append(path, addition)
        if read is not None:
            read = read.after(before, before + text)
        note_content(paths, path, old.data + addition, known, read)
        return AppendedText(
            size=len(addition),
            total=size + len(addition),
            joins_line=bool(before) and not before.endswith("\n"),
            mixes_line_ends=b"\r\n" in old.data and "\n" in text.replace("\r\n", ""),
            diff=_diff(path, before, before + text, size + len(addition)),
        )


def require_known(file: Snapshot, known: KnownFiles | None, *, whole: bool = False) -> None:
    """Refuse to write a file whose content the session does not know.

    Args:
        whole: all of it must be known, as it will be replaced.

    Raises:
        FileChanged: it was not read, or was changed since.
    """
    if known is None or not file.status.st_size:
        return
    standing = known.standing(file.place, file.status, file.content)
    if standing == "unknown":
        raise FileChanged(f"{file.path!r} exists but has not been read yet; nothing was changed. Read it first.")
    if standing == "changed":
        raise FileChanged(
            f"{file.path!r} was changed after you read it, by the user or another program; nothing was changed. Read "
            "it again."
        )
    read = file.read(known) if whole else None
    if read is not None:
        raise FileChanged(_not_all_read(file.path, read))


def _not_all_read(path: str, read: ReadLines) -> str:
    shown = [_range(first, last) for first, last in read.unread[:_RANGES]]
    more = ", ..." if len(read.unread) > _RANGES else ""
    begun = [number for number, _ in read.begun]
    cut = f" Line {begun[0]:,} is long, and only its beginning was read." if begun else ""
    return (
        f"Not all of {path!r} has been read; nothing was changed. Not read: {', '.join(shown)}{more}.{cut} Read "
        "that too, or change only a part of the file with a patch."
    )


def _range(first: int, last: int) -> str:
    if first == last:
        return f"line {first:,}"
    return f"lines {first:,} to {last:,}" if last else f"from line {first:,} on"


def _append_to_large(paths: Paths, old: Snapshot, text: str, known: KnownFiles | None) -> AppendedText:
    """Append without reading the file: ASCII is the same in all text encodings but the wide ones."""
    with paths.open(old.path) as stream:
        head = stream.read(4)
    if not text.isascii() or utf16_codec(head) is not None:
        raise ToolError(
            f"{old.path!r} has {old.status.st_size:,} bytes, too many to detect its encoding; nothing was changed. "
            "Append ASCII text only, or use a program."
        )
    addition = text.encode("ascii")
    read = old.read(known) if known is not None else None
    paths.append(old.path, addition)
    total = old.status.st_size + len(addition)
    if known is not None:
        with paths.open(old.path) as stream:
            status = os.fstat(stream.fileno())
        if status.st_ino == old.status.st_ino and status.st_size == total:
            known.note(old.place, status, read=read)
    return AppendedText(size=len(addition), total=total)


def _snapshot(paths: Paths, path: str, stack: ExitStack) -> Snapshot | None:
    try:
        return Snapshot(paths, path, stack)
    except ToolError as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise
        return None


def _codec_of(old: Snapshot) -> tuple[Codec, str | None]:
    """The encoding and the text of a file that is replaced; UTF-8 if it is not text."""
    if old.status.st_size > LARGEST:
        return UTF8, None
    try:
        return old.codec, old.document.raw
    except ToolError:
        return UTF8, None


def _refuse_nul(text: str) -> None:
    if "\0" in text:
        raise ToolError(
            "The text contains a NUL character, which is not allowed in a text file; nothing was changed. Remove it."
        )


def _diff(path: str, old: str, new: str, size: int) -> str:
    return "" if size > _DIFF_LIMIT else unified_diff(path, old, new)
