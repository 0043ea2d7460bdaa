"""The instructions for a working directory: which files apply, how much of each, and why others do not."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from ...api.errors import ToolError
from ...api.limits import Limits
from ...api.record import Record
from ...conversation.documents import Document
from ...guard.files.sandbox import SandboxPaths
from ...util.text import one_line
from .places import FOR_ALL_AGENTS, InstructionPlace, instruction_places
from .texts import read_text

_IMPORTING = "CLAUDE.md"
_OF_REPOSITORY = "# Instructions from the repository, not from the user ({name})"
_OF_USER = "# Instructions from the user for this folder ({name})"
_LEAST = 200
"""The minimum number of characters of a file; if there is less room, it is left out."""


class Instructions(Record):
    """A file with instructions. `size` is its size in bytes, `limit` the number of characters of `text` that apply."""

    name: str
    text: str = ""
    size: int = 0
    limit: int = 0
    unused: str = ""
    """Why it does not apply."""
    notes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    """The other files that it includes."""
    is_own: bool = False
    """Whether the user wrote it for this machine, so that it does not come from a repository."""

    @property
    def cut(self) -> bool:
        """Whether only a part of it applies."""
        return not self.unused and self.limit < len(self.text)

    @property
    def state(self) -> str:
        """Whether it applies, as text for people."""
        if self.unused:
            return f"not used: {self.unused}"
        used = f"cut to {self.limit:,} of {len(self.text):,} characters" if self.cut else "used"
        return "; ".join([used, *self.notes])


class InstructionReader:
    """Reads the instructions of a project.

    Args:
        paths: gives the files below a folder.
    """

    def __init__(self, paths: Callable[[Path], SandboxPaths], home: Path, limits: Limits) -> None:
        self._paths = paths
        self._home = home
        self._limits = limits

    def look(self, folders: Sequence[str]) -> list[Instructions]:
        """The files with instructions for the last of these folders, in the order of the prompt: the nearest last.
        Blocks."""
        found: list[Instructions] = []
        taken = ""
        for place in instruction_places(folders, self._home):
            if not os.path.lexists(place.file):
                continue
            folder, name = os.path.split(place.path)
            beside = taken == f"{place.base}/{folder}" and name in FOR_ALL_AGENTS
            one = _beside(place) if beside else self.read(place, folders[0])
            if one is not None:
                found.append(one)
                if name in FOR_ALL_AGENTS and not one.unused:
                    taken = f"{place.base}/{folder}"
        return self._with_limits(found)

    def read(self, place: InstructionPlace, project: str) -> Instructions | None:
        """One file, with the files of the project that it imports; None if it is empty."""
        try:
            found = read_text(self._paths(Path(place.base)), place.path)
        except ToolError as error:
            return Instructions(name=place.name, unused=str(error).splitlines()[0].removesuffix("."))
        if not found.text:
            return None
        one = Instructions(name=place.name, text=found.text, size=found.size, notes=found.notes, is_own=place.is_own)
        if place.base != project or os.path.basename(place.path) != _IMPORTING:
            return one
        from .imports import Imports

        whole = Imports(self._paths, project, self._home).expanded(place.path, found.text)
        return one.replace(text=whole.text, notes=(*one.notes, *whole.notes), files=whole.files)

    def _with_limits(self, found: Sequence[Instructions]) -> list[Instructions]:
        """Set how much of each file applies: if all of them are too long together, the nearest ones come first."""
        room = self._limits.instructions
        limited: list[Instructions] = []
        for one in reversed(found):
            limit = min(len(one.text), self._limits.instruction_file, room)
            if not one.unused and limit < min(len(one.text), _LEAST):
                one = one.replace(unused="more specific instructions leave no room for it (limits.instructions)")
            if not one.unused:
                one = one.replace(limit=limit)
                room -= limit
            limited.append(one)
        return limited[::-1]


def _beside(place: InstructionPlace) -> Instructions:
    """Files that are not read because another file of their folder has the same purpose."""
    size = os.path.getsize(place.file) if os.path.isfile(place.file) else 0
    return Instructions(name=place.name, size=size, unused=f"{FOR_ALL_AGENTS[0]} beside it is")


def _heading(one: Instructions) -> str:
    """The origin of the instructions for the model: a repository says how to work in it, but does not speak for the
    user."""
    return (_OF_USER if one.is_own else _OF_REPOSITORY).format(name=one_line(one.name))


def as_documents(found: Sequence[Instructions]) -> list[Document]:
    """The files that apply, for the prompt."""
    used = [one for one in found if not one.unused]
    several = "If instructions contradict each other, the later ones apply.\n\n" if len(used) > 1 else ""
    return [
        Document(
            name=one.name,
            heading=f"{'' if number else several}{_heading(one)}",
            text=one.text,
            binding=True,
            limit=one.limit,
            is_own=one.is_own,
        )
        for number, one in enumerate(used)
    ]
