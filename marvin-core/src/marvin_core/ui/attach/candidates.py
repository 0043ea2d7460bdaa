"""Completions after `@`: files by a part of their name, paths outside of the folder, then tools."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from ...api.record import Record
from ...api.session import SessionControl
from .file_index import FileIndex
from .words import is_outside, place_of, written

_SHOWN = 20
_LISTED = 200
_BY_PLACE = ("~/", "./", "../", "/")


class Place(Record):
    """A file, a folder or a tool as a completion: its text and its kind."""

    text: str
    help: str = ""


def behind_at(word: str, session: SessionControl, files: FileIndex) -> Iterator[Place]:
    """The completions of a word after `@`, without an opening quote."""
    word = word.removeprefix('"')
    if word.startswith(_BY_PLACE) or word in ("~", ".", ".."):
        yield from (Place(text=_closed(place.text), help=place.help) for place in by_place(word, session))
        return
    found = files.find(word, _SHOWN)
    if not found:  # the index is not ready, or the folder contains ignored files
        found = [place.text for place in _beginning(word, session.working_dir, word)]
    yield from (Place(text=_closed(path), help="folder" if path.endswith("/") else "") for path in found)
    for name, said in session.resources().items() if word else ():
        if name.startswith(word):
            yield Place(text=f"{written(name)} ", help=f"resource: {said}")
    for spec in session.tools:
        if word and spec.name.startswith(word):
            yield Place(text=f"@{spec.name} ", help=f"tool: {spec.description.partition(chr(10))[0]}")


def by_place(word: str, session: SessionControl) -> Iterator[Place]:
    """Files and folders for a path that begins with `~/`, `./`, `../` or `/`."""
    if word in ("~", ".", ".."):
        yield Place(text=f"{word}/", help="folder")
        return
    folder, _, _ = word.rpartition("/")
    place = place_of(f"{folder}/", session.working_dir, session.chat.home)
    outside = is_outside(place, session.working_dir)
    for one in _beginning(word, place, word.rpartition("/")[2]):
        yield one.replace(help=", ".join(filter(None, [one.help, "outside" if outside else ""])))


def _beginning(word: str, folder: Path, name: str) -> Iterator[Place]:
    """The entries of a folder that begin with a name; `word` is the path as written so far."""
    inner, _, name = name.rpartition("/")
    before = word[: len(word) - len(name)]
    for found, is_folder in sorted(entries_of(folder / inner))[:_LISTED]:
        if found.startswith(name) and (not found.startswith(".") or name.startswith(".")):
            yield Place(text=f"{before}{found}{'/' if is_folder else ''}", help="folder" * is_folder)


def _closed(path: str) -> str:
    """A path after @; with a trailing space if it is complete."""
    return f"@{path}" if path.endswith("/") and " " not in path else f"{written(path)} "


def entries_of(folder: Path) -> Iterable[tuple[str, bool]]:
    """The visible names in a folder, and whether each is a folder; empty if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return [(entry.name, entry.is_dir()) for entry in entries if entry.name.isprintable()]
    except OSError:
        return ()
