"""Checks of paths for tools that need no file access."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from pathlib import Path

from ...api.errors import PathRefused
from .spellings import matches, names_of, pattern_of

HIDDEN = (".tickets",)
"""The paths that no tool may access: tickets have a tool of their own."""

PROTECTED = (
    ".git",
    ".marvin/upstream",
    ".marvin/pipeline_state",
    ".marvin/request.md",
    ".marvin/logs",
    ".marvin/report",
    ".marvin/worktrees",
    ".marvin/review-history-*",
)
"""The paths that no tool may write, at any depth. A leading slash is the root, a final star any rest."""
_LONGEST = 4_096
"""Characters of a path; neither Linux nor macOS accepts more (PATH_MAX)."""
_SHOWN = 200
_KEPT = "use the ticket tools for tickets. No tool can read Marvin's settings and keys."


class PathChecks:
    """The checks of `SandboxPaths`, which takes the same arguments."""

    def __init__(
        self, root: Path, hidden: Collection[str], protected: Collection[str], writable: Collection[str] | None
    ) -> None:
        self._given = os.path.abspath(root)
        self._root = Path(os.path.realpath(root))
        self._hidden = tuple(pattern_of(pattern) for pattern in (*HIDDEN, *hidden))
        self._protected = tuple(pattern_of(pattern) for pattern in protected)
        self._writable = None if writable is None else frozenset(os.path.normpath(file) for file in writable)

    @property
    def root(self) -> Path:
        """The sandbox root, resolved."""
        return self._root

    def overview(self) -> str:
        """The working directory and a short tree of it, for error texts."""
        from .errors import outline

        return outline(self._root, HIDDEN)

    def _is_hidden(self, parts: tuple[str, ...]) -> bool:
        return matches(parts, self._hidden)

    def _parts(self, path: str) -> tuple[str, ...]:
        """The names that lead from the root to the file, `.` and `..` folded.

        Absolute paths inside the root are accepted, since models often use them.
        """
        if len(path) > _LONGEST:
            raise self._refused(
                f"{path[:_SHOWN]!r}… is refused: it has {len(path):,} characters, more than a path can have."
            )
        try:
            parts = names_of(self._relative(path))
        except ValueError as refusal:
            raise self._refused(str(refusal)) from None
        self._check(path, parts, writing=False)
        return parts

    def _relative(self, path: str) -> str:
        if path.startswith("/") and "\0" not in path:
            plain = os.path.normpath("/" + path.lstrip("/"))
            for root in (self._given, str(self._root)):
                if _is_below(plain, root):
                    return plain[len(root) :].lstrip("/") or "."
            if len(plain) < _LONGEST:
                return _through_links(plain, str(self._root)) or path
        return path

    def _check(self, path: str, parts: tuple[str, ...], *, writing: bool) -> None:
        """Refuse hidden paths; when writing, also protected paths and those not among the writable files."""
        if self._is_hidden(parts):
            raise self._refused(f"{path!r} is refused: {_KEPT}")
        if writing and matches(parts, self._protected):
            place = "/".join(parts)
            raise self._refused(f"{path!r} is refused: tools may not write to {place!r}. Use another place.")

    def _check_writable(self, path: str, parts: tuple[str, ...]) -> None:
        if self._writable is not None and "/".join(parts) not in self._writable:
            allowed = ", ".join(sorted(self._writable)) or "none"
            raise self._refused(f"{path!r} is refused: you may write only these files: {allowed}.")

    def _refused(self, reason: str) -> PathRefused:
        return PathRefused(f"{reason}\n{self.overview()}")

    def _regular(self, path: str, status: os.stat_result) -> None:
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError
        if not stat.S_ISREG(status.st_mode):
            from .errors import kind_of

            raise self._refused(f"{path!r} is {kind_of(status.st_mode)}. Only regular files can be used.")


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _through_links(path: str, root: str) -> str | None:
    """An absolute path relative to the root, through links outside. The part below the root stays unresolved."""
    found = None
    place, _, name = path.rpartition("/")
    names = [name]
    while place:
        if os.path.lexists(place):
            real = os.path.realpath(place)
            if not _is_below(real, root):
                break
            found = "/".join((os.path.relpath(real, root), *reversed(names)))
        place, _, name = place.rpartition("/")
        names.append(name)
    if found is None and os.path.lexists(path) and _is_below(real := os.path.realpath(path), root):
        return os.path.relpath(real, root)
    return found
