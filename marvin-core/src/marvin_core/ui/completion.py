"""The completions of a line: commands, tools, their parameters, files."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..api.record import Record
from ..api.session import SessionControl
from .arguments import Arguments
from .attach.candidates import behind_at, by_place, entries_of
from .attach.file_index import FileIndex
from .manual_calls import shell_tool
from .typed_lines import BANG_WORDS

BUILT_IN: Mapping[str, str] = {"help": "list the commands and keys", "exit": "leave"}
SHELL_WORDS: Mapping[str, str] = {
    "shell": "shell mode: every line is a shell command, until !shell again",
    "sh": "the same as !shell",
}
_FILES_LISTED = 200
_BY_PLACE = ("~/", "./", "../", "/")
_AT = re.compile(r'(?<!\S)@("[^"\n]*|\S*)$')
_FILE_PARAMETER = re.compile(r"(^|_)(path|paths|file|files|folder|dir|directory)$")


class Candidate(Record):
    """A text to replace the last `replaces` characters; `help` describes it."""

    text: str
    replaces: int
    help: str = ""


class Completing:
    """The completions for the lines of one chat. `changed` is called when there are new ones."""

    def __init__(self, session: SessionControl, changed: Callable[[], None]) -> None:
        self._session = session
        self._arguments = Arguments(session)
        self._files = FileIndex(session, changed)

    async def close(self) -> None:
        """Stop searching."""
        await self._files.close()

    def candidates(self, line: str) -> Iterator[Candidate]:
        """The completions for the text before the cursor."""
        session = self._session
        head, space, rest = line.partition(" ")
        word = re.split(r"[ \n]", line)[-1]
        named = _AT.search(line)
        if line.startswith("!") and head[1:] not in BANG_WORDS:
            yield from self._behind_bang(line, word)
        elif not space and line.startswith(("/", ":", "!")):
            names = _slash_names(session) if line[0] != "!" else {**SHELL_WORDS, **_bang_words(session)}
            yield from _names(word, line[0], names)
            if line.count("/") > 1:
                yield from _at_places(word, session)
        elif head in ("/help", ":help"):
            yield from _names(word, "", _slash_names(session))
        elif line.startswith(("/", ":", "!")) and "/" not in head[1:]:
            yield from self._taken(head[1:], rest)
            yield from _parameters(line, head[1:], word, session)
        elif named is not None:
            for place in behind_at(named[1], session, self._files):
                yield Candidate(text=place.text, replaces=len(named[0]), help=place.help)
        else:
            yield from _at_places(word, session)

    def _behind_bang(self, line: str, word: str) -> Iterator[Candidate]:
        session = self._session
        if " " not in line:
            yield from _names(word, "!", _bang_words(session))
        if shell_tool(session) is None:
            return
        if " " not in line:
            yield from _names(word, "!", SHELL_WORDS)
        elif word.startswith(_BY_PLACE):
            yield from _at_places(word, session)
        else:
            yield from _files(word, session.working_dir, quoted=True)

    def _taken(self, command: str, rest: str) -> Iterator[Candidate]:
        """The arguments of a command; several words may match a title."""
        for one in self._arguments.of(command, rest):
            yield Candidate(text=f"{one.text} ", replaces=len(rest), help=one.help)


def candidates(line: str, session: SessionControl) -> Iterator[Candidate]:
    """The completions for the text before the cursor, at the start of a chat with it."""
    return Completing(session, lambda: None).candidates(line)


def _at_places(word: str, session: SessionControl) -> Iterator[Candidate]:
    """Files for a word that is a path with an explicit start."""
    if word.startswith(_BY_PLACE):
        for place in by_place(word, session):
            text = place.text if place.text.endswith("/") else f"{place.text} "
            yield Candidate(text=text, replaces=len(word), help=place.help)


def _bang_words(session: SessionControl) -> Mapping[str, str]:
    return {name: command.help for name, command in session.commands.items() if name in BANG_WORDS}


def _slash_names(session: SessionControl) -> Mapping[str, str]:
    tools = {spec.name: spec.description.partition("\n")[0] for spec in session.tools}
    return {**tools, **BUILT_IN, **{name: command.help for name, command in session.commands.items()}}


def _names(word: str, sign: str, names: Mapping[str, str]) -> Iterator[Candidate]:
    for name in sorted(names):
        if name.startswith(word.removeprefix(sign)):
            yield Candidate(text=f"{sign}{name} ", replaces=len(word), help=names[name])


def _parameters(line: str, tool: str, word: str, session: SessionControl) -> Iterator[Candidate]:
    spec = next((spec for spec in session.tools if spec.name == tool), None)
    if spec is None:
        return
    properties: Mapping[str, Any] = spec.parameters.get("properties", {})
    key, equals, value = word.partition("=")
    if equals:
        schema = properties.get(key, {})
        if _FILE_PARAMETER.search(key):
            yield from _files(value, session.working_dir, quoted=True)
        for choice in schema.get("enum") or (["true", "false"] if schema.get("type") == "boolean" else []):
            if str(choice).startswith(value):
                yield Candidate(text=f"{choice} ", replaces=len(value))
        return
    given = {part.partition("=")[0] for part in line.split()[1:]}
    required = spec.parameters.get("required", ())
    for name in sorted(properties, key=lambda name: name not in required):
        if name.startswith(word) and name not in given - {word}:
            text = properties[name].get("description", "")
            yield Candidate(text=f"{name}=", replaces=len(word), help=text or ("required" if name in required else ""))


def _files(word: str, root: Path, *, quoted: bool) -> Iterator[Candidate]:
    """Files and folders below the working directory whose path begins with this text."""
    folder, _, name = word.rpartition("/")
    if os.path.isabs(folder) or ".." in folder.split("/"):
        return
    for found, is_folder in sorted(entries_of(root / folder))[:_FILES_LISTED]:
        if found.startswith(name) and (not found.startswith(".") or name.startswith(".")):
            path = f"{folder}/{found}" if folder else found
            text = shlex.quote(path) if quoted else path
            yield Candidate(text=text + ("/" if is_folder else " "), replaces=len(word), help="folder" * is_folder)
