"""What tools return and raise, as everything behind them can hold it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...api.errors import ToolError
from ...api.messages import Image, Text, ToolCall
from ...api.tools import ToolResult
from ...util.failures import told

GO_ON = "It may have done its work. Check, then try another way."


def as_result(returned: object) -> ToolResult:
    """What a tool returned as a result; a text stands for one."""
    if isinstance(returned, ToolResult):
        return returned
    return ToolResult(content="(no output)" if returned in (None, "") else str(returned))


def presentable(name: str, result: ToolResult) -> ToolResult:
    """The result as a model can be shown it, and a session file and interfaces can hold it.

    Raises:
        ToolError: where it is none.
    """
    content: object = result.content
    blocks = content if isinstance(content, (tuple, list)) else [Text(text=content)]  # type: ignore[arg-type]
    if not all(map(_is_content, blocks)):
        raise ToolError(f"{name} returned {content!r:.100}, which is neither text nor image. {GO_ON}")
    details = result.details
    if details is not None:
        from ...util.plain_data import plain

        try:
            details = plain(dict(details))
        except (TypeError, ValueError) as error:
            raise ToolError(f"{name} returned details that cannot be used: {error}. {GO_ON}") from None
    return ToolResult(content=tuple(blocks), details=details, is_error=bool(result.is_error))


def text_of(error: ToolError) -> str:
    """What a tool says of its failure; of a class of its own, which may fail at that too."""
    try:
        return str(error)
    except Exception:
        return told(error)


def _is_content(block: object) -> bool:
    texts: list[object] = []
    if isinstance(block, Image):
        texts = [block.media_type, block.data]
    elif isinstance(block, Text):
        texts = [block.text]
    return bool(texts) and all(isinstance(text, str) for text in texts)


def as_written(call: ToolCall) -> Mapping[str, Any]:
    """The arguments of a call as the model wrote them; none where they are not to be read as they are."""
    from ...util.untrusted_json import parse_json

    try:
        given = parse_json(call.arguments)
    except ValueError:
        return {}
    return given if isinstance(given, dict) else {}
