"""What a line can go on with: commands, tools, their parameters, files."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..api.record import Record
from ..api.session import SessionControl
from .manual_calls import shell_tool

BUILT_IN: Mapping[str, str] = {"help": "what can be typed", "exit": "leave"}
SHELL_WORDS: Mapping[str, str] = {"shell": "every line is a command, until !shell again", "sh": "the same as !shell"}
_OF_MODELS = ("/model", "!model")
_FILES_LISTED = 200
_FILE_PARAMETER = re.compile(r"(^|_)(path|paths|file|files|folder|dir|directory)$")


class Candidate(Record):
    """A text to put in place of the last `replaces` characters; `help` says what it is."""

    text: str
    replaces: int
    help: str = ""


def candidates(line: str, session: SessionControl) -> Iterator[Candidate]:
    """What may follow the text before the cursor."""
    head, space, _ = line.partition(" ")
    word = re.split(r"[ \n]", line)[-1]
    if space and head in _OF_MODELS:
        yield from _names(word, "", _models(session))
    elif not space and line.startswith("/"):
        yield from _names(word, "/", _slash_names(session))
    elif line.startswith("!") and shell_tool(session) is None:
        return
    elif not space and line.startswith("!"):
        yield from _names(word, "!", SHELL_WORDS)
    elif head == "/help":
        yield from _names(word, "", _slash_names(session))
    elif line.startswith("/"):
        yield from _parameters(line, head[1:], word, session)
    elif line.startswith("!"):
        yield from _files(word, session.working_dir, quoted=True)
    elif word.startswith("@"):
        yield from _files(word[1:], session.working_dir, quoted=False)


def _slash_names(session: SessionControl) -> Mapping[str, str]:
    tools = {spec.name: spec.description.partition("\n")[0] for spec in session.tools}
    return {**tools, **BUILT_IN, **{name: command.help for name, command in session.commands.items()}}


def _models(session: SessionControl) -> Mapping[str, str]:
    """The models of the services that are set up, in both ways to name them."""
    entries = [entry for entry in session.models.listed() if entry.reason]
    full = {f"{entry.provider}/{model}": "" for entry in entries for model in entry.models}
    current = [model for entry in entries if entry.provider == session.models.provider_name for model in entry.models]
    return {**full, **dict.fromkeys(current, "of the service in use"), "high": "a tier", "low": "a tier"}


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
    """Files and folders below the working directory whose path begins so."""
    folder, _, name = word.rpartition("/")
    if os.path.isabs(folder) or ".." in folder.split("/"):
        return
    for found, is_folder in sorted(_entries(root / folder))[:_FILES_LISTED]:
        if found.startswith(name) and (not found.startswith(".") or name.startswith(".")):
            path = f"{folder}/{found}" if folder else found
            text = shlex.quote(path) if quoted else path
            yield Candidate(text=text + ("/" if is_folder else " "), replaces=len(word), help="folder" * is_folder)


def _entries(folder: Path) -> Iterable[tuple[str, bool]]:
    try:
        with os.scandir(folder) as entries:
            return [(entry.name, entry.is_dir()) for entry in entries if entry.name.isprintable()]
    except OSError:
        return ()
