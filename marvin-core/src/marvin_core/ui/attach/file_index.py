"""The files of a project, searchable by a part of their name while a person types."""

from __future__ import annotations

import asyncio
import os
import re
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ...api.errors import MarvinError
from ...api.session import SessionControl
from ...util.threads import in_thread

_MOST_FILES = 300_000
_NEVER = frozenset({".git", ".tickets", "node_modules", "__pycache__"})
"""Folders to skip outside of a repository; a repository has its own ignore rules."""
_HITS = 400
"""The number of matches of one kind that are compared."""
_BUDGET = 0.03
"""The time limit in seconds for matching scattered letters in a path; then the matches so far are used."""
_PIECE = 400_000
"""The number of characters of paths to search between two checks of the time."""
_FRESH = 3.0
"""The age in seconds after which a list is renewed when it is needed."""
_REST = 10
"""The minimum lifetime of a list, as a multiple of the time to make it."""


class Paths:
    """Paths, and the search in them: by the beginning of their name, by a part, by letters in order."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._text = "\n" + "\n".join(paths) + "\n"
        lowered = self._text.lower()
        self._lowered = lowered if len(lowered) == len(self._text) else self._text
        self._folders = sorted({path[: at + 1] for path in paths for at, sign in enumerate(path) if sign == "/"})

    def find(self, word: str, most: int) -> list[str]:
        """The paths that best match a word, best first."""
        if not word.isprintable():
            return []
        lowered = word.lower()
        found: dict[str, None] = {}
        kinds = (self._starting, self._holding, self._scattered) if lowered else (self._all,)
        for kind in kinds:
            found.update(dict.fromkeys(sorted(kind(lowered), key=lambda path: (path.count("/"), len(path), path))))
            if len(found) >= most:
                break
        return list(found)[:most]

    def _all(self, _: str) -> Iterator[str]:
        yield from self._folders[:_HITS]
        yield from (path for path in self._text[1:-1].split("\n", _HITS)[:_HITS] if path)

    def _starting(self, word: str) -> Iterator[str]:
        """Paths whose name, or whose whole path, begins with the word."""
        yield from self._places("\n" + word)
        yield from self._places("/" + word)

    def _holding(self, word: str) -> Iterator[str]:
        yield from self._places(word)
        at = bisect_right(self._folders, word)
        yield from (folder for folder in self._folders[at : at + _HITS] if folder.lower().startswith(word))

    def _places(self, text: str) -> Iterator[str]:
        place, count = self._lowered.find(text), 0
        while place >= 0 and count < _HITS:
            inner = place + 1 if text[0] == "\n" else place
            end = self._lowered.find("\n", inner)
            yield self._line(inner, end)
            place, count = self._lowered.find(text, max(end - 1, place + 1)), count + 1

    def _scattered(self, word: str) -> Iterator[str]:
        """Paths that contain the letters in order."""
        letters = re.compile("".join(f"[^{re.escape(one)}\n]*{re.escape(one)}" for one in word) + "[^\n]*")
        deadline, begin, count = time.perf_counter() + _BUDGET, 0, 0
        pattern = re.compile("\n" + letters.pattern)
        while begin < len(self._lowered) - 1 and count < _HITS and time.perf_counter() < deadline:
            end = self._lowered.find("\n", min(begin + _PIECE, len(self._lowered) - 1))
            for match in pattern.finditer(self._lowered, begin, end + 1):
                yield self._line(match.start() + 1, match.end())
                count += 1
                if count >= _HITS:
                    return
            begin = end

    def _line(self, inner: int, end: int) -> str:
        begin = self._lowered.rfind("\n", 0, inner) + 1
        return self._text[begin:end]


class FileIndex:
    """The files below the working directory, without ignored ones. The list is made in the background.

    `changed` is called when there is a new list.
    """

    def __init__(self, session: SessionControl, changed: Callable[[], None]) -> None:
        self._session = session
        self._changed = changed
        self._root: Path | None = None
        self._made = float("-inf")
        self._fresh = _FRESH
        self._known: object = None
        """The source data of the paths."""
        self._making: asyncio.Task[None] | None = None
        self._paths = Paths([])

    def find(self, word: str, most: int) -> list[str]:
        """The files that best match a word, as far as known; a stale list is renewed in the background."""
        root = self._session.working_dir
        if root != self._root:
            self._root, self._paths, self._made, self._known = root, Paths([]), float("-inf"), None
        if self._making is None and time.monotonic() - self._made > self._fresh:
            self._making = asyncio.ensure_future(self._make(root))
        return self._paths.find(word, most)

    async def close(self) -> None:
        """Stop making lists."""
        if self._making is not None:
            self._making.cancel()
            await asyncio.wait([self._making])

    async def _make(self, root: Path) -> None:
        try:
            begun = time.monotonic()
            listed = await self._of_git(root)
            known = self._known
            found = await in_thread(lambda: _found(root, listed, known))
            if root == self._root:
                self._made = time.monotonic()
                self._fresh = max(_FRESH, _REST * (self._made - begun))
                if found is not None:
                    self._known, self._paths = found
                    self._changed()
        finally:
            self._making = None

    async def _of_git(self, root: Path) -> bytes | None:
        """The files that git knows or would add, in git's format; None if git fails."""
        from ...kit.files.listing import GIT, LIST_BYTES, in_repository
        from ...util.git_calls import GIT_ALONE

        if not await in_thread(lambda: in_repository(root)):
            return None
        words = [*GIT, "ls-files", "-co", "--exclude-standard", "--deduplicate", "-z"]
        try:
            result = await self._session.processes.run(words, cwd=root, output_limit=LIST_BYTES, env=GIT_ALONE)
        except MarvinError:
            return None
        return None if result.exit_code or result.omitted else result.output


def _found(root: Path, listed: bytes | None, known: object) -> tuple[object, Paths] | None:
    """The data for the next comparison, and the paths; None if nothing differs from `known`."""
    now: object = listed if listed is not None else _walked(root)
    if now == known:
        return None
    names = now if isinstance(now, list) else os.fsdecode(listed or b"").split("\0")
    return now, Paths([name for name in names if name and name.isprintable()][:_MOST_FILES])


def _walked(root: Path) -> list[str]:
    """The files below a folder, without hidden ones; links are not followed."""
    found: list[str] = []
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name[0] != "." and name not in _NEVER)
        below = os.path.relpath(folder, root)
        prefix = "" if below == "." else f"{below}/"
        if prefix.isprintable():
            found += [prefix + name for name in sorted(files) if name[0] != "." and name.isprintable()]
        if len(found) >= _MOST_FILES:
            break
    return found[:_MOST_FILES]
