"""Data that tools keep in JSON files of the profile folder, shared by all Marvins that run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from marvin_core import MarvinError, ToolError, in_thread, update_file

T = TypeVar("T")


async def change(path: Path, work: Callable[[dict[str, Any]], T]) -> T:
    """Let `work` read and change the object in a file, while no other process does; returns what it returns.

    Raises:
        ToolError: where the file is damaged, or cannot be read or written; it is then left as it is.
    """
    results: list[T] = []

    def changed(content: bytes | None) -> bytes | None:
        data = _parsed(path, content)
        before = json.dumps(data)
        results.append(work(data))
        return json.dumps(data, ensure_ascii=False, indent=1).encode() if json.dumps(data) != before else None

    try:
        await in_thread(lambda: update_file(path, changed))
    except OSError as error:
        raise ToolError(f"{path} cannot be read or written: {error.strerror or error}. Tell the user.") from error
    except ToolError:
        raise
    except MarvinError as error:
        raise ToolError(str(error)) from error
    return results[0]


async def read(path: Path) -> dict[str, Any]:
    """The object in a file; empty where there is no file.

    Raises:
        ToolError: where the file is damaged or cannot be read.
    """
    try:
        return _parsed(path, await in_thread(lambda: path.read_bytes() if path.exists() else None))
    except OSError as error:
        raise ToolError(f"{path} cannot be read: {error.strerror or error}. Tell the user.") from error


def _parsed(path: Path, content: bytes | None) -> dict[str, Any]:
    try:
        data = json.loads(content) if content is not None else {}
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise damaged(path, "it is no JSON object")
    return data


def damaged(path: Path, why: str) -> ToolError:
    """What is raised for a file that somebody or something has changed."""
    return ToolError(f"{path} is damaged: {why}. Ask the user to repair it, or to move it away.")
