"""The tools that run Python in Blender and take screenshots of its viewport."""

from __future__ import annotations

import base64
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from marvin_core import (
    Field,
    Image,
    Text,
    ToolContext,
    ToolError,
    ToolResult,
    head_and_tail,
    image_type,
    in_thread,
    tool,
)

from .connection import ask, place_of

_SECONDS = 180
_SHOWN = 20_000
_CODE = 200_000
_LARGEST = 20_000_000


@tool(access=["exec"], timeout=_SECONDS + 20)
async def blender_execute_code(
    code: Annotated[str, "Python, with bpy; print() returns text"], *, context: ToolContext
) -> str:
    """Run Python in Blender; what it prints comes back. It does not run in the sandbox and cannot be undone."""
    if not code.strip() or len(code) > _CODE:
        raise ToolError(f"The code has {len(code):,} characters. Give 1 to {_CODE:,}.")
    answer = await ask(context, context.processes, "execute_code", {"code": code}, _SECONDS)
    printed = str(answer.get("result") or "") if isinstance(answer, dict) else ""
    return head_and_tail(printed.rstrip(), _SHOWN, "Print less.") or "Done. The code printed nothing."


@tool(access=["read"])
async def blender_screenshot(
    max_size: Annotated[int, Field(ge=64, le=4096), "Its longer side in pixels"] = 512,
    *,
    context: ToolContext,
) -> ToolResult:
    """See the viewport of Blender as an image."""
    path = context.folders.cache / f"viewport-{secrets.token_hex(8)}.png"
    params = {"max_size": max_size, "filepath": str(path), "format": "png"}
    try:
        answer = await ask(context, context.processes, "get_viewport_screenshot", params, context.timeouts.http)
        content = await in_thread(lambda: _read(path))
    finally:
        with suppress(OSError):
            path.unlink()
    kind = image_type(content[:16])
    if not kind:
        raise ToolError(
            f"Blender at {place_of(context)} took a screenshot, but Marvin cannot find the image. Blender must run "
            "on this machine, because it passes the image as a file."
        )
    size = _size(answer)
    image = Image(media_type=kind, data=base64.b64encode(content).decode())
    return ToolResult(content=(Text(text=f"The viewport of Blender{size}."), image))


def _read(path: Path) -> bytes:
    """The image that Blender wrote; nothing if it is missing or too large."""
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
    except OSError:
        return b""
    return content if len(content) <= _LARGEST else b""


def _size(answer: Any) -> str:
    if isinstance(answer, dict) and isinstance(answer.get("width"), int) and isinstance(answer.get("height"), int):
        return f", {answer['width']} × {answer['height']} pixels"
    return ""
