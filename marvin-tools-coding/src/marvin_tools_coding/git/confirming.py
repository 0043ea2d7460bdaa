"""Confirms what git read in the working directory: git opens files by name.

If a folder became a link meanwhile, it has read files outside. What it shows is compared with what the sandbox reads.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from itertools import dropwhile
from pathlib import Path
from typing import BinaryIO

from marvin_core import ProcessResult, Record, ToolContext, ToolError, in_thread, is_there, open_without_links

from .aside import Aside, aside
from .contents import unchecked
from .conversions import Conversion, content_of, conversions, converted, lfs_pointer
from .running import DIFF_LIMIT, try_read

_TRIES = 3
_LARGEST = 200_000_000
"""The size in bytes up to which the contents before the changes are read."""
_HEADS = (b"diff --git ", b"diff --cc ", b"diff --combined ")
_HUNK = re.compile(rb"(@@+) -(\d+).*?\+(\d+)(?:,\d+)? @@")
_BLOB = re.compile(rb"index ([0-9a-f]+)\.\.")
_IDENT = re.compile(rb"\$Id:[^$]*\$")
_UNTRACKED = b"Untracked files:"
_NO_FILE = (b" 120000", b" 160000")
"""The modes of links and submodules: of these git shows names and hashes."""
_LEFT_OUT = (
    b"[The lines of this file are left out: its filter made something else of it each time or could not be run again, "
    b"or a folder became a link. To see them, run_command: git diff]"
)
_OCTAL = re.compile(rb"\\([0-7]{3}|.)")
_SIGNS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}


class _Shown(Record):
    """The lines that a diff shows of a file, each with its number."""

    path: str
    lines: tuple[tuple[int, bytes], ...]


async def confirmed(
    what: str, ask: Callable[[], Awaitable[ProcessResult]], check: Callable[[ProcessResult], Awaitable[bool]]
) -> ProcessResult:
    """What git says, once it is what the sandbox sees: files may change between the two.

    Raises:
        ToolError: it was never the same.
    """
    for _ in range(_TRIES):
        result = await ask()
        if await check(result):
            return result
    raise _never_same(what)


async def confirmed_diff(
    context: ToolContext, prefix: str, ask: Callable[[], Awaitable[ProcessResult]]
) -> ProcessResult:
    """A diff against the working tree, once it shows what is stored, and lines that the changed files have.

    The hashes in a diff are no proof: git reads each file twice, and takes some for what is stored (`WITHOUT_INDEX`).
    The lines of a file are left out if what a filter of the user makes of it is never the same.

    Args:
        prefix: of the working directory in the names.

    Raises:
        ToolError: it was never the same.
    """
    diff, unsure = await ask(), frozenset[str]()
    for left in reversed(range(_TRIES)):
        found = await _compared(context, prefix, _lines_of(diff))
        if found == frozenset():
            return diff
        unsure = found or frozenset()
        diff = await ask() if left else diff
    if not unsure:
        raise _never_same("git diff")
    kept = b"".join(b"%b\n" % line for line in _without(_lines_of(diff), prefix, unsure))
    return diff.replace(output=kept, omitted=diff.omitted + max(len(diff.output) - DIFF_LIMIT, 0))


def _never_same(what: str) -> ToolError:
    return ToolError(
        f"{what} failed: files here changed each time git read them. Try again once they stay as they are."
    )


def _lines_of(diff: ProcessResult) -> Sequence[bytes]:
    """The lines of a diff that may be shown."""
    return diff.output[:DIFF_LIMIT].split(b"\n")[:-1]  # the last one is empty, or cut


def _without(diff: Sequence[bytes], prefix: str, paths: Collection[str]) -> Iterator[bytes]:
    """A diff without the lines of these files, which it says."""
    heads = [number for number, line in enumerate(diff) if line.startswith(_HEADS)]
    for start, end in zip(heads, [*heads[1:], len(diff)], strict=True):
        part = diff[start:end]
        yield from [part[0], _LEFT_OUT] if any(shown.path in paths for shown in _shown(part, prefix)) else part


async def _compared(context: ToolContext, prefix: str, diff: Sequence[bytes]) -> frozenset[str] | None:
    """Compare a diff with the files. Returns the paths of those whose filter makes something else than it shows; None
    if it shows something else than is stored or than is in other files.
    """
    if not await _is_stored(context, _before(diff)):
        return None
    others = await in_thread(lambda: [shown for shown in _shown(diff, prefix) if not _has(context.paths.root, shown)])
    unseen = await unchecked(context, [shown.path for shown in others])
    others = [shown for shown in others if shown.path not in unseen]
    known = await conversions(context, [shown.path for shown in others], alone=True)
    plain = [(shown, known[shown.path].encoding) for shown in others if not known[shown.path].is_filtered]
    if not await in_thread(lambda: all(_has(context.paths.root, shown, encoding) for shown, encoding in plain)):
        return None
    return await _filtered_otherwise(context, [shown for shown in others if known[shown.path].is_filtered], known)


async def _filtered_otherwise(
    context: ToolContext, files: Sequence[_Shown], known: Mapping[str, Conversion]
) -> frozenset[str]:
    """The paths of files of which a filter of the user makes something else than a diff shows."""
    files = await in_thread(lambda: [shown for shown in files if not _is_pointer(context.paths.root, shown)])
    if not files:
        return frozenset()
    try:
        async with aside(context, alone=True) as kept:
            made = {shown.path: await _stored(kept, shown.path, known[shown.path].attributes) for shown in files}
            contents = await kept.read(made.values())
    except ToolError:  # such as a git directory that cannot be written
        return frozenset(shown.path for shown in files)
    return frozenset(shown.path for shown in files if not _are_made(contents.get(made[shown.path]), shown))


async def _stored(kept: Aside, path: str, attributes: str) -> str:
    """The hash of what a filter makes of a file, stored aside; empty if it is unknown."""
    content = await content_of(kept.context, path)
    return "" if content is None else await kept.store(path, content, attributes)


def _are_made(content: bytes | None, shown: _Shown) -> bool:
    return content is not None and _are_in(iter(content.split(b"\n")), shown)


def _is_pointer(root: Path, shown: _Shown) -> bool:
    """Whether a diff shows what Git LFS stores of a file, whose filter need not run for this."""
    if not any(line.startswith(b"oid sha256:") for _, line in shown.lines):
        return False
    try:
        with open_without_links(root, shown.path) as file:
            return _are_in(iter(lfs_pointer(file).split(b"\n")), shown)
    except OSError:
        return False


async def _is_stored(context: ToolContext, shown: Mapping[bytes, Sequence[tuple[int, bytes]]]) -> bool:
    """Whether blobs have the lines that a diff shows of them; `shown` has these by the hash of each.

    Raises:
        ToolError: they are too large.
    """
    if not shown:
        return True
    stdin = b"".join(b"%b\n" % blob for blob in shown)
    result = await try_read(context, ["cat-file", "--batch"], _LARGEST, stdin=stdin)
    if result.omitted:
        raise ToolError("git diff failed: the changed files are too large. Pass path, or run_command: git diff")
    return await in_thread(lambda: _have(BytesIO(result.output), shown.values()))


def _have(batch: BinaryIO, shown: Iterable[Sequence[tuple[int, bytes]]]) -> bool:
    """Whether each of the blobs that `git cat-file --batch` has told has its lines."""
    for lines in shown:
        head = batch.readline()
        if b" blob " not in head:
            return False
        stored = batch.read(int(head.rpartition(b" ")[2])).split(b"\n")
        batch.readline()
        if any(number > len(stored) or stored[number - 1] != line for number, line in lines):
            return False
    return True


async def has_names(context: ToolContext, status: ProcessResult) -> bool:
    """Whether the untracked files that git lists are there."""
    listed = dropwhile(lambda line: line != _UNTRACKED, _whole_lines(status))
    names = [_name(line[1:]) for line in listed if line.startswith(b"\t")]
    return await in_thread(lambda: all(is_there(context.paths.root, name) for name in names))


def _whole_lines(result: ProcessResult) -> list[bytes]:
    """The lines of an output, without those that are cut where its middle is left out."""
    if not result.omitted:
        return result.output.split(b"\n")
    half = len(result.output) // 2
    return [*result.output[:half].split(b"\n")[:-1], *result.output[half:].split(b"\n")[1:]]


def _has(root: Path, shown: _Shown, encoding: str = "") -> bool:
    try:
        with open_without_links(root, shown.path) as file:
            return _are_in(_lines(file, encoding), shown)
    except (OSError, LookupError):
        return False


def _are_in(lines: Iterator[bytes], shown: _Shown) -> bool:
    """Whether lines have those that a diff shows; it reads no further."""
    wanted = dict(shown.lines)
    last = max(wanted)
    for number, line in enumerate(lines, 1):
        if number in wanted and _plain(line) != _plain(wanted.pop(number)):
            return False
        if number >= last:
            break
    return not wanted


def _lines(file: BinaryIO, encoding: str) -> Iterator[bytes]:
    """The lines of a file, in UTF-8 if it has another encoding. Only then all of it is read at once."""
    if not encoding:
        return (line.removesuffix(b"\n") for line in file)
    return iter(converted(file, encoding).split(b"\n"))


def _plain(line: bytes) -> bytes:
    """A line without what git may convert."""
    return _IDENT.sub(b"$Id$", line.removesuffix(b"\r"))


def _shown(diff: Iterable[bytes], prefix: str) -> Iterator[_Shown]:
    """What a diff shows of each file in the working tree."""
    path, is_file, is_head = "", True, False
    number = signs = 0
    found: list[tuple[int, bytes]] = []
    for line in diff:
        hunk = _HUNK.match(line)
        if line.startswith(_HEADS):
            yield from _files(path, found)
            path, is_file, is_head, found = "", True, True, []
        elif hunk is not None:
            is_head, signs, number = False, len(hunk[1]) - 1, int(hunk[3])
        elif is_head and line.startswith((b"index ", b"mode ", b"new file mode ")):
            is_file = is_file and not line.endswith(_NO_FILE)
        elif is_head and line.startswith(b"+++ "):
            name = _name(line[4:].removesuffix(b"\t"))
            path = name.removeprefix("b/").removeprefix(prefix) if is_file and name != "/dev/null" else ""
        elif not is_head and line[:signs].strip(b" +-\\"):  # what git says of another file
            yield from _files(path, found)
            path, found = "", []
        elif not is_head and path and b"-" not in line[:signs] and not line.startswith(b"\\"):
            found.append((number, line[signs:]))
            number += 1
    yield from _files(path, found)


def _before(diff: Iterable[bytes]) -> Mapping[bytes, Sequence[tuple[int, bytes]]]:
    """The lines that a diff shows of each blob before the change, by the hash of the blob.

    In combined diffs, which show conflicts, git reads the blobs.
    """
    blob, number, is_head, is_submodule = b"", 0, False, False
    found: dict[bytes, list[tuple[int, bytes]]] = {}
    for line in diff:
        hunk = _HUNK.match(line)
        if line.startswith(b"diff "):
            blob, is_head, is_submodule = b"", True, False
        elif is_head and line.startswith(b"deleted file mode 160000"):
            is_submodule = True
        elif is_head and (named := _BLOB.match(line)) is not None:
            blob = b"" if is_submodule or line.endswith(b" 160000") else named[1]
        elif hunk is not None:
            is_head, number = False, int(hunk[2])
        elif blob and not is_head and line[:1] in (b"-", b" ", b""):
            found.setdefault(blob, []).append((number, line[1:]))
            number += 1
    return found


def _files(path: str, lines: list[tuple[int, bytes]]) -> Iterator[_Shown]:
    if path and lines:
        yield _Shown(path=path, lines=tuple(lines))


def _name(shown: bytes) -> str:
    """A name as git shows it: in quotes if it has other characters than ASCII."""
    if shown.startswith(b'"'):
        shown = _OCTAL.sub(_unescaped, shown[1:].removesuffix(b'"'))
    return shown.decode("utf-8", "surrogateescape")


def _unescaped(found: re.Match[bytes]) -> bytes:
    sign = found[1]
    return bytes([int(sign, 8) & 0xFF]) if len(sign) == 3 else _SIGNS.get(sign, sign)
