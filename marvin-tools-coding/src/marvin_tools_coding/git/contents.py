"""Confirms what git staged and committed: git opens files by name, and their folders may become links meanwhile.

What git has stored is compared with what lies in the working directory, where no link is followed. A file with a filter
is not compared: only the filter knows what is stored of it. What git has read stays among the objects of the repository
until git removes it.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import stat
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

from marvin_core import GIT_PROGRAMS, Record, ToolContext, ToolError, in_thread, open_without_links, opened_folder

from .place import Place
from .running import failure, keep, names, try_read
from .staging import shortened

_TRIES = 3
_RAW = ("--raw", "-z", "--no-abbrev", "--no-renames", "--ignore-submodules=dirty")
_TREES = (*_RAW, "-r", "--no-commit-id", "--end-of-options")
_LINK, _FILES, _DELETED = "120000", ("100644", "100755"), "000000"
_NONE = ("unspecified", "unset", "set")
"""The values of an attribute that name no filter and no encoding."""
_UNCHECKED = "hsS"
"""The tags of `git ls-files -v` for entries whose files git does not look at."""
_IDENT = re.compile(rb"\$Id:[^$\n]*\$")
_NO_CHARSETS = ("idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape")
"""Codecs of Python for other things than the text of files."""
_PIECE = 1 << 20
_LARGEST = 100_000_000
"""The size in bytes up to which the content of a file is compared if it is not stored as it is."""
_AT_ONCE = 500
"""The number of paths in one command line."""


class Stored(Record):
    """A changed file as git has stored it, in the index or in a commit."""

    name: str
    """Relative to the top of the repository."""
    path: str
    """Relative to the working directory; empty if it is not in it."""
    status: str
    """The letter of `--name-status`."""
    mode: str
    hash: str

    @property
    def summary(self) -> tuple[str, str]:
        """The status and the name."""
        return self.status, self.name


async def in_index(context: ToolContext, place: Place, scope: Sequence[str]) -> Sequence[Stored]:
    """What is staged below the paths."""
    return _stored(place, await names(context, "git diff", ["diff", "--cached", *_RAW, "--", *scope]))


async def in_commit(context: ToolContext, place: Place, commit: str) -> Sequence[Stored]:
    """What a commit changes."""
    return _stored(place, await names(context, "git show", ["diff-tree", "--root", *_TREES, commit]))


async def in_tree(context: ToolContext, place: Place, tree: str, base: str) -> Sequence[Stored]:
    """What differs in a tree from a commit. Without `base` it is all of it."""
    if not base:
        made = await try_read(context, ["hash-object", "-t", "tree", "--stdin"], stdin=b"")
        base = made.output.decode().strip()
    return _stored(place, await names(context, "git show", ["diff-tree", *_TREES, base, tree]))


def _stored(place: Place, fields: Sequence[str]) -> Sequence[Stored]:
    found = []
    for facts, name in zip(fields[::2], fields[1::2], strict=False):
        _, mode, _, content, status = facts.split(" ")
        path = name.removeprefix(place.prefix) if name.startswith(place.prefix) else ""
        found.append(Stored(name=name, path=path, status=status, mode=mode, hash=content))
    return found


async def staged_as_is(
    context: ToolContext, place: Place, scope: Sequence[str], index: str, stage: Callable[[], Awaitable[None]]
) -> Sequence[Stored]:
    """Stage, and return what is staged below the paths, once it is what the files contain.

    What was staged before is not compared: it may differ from the files.

    Args:
        index: the tree of what is staged now, empty if it is unknown.

    Raises:
        ToolError: it never was; files that differed are staged as they were before.
    """
    known = await in_index(context, place, scope)
    other: Sequence[str] = ()
    try:
        for _ in range(_TRIES):
            await stage()
            staged = await in_index(context, place, scope)
            other = await differing(context, staged, known)
            if not other:
                return staged
    except (ToolError, asyncio.CancelledError):  # some files may be staged
        staged = await in_index(context, place, scope)
        await unstage(context, await differing(context, staged, known), index)
        raise
    await unstage(context, other, index)
    raise ToolError(f"Nothing was committed: {why_differing(other)}")


async def unstage(context: ToolContext, paths: Sequence[str], index: str = "") -> None:
    """Stage files as they are in a tree, or in the newest commit without one. Raises `ToolError` if git fails."""
    if not paths:  # git would take all
        return
    stdin = "\0".join(paths).encode("utf-8", "surrogateescape")
    tree = [index] if index else []
    arguments = ["reset", "--quiet", "--pathspec-from-file=-", "--pathspec-file-nul", *tree]
    result = await keep(context, arguments, {}, stdin=stdin)
    if result.exit_code != 0:
        said = failure(context, "git reset", result)
        raise ToolError(f"git staged other content of {shortened(paths)} than is there, and it is still staged. {said}")


def why_differing(paths: Sequence[str]) -> str:
    """The end of an error message about files that git has stored with another content than they have."""
    return (
        f"git stored other content of {shortened(paths)} than is there. A program changes it all the time, a folder "
        "became a link, or a hook changed only what is committed. Try again; if that does not help, run_command: git "
        "commit"
    )


async def differing(
    context: ToolContext, stored: Iterable[Stored], checked: Iterable[Stored] = (), *, saved: bool = False
) -> Sequence[str]:
    """The paths of files that git has stored with another content than they have, without those in `checked`.

    Args:
        saved: whether it was stored to be restored, without filters of the repository; then no file may have grown.
    """
    root, before = context.paths.root, {(one.name, one.hash) for one in checked}
    new = [one for one in stored if one.path and (one.name, one.hash) not in before]
    other = await in_thread(lambda: [one for one in new if not _is_same(root, one)])
    known = await encodings(context, [one.path for one in other], alone=saved)
    other = [
        one
        for one in other
        if one.path in known and not await _is_converted(context, one, known[one.path], may_have_grown=not saved)
    ]
    unseen = await unchecked(context, [one.path for one in other])
    return [one.path for one in other if one.path not in unseen]


def _is_same(root: Path, stored: Stored) -> bool:
    """Whether git has stored the content of a file as it is, or with its line ends converted."""
    if stored.mode == _DELETED:
        return not _is_there(root, stored.path)
    if stored.mode != _LINK and stored.mode not in _FILES:  # the commit of a submodule
        return True
    try:
        if stored.mode == _LINK and (target := _target(root, stored.path)) is not None:
            return _hash([target], len(target), stored) == stored.hash
        with open_without_links(root, stored.path) as file:
            if _hash(_pieces(file), os.fstat(file.fileno()).st_size, stored) == stored.hash:
                return True
            size = sum(map(len, _with_plain_ends(file)))
            return _hash(_with_plain_ends(file), size, stored) == stored.hash
    except OSError:
        return False


def _is_there(root: Path, path: str) -> bool:
    """Whether there is a file or link of exactly this name: some file systems take `a` for `A`."""
    folder, _, name = path.rpartition("/")
    try:
        with opened_folder(root, folder) as descriptor:
            status = os.lstat(name, dir_fd=descriptor)
            return not stat.S_ISDIR(status.st_mode) and name in os.listdir(descriptor)
    except OSError:
        return False


def _target(root: Path, path: str) -> bytes | None:
    """The target of a link; None for a file, which git writes in its place if it may create no links."""
    folder, _, name = path.rpartition("/")
    with opened_folder(root, folder) as descriptor:
        try:
            return os.fsencode(os.readlink(name, dir_fd=descriptor))
        except OSError:
            return None


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    file.seek(0)
    return iter(partial(file.read, _PIECE), b"")


def _with_plain_ends(file: BinaryIO) -> Iterator[bytes]:
    """The content of a file with LF for each CRLF."""
    rest = b""
    for piece in _pieces(file):
        whole = rest + piece
        rest = b"\r" if whole.endswith(b"\r") else b""
        yield whole.removesuffix(rest).replace(b"\r\n", b"\n")
    yield rest


def _hash(content: Iterable[bytes], size: int, stored: Stored) -> str:
    """The name of a blob: https://git-scm.com/book/en/v2/Git-Internals-Git-Objects"""
    made = hashlib.new("sha1" if len(stored.hash) == 40 else "sha256", b"blob %d\0" % size, usedforsecurity=False)
    for piece in content:
        made.update(piece)
    return made.hexdigest()


