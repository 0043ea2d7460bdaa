"""Images that a model cannot receive: those of unknown formats, or all if the model does not accept images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ...api.messages import Block, Image, Message, Text, ToolOutput
from ...api.providers import Request

NOT_SEEN = "(an image, which this model does not accept)"
_FORMATS = ("image/png", "image/jpeg", "image/gif", "image/webp")

T = TypeVar("T", bound=Block)


def instead_of(image: Image) -> str:
    """The replacement text for an image in a format that services refuse; empty for an acceptable image."""
    known = image.media_type in _FORMATS
    return "" if known else f"(an image in a format that cannot be shown here: {image.media_type})"


def text_of(blocks: Sequence[object]) -> str:
    """The text, with a line for each image that cannot be sent."""
    text = "".join(block.text for block in blocks if isinstance(block, Text))
    lines = [instead_of(block) for block in blocks if isinstance(block, Image)]
    return "\n".join(filter(None, (text, *lines)))


def without_images(request: Request) -> Request:
    """The request with a line of text for each image except those of the newest prompt; unchanged if there is none.

    This lets a conversation continue with a model that accepts no images, and a run continue after a tool returned one.
    For images in the prompt itself, the user gets an error.
    """
    newest = max((index for index, message in enumerate(request.messages) if message.role == "user"), default=-1)
    messages = [message if index == newest else _described(message) for index, message in enumerate(request.messages)]
    if all(new is old for new, old in zip(messages, request.messages, strict=True)):
        return request
    return request.replace(messages=tuple(messages))


def _described(message: Message) -> Message:
    blocks = tuple(
        block.replace(content=_texts(block.content)) if isinstance(block, ToolOutput) else block
        for block in _texts(message.content)
    )
    return message if blocks == message.content else message.replace(content=blocks)


def _texts(blocks: Sequence[T]) -> tuple[T | Text, ...]:
    return tuple(Text(text=NOT_SEEN) if isinstance(block, Image) else block for block in blocks)
