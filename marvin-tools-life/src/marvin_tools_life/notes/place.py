"""The folder of notes: ~/Notes, and in coding mode .marvin/notes of the project."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from marvin_core import KnownFiles, ToolContext, ToolError

HOME_FOLDER = "Notes"
PROJECT_FOLDER = ".marvin/notes"
_ENDING = re.compile(r".\.[A-Za-z][A-Za-z0-9]{0,9}\Z")
_NOTE = ".md"
_NO_SIGNS = {"Cc", "Zl", "Zp"}
"""Unicode categories that names must not contain: control characters and line separators."""
_LOOKED_AT = 10_000
"""Entries of a folder that are compared with another spelling of a name."""


class Notes:
    """The folder of the notes during one call. All methods block.

    Notes of a project stay in it: notes of a coding agent neither belong to the user's own notes nor should a
    run elsewhere find them.

    Args:
        writing: create the folder if it is missing.

    Raises:
        ToolError: there is no folder yet, or it cannot be created.
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
            self.files = context.writing(folder)  # also for reading: play mode must not see these notes
        self.known: KnownFiles = KnownFiles(context.state)
        self.is_asked_by_person = context.origin in ("person", "typed")

    @property
    def root(self) -> Path:
        """The absolute path of the folder."""
        return self.files.paths.root / self.start

    def folder(self, path: str) -> str:
        """The path of a folder of notes, for `files.paths`; that of all notes for an empty name."""
        return self._place(self._names(path), ("",))

    def existing(self, path: str) -> str:
        """The path of a note, whose extension may be left out, for `files.paths`."""
        names = self._names(path)
        if path.rstrip().endswith("/") or not names:
            raise ToolError(f"{path!r} is not a note. Give its name, such as 'garden' or 'ideas/garden.md'.")
        return self._place(names, ("", _NOTE))

    def new(self, path: str) -> str:
        """The path of an existing or a new note; a new one without an extension is Markdown."""
        place = self.existing(path)
        if self.files.paths.exists(place):
            return place + _NOTE if self.files.paths.stat(place).kind == "folder" else place
        name = place.rpartition("/")[2]
        if "\\" in path or any(unicodedata.category(sign) in _NO_SIGNS for sign in path.strip()):
            raise ToolError(
                f"{path!r} is not a valid note name. Give a path such as 'ideas/garden', with / between folders."
            )
        return place if _ENDING.search(name.lstrip(".")) else place + _NOTE

    def _place(self, names: Sequence[str], endings: Sequence[str]) -> str:
        """A path for `files.paths`. An existing entry is found in any spelling of its name.

        Args:
            endings: extensions that the last name may have if it exists.
        """
        place = self.start if self._in_project else "."
        for number, name in enumerate(names, 1):
            is_last = number == len(names)
            found = self._there(place, name, endings if is_last else ("",))
            if not found:
                return _joined(place, *names[number - 1 :])
            place = found
        return place

    def _there(self, folder: str, name: str, endings: Sequence[str]) -> str:
        """The entry of a folder with a name, ignoring case and the form of accents.

        People and systems write names in several forms: `Garden.md` is also `garden`, and a note from a Mac may have
        decomposed accents. Empty if there is none, or several.
        """
        exact = [place for ending in endings if self.files.paths.exists(place := _joined(folder, name + ending))]
        if exact:
            # If there is a folder of the same name as well, the note is meant.
            return exact[-1] if self.files.paths.stat(exact[0]).kind == "folder" else exact[0]
        try:
            entries = self.files.paths.list(folder, _LOOKED_AT)
        except ToolError:
            return ""
        wanted = {_plain(name + ending) for ending in endings}
        found = [entry.path for entry in entries if _plain(entry.path.rpartition("/")[2]) in wanted]
        return found[0] if len(found) == 1 else ""

    def told(self, place: str) -> str:
        """A path as people and models name it."""
        return place if self._in_project else f"{self.shown}/{place}"

    def _names(self, path: str) -> list[str]:
        """The parts of a path relative to the folder of the notes."""
        given = path.strip()
        for start in (f"~/{HOME_FOLDER}", f"{self._home}/{HOME_FOLDER}", str(self.root), self.shown):
            if given == start or given.startswith(f"{start}/"):
                given = given[len(start) + 1 :]
                break
        names = [name for name in given.split("/") if name not in ("", ".")]
        if given.startswith(("/", "~")) or ".." in names:
            raise ToolError(f"{path!r} is outside of {self.shown}. Give a path inside it, such as 'ideas/garden'.")
        return names


def _joined(folder: str, *names: str) -> str:
    return "/".join(names if folder == "." else (folder, *names))


def _plain(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def no_notes(shown: str) -> ToolError:
    """The message if there are no notes yet."""
    return ToolError(f"There are no notes yet: {shown} does not exist. write_note creates it.")
