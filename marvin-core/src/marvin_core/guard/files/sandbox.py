"""The sandbox: the only way from a model's string to the content of a file.

Checking a path and using it afterwards leaves a moment in which a link can be swapped. So a folder is
opened first, the kernel is asked where the descriptor really is, and then everything happens relative
to that descriptor by a plain name that is never followed as a link.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ...api.errors import PathRefused, ToolError
from .spellings import matches, names_of

if TYPE_CHECKING:
    from ...api.tool_context import FileInfo
    from .folder_descriptors import Descent, Place

HIDDEN = (".tickets",)
"""What no tool may touch: tickets have a tool of their own."""

PROTECTED = (
    ".git",
    ".marvin/upstream",
    ".marvin/pipeline_state",
    ".marvin/logs",
    ".marvin/review-history-*",
)
"""What no tool may write to, at any depth. A star at the end stands for the rest of the name."""

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_PROBE = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY


class SandboxPaths:
    """Files below one root. Thread-safe; holds no descriptor between calls.

    Args:
        root: the sandbox root; links in it are resolved once, here.
        protected: patterns of places that cannot be written, see `PROTECTED`.
        writable: if given, the only files that can be written or removed, relative to the root.
        copies: where `real_file` keeps its copies; by default where temporary files are.
    """

    def __init__(
        self,
        root: Path,
        *,
        protected: Collection[str] = PROTECTED,
        writable: Collection[str] | None = None,
        copies: Path | None = None,
    ) -> None:
        self._given = os.path.abspath(root)
        self._root = Path(os.path.realpath(root))
        self._hidden = [tuple(pattern.split("/")) for pattern in HIDDEN]
        self._copies = copies
        self._swept: set[tuple[str, ...]] = set()
        self._protected = [tuple(pattern.split("/")) for pattern in protected]
        self._writable = None if writable is None else frozenset(os.path.normpath(file) for file in writable)

    @property
    def root(self) -> Path:
        """The sandbox root, resolved."""
        return self._root

    def overview(self) -> str:
        """The working directory and a short tree of it, for error texts."""
        from .errors import outline

        return outline(self._root, HIDDEN)

    def open(self, path: str) -> BinaryIO:
        """Open a regular file for reading.

        Raises:
            PathRefused: where the path, or what it links to, is outside or hidden.
            ToolError: where it does not exist, is not a regular file, or cannot be read.
        """
        parts = self._parts(path)
        with self._failures(path, parts, "read"), self._descent(path) as descent:
            place = descent.follow(descent.place(parts))
            self._check(path, place.parts, writing=False)
            self._regular(path, place.status())
            descriptor = os.open(place.name, _READ, dir_fd=place.folder)
            try:
                # What was looked at above may have been swapped since: only the descriptor counts.
                self._regular(path, os.fstat(descriptor))
                self._check(path, descent.locate(descriptor), writing=False)
                return os.fdopen(descriptor, "rb")
            except BaseException:
                os.close(descriptor)
                raise

    def replace(self, path: str, data: bytes, *, create_only: bool = False) -> None:
        """Write a file in one step, making its folders; a reader sees the old content or the new.

        The mode of an existing file is kept and a link is followed. On failure nothing is left behind.

        Args:
            create_only: the file must not exist yet, not even a moment before it is put in place.

        Raises:
            PathRefused: where the path, or what it links to, is outside or protected.
            ToolError: where it cannot be written; the old content is then untouched.
        """
        from .writing import put

        with self._writing(path) as (place, old):
            if old is not None and create_only:
                raise FileExistsError
            self._sweep_once(place)
            put(place, lambda stream: stream.write(data), old, create_only=create_only)

    def append(self, path: str, data: bytes) -> None:
        """Add to the end of a file, in one write where the disk takes it; on failure nothing of it is left.

        What others append at the same time stands before or behind it. Raises as `replace`, and `PathRefused` for a
        file of several names, of which others may be outside.
        """
        from .writing import add, discard

        with self._writing(path) as (place, old):
            descriptor = os.open(place.name, _APPEND, 0o666, dir_fd=place.folder)
            try:
                self._check_opened(path, descriptor, place)
                add(descriptor, data)
            except BaseException:
                if old is None and not os.fstat(descriptor).st_size:
                    discard(place.name, place.folder)
                raise
            finally:
                os.close(descriptor)

    def _check_opened(self, path: str, descriptor: int, place: Place) -> None:
        """Refuse what is not the file of that place, or is another file as well, by a hard link."""
        status = os.fstat(descriptor)
        self._regular(path, status)
        if not os.path.samestat(status, place.status()) or status.st_nlink > 1:
            raise self._refused(
                f"{path!r} is refused: it has other names as well (hard links), or was swapped just now. "
                "Write it anew as a whole instead."
            )

    @contextmanager
    def real_file(self, path: str, *, writing: bool = False) -> Iterator[Path]:
        """The path of a private copy, which takes the place of the file in one step when the block ends.

        Raises as `open`, for writing as `replace`; `ToolError` where another changed the file meanwhile, and where
        files beside the copy still hold a part of it, as those of a database do that was not closed.
        """
        from .copies import Copy, content_of, private_folder, state_of
        from .writing import put

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
                with self._writing(path) as (place, old), copy.path.open("rb") as content:
                    if state_of(old) != state_of(before):
                        raise ToolError(f"{path!r} was changed meanwhile, so it was not written. Read it again.")
                    put(place, content_of(content), old)

    def exists(self, path: str) -> bool:
        """Whether there is something; a link that leads nowhere is nothing. Raises as `stat` for all else."""
        parts = self._parts(path)
        with self._failures(path, parts, "find"):
            try:
                self._status(path, parts)
            except (FileNotFoundError, NotADirectoryError):
                return False
        return True

    def stat(self, path: str) -> FileInfo:
        """What is there, links followed.

        Raises:
            PathRefused: where the path, or what it links to, is outside or hidden.
            ToolError: where there is nothing.
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
        """What is in a folder, the first `most` by name; links stand for themselves, and what is hidden is left out.

        Raises as `stat`; `ToolError` where it is no folder.
        """
        from .browsing import list_folder

        parts = self._parts(path)
        with self._failures(path, parts, "read"), self._descent(path) as descent:
            if parts:
                # What lies above is refused first: an error must tell nothing of what is outside.
                self._check(path, descent.follow(descent.place(parts)).parts, writing=False)
            folder = descent.folder(parts)
            self._check(path, folder.parts, writing=False)
            return list_folder(folder, parts, self._is_hidden, most)

    def glob(self, pattern: str, most: int = 1_000) -> tuple[str, ...]:
        """The files and folders that fit a pattern, as `Search` has it, the first `most` in order. No link is entered.

        Raises `PathRefused` where the pattern leads outside or to what is hidden, and as `Search`.
        """
        from .browsing import Search

        parts = self._parts(pattern)
        return Search(parts, partial(self._descent, pattern), self._is_hidden).paths(most)

    def _is_hidden(self, parts: tuple[str, ...]) -> bool:
        return matches(parts, self._hidden)

    def remove(self, path: str) -> None:
        """Delete a file; of a link, the link itself.

        Raises:
            PathRefused: where the path, or what it links to, is outside or protected.
            ToolError: where it does not exist, is not a regular file, or cannot be deleted.
        """
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
            os.unlink(place.name, dir_fd=place.folder)

    def locate(self, path: str) -> str:
        """The path relative to the root, checked, for handing to a program behind `--`.

        Links in its folders are resolved; its last part stays as it is and need not exist.

        Raises:
            PathRefused: where the path, or what it links to, is outside or hidden.
        """
        parts = self._parts(path)
        if not parts:
            return "."
        with self._failures(path, parts, "find"), self._descent(path) as descent:
            existing = descent.deepest(parts)
            place = descent.place(parts[: existing + 1])
            self._check(path, descent.follow(place).parts, writing=False)
            return "/".join((*place.parts, *parts[existing + 1 :]))

    def _parts(self, path: str) -> tuple[str, ...]:
        """The names that lead from the root to the file, `.` and `..` folded."""
        try:
            parts = names_of(path)
        except ValueError as refusal:
            hint = f" {self._hint(path)}" if path.startswith("/") and "\0" not in path else ""
            raise self._refused(f"{refusal}{hint}") from None
        self._check(path, parts, writing=False)
        return parts

    def _hint(self, path: str) -> str:
        plain = os.path.normpath("/" + path.lstrip("/"))
        for candidate in (plain, os.path.realpath(plain)):
            for root in (str(self._root), self._given):
                if candidate == root or candidate.startswith(root.rstrip("/") + "/"):
                    return f"Use the relative path {os.path.relpath(candidate, root)!r}."
        return "Use a path relative to the working directory; what is outside of it cannot be reached."

    def _check(self, path: str, parts: tuple[str, ...], *, writing: bool) -> None:
        """Refuse what is hidden and, when writing, what is protected or not among the writable files."""
        if self._is_hidden(parts):
            raise self._refused(f"{path!r} is refused: tickets are reached by the tools for tickets only.")
        if writing and matches(parts, self._protected):
            place = "/".join(parts)
            raise self._refused(f"{path!r} is refused: tools do not write to {place!r}. Use another place.")

    def _check_writable(self, path: str, parts: tuple[str, ...]) -> None:
        if self._writable is not None and "/".join(parts) not in self._writable:
            allowed = ", ".join(sorted(self._writable)) or "none"
            raise self._refused(f"{path!r} is refused: the only files that may be written are: {allowed}.")

    def _refused(self, reason: str) -> PathRefused:
        return PathRefused(f"{reason}\n{self.overview()}")

    def _regular(self, path: str, status: os.stat_result) -> None:
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError
        if not stat.S_ISREG(status.st_mode):
            from .errors import kind_of

            raise self._refused(f"{path!r} is {kind_of(status.st_mode)}. Only regular files can be used.")

    @contextmanager
    def _writing(self, path: str) -> Iterator[tuple[Place, os.stat_result | None]]:
        """The place of a file that is to be written, with what is there; folders made for it go where that fails."""
        parts = self._parts(path)
        self._check(path, parts, writing=True)
        if path.endswith("/"):
            raise ToolError(f"{path!r} names a folder. Name a file, without a slash at its end.")
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
        """What is there, None for nothing. Fails where it may not be written, as a rename would not."""
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

    @contextmanager
    def _descent(self, path: str) -> Iterator[Descent]:
        from .folder_descriptors import Descent

        def outside() -> PathRefused:
            return self._refused(f"{path!r} is refused: a link in it leads out of the working directory.")

        with ExitStack() as stack:
            yield Descent(self._root, stack, outside)

    @contextmanager
    def _failures(self, path: str, parts: tuple[str, ...], action: str) -> Iterator[None]:
        """Turn what the system refuses into what the model can act on."""
        try:
            yield
        except OSError as error:
            if not self._root.is_dir():
                text = f"The working directory {self._root} does not exist any more. Choose another one."
                raise ToolError(text) from error
            if isinstance(error, FileNotFoundError):
                text = f"File not found: {path!r}.{self._nearest(parts)} List its folder, or search for the name."
                raise ToolError(f"{text}\n{self.overview()}") from error
            from .errors import describe_failure

            raise ToolError(describe_failure(error, path, action)) from error

    def _nearest(self, parts: tuple[str, ...]) -> str:
        if not parts:
            return ""
        with suppress(OSError, ToolError), self._descent(parts[-1]) as descent:
            folder = descent.folder(parts[:-1])
            names = [name for name in folder.list() if not self._is_hidden((*folder.parts, name))]
            from .errors import nearest_names

            return nearest_names(parts, names)
        return ""