async def encodings(context: ToolContext, paths: Sequence[str], *, alone: bool = False) -> dict[str, str]:
    """The encoding that git converts from, by the path of each file, mostly empty; files with a filter are left out.

    Args:
        alone: whether filters of the repository are switched off.

    Raises:
        ToolError: git fails, or there are too many files.
    """
    if not paths:
        return {}
    stdin = "\0".join(paths).encode("utf-8", "surrogateescape")
    asked = ["check-attr", "-z", "--stdin", "filter", "working-tree-encoding"]
    result = await try_read(context, asked, _LARGEST, stdin=stdin)
    fields = result.output.decode("utf-8", "surrogateescape").split("\0")
    if result.exit_code != 0 or len(fields) != 6 * len(paths) + 1:
        raise failure(context, "git check-attr", result)
    values = zip(paths, fields[2::6], fields[5::6], strict=True)
    filters = await _filters(context, alone=alone)
    unfiltered = {path: encoding for path, name, encoding in values if name not in filters}
    return {path: "" if encoding in _NONE else encoding for path, encoding in unfiltered.items()}


async def _filters(context: ToolContext, *, alone: bool) -> set[str]:
    """The names of the filters that settings define."""
    fields = await names(context, "git config", GIT_PROGRAMS)
    scopes = zip(fields[::2], fields[1::2], strict=False)
    keys = [key.partition("\n")[0] for scope, key in scopes if not alone or scope not in ("local", "worktree")]
    return {key.removeprefix("filter.").rpartition(".")[0] for key in keys if key.startswith("filter.")}


async def _is_converted(context: ToolContext, stored: Stored, encoding: str, *, may_have_grown: bool) -> bool:
    """Whether git has stored the text of a file, or its beginning, in another form. A log may have grown meanwhile."""
    blob = await try_read(context, ["cat-file", "blob", stored.hash], _LARGEST)
    if blob.exit_code != 0 or blob.omitted:
        return False
    text = _plain(blob.output)
    content = await in_thread(lambda: _content(context.paths.root, stored.path, encoding))
    return content is not None and (content == text or (may_have_grown and text != b"" and content.startswith(text)))


def _content(root: Path, path: str, encoding: str) -> bytes | None:
    """The content of a file without what git may convert; None if it cannot be read."""
    try:
        with open_without_links(root, path) as file:
            return _plain(converted(file, encoding))
    except (OSError, LookupError):
        return None


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


def _plain(text: bytes) -> bytes:
    """A text without what git may convert."""
    return _IDENT.sub(b"$Id$", text.replace(b"\r\n", b"\n"))


async def unchecked(context: ToolContext, paths: Sequence[str]) -> set[str]:
    """Those of the files that git does not look at, such as files outside of a sparse checkout."""
    found: set[str] = set()
    for start in range(0, len(paths), _AT_ONCE):
        asked = ["ls-files", "-v", "-z", "--", *paths[start : start + _AT_ONCE]]
        tagged = (line.partition(" ") for line in await names(context, "git ls-files", asked))
        found.update(path for tag, _, path in tagged if tag in _UNCHECKED)
    return found
