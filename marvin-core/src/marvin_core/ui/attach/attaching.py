"""Attaches the items that a message names after `@`: contents of files, images, documents, and deferred tools."""

from __future__ import annotations

import base64
import os
import stat
from functools import partial
from pathlib import Path

from ...api.errors import MarvinError
from ...api.messages import Image, Text
from ...api.record import Record
from ...api.session import Attached, SessionControl
from ...kit.files.encodings import binary_kind, codec_of, image_type
from ...kit.image_files import image_flaw
from ...util.text import counted
from ...util.threads import in_thread
from .words import Mention, is_outside, mentions, place_of

MOST_CHARACTERS = 200_000
"""The maximum length of one file's text. The rest is left out, with a note."""
_MOST_BYTES = 50_000_000
_MOST_IMAGE = 3_750_000
"""The maximum size in bytes; in base64 just under the 5 MB that model services accept."""
_MOST_NAMES = 200


class _Found(Record):
    """The content behind a mention: text, an image, a document for a tool to read, or nothing."""

    text: str = ""
    image: Image | None = None
    document: str = ""
    note: str = ""


class Message(Record):
    """A message with its attachments. `notes` are for the person, one per line."""

    text: str
    attached: Attached = Attached()
    notes: tuple[str, ...] = ()


async def with_attached(line: str, session: SessionControl) -> Message:
    """The message with the contents of the files that it names; for a file that cannot be attached there is a note.

    A file outside of the working directory is read once, since the person named it; tools get no access to it.
    """
    texts: list[str] = []
    images: list[Image] = []
    tools: list[str] = []
    notes: list[str] = []
    names = {spec.name for spec in session.tools}
    for mention in mentions(line):
        found = await in_thread(partial(_looked_at, mention, session))
        if found is None:
            meant = next((one for one in mention.readings if one in names), "")
            resource = next((one for one in mention.readings if _reader(one) in names), "")
            if meant:
                tools.append(meant)
            elif resource:
                read = await session.call_tool(_reader(resource), {"uri": resource.partition(":")[2]}, "typed")
                said = "\n".join(block.text for block in read.content if isinstance(block, Text))
                if read.is_error:
                    notes.append(f"{resource} was not attached: {said}")
                    continue
                texts.append(f"[Attached: {resource}]\n{said[:MOST_CHARACTERS]}\n[End of {resource}]")
                images += [block for block in read.content if isinstance(block, Image)]
            elif mention.text != "!" and mention.looks_like_a_path:
                notes.append(f"There is no file {mention.text}, so nothing was attached.")
            continue
        if found.document:
            found = await _read_by_tool(found, session)
        texts += [found.text] if found.text else []
        images += [found.image] if found.image is not None else []
        notes += [found.note] if found.note else []
    text = "\n\n".join([line, *texts])
    return Message(text=text, attached=Attached(images=tuple(images), tools=tuple(tools)), notes=tuple(notes))


def _reader(mention: str) -> str:
    """The tool that reads a resource of an MCP server, if one is meant: `SERVER:URI`."""
    server, colon, uri = mention.partition(":")
    return f"{server}__read_resource" if colon and uri else ""


def _looked_at(mention: Mention, session: SessionControl) -> _Found | None:
    """The content behind a mention, if it is a file or a folder."""
    root, home = session.working_dir, session.chat.home
    for path in mention.readings:
        place = place_of(path, root, home)
        try:
            status = place.stat()
        except (OSError, ValueError):
            continue
        try:
            if stat.S_ISDIR(status.st_mode):
                return _folder(path, place)
            if stat.S_ISREG(status.st_mode):
                return _file(path, place, outside=is_outside(place, root))
        except OSError as error:
            return _Found(note=f"{path} cannot be read: {error.strerror}. It was not attached.")
        return _Found(note=f"{path} is neither a file nor a folder, so it was not attached.")
    return None


def _folder(path: str, place: Path) -> _Found:
    with os.scandir(place) as entries:
        names = sorted(entry.name + "/" * entry.is_dir() for entry in entries if not entry.name.startswith("."))
    more = f"\n… and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    listed = "\n".join(names[:_MOST_NAMES])
    return _Found(text=f"[Attached: the folder {path}, {counted(len(names), 'name')}]\n{listed}{more}")


def _file(path: str, place: Path, *, outside: bool) -> _Found:
    # Not blocking: a pipe may have replaced the file since the check.
    descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return _Found(note=f"{path} is no longer a file, so it was not attached.")
        data = file.read(_MOST_BYTES + 1)
    kind = image_type(data)
    if kind:
        if len(data) > _MOST_IMAGE:
            return _Found(note=f"{path} is an image of {len(data):,} bytes; services take {_MOST_IMAGE:,} at most.")
        flaw = image_flaw(data)
        if flaw:
            return _Found(note=f"{path} was not attached as an image: {flaw}.")
        image = Image(media_type=kind, data=base64.b64encode(data).decode("ascii"))
        return _Found(text=f"[Attached: the image {path}]", image=image)
    kind = binary_kind(data)
    if kind:
        told = f"{path} is {kind}; only files in the working directory can be read. Copy it there to attach it."
        return _Found(note=told) if outside else _Found(document=path)
    return _text(path, data)


def _text(path: str, data: bytes) -> _Found:
    codec = codec_of(data)
    text = codec.decode(data) if codec is not None else data.decode("utf-8", "replace")
    lines = text.count("\n") + (not text.endswith("\n") and bool(text))
    left, note = "", ""
    if len(text) > MOST_CHARACTERS or len(data) > _MOST_BYTES:
        left = f"; the first {MOST_CHARACTERS:,} characters"
        text = text[:MOST_CHARACTERS]
        note = f"{path} is long: its first {MOST_CHARACTERS:,} characters are attached."
    ending = "" if text.endswith("\n") else "\n"
    return _Found(text=f"[Attached: {path}, {counted(lines, 'line')}{left}]\n{text}{ending}[End of {path}]", note=note)


async def _read_by_tool(found: _Found, session: SessionControl) -> _Found:
    """A document, read by the tool that is available for it."""
    path = found.document
    spec = next((spec for spec in session.tools if spec.typed == "@"), None)
    if spec is None:
        return _Found(note=f'{path} is not text, and no tool on offer reads it: pip install "marvin-core[coding]"')
    try:
        output = await session.call_tool(spec.name, {spec.parameters["required"][0]: path})
    except MarvinError as error:
        return _Found(note=f"{path} was not attached: {error}")
    if output.is_error:
        return _Found(note=f"{path} was not attached: {output.text.removeprefix('Error: ')}")
    text = "\n".join(block.text for block in output.content if isinstance(block, Text))
    image = next((block for block in output.content if isinstance(block, Image)), None)
    return _Found(text=f"[Attached: {path}]\n{text}\n[End of {path}]", image=image)
