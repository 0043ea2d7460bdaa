"""Snapshots of a folder, taken around commands: trees in a git folder in Marvin's data folder.

The user's repository is only read. Its objects are hard-linked here, so that nothing is written twice. Its settings,
filters, hooks and attributes are not used. Each snapshot works on a copy of the index, which then replaces the index.
So several Marvins need no lock, and a killed one leaves no partial data.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ...api.limits import Limits
from ...api.timeouts import Timeouts
from ...util.git_calls import GIT_ALONE, git_command
from ...util.threads import in_thread
from .contents import Folders, contents_in, index_lines, name_lines, pack_of, read_files
from .failures import SnapshotFailure, failure_of
from .pieces import Piece, next_piece, note_modes
from .repositories import exclude_file_of, exclude_options, top_of
from .restoring import check_no_link
from .stores import lost_power, make_store, merge_modes, read_modes, renew_store, shares_objects, used
from .trees import Change, change_of
from .unseen import Seen, follow_other_rules, left_out, moved_in, older_than, rules_alone

if TYPE_CHECKING:
    from ..processes.runner import ProcessRunner

T = TypeVar("T")
Settled = tuple[str, list[Change], set[bytes]]

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
    **{f"GIT_{kind}_PATHSPECS": "0" for kind in ("LITERAL", "GLOB", "NOGLOB", "ICASE")},
    "LC_ALL": "C",
}
_NAMES = 40_000_000
"""The maximum size in bytes of all file names in a snapshot."""
_NESTED = 64
"""The maximum number of nested repositories to examine."""
_BATCH = ("cat-file", "--buffer")
"""Git prints several lines at a time for many objects; each line would wake the reader."""
_STALE = 50
"""The number of files that are re-read each time before the index is updated with their times."""
_PACKED = 100
"""The number of files from which one pack is made; fewer are written as single objects."""


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
        self.seen = Seen()
        """What the newest snapshot left out."""
        self.begun = 0
        """The time at which the newest snapshot was begun, in nanoseconds since the epoch."""
        self._base = base
        self._root = root
        self.top = top_of(root)
        """The folder of the repository around it, to which the paths in the trees are relative; the folder itself if
        that repository ignores it."""
        self._is_top_kept = False
        self._processes = processes
        self._limits = limits
        self._timeouts = timeouts
        self.chmods: Mapping[str, tuple[int, int]] = {}
        """The files of which only the permissions changed since the snapshot before, with those before and now."""
        self._is_ready = False
        self._shares = False
        self._excludes: list[str] = []
        self.modes: Mapping[str, int] = {}
        """The unusual permissions of files and folders by name, as far as they were read."""
        self._last: tuple[int, str] | None = None
        """The time of the index of the newest snapshot, and its tree."""

    async def take(self) -> str:
        """Store the current state of the folder; returns the name of its tree.

        Raises:
            SnapshotFailure: it contains too much, or git fails or is missing.
            MarvinError: the folder was replaced by a link.
        """
        if self._processes.which("git") is None:
            raise SnapshotFailure("git, which stores the files, is not installed", is_lasting=True)
        check_no_link(self._root)
        deadline, self.begun = time.monotonic() + self._timeouts.snapshot, time.time_ns()
        try:
            await self._prepared()
            try:
                return await self._taken(deadline)
            except SnapshotFailure as failure:
                if not failure.is_damaged:
                    raise
            # A loss of power damages it, for example, as git writes it without waiting for the disk.
            await self._repair()
            return await self._taken(deadline)
        except OSError as error:
            raise SnapshotFailure(f"{self.store}: {error.strerror}") from error

    def keep_top(self, top: Path) -> None:
        """Have the paths in the trees relative to the folder to which they were relative in other snapshots."""
        self.top, self._is_top_kept = top, True

    async def _repair(self) -> None:
        await in_thread(lambda: renew_store(self._base, self.store, self._limits, self.top))

    async def _repaired(self, reading: Callable[[], Awaitable[T]]) -> T:
        """What is stored, after a repair if necessary. Raises `SnapshotFailure`, a final one if that does not help."""
        try:
            return await reading()
        except SnapshotFailure as failure:
            if not failure.is_damaged:
                raise
        await self._repair()
        try:
            return await reading()
        except SnapshotFailure as failure:
            raise SnapshotFailure(str(failure), is_final=failure.is_damaged) from failure

    async def _taken(self, deadline: float) -> str:
        with self._own_index() as index:
            with suppress(FileNotFoundError):
                await in_thread(lambda: shutil.copy2(self.store / "index", index))  # its time shows stale entries
            return await self._taken_in(index, deadline)

    @contextmanager
    def _own_index(self) -> Iterator[Path]:
        """A name for an index, which is removed at the end."""
        index = self.store / f"index.{os.getpid()}-{os.urandom(4).hex()}"
        try:
            yield index
        finally:
            for left in (index, Path(f"{index}.lock")):
                left.unlink(missing_ok=True)

    async def _prepared(self) -> None:
        if self._is_ready:
            return
        if not await in_thread(lambda: used(self.store)):
            await in_thread(lambda: make_store(self._base, self.store, self._limits, self.top))
        if await in_thread(lambda: lost_power(self.store)):
            await self._repair()
        self._shares = await in_thread(lambda: shares_objects(self.store))
        found = await self._processes.run(
            ["git", "config", "--global", "--type=path", "--get", "core.excludesFile"], cwd=self.store, outside=True
        )
        named = found.output.strip(b"\n") if found.exit_code == 0 else b""
        self._excludes = ["-c", f"core.excludesFile={os.fsdecode(named)}"] if named else []
        if self._root != self.top and not self._is_top_kept and await self._is_ignored():
            self.top = self._root
        self._is_ready = True

    async def _is_ignored(self) -> bool:
        """Whether the repository around the folder ignores it as a whole, so that no file of it would be stored."""
        exclude = exclude_file_of(self.top)
        rules = [[], ["-c", f"core.excludesFile={exclude}"]] if exclude is not None else [[]]  # they replace the user's
        words = ["check-ignore", "--no-index", str(self._root)]
        return any([await self._git("check-ignore", *own, *words, others=(1,)) for own in rules])

    async def _taken_in(self, index: Path, deadline: float) -> str:
        self.modes = await in_thread(lambda: read_modes(self.store))  # another Marvin may have added some
        env = {"GIT_INDEX_FILE": str(index)}
        known, (new, seen) = await asyncio.gather(self._differing(index), self._others(index))
        passed, chmods, folders = set[bytes](), dict[str, tuple[int, int]](), Folders(self._root)
        files = read_files(folders, [*known, *new], self._limits.undo_file, passed)
        modes, begun, total, stale = dict(self.modes), False, 0, 0
        while True:
            piece = await in_thread(lambda: next_piece(files, known, modes, chmods))
            note_modes(modes, folders.permissions)
            stale += piece.stale
            if piece.files:
                if begun and time.monotonic() > deadline:
                    await self._keep(modes)  # files in the index are not read again
                    os.replace(index, self.store / "index")
                    raise SnapshotFailure("the folder has too many new files to record at once (timeouts.snapshot)")
                total += piece.size
                if total > self._limits.undo_snapshots:
                    raise SnapshotFailure(
                        f"the folder has more than {self._limits.undo_snapshots:,} bytes (limits.undo_snapshots)",
                        is_final=True,
                    )
                await self._write(piece, env)
                begun = True
            if not piece.has_more:
                break
        self.seen, self.chmods = seen.replace(passed=frozenset(passed)), chmods
        if stale + (len(new) if begun else 0) > _STALE:  # stale entries are read each time
            await self._git("update-index", "update-index", "-q", "--refresh", env=env, others=range(1, 256))
        await self._keep(modes)
        if not begun and self._last is not None and self._last[0] == os.stat(index).st_mtime_ns:
            return self._last[1]
        tree = await self._tree(env)
        with suppress(FileNotFoundError):  # an empty folder has none
            self._last = os.stat(index).st_mtime_ns, tree
            os.replace(index, self.store / "index")
        return tree

    async def _keep(self, modes: Mapping[str, int]) -> None:
        old, self.modes = self.modes, modes
        await in_thread(lambda: merge_modes(self.store, old, modes))

    async def _differing(self, index: Path) -> dict[bytes, list[bytes]]:
        """The files that differ from an index, with their entries in git's diff format."""
        words, env = ("diff-files", "--raw", "--abbrev=40", "--relative", "-z"), {"GIT_INDEX_FILE": str(index)}
        fields = (await self._git("diff-files", *words, env=env, limit=self._timeouts.snapshot)).split(b"\0")
        return {path: head.split(b" ") for head, path in zip(fields[::2], fields[1::2], strict=False) if path}

    async def _others(self, index: Path) -> tuple[list[bytes], Seen]:
        """The files that are not in the index, including those of nested repositories; and what is not listed."""
        found, folders, nested = list[bytes](), [b""], set[bytes]()
        while folders and len(nested) <= _NESTED:
            nested.add(folder := folders.pop())
            where = self._root / os.fsdecode(folder) if folder else self._root
            own = {"GIT_WORK_TREE": str(where)} if folder else {}
            # For a nested repository, the outer index says which files are known, so its own is not used here.
            env = {"GIT_INDEX_FILE": f"{index}.none" if folder else str(index), **own}
            rules = [] if folder else exclude_options(self.top, self._prefix, self.without)
            options = ["--others", "--exclude-standard", *rules, "-z"]
            said = await self._git("ls-files", "ls-files", *options, env=env, limit=self._timeouts.snapshot, cwd=where)
            for name in said.split(b"\0"):
                if name.endswith(b"/"):
                    folders.append(folder + name)
                elif name:
                    found.append(folder + name)
        exclude = exclude_file_of(self.top)
        patterns = await in_thread(exclude.read_bytes) if exclude is not None else b""
        return found, Seen(nested=frozenset(nested), unlisted=tuple(folders), rules=patterns)

    async def _write(self, piece: Piece, env: Mapping[str, str]) -> None:
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
        await self._to_index(piece.files, env)

    async def _to_index(self, files: Mapping[bytes, tuple[int, str] | None], env: Mapping[str, str]) -> None:
        lines = await in_thread(lambda: index_lines({self._prefix + path: kept for path, kept in files.items()}))
        words = ("update-index", "-z", "--add", "--replace", "--index-info")
        await self._git("update-index", *words, env=env, stdin=lines)

    async def _tree(self, env: Mapping[str, str]) -> str:
        return (await self._git("write-tree", "write-tree", env=env)).strip().decode()

    @property
    def _prefix(self) -> bytes:
        return os.fsencode(self._root.relative_to(self.top)) + b"/" if self._root != self.top else b""

    async def differing(self) -> list[bytes]:
        """The files that may differ from the newest snapshot. Raises `SnapshotFailure` if git fails."""
        index = self.store / "index"
        known, (new, _) = await asyncio.gather(self._differing(index), self._others(index))
        return [*known, *new]

    async def settled(self, before: str, after: str, since: int, seen: Seen | None = None) -> Settled:
        """The tree after commands, the changes by them, and the files left out of both: they were there, but not seen.

        Args:
            since: when the snapshot before them was begun; 0 if that is unknown.
            seen: what the snapshot before them left out, if that is known.
        """
        changes = await self.changes(before, after)
        since = since if since <= time.time_ns() else 0  # the clock was set back
        seen = seen or Seen(nested=self.seen.nested, rules=self.seen.rules)
        left = left_out(changes, seen, self.seen)
        for unseen in (older_than, moved_in):
            left |= await in_thread(lambda unseen=unseen: unseen(self._root, changes, since))  # type: ignore[misc]
        created = [change.path for change in changes if change.before is None and change.path not in left]
        if created and follow_other_rules(changes, seen, self.seen):
            left |= await self._ignored(before, created, seen.rules)
        if not left:
            return after, changes, left
        reverted = [(change.path, change.before) for change in changes if change.path in left]
        with self._own_index() as index:
            env = {"GIT_INDEX_FILE": str(index)}
            await self._git("read-tree", "read-tree", after, env=env)
            await self._to_index({path: (old.mode, old.content) if old else None for path, old in reverted}, env)
            return await self._tree(env), [change for change in changes if change.path not in left], left

    async def _ignored(self, tree: str, paths: Sequence[bytes], rules: bytes) -> set[bytes]:
        """Those of the files that the rules in a tree, or these others, ignored."""
        with rules_alone(self.store, rules) as (other, empty), self._own_index() as index:
            git = partial(self._git, env={"GIT_INDEX_FILE": str(index), "GIT_WORK_TREE": str(empty)}, cwd=empty)
            await git("read-tree", "read-tree", tree)
            found = await git("ls-files", "ls-files", "-z", "--", ":(glob)**/.gitignore")
            # git reads rules from an index only if they are marked as left out of the working tree.
            await git("update-index", "update-index", "--skip-worktree", "-z", "--stdin", stdin=found)
            below = b"./" + self._prefix  # so that no name begins as a pattern
            stdin = b"".join(below + path + b"\0" for path in paths)
            said = b""
            for own in ((), ("-c", f"core.excludesFile={other}")):  # these replace the rules of the user
                said += await git("check-ignore", *own, "check-ignore", "-z", "--stdin", stdin=stdin, others=(1,))
        return {path.removeprefix(below) for path in said.split(b"\0") if path}

    async def changes(self, before: str, after: str) -> list[Change]:
        """The files that differ between two trees. Raises `SnapshotFailure` if one is no longer stored."""
        return await self._repaired(lambda: self._changes(before, after))

    async def _changes(self, before: str, after: str) -> list[Change]:
        prefix = f"--relative={self._root.relative_to(self.top)}" if self._root != self.top else "--no-relative"
        said = await self._git("diff-tree", "diff-tree", "-r", "-z", "--no-renames", "--raw", prefix, before, after)

        def found() -> list[Change]:
            fields = said.split(b"\0")
            return [change_of(head, path) for head, path in zip(fields[::2], fields[1::2], strict=False) if path]

        return await in_thread(found)

    async def sizes(self, contents: Sequence[str]) -> dict[str, int]:
        """The size of each content in bytes. Raises `SnapshotFailure` if one is no longer stored."""
        return await self._repaired(lambda: self._sizes(contents)) if contents else {}

    async def _sizes(self, contents: Sequence[str]) -> dict[str, int]:
        stdin = await in_thread(lambda: name_lines(contents))
        said = await self._git("cat-file", *_BATCH, "--batch-check=%(objectname) %(objectsize)", stdin=stdin)

        def read() -> dict[str, int]:
            found = dict(line.split(b" ", 1) for line in said.splitlines() if b" " in line)
            if any(not size.isdigit() for size in found.values()) or len(found) != len({*contents}):
                raise SnapshotFailure(
                    "The record of the earlier content of its files is missing or incomplete.", is_damaged=True
                )
            return {name.decode(): int(size) for name, size in found.items()}

        return await in_thread(read)

    async def contents(self, sizes: Mapping[str, int]) -> dict[str, bytes]:
        """The contents with these names and sizes. Raises `SnapshotFailure` if one is no longer stored."""
        return await self._repaired(lambda: self._contents(sizes)) if sizes else {}

    async def _contents(self, sizes: Mapping[str, int]) -> dict[str, bytes]:
        stdin = await in_thread(lambda: name_lines(sizes))
        said = await self._git("cat-file", *_BATCH, "--batch", stdin=stdin, most=sum(sizes.values()) + 200 * len(sizes))
        try:
            return await in_thread(lambda: contents_in(said, sizes))
        except ValueError as error:
            raise SnapshotFailure(
                "The record of the earlier content of its files is missing or incomplete.", is_damaged=True
            ) from error

    async def _git(
        self,
        what: str,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        limit: float | None = None,
        cwd: Path | None = None,
        most: int = _NAMES,
        others: Sequence[int] = (),
    ) -> bytes:
        """The output of git for the store. Raises `SnapshotFailure` if git fails, or prints more than expected.

        Args:
            others: exit codes other than 0 that are none of a failure.
        """
        places = {"GIT_DIR": str(self.store), "GIT_WORK_TREE": str(self.top)}
        # git reads the index even where it compares trees, and fails if that is damaged.
        places["GIT_INDEX_FILE"] = str(self.store / "index.none")
        result = await self._processes.run(
            [*_GIT, *self._excludes, *arguments],
            cwd=cwd or self._root,
            stdin=stdin,
            timeout=limit or self._timeouts.snapshot_git,
            output_limit=most * 2,
            env={**_ENVIRONMENT, **places, **(env or {})},
            outside=True,
        )
        if result.timed_out or result.omitted or result.exit_code not in (0, *others):
            raise failure_of(what, result)
        return result.output
