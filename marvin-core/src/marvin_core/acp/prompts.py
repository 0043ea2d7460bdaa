"""Converts prompts of an editor to messages for the model: texts, images, files and embedded resources."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from acp import schema

from ..api.messages import Image
from ..api.record import Record
from ..api.session import Attached, SessionControl
from ..kit.files.encodings import image_type
from ..kit.image_files import image_flaw
from ..ui.attach.attaching import MOST_CHARACTERS, with_attached
from ..ui.attach.words import written
from ..util.text import cut, one_line

Block: TypeAlias = (
    schema.TextContentBlock
    | schema.ImageContentBlock
    | schema.AudioContentBlock
    | schema.ResourceContentBlock
    | schema.EmbeddedResourceContentBlock
)
ReadFile: TypeAlias = Callable[[str], Awaitable[str | None]]
"""The text of a file in the editor, with unsaved changes; None if it is not available."""
_MOST_IMAGE = 3_750_000
"""The maximum size of an image in bytes; in base64 just under the limit of 5 MB of model services."""
_NAME = 200


class EditorPrompt(Record):
    """A prompt. `line` is the typed text, with names of files in it; `notes` are for the user, one per line."""

    line: str
    text: str
    attached: Attached = Attached()
    notes: tuple[str, ...] = ()


async def read_prompt(blocks: Sequence[Block], session: SessionControl, read: ReadFile | None) -> EditorPrompt:
    """Convert these blocks to a prompt. Named files are attached; its notes report failures."""
    reader = _Reader(session, read)
    for block in blocks:
        await reader.take(block)
    return await reader.prompt()


class _Reader:
    def __init__(self, session: SessionControl, read: ReadFile | None) -> None:
        self._session = session
        self._read = read
        self._line = ""
        self._texts: list[str] = []
        self._images: list[Image] = []
        self._tools: list[str] = []
        self._notes: list[str] = []

    async def take(self, block: Block) -> None:
        """Add a block."""
        if isinstance(block, schema.TextContentBlock):
            self._line += block.text
        elif isinstance(block, schema.ImageContentBlock):
            self._image(block.data, block.uri or "an image of the message")
        elif isinstance(block, schema.ResourceContentBlock):
            await self._link(block)
        elif isinstance(block, schema.EmbeddedResourceContentBlock):
            self._embedded(block.resource)
        else:
            self._notes.append("Audio was left out: no model is sent any.")

    async def prompt(self) -> EditorPrompt:
        """The prompt."""
        line = self._line
        if "@" in line:
            message = await with_attached(line, self._session)
            self._texts.insert(0, message.text.removeprefix(line).strip("\n"))
            self._images += message.attached.images
            self._tools += message.attached.tools
            self._notes += message.notes
        return EditorPrompt(
            line=line,
            text="\n\n".join(filter(None, [line, *self._texts])),
            attached=Attached(images=tuple(self._images), tools=tuple(dict.fromkeys(self._tools))),
            notes=tuple(self._notes),
        )

    def _image(self, data: str, name: str) -> None:
        try:
            raw = base64.b64decode(data, validate=True)
        except (ValueError, binascii.Error):
            raw = b""
        kind = image_type(raw)
        if not kind:
            self._notes.append(f"{one_line(name, _NAME)} is not an image that models can see, so it was left out.")
        elif len(raw) > _MOST_IMAGE:
            self._notes.append(f"An image of {len(raw):,} bytes was left out; services take {_MOST_IMAGE:,} at most.")
        elif flaw := image_flaw(raw):
            self._notes.append(f"{one_line(name, _NAME)} was left out: {flaw}.")
        else:
            self._images.append(Image(media_type=kind, data=data))

    def _embedded(self, resource: schema.TextResourceContents | schema.BlobResourceContents) -> None:
        name = self._named(resource.uri)
        if isinstance(resource, schema.TextResourceContents):
            self._line += name
            self._texts.append(_attached(name, resource.text))
        elif (resource.mime_type or "").startswith("image/"):
            self._image(resource.blob, name)
        else:
            self._notes.append(f"{name} is not a text, so it was left out.")

    async def _link(self, link: schema.ResourceContentBlock) -> None:
        """Attach a linked file: its text from the editor, else from disk."""
        path = path_of(link.uri)
        if path is None:
            self._line += one_line(link.uri, _NAME)
            return
        name = self._named(link.uri)
        self._line += name
        text = await self._read(str(path)) if self._read is not None else None
        if text is not None:
            self._texts.append(_attached(name, text))
            return
        mention = written(name)
        message = await with_attached(mention, self._session)
        self._texts.append(message.text.removeprefix(mention).strip("\n"))
        self._images += message.attached.images
        self._notes += message.notes

    def _named(self, uri: str) -> str:
        """The name of a resource for the model: the relative path of a file in the working directory."""
        path = path_of(uri)
        if path is None:
            return one_line(uri, _NAME)
        inside = os.path.relpath(path, self._session.working_dir)
        return str(path) if inside.startswith("..") else inside


def path_of(uri: str) -> Path | None:
    """The file of a URI; None for other URIs."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    path = unquote(parts.path)
    if parts.scheme == "file" and parts.netloc in ("", "localhost") and path.startswith("/") and "\0" not in path:
        return Path(path)
    return Path(uri) if not parts.scheme and uri.startswith("/") and "\0" not in uri else None


def _attached(name: str, text: str) -> str:
    left = len(text) - MOST_CHARACTERS
    more = f"\n[{left:,} characters left out]" if left > 0 else ""
    return f"[Attached: {name}]\n{cut(text, MOST_CHARACTERS).rstrip(chr(10))}{more}\n[End of {name}]"
