"""Snapshots of a folder, taken around commands: trees in a git folder in Marvin's data folder.

The user's repository is only read. Its objects are hard-linked here, so that nothing is written twice. Its settings,
filters, hooks and attributes are not used. Each snapshot works on a copy of the index, which then replaces the index.
So several Marvins need no lock, and a killed one leaves no partial data.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from ...api.errors import MarvinError
from ...api.limits import Limits
from ...api.record import Record
from ...api.timeouts import Timeouts
from ...util.git_calls import GIT_ALONE, git_command
from ...util.threads import in_thread
from ..files.path_checks import PROTECTED
from ..files.writing import TEMPORARY
from .contents import Read, contents_in, index_lines, name_lines, name_of, pack_of, read_files
from .repositories import exclude_file_of, top_of
from .stores import make_store, read_modes, shares_objects, used, write_modes

if TYPE_CHECKING:
    from ..processes.runner import ProcessRunner

_GIT = git_command(
    *("core.untrackedCache=false", "core.autocrlf=false", "core.symlinks=true", "core.fileMode=true"),
    *("core.fsync=none", "core.compression=1"),
)
_ENVIRONMENT = {
    **GIT_ALONE,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "1",
    "LC_ALL": "C",
}
_NEVER = (*(f"/{name}" for name in PROTECTED[1:]), "/.marvin/memories", "/.marvin/undo")
_NAMES = 40_000_000
"""The maximum size in bytes of all file names in a snapshot."""
_NESTED = 64
"""The maximum number of nested repositories to examine."""
_PIECE_FILES, _PIECE_BYTES = 5_000, 64_000_000
"""The size of one batch to write; finished batches stay written after a time-out."""
_BATCH = ("cat-file", "--buffer")
"""Git prints several lines at a time for many objects; each line would wake the reader."""
_STALE = 50
"""The number of files that are re-read each time before the index is updated with their times."""
_PACKED = 100
"""The number of files from which one pack is made; fewer are written as single objects."""
_USUAL = (0o644, 0o755, 0o664, 0o775)
_SPECIAL = re.compile(rb"([*?\[\]\\ ])")


class SnapshotFailure(MarvinError):
    """A snapshot could not be taken, or is no longer stored; the text says why.

    `is_lasting` means that another try would fail in the same way, after the same wait.
    """

    def __init__(self, text: str, *, is_lasting: bool = False) -> None:
        super().__init__(text)
        self.is_lasting = is_lasting


class Kept(Record):
    """A file in a snapshot: its mode and the name of its content, in git's terms."""

    mode: int
    content: str

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link, whose content is its target."""
        return self.mode == 0o120000


class Change(Record):
    """A file that differs between two snapshots; None for a side on which it is missing."""

    path: bytes
    before: Kept | None
    after: Kept | None

    @property
    def verb(self) -> str:
        """The kind of the change."""
        return "created" if self.before is None else "removed" if self.after is None else "changed"


class Snapshots:
    """Snapshots of one folder.

    Args:
        base: the folder of all snapshots.
        root: the folder, links resolved.
        without: parts of it to leave out in addition to what git ignores, as `/NAME`.
    """

    def __init__(self, base: Path, root: Path, processes: ProcessRunner, limits: Limits, timeouts: Timeouts) -> None:
        self.store = base / sha256(os.fsencode(root)).hexdigest()[:24]
        self.without: Sequence[str] = ()
        self._base = base
        self._root = root
        self._top = top_of(root)
        self._processes = processes
        self._limits = limits
        self._timeouts = timeouts
        self._is_ready = False
        self._shares = False
        self._excludes: list[str] = []
        self._modes: Mapping[str, int] = {}
        self._last: tuple[int, str] | None = None
        """The time of the index of the newest snapshot, and its tree."""

    async def take(self) -> str:
        """Store the current state of the folder; returns the name of its tree.

        Raises:
            SnapshotFailure: it contains too much, or git fails or is missing.
        """
        if self._processes.which("git") is None:
            raise SnapshotFailure("git, which stores the files, is not installed", is_lasting=True)
        deadline = time.monotonic() + self._timeouts.snapshot
        try:
            await self._prepared()
            index = self.store / f"index.{os.getpid()}-{os.urandom(4).hex()}"
            try:
                return await self._taken(index, deadline)
            finally:
                for left in (index, Path(f"{index}.lock")):
                    left.unlink(missing_ok=True)
        except OSError as error:
            raise SnapshotFailure(f"{self.store}: {error.strerror}") from error

    async def _prepared(self) -> None:
        if self._is_ready:
            return
        if not await in_thread(lambda: used(self.store)):
            await in_thread(lambda: make_store(self._base, self.store, self._limits, self._top))
        self._modes = await in_thread(lambda: read_modes(self.store))
        self._shares = await in_thread(lambda: shares_objects(self.store))
        found = await self._processes.run(
            ["git", "config", "--global", "--type=path", "--get", "core.excludesFile"], cwd=self.store, outside=True
        )
        named = found.output.strip(b"\n") if found.exit_code == 0 else b""
        self._excludes = ["-c", f"core.excludesFile={os.fsdecode(named)}"] if named else []
        self._is_ready = True

    async def _taken(self, index: Path, deadline: float) -> str:
        with suppress(FileNotFoundError):
            await in_thread(lambda: shutil.copy2(self.store / "index", index))  # its time shows stale entries
        env = {"GIT_INDEX_FILE": str(index)}
        limit = self._timeouts.snapshot
        said, new = await asyncio.gather(
            self._git("diff-files", "diff-files", "--raw", "--abbrev=40", "--relative", "-z", env=env, limit=limit),
            self._others(index, limit),
        )
        fields = said.split(b"\0")
        known = {path: head.split(b" ") for head, path in zip(fields[::2], fields[1::2], strict=False) if path}
        files = read_files(self._root, [*known, *new], self._limits.undo_file)
        modes, begun, total, stale = dict(self._modes), False, 0, 0
        while True:
            piece = await in_thread(lambda: _piece(files, known, modes))
            stale += piece.stale
            if piece.files:
                if begun and time.monotonic() > deadline:
                    os.replace(index, self.store / "index")
                    raise SnapshotFailure("the folder has too many new files to record at once (timeouts.snapshot)")
                total += piece.size
                if total > self._limits.undo_snapshots:
                    raise SnapshotFailure(
                        f"the folder has more than {self._limits.undo_snapshots:,} bytes (limits.undo_snapshots)",
                        is_lasting=True,
                    )
                await self._write(piece, env)
                begun = True
            if not piece.has_more:
                break
        if stale + (len(new) if begun else 0) > _STALE:  # stale entries are read each time
            await self._git("update-index", "update-index", "-q", "--refresh", env=env, may_fail=True)
        if modes != self._modes:
            self._modes = modes
            await in_thread(lambda: write_modes(self.store, modes))
        if not begun and self._last is not None and self._last[0] == os.stat(index).st_mtime_ns:
            return self._last[1]
        tree = (await self._git("write-tree", "write-tree", env=env)).strip().decode()
        with suppress(FileNotFoundError):  # an empty folder has none
            self._last = os.stat(index).st_mtime_ns, tree
            os.replace(index, self.store / "index")
        return tree

    def modes_of(self, changes: Sequence[Change]) -> dict[str, int]:
        """The permissions of removed files, if they were unusual."""
        gone = [os.fsdecode(change.path) for change in changes if change.after is None]
        return {name: self._modes[name] for name in gone if name in self._modes}

    async def _others(self, index: Path, limit: float) -> list[bytes]:
        """The files that are not in the index, including those of nested repositories."""
        found: list[bytes] = []
        folders, seen = [b""], 0
        while folders and seen <= _NESTED:
            folder, seen = folders.pop(), seen + 1
            where = self._root / os.fsdecode(folder) if folder else self._root
            own = {"GIT_WORK_TREE": str(where)} if folder else {}
            # For a nested repository, the outer index says which files are known, so its own is not used here.
            env = {"GIT_INDEX_FILE": f"{index}.none" if folder else str(index), **own}
            options = ["--others", "--exclude-standard", *self._left_out(folder), "-z"]
            said = await self._git("ls-files", "ls-files", *options, env=env, limit=limit, cwd=where)
            for name in said.split(b"\0"):
                if name.endswith(b"/"):
                    folders.append(folder + name)
                elif name:
                    found.append(folder + name)
        return found

    def _left_out(self, folder: bytes) -> list[str]:
        """Options that exclude Marvin's own files, and those that the repository ignores in this clone only."""
        if folder:
            return []
        prefix = os.fsencode(self._root.relative_to(self._top)) if self._root != self._top else b""
        below = b"/" + _SPECIAL.sub(rb"\\\1", prefix) if prefix else b""
        own_places = [_SPECIAL.sub(rb"\\\1", os.fsencode(name)) for name in self.without]
        places = [*map(os.fsencode, _NEVER), *own_places]
        options = [f"--exclude={os.fsdecode(below + place)}" for place in places]
        own = exclude_file_of(self._top)
        options.append(f"--exclude={TEMPORARY}")
        return [*options, f"--exclude-from={own}"] if own is not None else options

    async def _write(self, piece: _Piece, env: Mapping[str, str]) -> None:
        """Store new contents, and add them to the index."""
        contents = await in_thread(piece.contents)
        if self._shares and len(contents) > _PACKED:
            stdin = await in_thread(lambda: name_lines(contents))
            said = await self._git("cat-file", *_BATCH, "--batch-check=%(objectname)", stdin=stdin)
            contents = await in_thread(lambda: piece.contents(said))
        if contents:
            pack = await in_thread(lambda: pack_of(list(contents.values())))
            reader = ["index-pack", "--stdin"] if len(contents) > _PACKED else ["unpack-objects", "-q"]
            await self._git(reader[0], *reader, stdin=pack)
        prefix = os.fsencode(self._root.relative_to(self._top)) + b"/" if self._root != self._top else b""
        lines = await in_thread(lambda: index_lines({prefix + path: kept for path, kept in piece.files.items()}))
        await self._git(
            "update-index", "update-index", "-z", "--add", "--replace", "--index-info", env=env, stdin=lines
        )

    async def changes(self, before: str, after: str) -> list[Change]:
        """The files that differ between two trees. Raises `SnapshotFailure` if one is no longer stored."""
        prefix = f"--relative={self._root.relative_to(self._top)}" if self._root != self._top else "--no-relative"
        said = await self._git("diff-tree", "diff-tree", "-r", "-z", "--no-renames", "--raw", prefix, before, after)

        def found() -> list[Change]:
            fields = said.split(b"\0")
            return [_change(head, path) for head, path in zip(fields[::2], fields[1::2], strict=False) if path]

        return await in_thread(found)

    async def sizes(self, contents: Sequence[str]) -> dict[str, int]:
        """The size of each content in bytes. Raises `SnapshotFailure` if one is no longer stored."""
        if not contents:
            return {}
        stdin = await in_thread(lambda: name_lines(contents))
        said = await self._git("cat-file", *_BATCH, "--batch-check=%(objectname) %(objectsize)", stdin=stdin)

        def read() -> dict[str, int]:
            found = dict(line.split(b" ", 1) for line in said.splitlines() if b" " in line)
            if any(not size.isdigit() for size in found.values()) or len(found) != len({*contents}):
                raise SnapshotFailure("The record of the earlier content of its files is missing or incomplete.")
            return {name.decode(): int(size) for name, size in found.items()}

        return await in_thread(read)

    async def contents(self, sizes: Mapping[str, int]) -> dict[str, bytes]:
        """The contents with these names and sizes. Raises `SnapshotFailure` if one is no longer stored."""
        if not sizes:
            return {}
        stdin = await in_thread(lambda: name_lines(sizes))
        said = await self._git("cat-file", *_BATCH, "--batch", stdin=stdin, most=sum(sizes.values()) + 200 * len(sizes))
        try:
            return await in_thread(lambda: contents_in(said, sizes))
        except ValueError as error:
            raise SnapshotFailure("The record of the earlier content of its files is missing or incomplete.") from error

    async def _git(
        self,
        what: str,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        limit: float | None = None,
        cwd: Path | None = None,
        most: int = _NAMES,
        may_fail: bool = False,
    ) -> bytes:
        """The output of git for the store. Raises `SnapshotFailure` if git fails, or prints more than expected."""
        places = {"GIT_DIR": str(self.store), "GIT_WORK_TREE": str(self._top)}
        result = await self._processes.run(
            [*_GIT, *self._excludes, *arguments],
            cwd=cwd or self._root,
            stdin=stdin,
            timeout=limit or self._timeouts.snapshot_git,
            output_limit=most * 2,
            env={**_ENVIRONMENT, **places, **(env or {})},
            outside=True,
        )
        if result.timed_out:
            raise SnapshotFailure("scanning the folder took too long (timeouts.snapshot)", is_lasting=True)
        if result.omitted:
            raise SnapshotFailure("the folder has too many files", is_lasting=True)
        if result.exit_code != 0 and not may_fail:
            raise SnapshotFailure(f"git {what}: {result.stderr.decode('utf-8', 'replace').strip()[-500:]}")
        return result.output


