"""Stages the changes of a project, as they are read without following links.

git goes by names. If a folder becomes a link while git reads it, `git add` stores files that lie outside. So git only
lists what has changed. Marvin reads these files, and git stores them from a private folder, so that its settings for
line ends, encodings and filters hold.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from marvin_core import (
    GIT_PROGRAMS,
    NAME_REFUSED,
    Record,
    in_thread,
    is_there,
    usually_ignored,
    why_content_left_out,
    why_left_out,
)

from .locks import identity
from .project_git import NAMES, GitFault, ProjectGit
from .reading import LINK, Entry, batches

_TICKETS = ".tickets/"
ALL = ("--", ".", ":(exclude).tickets")
"""Commands in the sandbox do not see the tickets, and git would report them as deleted."""
RAW = ("--raw", "-z", "--no-abbrev", "--no-renames", "--no-ext-diff", "--ignore-submodules=dirty")
_MARVINS = ".marvin/"
_LOCK = ".marvin/pipeline_state.lock"
_SUBMODULE = b"160000"
_COMMIT = re.compile(rb"^\+Subproject commit ([0-9a-f]{40,64})$", re.MULTILINE)
_PROGRAM = Path(__file__).with_name("private_tree.py")
_PRIVATE = (sys.executable, "-I", "-S", "-B", str(_PROGRAM))
_OF_THE_REPOSITORY = (b"local", b"worktree")
_LARGE = 100_000_000
"""Bytes of a file that is not copied once more, to a private folder."""
_TRIES = 8
_SHOWN = 10
WHOLE = ("-c", "core.splitIndex=false")
"""A setting for another index, so that it is in one file: git keeps shared parts for weeks."""
_COPY = "marvin-checkpoint-"
_FORGOTTEN = 3_600
"""Seconds after which a copy of the index was left by a killed process."""


class _Changes(Record):
    """What differs from the index.

    Args:
        tracked: the files that git knows, with the mode that each has now.
        none: git's name for no object.
    """

    tracked: Mapping[str, bytes]
    none: bytes
    new: tuple[str, ...]


class _ChangedError(GitFault):
    """The index was changed by somebody else while files were read."""


class Staging:
    """Stages the changes of one project.

    Args:
        git: runs git in it.
    """

    def __init__(self, git: ProjectGit) -> None:
        self.left_out: dict[str, str] = {}
        """New files, and folders with a slash, that were left out, each with the reason; without those in `.marvin`."""
        self._git = git
        self._index: Path | None = None
        self._seen: tuple[int, int] | None = None
        """What is compared before the index is changed: others may have staged something newer."""

    async def stage(self) -> None:
        """Stage all changes of the project.

        New files that should not be committed, such as keys and logs, are left out, and so are folders that programs
        made, such as `node_modules`, and the tickets.

        Raises:
            GitFault: git fails, a tracked file cannot be read, or one has a conflict.
        """
        self._index = await self._git.index()
        tries = self._git.tries()
        for _ in range(_TRIES):
            with suppress(_ChangedError):
                await self._stage()
                return
            if not await tries.again():
                break
        self._index = None  # a program changes it all the time
        await self._stage()

    async def _stage(self) -> None:
        self.left_out.clear()
        changes = await self._changes()
        if not changes.tracked and not changes.new:
            return
        modules = [name for name, mode in changes.tracked.items() if mode == _SUBMODULE]
        prefix = os.fsencode(await self._git.prefix())
        commits = [line for name in modules if (line := await self._submodule(name, prefix))]
        self._seen = self._identity()
        await self._to_index(commits)
        files = [
            *((name, False) for name in changes.tracked if name not in modules),
            *((name, True) for name in changes.new),
        ]
        filtered = await self._filtered([name for name, _ in files])
        found = batches(self._git.folder, sorted(files, key=_order), self._why_left_out)
        while (batch := await in_thread(lambda: next(found, None))) is not None:
            gone = [b"0 %b\t%b" % (changes.none, prefix + os.fsencode(name)) for name in batch.gone]
            is_apart = {entry.name: entry.name in filtered or len(entry.content) > _LARGE for entry in batch.entries}
            apart = [await self._alone(entry, prefix) for entry in batch.entries if is_apart[entry.name]]
            await self._to_index([*gone, *apart])
            await self._store([entry for entry in batch.entries if not is_apart[entry.name]], prefix)

    async def _changes(self) -> _Changes:
        listed = await self._git.whole("diff", *RAW, "--relative", *ALL, limit=NAMES)
        parts = listed.split(b"\0")
        heads = [(head.split(), os.fsdecode(name)) for head, name in zip(parts[::2], parts[1::2], strict=False)]
        if unmerged := [name for head, name in heads if head[4:] == [b"U"]]:
            raise GitFault(
                f"Files in {self._git.folder} have conflicts that are not resolved: {', '.join(unmerged[:_SHOWN])}. "
                "Resolve them (git status shows how), and run the pipeline again."
            )
        tracked = {name: head[1] for head, name in heads}
        none = b"0" * len(heads[0][0][2]) if heads else b""
        return _Changes(tracked=tracked, none=none, new=tuple(await self._new()))

    async def _new(self) -> list[str]:
        """The untracked files that belong into a commit, by their names."""
        listed = await self._git.attempt("ls-files", "-z", "--others", "--exclude-standard", limit=NAMES)
        if listed.exit_code != 0:
            raise self._git.fault("ls-files", listed)
        if listed.omitted:
            raise GitFault(
                f"There are too many new files in {self._git.folder} for git to record. Add folders that should not be "
                "committed to .gitignore, and run the pipeline again."
            )
        names = [os.fsdecode(name) for name in listed.output.split(b"\0") if name]
        return await in_thread(lambda: self._chosen(names))

    def _chosen(self, names: Sequence[str]) -> list[str]:
        """Those of the new files that belong into a commit, from their names. Blocks."""
        within = usually_ignored(names, partial(is_there, self._git.folder))
        chosen = []
        for name in names:
            folder = within[name.rpartition("/")[0]]
            if name.startswith(_TICKETS) or name == _LOCK:
                continue
            if folder:
                self.left_out[f"{folder}/"] = "usually ignored"
            elif reason := why_left_out(name):
                if not name.startswith(_MARVINS):
                    self.left_out[name] = reason
            else:
                chosen.append(name)
        return chosen

    def _why_left_out(self, name: str, size: int, sample: bytes) -> str:
        """Why a new file is left out, from its content; empty if it is not."""
        reason = why_content_left_out(size, sample, is_told=False)
        if reason:
            self.left_out[name] = reason
        return reason

    async def _submodule(self, name: str, prefix: bytes) -> bytes:
        """The index entry of a submodule; empty if its commit is the same."""
        flags = ("--no-ext-diff", "--no-textconv", "--submodule=short", "--ignore-submodules=dirty")
        printed = await self._git.run("diff", *flags, "--", f":(literal){name}")
        found = _COMMIT.search(printed)  # of another file it shows other lines
        return b"%b %b\t%b" % (_SUBMODULE, found[1], prefix + os.fsencode(name)) if found else b""

    async def _filtered(self, names: Sequence[str]) -> frozenset[str]:
        """Those of the files whose filter the repository defines."""
        listed = await self._git.attempt(*GIT_PROGRAMS, limit=NAMES)
        if listed.exit_code not in (0, 1) or listed.omitted:  # 1: there is none
            raise self._git.fault("config", listed)
        fields = listed.output.split(b"\0")
        keys = [
            setting.partition(b"\n")[0]
            for scope, setting in zip(fields[::2], fields[1::2], strict=False)
            if scope in _OF_THE_REPOSITORY
        ]
        filters = {key.removeprefix(b"filter.").rpartition(b".")[0] for key in keys if key.startswith(b"filter.")}
        if not filters:
            return frozenset()
        stdin = b"".join(os.fsencode(name) + b"\0" for name in names)
        fields = (await self._git.whole("check-attr", "-z", "--stdin", "filter", stdin=stdin, limit=NAMES)).split(b"\0")
        return frozenset(
            os.fsdecode(name) for name, value in zip(fields[::3], fields[2::3], strict=False) if value in filters
        )

    async def _alone(self, entry: Entry, prefix: bytes) -> bytes:
        """The index entry of a large file, or of one whose filter may need the other files of the project."""
        given = ("hash-object", "-w", "--stdin", "--no-filters" if entry.mode == LINK else f"--path={entry.name}")
        stored = (await self._git.run(*given, stdin=entry.content)).strip()
        return b"%o %b\t%b" % (entry.mode, stored, prefix + os.fsencode(entry.name))

    async def _to_index(self, lines: Sequence[bytes]) -> None:
        if self._identity() != self._seen:
            raise _ChangedError
        if lines:
            stdin = b"".join(line + b"\0" for line in lines)
            await self._git.run("update-index", "-z", "--add", "--replace", "--index-info", stdin=stdin)
            self._seen = self._identity()

    def _identity(self) -> tuple[int, int] | None:
        return identity(self._index) if self._index is not None else None

    async def _store(self, entries: Sequence[Entry], prefix: bytes) -> None:
        """Stage files from a private folder.

        git does so in a copy of the index: whenever it writes an index, it looks at files that were changed right after
        the last time, and those are not in the private folder.
        """
        if not entries:
            return
        stdin = await in_thread(lambda: b"".join(_packed(entries, prefix)))
        folder = await self._git.place("--absolute-git-dir")
        index = await self._git.index()
        copy = own_index(folder)
        env = {"GIT_DIR": str(folder), **of_index(copy)}
        add = ("update-index", "--add", "--replace", "-z", "--stdin")
        try:
            await in_thread(lambda: _copied(index, copy))
            await self._git.run(*add, through=_PRIVATE, who=WHOLE, env=env, stdin=stdin)
            listed = await self._git.whole("ls-files", "--stage", "--full-name", "-z", env=env, limit=NAMES)
        finally:
            await in_thread(lambda: removed(copy))
        lines = {line.partition(b"\t")[2]: line for line in listed.split(b"\0")}
        names = {entry.name: prefix + os.fsencode(entry.name) for entry in entries}
        self.left_out |= {name: NAME_REFUSED for name, whole in names.items() if whole not in lines}
        await self._to_index([lines[whole] for whole in names.values() if whole in lines])


def _packed(entries: Sequence[Entry], prefix: bytes) -> Iterator[bytes]:
    """What `private_tree.py` reads."""
    for entry in entries:
        name = prefix + os.fsencode(entry.name)
        yield b"%d %d %d\n%b" % (entry.mode, len(name), len(entry.content), name)
        yield entry.content


def own_index(repository: Path) -> Path:
    """A name for another index in git's folder."""
    return repository / f"{_COPY}{os.urandom(6).hex()}"


def of_index(index: Path) -> dict[str, str]:
    """The variables of such an index; `WHOLE` belongs to each call that writes it."""
    return {"GIT_INDEX_FILE": str(index)}


def remove_left(repository: Path) -> None:
    """Remove the copies of the index that killed processes left. Blocks."""
    before = time.time() - _FORGOTTEN
    for path in repository.glob(f"{_COPY}*"):
        with suppress(OSError):
            if path.lstat().st_mtime < before:
                path.unlink()


def removed(index: Path) -> None:
    """Remove an index that git does not need any more, and the lock of a git that was killed. Blocks."""
    for path in (index, index.with_name(f"{index.name}.lock")):
        path.unlink(missing_ok=True)


def _copied(index: Path, copy: Path) -> None:
    with suppress(FileNotFoundError):  # nothing was staged yet
        shutil.copyfile(index, copy)


def _order(file: tuple[str, bool]) -> tuple[bool, str]:
    """The attributes of files come first: they hold for the others."""
    name, _ = file
    return name.rpartition("/")[2] != ".gitattributes", name
