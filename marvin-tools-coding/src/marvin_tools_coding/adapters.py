"""Helpers for arguments of models trained with other programs: other parameter names, and values in other shapes."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from marvin_core import ToolError

PATHS = ("file_path", "filePath", "filepath", "file", "filename", "target_file", "targetFile", "relative_path")
IGNORED = ("description", "explanation", "instruction", "instructions", "thought", "toolSummary")
"""Parameters that have no effect here, such as explanations that other programs show to people."""
FOLDERS = (
    *("dir_path", "dirPath", "directory", "directory_path", "dir", "folder", "target_directory", "target_directories"),
    *("relative_workspace_path", "DirectoryPath", "SearchDirectory", "SearchPath", "search_path", "paths", "root"),
    *("absolute_path", "base_path"),
)
MOST = ("limit", "maxResults", "max_matches", "total_max_matches", "num_results", "count_limit", "n")


def taken(given: dict[str, Any], *names: str) -> Any:
    """Remove all of the names; returns the value of the first that was given, or None."""
    values = [given.pop(name, None) for name in names]
    return next((value for value in values if value is not None), None)


def truth(value: Any) -> Any:
    """A value; a text for true or false becomes that."""
    return {"true": True, "false": False}.get(value.strip().lower(), value) if isinstance(value, str) else value


def says_yes(given: dict[str, Any], *names: str) -> bool:
    """Remove all of the names; returns whether one was true."""
    return truth(taken(given, *names)) is True


def number(name: str, value: Any) -> int:
    """A whole number, rounded up. Raises `ToolError` if it is not a number."""
    try:
        if isinstance(value, bool):
            raise ValueError
        return math.ceil(float(value))
    except (TypeError, ValueError, OverflowError):
        raise ToolError(
            f"{name} is not a number: {json.dumps(value, default=str):.100}. Give a whole number."
        ) from None


def at_most(given: dict[str, Any], name: str, most: int) -> None:
    """Reduce a number to the maximum."""
    value = given.get(name)
    if isinstance(value, int | float) and value > most:
        given[name] = most


def one(given: dict[str, Any], name: str, several: str) -> None:
    """Replace a list of one value with that value.

    Args:
        several: what to send instead of a list of several.
    """
    value = given.get(name)
    if not isinstance(value, list):
        return
    if len(value) > 1:
        raise ToolError(f"{name} takes one value, but {len(value)} were given. {several}")
    given[name] = value[0] if value else None


def refuse(given: dict[str, Any], names: Sequence[str], instead: str) -> None:
    """Refuse parameters that have no equivalent here; ones that say no, or nothing, are removed.

    Raises:
        ToolError: with what to send instead.
    """
    for name in names:
        if truth(given.pop(name, None)):
            raise ToolError(f"Nothing was done: {name} is not supported here. {instead}")


def for_real(given: dict[str, Any]) -> dict[str, Any]:
    """Refuse a dry run: every call is carried out."""
    refuse(
        given,
        ("dry_run", "dryRun", "--dry-run", "preview"),
        "Calls always take effect; to change nothing, describe what you would do instead.",
    )
    return given


def opposite(given: dict[str, Any], name: str, *others: str) -> None:
    """Set a parameter to the negation of another program's, unless it was given itself."""
    value = truth(taken(given, *others))
    if isinstance(value, bool):
        given.setdefault(name, not value)


def lines(given: dict[str, Any]) -> None:
    """Convert other forms of a line range, such as offset and count, to the first and the last line."""
    if isinstance(given.get("lines"), int):
        given.setdefault("limit", given.pop("lines"))
    for name in ("view_range", "read_range", "line_range", "lineRange", "range", "lines", "pages"):
        value = given.pop(name, None)
        if value not in (None, "", []):
            given["start_line"], given["end_line"] = _bounds(name, value)
    counted = taken(given, "limit", "n_lines", "num_lines", "max_lines", "line_count")
    if counted is not None and given.get("end_line") is None and (count := number("limit", counted)) > 0:
        first = given.get("start_line")
        given["end_line"] = max(1, 0 if first is None else number("start_line", first)) + count - 1


def _bounds(name: str, value: Any) -> tuple[int, int | None]:
    """The first and the last line; None means the end."""
    parts: Any = [value] if isinstance(value, int) else value
    if isinstance(value, str):
        parts = value.replace(":", "-").replace(",", "-").strip("[] ").split("-", 1)
    if not isinstance(parts, list) or len(parts) not in (1, 2):
        raise ToolError(f"{name} is not a range of lines. Give start_line and end_line.")
    first, last = number(name, parts[0]), number(name, parts[-1]) if parts[-1] not in ("", None) else -1
    return first, last if last > 0 else None
