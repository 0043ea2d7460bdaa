"""The files that a CLAUDE.md names as `@PATH`: they follow it, each once.

How Claude Code reads them: https://code.claude.com/docs/en/memory#import-additional-files
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from ...api.errors import ToolError
from ...api.record import Record
from ...guard.files.sandbox import SandboxPaths
from .texts import ReadText, read_text

_DEEPEST = 5
_MOST = 20
"""The maximum number of files that one CLAUDE.md imports."""
_LOOKED_AT = 1_000
"""The maximum number of names that are checked for it, including names that are not files."""
_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_CODE = re.compile(r"(`+)[^`]*\1")
_NAMED = re.compile(r"(?:(?<=\s)|^)@(?P<path>(?:\\ |[^\s@`\\])+)")
_BEHIND = ".,;:!?)]}'\""
"""Characters that may end a sentence after a path."""


class Expanded(Record):
    """A text, followed by the files that it names."""

    text: str
    notes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    """The paths of the other files, whether or not they exist."""


class _File(Record):
    base: str
    path: str

    @property
    def real(self) -> str:
        return os.path.realpath(f"{self.base}/{self.path}")


def named_files(text: str) -> Iterator[str]:
    """The paths that a text names as `@PATH`, outside of code."""
    fence = ""
    for line in text.splitlines():
        found = _FENCE.match(line)
        if found and (not fence or found[1].startswith(fence)):
            fence = "" if fence else found[1]
        elif not fence:
            for named in _NAMED.finditer(_CODE.sub("", line)):
                path = named["path"].replace("\\ ", " ").rstrip(_BEHIND)
                if path:
                    yield path


def _some(text: str) -> Iterator[str]:
    """The first paths that a text names, up to the limit."""
    return islice(named_files(text), _LOOKED_AT + 1)


class Imports:
    """Reads the files that the files of one project name.

    Args:
        paths: gives access to the files below a folder.
        project: the root of the project; files outside of it are not read.
        home: the home folder, whose `~/.marvin` may be named.
    """

    def __init__(self, paths: Callable[[Path], SandboxPaths], project: str, home: Path) -> None:
        self._paths = paths
        self._project = project
        self._home = str(home)

    def expanded(self, path: str, text: str) -> Expanded:
        """The text of a file, followed by the files that it names; `path` is relative to the project."""
        parts, notes = [text], []
        start = _File(base=self._project, path=path)
        waiting = deque((start, name, 1) for name in _some(text))
        seen, files, looked_at = {start.real}, [], 0
        while waiting:
            looked_at += 1
            if looked_at > _LOOKED_AT:
                notes.append(f"@{waiting[0][1]} and the imports after it are not read: there are too many")
                break
            inside, name, depth = waiting.popleft()
            full = self._place(inside, name)
            file = self._meant(full)
            if file is None:
                if os.path.lexists(full):
                    notes.append(f"@{name} is not read: it is outside of the project")
                continue
            files.append(f"{file.base}/{file.path}")
            if file.real in seen or not os.path.isfile(file.real):
                continue  # most that look like a path are names, as in @types/node
            seen.add(file.real)
            if depth > _DEEPEST or len(parts) > _MOST:
                notes.append(f"@{name} is not read: it is {'too deep' if depth > _DEEPEST else 'one too many'}")
                continue
            try:
                found: ReadText = read_text(self._paths(Path(file.base)), file.path)
            except ToolError as error:
                notes.append(f"@{name} is not read: {str(error).splitlines()[0]}")
                continue
            parts.append(f"(@{name})\n{found.text}")
            notes += [f"@{name}: {note}" for note in found.notes]
            waiting += [(file, inner, depth + 1) for inner in _some(found.text)]
        return Expanded(text="\n\n".join(parts), notes=tuple(notes), files=tuple(dict.fromkeys(files)))

    def _place(self, inside: _File, name: str) -> str:
        """The path that a name means, relative to the folder of the file that contains it."""
        if name.startswith("~/"):
            return os.path.normpath(f"{self._home}/{name[2:]}")
        return os.path.normpath(os.path.join(inside.base, os.path.dirname(inside.path), name))

    def _meant(self, full: str) -> _File | None:
        """The file at a path; None if it is outside."""
        for base in (self._project, f"{self._home}/.marvin"):
            if full.startswith(f"{base}/"):
                return _File(base=base, path=full[len(base) + 1 :])
        return None
