"""The socket protocol of Blender's MCP add-on: one JSON object as request, one as answer, without delimiters.

Facts: https://github.com/ahujasid/mcp-for-blender (addon.py, 2.2): `{"type": ..., "params": {...}}` is answered by
`{"status": "success", "result": ...}` or `{"status": "error", "message": ...}`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from typing import Any

from marvin_core import PackContext, Processes, ToolError, in_thread, one_line

from ..settings import LifeSettings

_LARGEST = 16 * 1024 * 1024
_SAID = 2_000
HOW_TO_START = (
    "Start Blender with its MCP add-on: install addon.py of github.com/ahujasid/mcp-for-blender (blender-mcp "
    "before) under Edit > Preferences > Add-ons. It then starts automatically; if not, press N in the 3D view, "
    "choose MCP for Blender and click Connect to MCP server. Set BLENDER_MCP_HOST and BLENDER_MCP_PORT for another "
    "address."
)


async def ask(context: PackContext, processes: Processes, kind: str, params: Mapping[str, Any], timeout: float) -> Any:
    """The result of a command in Blender.

    Args:
        timeout: for the whole exchange, in seconds.

    Raises:
        ToolError: Blender is not reachable, does not answer in time, or reports an error.
    """
    settings, place = context.settings(LifeSettings), place_of(context)
    order = {
        "host": settings.blender_host,
        "port": settings.blender_port,
        "timeout": timeout,
        "most": _LARGEST,
        "request": json.dumps({"type": kind, "params": dict(params)}),
    }
    # In a process of its own, so that an add-on's data cannot block Marvin. The program is ours and needs no sandbox.
    told = await processes.run(
        [sys.executable, "-P", "-m", f"{__package__}.exchange"],
        stdin=json.dumps(order).encode(),
        timeout=timeout,
        output_limit=2 * _LARGEST,
        outside=True,
    )
    outcome, _, content = told.output.partition(b"\n")
    word = "late" if told.timed_out else outcome.decode("ascii", "replace")
    if word != "answered":
        raise ToolError(_why_not(word, place, timeout, content.decode("utf-8", "replace")))
    try:
        answer = await in_thread(lambda: json.loads(content))
    except (ValueError, RecursionError):
        raise ToolError(_no_addon(place)) from None
    return _result(answer, place)


def _why_not(outcome: str, place: str, timeout: float, said: str) -> str:
    if outcome == "late":
        return (
            f"Blender at {place} did not answer in {timeout:g} seconds. It may be rendering or showing a dialog: ask "
            "the user to check. The request may still be carried out."
        )
    if outcome == "refused":
        return f"Blender does not answer at {place}. {HOW_TO_START}"
    if outcome == "ended":
        return (
            f"Blender at {place} closed the connection before its answer was complete. Try again; if that does not "
            "help, ask the user to restart the add-on."
        )
    if outcome == "large":
        return f"Blender at {place} sent more than {_LARGEST:,} bytes. Ask for less."
    if outcome == "strange":
        return _no_addon(place)
    return (
        f"Blender at {place} cannot be reached: {one_line(said, 200) or 'the connection program failed'}. "
        f"{HOW_TO_START}"
    )


def place_of(context: PackContext) -> str:
    """The host and port, for people."""
    settings = context.settings(LifeSettings)
    host = f"[{settings.blender_host}]" if ":" in settings.blender_host else settings.blender_host
    return f"{host}:{settings.blender_port}"


def _result(answer: Any, place: str) -> Any:
    if not isinstance(answer, dict) or answer.get("status") not in ("success", "error"):
        raise ToolError(_no_addon(place))
    result = answer.get("result")
    failed = result.get("error") if isinstance(result, dict) else None
    if answer["status"] == "error" or failed:
        said = _in_words(str(failed or answer.get("message") or "it gave no reason"))
        raise ToolError(f"Blender says: {said}. Earlier changes are kept; blender_get_scene shows the scene.")
    return result


def _in_words(message: str) -> str:
    """An error message; newer add-ons send JSON with the type and the location of the error."""
    try:
        told = json.loads(message)
        lines = re.findall(r'File "<string>", line (\d+)', str(told["traceback"]))
        place = f" (line {lines[-1]} of the code)" if lines else ""
        message = f"{told['exception_type']}: {told['message']}{place}"
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    return one_line(message, _SAID).rstrip(".")


def _no_addon(place: str) -> str:
    return f"The program that answers at {place} is not the MCP add-on of Blender. {HOW_TO_START}"
