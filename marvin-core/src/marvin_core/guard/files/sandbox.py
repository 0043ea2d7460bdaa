"""The sandbox: the only path from a model's string to the content of a file.

A path that is checked and then used can be redirected in between by a swapped link. So a folder is opened first, and
the kernel reports the real path of the descriptor. All operations are then relative to that descriptor, by a plain name
that is never followed as a link.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from io import BufferedReader, FileIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ...api.errors import ToolError
from .folders import FolderPaths
from .path_checks import PROTECTED

if TYPE_CHECKING:
    from ...api.tool_context import FileInfo, FileWrite
    from .folder_descriptors import Descent, Place
    from .locks import ProjectLocks

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_PROBE = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY


class SandboxPaths(FolderPaths):
    """Files below one root. Thread-safe; holds no descriptor between calls.

    Args:
        root: the sandbox root; links in it are resolved once, here.
        hidden: patterns of paths that cannot be accessed at all, in addition to `HIDDEN`: Marvin's own.
        protected: patterns of paths that cannot be written, see `PROTECTED`.
        writable: if given, the only files that can be written or removed, relative to the root.
        copies: where `real_file` keeps its copies; by default the folder for temporary files.
        locks: the locks shared with other Marvins that write the same files.
    """

    def __init__(
        self,
        root: Path,
        *,
        hidden: Collection[str] = (),
        protected: Collection[str] = PROTECTED,
        writable: Collection[str] | None = None,
        copies: Path | None = None,
        locks: ProjectLocks | None = None,
    ) -> None:
        super().__init__(root, hidden, protected, writable)
        self._copies = copies
        self._locks = locks
        self._swept: set[tuple[str, ...]] = set()

    def open(self, path: str) -> BinaryIO:
        """Open a regular file for reading. Its `name` is its real path, relative to the root.

        Raises:
            PathRefused: the path, or its link target, is outside or hidden.
            ToolError: it does not exist, is not a regular file, or cannot be read.
        """
        parts = self._parts(path)
        with self._failures(path, parts, "read"), self._descent(path) as descent:
            place = descent.follow(descent.place(parts))
            self._check(path, place.parts, writing=False)
            self._regular(path, place.status())
            descriptor = os.open(place.name, _READ, dir_fd=place.folder)
            try:
                # The entry checked above may have been swapped since: only the descriptor counts.
                self._regular(path, os.fstat(descriptor))
                self._check(path, descent.locate(descriptor), writing=False)
                self._opened(place)
                file = FileIO(descriptor)
                file.name = "/".join(place.parts)
                return BufferedReader(file)
            except BaseException:
                os.close(descriptor)
                raise

    def _opened(self, place: Place) -> None:
        """Called for each file that is opened for reading."""

    def replace(self, path: str, data: bytes, *, create_only: bool = False) -> None:
        """Write a file in one step, creating its folders; a reader sees the old content or the new.

        The mode of an existing file is kept and a link is followed. On failure nothing is left behind.

        Args:
            create_only: the file must not exist, checked up to the moment it is put in place.

        Raises:
            PathRefused: the path, or its link target, is outside or protected.
            ToolError: it cannot be written; the old content is then untouched.
        """
        from .displacing import put

        with self._writing(path) as (place, old):
            if old is not None and create_only:
                raise FileExistsError
            self._sweep_once(place)
            put(place, lambda stream: stream.write(data), old, create_only=create_only)

    def write_together(self, changes: Sequence[FileWrite]) -> None:
        """Write and remove several files: all of them, or none.

        Raises:
            FileChanged: the content of one of them is not what its change expects.
            PathRefused, ToolError: as `replace` and `remove`.
        """
        from .together import Step, write_together

        with ExitStack() as stack:
            steps, files = [], []
            for change in changes:
                opened = self._removing(change.path) if change.data is None else self._writing(change.path)
                place, old = stack.enter_context(opened)
                self._sweep_once(place)
                steps.append(Step(change, place, old))
                files.append((place, steps[-1].before))
            write_together(steps, self._locked(*files))

    def _locked(self, *files: tuple[Place, os.stat_result | None]) -> AbstractContextManager[None]:
        if self._locks is None:
            return nullcontext()
        return self._locks.held([old for _, old in files if old is not None], [place.folder for place, _ in files])

    def append(self, path: str, data: bytes) -> None:
        """Append to a file, in one write if the disk allows it; a failure leaves no part of the text behind.

        Concurrent appends end up before or after it. Raises like `replace`, and `PathRefused` for a file with several
        hard links, some of which may be outside.
        """
        from .writing import add, discard

        with self._writing(path) as (place, old):
            descriptor = os.open(place.name, _APPEND, 0o666, dir_fd=place.folder)
            try:
                with self._locked((place, os.fstat(descriptor))):
                    self._check_opened(path, descriptor, place)
                    add(descriptor, data)
            except BaseException:
                if old is None and not os.fstat(descriptor).st_size:
                    discard(place.name, place.folder)
                raise
            finally:
                os.close(descriptor)

    def _check_opened(self, path: str, descriptor: int, place: Place) -> None:
        """Refuse another file than the one at that place, and a file with several hard links."""
        status = os.fstat(descriptor)
        self._regular(path, status)
        if not os.path.samestat(status, place.status()) or status.st_nlink > 1:
            raise self._refused(
                f"{path!r} is refused: it has several names (hard links), or was replaced just now. Write the whole "
                "file again instead."
            )

    @contextmanager
    def real_file(self, path: str, *, writing: bool = False) -> Iterator[Path]:
        """The path of a private copy, which replaces the file in one step when the block ends.

        Raises like `open`, for writing like `replace`. Raises `ToolError` if the file was changed meanwhile, and if
        files beside the copy still hold part of it, as for a database that was not closed.
        """
        from .copies import Copy, private_folder

        parts = self._parts(path)
        before: os.stat_result | None = None
        with private_folder(self._copies) as folder:
            if writing and not self.exists(path):
                self._check(path, parts, writing=True)
                copy = Copy(folder, parts[-1])
            else:
                with self._writing(path) if writing else nullcontext(), self.open(path) as stream:
                    before = os.fstat(stream.fileno())
                    with self._failures(path, parts, "read"):
                        copy = Copy(folder, parts[-1], stream)
            yield copy.path
            if writing and copy.is_changed:
                copy.check_closed(path)
                with self._writing(path) as (place, old), copy.path.open("rb") as content, self._locked((place, old)):
                    self._put_copy(path, place, before, content)

    @staticmethod
    def _put_copy(path: str, place: Place, before: os.stat_result | None, content: BinaryIO) -> None:
        from .copies import content_of, state_of
        from .displacing import NotTheChecked, flaw_of, put

        def flaw(name: str) -> str:
            return flaw_of(name, place.folder, before, None)

        try:
            if place.exists() and state_of(place.status()) != state_of(before):
                raise NotTheChecked("", "")
            put(place, content_of(content), before, flaw=flaw)
        except (NotTheChecked, FileNotFoundError, FileExistsError) as error:
            kept = error.kept if isinstance(error, NotTheChecked) else ""
            saved = f" What another program saved is in {kept!r}, in the same folder." if kept else ""
            raise ToolError(
                f"{path!r} was changed in the meantime, so it was not written.{saved} Read it again."
            ) from error

    def exists(self, path: str) -> bool:
        """Whether the path exists; a dangling link does not. Raises like `stat` for all else."""
        parts = self._parts(path)
        with self._failures(path, parts, "find"):
            try:
                self._status(path, parts)
            except (FileNotFoundError, NotADirectoryError):
                return False
        return True

    def stat(self, path: str) -> FileInfo:
        """The status of the path, links followed.

        Raises:
            PathRefused: the path, or its link target, is outside or hidden.
            ToolError: the path does not exist.
        """
        from .browsing import info_of

        parts = self._parts(path)
        with self._failures(path, parts, "find"):
            return info_of(parts, self._status(path, parts))

    def _status(self, path: str, parts: tuple[str, ...]) -> os.stat_result:
        with self._descent(path) as descent:
            if not parts:
                return os.stat(descent.folder(()).descriptor)
            place = descent.follow(descent.place(parts))
            self._check(path, place.parts, writing=False)
            return place.status()

    def list(self, path: str = ".", most: int = 10_000) -> tuple[FileInfo, ...]:
        """The entries of a folder, the first `most` by name; links are not followed, hidden entries are left out.

        Raises like `stat`; `ToolError` if it is not a folder.
        """
        from .browsing import list_folder

        parts = self._parts(path)
        with self._failures(path, parts, "read"), self._descent(path) as descent:
            if parts:
                # Paths outside are refused first: an error must reveal nothing about them.
                self._check(path, descent.follow(descent.place(parts)).parts, writing=False)
            folder = descent.folder(parts)
            self._check(path, folder.parts, writing=False)
            return list_folder(folder, parts, self._is_hidden, most)

    def glob(self, pattern: str, most: int = 1_000) -> tuple[str, ...]:
        """The files and folders that match a pattern, as in `Search`, the first `most` in order. No link is entered.

        Raises `PathRefused` if the pattern leads outside or to hidden paths, and like `Search`.
        """
        from .browsing import Search

        parts = self._parts(pattern)
        return Search(parts, partial(self._descent, pattern), self._is_hidden).paths(most)

    def remove(self, path: str) -> None:
        """Delete a file; of a link, the link itself.

        Raises:
            PathRefused: the path, or its link target, is outside or protected.
            ToolError: it does not exist, is not a regular file, or cannot be deleted.
        """
        with self._removing(path) as (place, _):
            os.unlink(place.name, dir_fd=place.folder)

    @contextmanager
    def _removing(self, path: str) -> Iterator[tuple[Place, os.stat_result | None]]:
        """The place of a file or link that is to be removed, with its status."""
        parts = self._parts(path)
        self._check(path, parts, writing=True)
        with self._failures(path, parts, "remove"), self._descent(path) as descent:
            place = descent.place(parts)
            target = descent.follow(place)
            for checked in (place, target):
                self._check(path, checked.parts, writing=True)
                self._check_writable(path, checked.parts)
            if place is target or target.exists():
                self._regular(path, target.status())
            self._before_removal(place, is_link=place is not target)
            yield place, place.status()

    def _before_removal(self, place: Place, *, is_link: bool) -> None:
        """Called right before a file or link is removed."""

    def locate(self, path: str) -> str:
        """The path relative to the root, checked, to pass to a program after `--`.

        Links in its folders are resolved; its last part is unchanged and need not exist.

        Raises:
            PathRefused: the path, or its link target, is outside or hidden.
        """
        parts = self._parts(path)
        if not parts:
            return "."
        with self._failures(path, parts, "find"), self._descent(path) as descent:
            existing = descent.deepest(parts)
            place = descent.place(parts[: existing + 1])
            self._check(path, descent.follow(place).parts, writing=False)
            return "/".join((*place.parts, *parts[existing + 1 :]))

    @contextmanager
    def _writing(self, path: str) -> Iterator[tuple[Place, os.stat_result | None]]:
        """The place and status of a file to write; folders created for it are removed on failure."""
        parts = self._parts(path)
        self._check(path, parts, writing=True)
        if path.endswith("/"):
            raise ToolError(f"{path!r} is a folder. Give a file, without a slash at the end.")
        with self._failures(path, parts, "write"), self._descent(path) as descent:
            try:
                place = self._place_to_write(descent, path, parts)
                yield place, self._writable_status(path, place)
            except BaseException:
                descent.remove_made_folders()
                raise

    def _place_to_write(self, descent: Descent, path: str, parts: tuple[str, ...]) -> Place:
        def guard(made: tuple[str, ...]) -> None:
            self._check(path, made, writing=True)

        if not parts:
            raise IsADirectoryError
        place = descent.follow(descent.place(parts, make=guard))
        self._check(path, place.parts, writing=True)
        self._check_writable(path, place.parts)
        return place

    def _writable_status(self, path: str, place: Place) -> os.stat_result | None:
        """The status of the file, None if it is missing. Fails if it may not be written, unlike a rename."""
        if not place.exists():
            return None
        self._regular(path, place.status())
        descriptor = os.open(place.name, _PROBE, dir_fd=place.folder)
        try:
            status = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        self._regular(path, status)
        return status

    def _sweep_once(self, place: Place) -> None:
        from .writing import sweep

        if place.parts[:-1] not in self._swept:
            self._swept.add(place.parts[:-1])
            with suppress(OSError):
                sweep(place.folder)