class _Piece(Record):
    """A batch of files: their new index entries, those that were read, and the number that is already in the index.

    `size` is the number of bytes read.
    """

    files: Mapping[bytes, tuple[int, str] | None]
    read: Sequence[Read]
    size: int
    stale: int
    has_more: bool

    def contents(self, said: bytes | None = None) -> dict[str, bytes]:
        """The contents by name; only the missing ones, if git was asked for them."""
        found = {kept[1]: file.content for file in self.read if (kept := self.files[file.path]) is not None}
        if said is None:
            return found
        missing = {line.split()[0].decode() for line in said.splitlines() if line.endswith(b" missing")}
        return {name: found[name] for name in missing}


def _piece(
    files: Iterator[tuple[bytes, Read | None]], known: Mapping[bytes, Sequence[bytes]], modes: dict[str, int]
) -> _Piece:
    """The next batch of files.

    Args:
        known: their index entries, in git's diff format.
        modes: the unusual permissions of files by name; those of these files are added.
    """
    kept: dict[bytes, tuple[int, str] | None] = {}
    read: list[Read] = []
    size = stale = 0
    for path, found in files:
        if found is None:
            if path in known:
                kept[path] = None
        else:
            name = name_of(found.content)
            _note_mode(modes, found)
            before = known.get(path)
            if before is not None and (before[0], before[2]) == (b":%o" % found.mode, name.encode()):
                stale += 1
                continue
            kept[path] = (found.mode, name)
            read.append(found)
            size += len(found.content)
        if len(kept) >= _PIECE_FILES or size > _PIECE_BYTES:
            return _Piece(files=kept, read=read, size=size, stale=stale, has_more=True)
    return _Piece(files=kept, read=read, size=size, stale=stale, has_more=False)


def _note_mode(modes: dict[str, int], file: Read) -> None:
    name = os.fsdecode(file.path)
    if file.is_link or file.permissions in _USUAL:
        modes.pop(name, None)
    else:
        modes[name] = file.permissions


def _change(head: bytes, path: bytes) -> Change:
    old_mode, new_mode, old, new, _ = head.decode().lstrip(":").split(" ")
    return Change(path=path, before=_kept(old_mode, old), after=_kept(new_mode, new))


def _kept(mode: str, content: str) -> Kept | None:
    return None if set(content) == {"0"} else Kept(mode=int(mode, 8), content=content)
