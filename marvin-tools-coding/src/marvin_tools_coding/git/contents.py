"""Confirms what git staged and committed: git opens files by name, and their folders may become links meanwhile.

What git has stored is compared with what lies in the working directory, where no link is followed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from marvin_core import (
    Record,
    ToolContext,
    ToolError,
    in_thread,
    open_without_links,
    opened_folder,
)

from .place import Place
from .running import keep, names, try_read, try_write
from .staging import shortened

_TRIES = 3
_RAW = ("--raw", "-z", "--no-abbrev", "--no-renames", "--ignore-submodules=dirty")
_TREES = (*_RAW, "-r", "--no-commit-id", "--end-of-options")
_LINK, _FILES = "120000", ("100644", "100755")
_PIECE = 1 << 20
_CONVERTED_LIMIT = 100_000_000
"""The size in bytes up to which git is asked how it stores a file that it converts."""
_UNCHECKED = "hsS"
"""The tags of `git ls-files -v` for entries whose files git does not look at."""


class Stored(Record):
    """A changed file as git has stored it, in the index or in a commit."""

    name: str
    """Relative to the top of the repository."""
    path: str
    """Relative to the working directory, if it lies in it."""
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
    pairs = zip(fields[::2], fields[1::2], strict=False)
    return [
        Stored(name=name, path=name.removeprefix(place.prefix), status=status, mode=mode, hash=found)
        for (_, mode, _, found, status), name in ((facts.split(" "), name) for facts, name in pairs)
    ]


async def staged_as_is(
    context: ToolContext, place: Place, scope: Sequence[str], stage: Callable[[], Awaitable[None]]
) -> Sequence[Stored]:
    """Stage, and return what is staged below the paths, once it is what the files contain.

    Raises:
        ToolError: it never was; nothing of the files that differed is staged.
    """
    other: Sequence[str] = ()
    for _ in range(_TRIES):
        try:
            await stage()
        except ToolError:  # some files may be staged
            await unstage(context, await differing(context, await in_index(context, place, scope)))
            raise
        staged = await in_index(context, place, scope)
        other = await differing(context, staged)
        if not other:
            return staged
    await unstage(context, other)
    raise ToolError(f"Nothing was committed: {why_differing(other)}")


async def unstage(context: ToolContext, paths: Sequence[str]) -> None:
    """Stage files as they are in the newest commit."""
    if not paths:  # git would take all
        return
    stdin = "\0".join(paths).encode("utf-8", "surrogateescape")
    await keep(context, ["reset", "--quiet", "--pathspec-from-file=-", "--pathspec-file-nul"], {}, stdin=stdin)


def why_undone(paths: Sequence[str]) -> str:
    """The error message for a commit that was undone, because these files in it differ from those on disk."""
    hooks = "If a hook changes only what is committed, run_command: git commit"
    return f"The commit was undone: {why_differing(paths)} {hooks}"


def why_differing(paths: Sequence[str]) -> str:
    """The end of an error message about files that git has stored with another content than they have."""
    return (
        f"what git read of {shortened(paths)} is not what is there. Try again once no other program changes files "
        "here. A file that a filter of git converts can have 100 MB at most."
    )


async def differing(context: ToolContext, stored: Sequence[Stored]) -> Sequence[str]:
    """The paths of files that git has stored with another content than they have."""
    root = context.paths.root
    other = await in_thread(lambda: [one for one in stored if not _is_same(root, one)])
    if not other:
        return ()
    tagged = await names(context, "git ls-files", ["ls-files", "-v", "-z"])
    unchecked = {name for tag, _, name in (line.partition(" ") for line in tagged) if tag in _UNCHECKED}
    return [one.path for one in other if one.path not in unchecked and not await _is_converted(context, one)]


def _is_same(root: Path, stored: Stored) -> bool:
    """Whether git has stored the content of a file as it is, or with its line ends converted."""
    try:
        if stored.mode == _LINK:
            target = os.fsencode(_target(root, stored.path))
            return _hash([target], len(target), stored) == stored.hash
        if stored.mode not in _FILES:  # deleted, or the commit of a submodule
            return True
        with open_without_links(root, stored.path) as file:
            size = os.fstat(file.fileno()).st_size
            if _hash(iter(partial(file.read, _PIECE), b""), size, stored) == stored.hash:
                return True
    except OSError:
        return False
    content = (_content(root, stored.path) or b"").replace(b"\r\n", b"\n")
    return _hash([content], len(content), stored) == stored.hash


def _target(root: Path, path: str) -> str:
    folder, _, name = path.rpartition("/")
    with opened_folder(root, folder) as descriptor:
        return os.readlink(name, dir_fd=descriptor)


def _hash(content: Iterable[bytes], size: int, stored: Stored) -> str:
    """The name of a blob: https://git-scm.com/book/en/v2/Git-Internals-Git-Objects"""
    made = hashlib.new("sha1" if len(stored.hash) == 40 else "sha256", b"blob %d\0" % size, usedforsecurity=False)
    for piece in content:
        made.update(piece)
    return made.hexdigest()


async def _is_converted(context: ToolContext, stored: Stored) -> bool:
    """Whether git has stored the content of a file in another form: with other line ends, or through a filter."""
    if stored.mode not in _FILES:
        return False
    content = await in_thread(lambda: _content(context.paths.root, stored.path))
    if content is None:
        return False
    path = f"--path={stored.path}"
    result = await try_write(context, ["hash-object", "-t", "blob", "--stdin", path], stdin=content)
    return result.exit_code == 0 and result.output.decode("ascii", "replace").strip() == stored.hash


def _content(root: Path, path: str) -> bytes | None:
    """The content of a file; None if there is none, or it is too large."""
    try:
        with open_without_links(root, path) as file:
            content = file.read(_CONVERTED_LIMIT + 1)
    except OSError:
        return None
    return content if len(content) <= _CONVERTED_LIMIT else None
