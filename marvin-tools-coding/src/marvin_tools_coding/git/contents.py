"""Confirms what git staged and committed: git opens files by name, and their folders may become links meanwhile.

What git has stored is compared with what lies in the working directory, where no link is followed. What git has read
stays among the objects of the repository until git removes it.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

from marvin_core import Record, ToolContext, ToolError, in_thread, open_without_links, opened_folder

from .conversions import conversions, has_known_lines, is_stored_as
from .place import Place
from .running import LISTS_STAGED, failure, keep_unlocked, names, try_read
from .staging import shortened

_RAW = ("-z", "--no-abbrev", "--no-renames", "--ignore-submodules=dirty")
_TREES = ("--raw", *_RAW, "-r", "--no-commit-id", "--end-of-options")
FILE_MODES = ("100644", "100755")
SUBMODULE = "160000"
_LINK, _DELETED = "120000", "000000"
_UNCHECKED = "hsS"
"""The tags of `git ls-files -v` for entries whose files git does not look at."""
_PIECE = 1 << 20
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
    old_mode: str
    """In what it is compared with, as is `old_hash`."""
    old_hash: str

    @property
    def is_deleted(self) -> bool:
        """Whether there is no such file any more."""
        return self.mode == _DELETED

    @property
    def is_new(self) -> bool:
        """Whether there was no such file before."""
        return self.old_mode == _DELETED

    @property
    def committed(self) -> Stored:
        """The file as it is in what it is compared with."""
        return self.replace(mode=self.old_mode, hash=self.old_hash)

    @property
    def summary(self) -> tuple[str, str]:
        """The status and the name."""
        return self.status, self.name


async def in_index(context: ToolContext, place: Place, scope: Sequence[str], commit: str = "") -> Sequence[Stored]:
    """What is staged below the paths, compared with a commit or that of the branch."""
    asked = [*LISTS_STAGED, *_RAW, *filter(None, [commit]), "--", *scope]
    return _stored(place, await names(context, "git diff", asked))


async def in_commit(context: ToolContext, place: Place, commit: str, parents: Sequence[str]) -> Sequence[Stored]:
    """What a commit changes in the branch; of a merge it includes what was merged."""
    asked = ["diff-tree", "--root", *_TREES, *parents[:1], commit]
    return _stored(place, await names(context, "git show", asked))


async def changed_since(context: ToolContext, place: Place, path: str, commit: str) -> Sequence[str]:
    """The files of a commit at a path that have another content now, or are gone. Other files there do not count."""
    asked = ["diff", "--raw", *_RAW, "--diff-filter=a", commit, "--", path]
    # What is in the commit and not staged counts as deleted for git.
    changed = _stored(place, await names(context, "git diff", asked))
    return await differing(context, [one.committed for one in changed if one.status != "U"], grows=False)


async def in_tree(context: ToolContext, place: Place, tree: str, base: str) -> Sequence[Stored]:
    """What differs in a tree from a commit. Without `base` it is all of it."""
    base = base or await empty_tree(context)
    return _stored(place, await names(context, "git show", ["diff-tree", *_TREES, base, tree]))


async def empty_tree(context: ToolContext) -> str:
    """The name of a tree without files."""
    made = await try_read(context, ["hash-object", "-t", "tree", "--stdin"], stdin=b"")
    return made.output.decode().strip()


def index_info(entries: Iterable[Stored]) -> bytes:
    """What stages files as given, for `git update-index -z --index-info`."""
    gone_first = sorted(entries, key=lambda one: one.is_deleted, reverse=True)  # a file may replace a folder
    lines = (f"{'0' if one.is_deleted else one.mode} {one.hash}\t{one.name}\0" for one in gone_first)
    return "".join(lines).encode("utf-8", "surrogateescape")


async def put_back(context: ToolContext, entries: Sequence[Stored]) -> None:
    """Stage files as given. Raises `ToolError` if git fails."""
    if not entries:
        return
    result = await keep_unlocked(context, ["update-index", "-z", "--index-info"], index_info(entries))
    if result.exit_code != 0:
        said = failure(context, "git update-index", result)
        paths = [one.path for one in entries]
        raise ToolError(
            f"What is staged of {shortened(paths)} could not be replaced. It may be other content than is there. {said}"
        )


def _stored(place: Place, fields: Sequence[str]) -> Sequence[Stored]:
    found = []
    for facts, name in zip(fields[::2], fields[1::2], strict=False):
        old_mode, mode, old_hash, content, status = facts.removeprefix(":").split(" ")
        path = name.removeprefix(place.prefix) if name.startswith(place.prefix) else ""
        old = {"old_mode": old_mode, "old_hash": old_hash}
        found.append(Stored(name=name, path=path, status=status, mode=mode, hash=content, **old))
    return found


def why_differing(paths: Sequence[str], instead: str = "git commit") -> str:
    """The end of an error message about files that git has stored with another content than they have.

    Args:
        instead: the command that does the same without a comparison.
    """
    return (
        f"git stored other content of {shortened(paths)} than is there. A program changes it all the time, a folder "
        "became a link, a filter stores something else each time, or a hook changed only what is committed. Try again; "
        f"if that does not help, run_command: {instead}"
    )


async def differing(
    context: ToolContext,
    stored: Iterable[Stored],
    checked: Iterable[Stored] = (),
    *,
    saved: bool = False,
    grows: bool = True,
) -> Sequence[str]:
    """The paths of files that git has stored with another content than they have, without those in `checked`.

    Args:
        saved: whether it was stored to be restored, without filters of the repository; then no file may have grown.
        grows: whether a file may have grown while git stored it, as logs do. What is appended later is a change.
    """
    root, before = context.paths.root, {(one.name, one.hash) for one in checked}
    new = [one for one in stored if one.path and (one.name, one.hash) not in before]
    other = await in_thread(lambda: {one.path: one.hash for one in new if not _is_same(root, one)})
    unseen = await unchecked(context, list(other))
    known = await conversions(context, [path for path in other if path not in unseen], alone=saved)
    return [
        path
        for path, conversion in known.items()
        if not await is_stored_as(context, path, other[path], conversion, alone=saved, grows=grows and not saved)
    ]


async def not_formatted(
    context: ToolContext, stored: Iterable[Stored], before: Iterable[Stored], paths: Collection[str]
) -> Sequence[str]:
    """Those of the paths with a line that neither was staged before nor is in the file.

    What a hook formats of a file staged in part is not what the file contains, but has none from elsewhere.
    """
    was = {(one.name, one.mode): one.hash for one in before if one.mode in FILE_MODES}
    made = {one.path: (one.hash, was.get((one.name, one.mode), "")) for one in stored if one.path in paths}
    known = await conversions(context, list(paths))
    return [
        path
        for path, conversion in known.items()
        if not (made[path][1] and await has_known_lines(context, path, made[path], conversion))
    ]


def _is_same(root: Path, stored: Stored) -> bool:
    """Whether git has stored the content of a file as it is, or with its line ends converted."""
    if stored.mode == _DELETED:
        return not is_file_there(root, stored.path)
    if stored.mode != _LINK and stored.mode not in FILE_MODES:  # the commit of a submodule
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


def is_file_there(root: Path, path: str) -> bool:
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


async def unchecked(context: ToolContext, paths: Sequence[str]) -> set[str]:
    """Those of the files that git does not look at, such as files outside of a sparse checkout."""
    found: set[str] = set()
    for start in range(0, len(paths), _AT_ONCE):
        asked = ["ls-files", "-v", "-z", "--", *paths[start : start + _AT_ONCE]]
        tagged = (line.partition(" ") for line in await names(context, "git ls-files", asked))
        found.update(path for tag, _, path in tagged if tag in _UNCHECKED)
    return found
