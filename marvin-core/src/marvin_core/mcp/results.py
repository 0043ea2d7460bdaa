"""Converts answers of servers to results of tools and to text."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ..api.messages import Image, Text
from ..api.tools import ToolResult
from ..util.text import cut, one_line

if TYPE_CHECKING:
    from mcp_types import (
        AudioContent,
        BlobResourceContents,
        CallToolResult,
        EmbeddedResource,
        ImageContent,
        PromptMessage,
        ResourceLink,
        TextContent,
        TextResourceContents,
    )

    Block = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource
    Contents = TextResourceContents | BlobResourceContents

_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_LARGEST_IMAGE = 5_000_000
"""The maximum length of base64 that model services accept, in characters."""
_MOST_IMAGES = 10
_NAME_SHOWN = 300
_WHOLE, _ASKS = "complete", "input_required"
"""The kind of a result, and the kind of an answer that asks for input first."""


def result_in(answer: Mapping[str, Any]) -> ToolResult | None:
    """The result of a call, as the server sent it; None if the server asks for input first.

    Any other kind counts as a result, as in the SDK: older protocols have no kinds.

    Raises:
        ValueError: it is no result of a tool.
    """
    from mcp_types import CallToolResult

    kind = answer.get("resultType", _WHOLE)
    if kind == _ASKS and "content" not in answer:
        return None
    if not isinstance(kind, str):
        answer = {**answer, "resultType": _WHOLE}
    return result_of(CallToolResult.model_validate(answer, by_name=False))


def result_of(answer: CallToolResult) -> ToolResult:
    """The result of a call. Structured content is used only if there is no text."""
    blocks = list(blocks_of(answer.content))
    if answer.structured_content is not None and not any(isinstance(block, Text) for block in blocks):
        blocks.append(Text(text=json.dumps(answer.structured_content, ensure_ascii=False, indent=1)))
    if not blocks:
        blocks.append(Text(text="The server answered without any content."))
    return ToolResult(content=_joined(blocks), is_error=bool(answer.is_error))


def resource_blocks(contents: Iterable[Contents]) -> tuple[Text | Image, ...]:
    """The content of a resource."""
    return _joined([_resource(one) for one in contents])


def prompt_text(messages: Iterable[PromptMessage]) -> str:
    """The messages of a prompt as one text, with the roles unless all are the user's."""
    parts: list[str] = []
    for message in messages:
        text = "\n".join(block.text for block in blocks_of([message.content]) if isinstance(block, Text))
        parts.append(text if message.role == "user" else f"[{message.role}] {text}")
    return "\n\n".join(filter(None, parts))


def _joined(blocks: Sequence[Text | Image]) -> tuple[Text | Image, ...]:
    """The blocks, with consecutive texts joined, and at most as many images as a request allows."""
    if len(blocks) == 1:
        return tuple(blocks)
    kept: list[Text | Image] = []
    images = 0
    for is_text, run in groupby(blocks, lambda block: isinstance(block, Text)):
        if is_text:
            kept.append(Text(text="\n".join(block.text for block in run if isinstance(block, Text))))
            continue
        found = list(run)
        kept += found[: max(0, _MOST_IMAGES - images)]
        images += len(found)
    if images > _MOST_IMAGES:
        kept.append(Text(text=f"({images - _MOST_IMAGES:,} more images were left out.)"))
    return tuple(kept)


def blocks_of(content: Iterable[Block]) -> Iterable[Text | Image]:
    """A server's blocks as Marvin's; content that models cannot read is described in words."""
    for block in content:
        if block.type == "text":
            yield Text(text=block.text)
        elif block.type == "image":
            yield _image(block.mime_type, block.data)
        elif block.type == "audio":
            yield Text(text=f"(audio, {_shown(block.mime_type)}, {_size(block.data)}; it is not given to the model)")
        elif block.type == "resource":
            yield _resource(block.resource)
        else:
            what = block.description or block.title or block.name
            yield Text(text=f"(a resource: {_shown(block.uri)}, {_shown(what)})")


def _resource(contents: Contents) -> Text | Image:
    text = getattr(contents, "text", None)
    if isinstance(text, str):
        return Text(text=text)
    kind, data = contents.mime_type or "application/octet-stream", str(getattr(contents, "blob", ""))
    if kind in _IMAGES:
        return _image(kind, data)
    return Text(text=f"({_shown(contents.uri)}: {_shown(kind)}, {_size(data)}; it is not text)")


def _image(kind: str, data: str) -> Text | Image:
    if kind not in _IMAGES:
        return Text(text=f"(an image of the kind {_shown(kind)}, which models do not read)")
    if len(data) > _LARGEST_IMAGE:
        return Text(text=f"(an image of {_size(data)}, which is larger than models take)")
    try:
        base64.b64decode(data, validate=True)
    except ValueError:
        return Text(text="(an image that is no base64)")
    return Image(media_type=kind, data=data)


def _size(data: str) -> str:
    return f"{len(data) * 3 // 4:,} bytes"


def _shown(text: object) -> str:
    return cut(one_line(str(text)), _NAME_SHOWN)
