"""Instructions in folders below the working directory: they are added to the output of the first call in such a folder.

For the system prompt, all folders would have to be searched first, and later additions would invalidate the services'
caches. In the conversation, the instructions are at the place from which on they apply.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePath

from ...api.messages import Message, Text
from ...api.record import Record
from ...api.tools import ToolResult
from ...util.text import one_line
from ...util.threads import in_thread
from ..parts import SessionParts
from .files import InstructionReader, Instructions
from .places import FOR_ALL_AGENTS, InstructionPlace, project_folders, stamp_of

_MOST = 3
"""The maximum number of files with instructions in one output."""
_HEADING = (
    "[Instructions from the repository, not from the user, for what is in {folder}, from {path}. Where they "
    "contradict earlier instructions from the repository, these apply.]"
)
_END = "[End of {path}]"


class _Told(Record):
    """The version of a file that the model got, and the message of the conversation after which it got it."""

    stamp: object
    last: Message | None
    length: int
    heading: str = ""
    """Empty if the model read the file itself."""


class NestedInstructions:
    """Adds the instructions of folders to the outputs of calls that read or change files there."""

    def __init__(self, parts: SessionParts) -> None:
        self._parts = parts
        self._root: Path | None = None
        self._told: dict[str, _Told] = {}

    async def added(self, result: ToolResult, used: Sequence[str]) -> ToolResult:
        """The result, with instructions that the model does not have yet.

        Args:
            used: the files that the call read or changed, relative to the working directory.
        """
        root = self._parts.workspace.root
        if root != self._root:
            self._root, self._told = root, {}
        new = [path for path in _files(root, used) if self._is_new(root, path, used)][:_MOST]
        if not new:
            return result
        found = await in_thread(lambda: self._read(root, new))
        return result.replace(content=(*result.blocks, Text(text=found))) if found else result

    def _is_new(self, root: Path, path: str, used: Sequence[str]) -> bool:
        stamp, messages = stamp_of(f"{root}/{path}"), self._parts.conversation.messages
        now = _Told(stamp=stamp, last=messages[-1] if messages else None, length=len(messages))
        told = self._told.get(path)
        if path in used:
            self._told[path] = now
            return False
        if told is not None and told.stamp == stamp and _still_stands(told, messages):
            return False
        self._told[path] = now.replace(heading=_heading(path))
        return True

    def _read(self, root: Path, paths: Iterable[str]) -> str:
        parts, config = self._parts, self._parts.config
        reader = InstructionReader(parts.workspace.paths_of, config.home, config.limits)
        top = project_folders(root, config.home)[0]
        room = config.limits.instruction_file
        shown = []
        for path in paths:
            from_top = os.path.relpath(f"{root}/{path}", top)
            found = reader.read(InstructionPlace(name=path, base=top, path=from_top), top)
            if found is not None and not found.unused:
                shown.append(_shown(found, room))
                room = max(0, room - len(found.text))
        return "".join(f"\n\n{text}" for text in shown)


def _files(root: Path, used: Iterable[str]) -> Iterator[str]:
    """The files with instructions in the folders of these files below the root, the outermost first, each once."""
    folders = {str(folder) for path in used for folder in PurePath(path).parents[:-1]}
    for folder in sorted(folders, key=lambda folder: (folder.count("/"), folder)):
        for name in FOR_ALL_AGENTS:
            if os.path.isfile(f"{root}/{folder}/{name}"):
                yield f"{folder}/{name}"
                break


def _still_stands(told: _Told, messages: Sequence[Message]) -> bool:
    """Whether the conversation still contains it; a summary may have replaced it, or a rewind removed it."""
    if messages and messages[-1] is told.last:
        return True  # another call of the same answer
    if not told.heading:
        return len(messages) > told.length
    return any(
        told.heading in block.text
        for message in messages
        for output in message.outputs
        for block in output.content
        if isinstance(block, Text)
    )


def _heading(path: str) -> str:
    plain = one_line(path)
    return _HEADING.format(folder=os.path.dirname(plain), path=plain)


def _shown(found: Instructions, room: int) -> str:
    text = found.text[:room]
    rest = len(found.text) - len(text)
    more = f"\n[... {rest:,} more characters; read {found.name} to see them]" if rest else ""
    return f"{_heading(found.name)}\n{text}{more}\n{_END.format(path=one_line(found.name))}"
