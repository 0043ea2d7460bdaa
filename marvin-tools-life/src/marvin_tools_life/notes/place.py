"""Where notes are: in ~/Notes, and in coding mode in .marvin/notes of the project."""

from __future__ import annotations

import re
from pathlib import Path

from marvin_core import KnownFiles, ToolContext, ToolError

HOME_FOLDER = "Notes"
PROJECT_FOLDER = ".marvin/notes"
_ENDING = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,9}")
_NOTE = ".md"


class Notes:
    """The folder of the notes, as one call sees it. All methods block.

    Notes of a project stay in it: what an agent notes while it works on code is nothing for the user's own notes, and
    nothing that a later run elsewhere should find.

    Args:
        writing: make the folder where it is missing.

    Raises:
        ToolError: there is no folder yet, or it cannot be made.
    """

    def __init__(self, context: ToolContext, *, writing: bool = False) -> None:
        self._home = context.home
        self._in_project = context.mode == "coding"
        if self._in_project:
            self.shown, self.start = PROJECT_FOLDER, PROJECT_FOLDER
            self.files = context
        else:
            self.shown, self.start = f"~/{HOME_FOLDER}", "."
            folder = context.home / HOME_FOLDER
            if not writing and not folder.is_dir():
                raise no_notes(self.shown)
            self.files = context.writing(folder)  # for reading as well: play mode has nothing to do with these notes
        self.known: KnownFiles = KnownFiles(context.state)
        self.is_asked_by_person = context.origin in ("person", "typed")

    @property
    def root(self) -> Path:
        """The folder, as an absolute path."""
        return self.files.paths.root / self.start

    def folder(self, path: str) -> str:
        """Where a folder of notes is, for `files.paths`; that of all notes for an empty path."""
        return "/".join(filter(None, (self.start if self._in_project else "", *self._names(path)))) or "."

    def existing(self, path: str) -> str:
        """Where a note is that may be named without its ending, for `files.paths`."""
        place = self._note(path)
        if not self.files.paths.exists(place) and self.files.paths.exists(place + _NOTE):
            return place + _NOTE
        return place

    def new(self, path: str) -> str:
        """Where a note is, or is to be; a new one is Markdown where its name has no ending."""
        place = self.existing(path)
        if self.files.paths.exists(place) or _ENDING.search(place.rpartition("/")[2].lstrip("."), 1):
            return place
        return place + _NOTE

    def told(self, place: str) -> str:
        """A place as people and models name it."""
        return place if self._in_project else f"{self.shown}/{place}"

    def _note(self, path: str) -> str:
        if path.rstrip().endswith("/") or not self._names(path):
            raise ToolError(f"{path!r} names no note. Give its name, as in 'garden' or 'ideas/garden.md'.")
        return self.folder(path)

    def _names(self, path: str) -> list[str]:
        """The names that lead to something from the folder of the notes."""
        given = path.strip()
        for start in (f"~/{HOME_FOLDER}", f"{self._home}/{HOME_FOLDER}", str(self.root), self.shown):
            if given == start or given.startswith(f"{start}/"):
                given = given[len(start) + 1 :]
                break
        names = [name for name in given.split("/") if name not in ("", ".")]
        if given.startswith(("/", "~")) or ".." in names:
            raise ToolError(f"{path!r} is outside of {self.shown}. Give a path below it, as in 'ideas/garden'.")
        return names


def no_notes(shown: str) -> ToolError:
    """What is said where no note was ever written."""
    return ToolError(f"There are no notes yet: {shown} does not exist. write_note makes it.")
