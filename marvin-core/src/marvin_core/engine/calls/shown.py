"""The parts of a result besides its output, for people, undo and later use: checked, bounded, redacted."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...api.errors import ToolError
from ...api.messages import Call, Cell, Link, Picture, Shown, Table, ToolOutput
from ...api.tools import ToolResult, is_tool_name
from ...guard.redaction import Redactor
from ...util.plain_data import as_text, plain
from ...util.text import cut, storable

_MOST = 100
"""The maximum number of items that one call may show."""
LASTING = 8_000
"""The maximum length of a call's lasting text after a summary, in characters: it shares the summary with others."""
_LARGEST = 2**53
"""The largest count or size: most JSON readers represent no larger integer exactly."""


def checked(name: str, result: ToolResult, root: Path, limit: int) -> dict[str, Any]:
    """`show`, `undo`, `lasting` and `reveals` of a result, in a form for session files and interfaces.

    Args:
        root: the folder to which the paths of pictures are relative.
        limit: the maximum length of all shown items, in characters.

    Raises:
        ToolError: if they are invalid.
    """
    return {
        "show": _Checker(name, root, limit).all_of(result.show),
        "undo": undo_of(name, result),
        "lasting": _lasting_of(name, result),
        "reveals": revealed_by(name, result),
    }


def _lasting_of(name: str, result: ToolResult) -> str:
    lasting: object = result.lasting
    if not isinstance(lasting, str):
        raise ToolError(
            f"{name} returned {_beginning(lasting)} as lasting, which is not text. It may have done its work."
        )
    return cut(lasting, LASTING)


def revealed_by(name: str, result: ToolResult) -> tuple[str, ...]:
    """The tool names that a result reveals. Raises `ToolError` if they are invalid."""
    reveals: object = result.reveals
    if isinstance(reveals, (list, tuple)) and all(isinstance(one, str) for one in reveals):
        # A longer text, or one with other characters, is not a tool's name, and must not fill the session file.
        return tuple(name for name in reveals[:_MOST] if is_tool_name(name))
    raise ToolError(
        f"{name} returned {_beginning(reveals)} as reveals, which must be names. It may have done its work."
    )


def undo_of(name: str, result: ToolResult) -> Call | None:
    """The call that undoes this one, in a form for storage. Raises `ToolError` if it is invalid."""
    undo: object = result.undo
    if undo is None:
        return None
    fields = undo.as_dict() if isinstance(undo, Call) else {}
    if not isinstance(fields.get("name"), str) or not isinstance(fields.get("arguments"), Mapping):
        raise ToolError(f"{name} returned an undo that is not a Call: {undo!r:.100}. It may have done its work. Check.")
    try:
        return Call(name=fields["name"], arguments=plain(dict(fields["arguments"])))
    except ValueError as error:
        raise ToolError(f"{name} returned an undo that cannot be kept: {error}. It may have done its work.") from None


class _Checker:
    """Checks the items that one call shows. `left` is the remaining number of characters."""

    def __init__(self, name: str, root: Path, left: int) -> None:
        self._name = name
        self._root = root
        self._left = left

    def all_of(self, show: object) -> tuple[Shown, ...]:
        """All items, up to the maximum number."""
        if not isinstance(show, (tuple, list)):
            raise self._wrong(show)
        return tuple(map(self._one, show[:_MOST]))

    def _one(self, item: object) -> Shown:
        if isinstance(item, Table):
            return self._table(item)
        if isinstance(item, Picture):
            path, alt, kind = self._text(item.path), self._text(item.alt), self._text(item.media_type)
            return Picture(path=path, alt=alt, media_type=kind, size=self._size(path, item.size))
        if isinstance(item, Link):
            return Link(url=self._text(item.url), text=self._text(item.text))
        raise self._wrong(item)

    def _wrong(self, item: object) -> ToolError:
        return ToolError(
            f"{self._name} shows {_beginning(item)}, which is not a valid table, picture or link. It may have done "
            "its work. Check."
        )

    def _text(self, value: object) -> str:
        if not isinstance(value, str):
            raise self._wrong(value)
        kept = storable(value[: max(0, self._left)])
        self._left -= len(kept)
        return kept

    def _size(self, path: str, given: object) -> int | None:
        if isinstance(given, int) and given >= 0:
            return min(int(given), _LARGEST)
        with suppress(OSError, ValueError):
            status = os.stat(self._root / path)
            return status.st_size if path and stat.S_ISREG(status.st_mode) else None
        return None

    def _table(self, table: Table) -> Table:
        title, columns = self._text(table.title), self._columns(table.columns)
        given: object = table.rows
        if not isinstance(given, (tuple, list)):
            raise self._wrong(given)
        rows: list[tuple[Cell, ...]] = []
        for row in given:
            if not isinstance(row, (tuple, list)):
                raise self._wrong(row)
            if self._left <= 0:
                break
            rows.append(self._row(row))
        omitted = self._count(table.omitted) + len(given) - len(rows)
        return Table(columns=columns, rows=tuple(rows), title=title, omitted=omitted)

    def _count(self, given: object) -> int:
        if not isinstance(given, int):
            raise self._wrong(given)
        return min(max(0, int(given)), _LARGEST)

    def _columns(self, columns: object) -> tuple[str, ...]:
        if not isinstance(columns, (tuple, list)):
            raise self._wrong(columns)
        return tuple(map(self._text, columns[: max(0, self._left)]))

    def _row(self, row: Sequence[object]) -> tuple[Cell, ...]:
        cells: list[Cell] = []
        for cell in row:
            if self._left <= 0:
                break
            self._left -= 1
            cells.append(self._text(cell) if isinstance(cell, str) else self._value(cell))
        return tuple(cells)

    def _value(self, value: object) -> Cell:
        if value is None or isinstance(value, (bool, int, float)):
            known: Cell = plain(value)
            return known
        return self._text(as_text(value))


def _beginning(value: object) -> str:
    """The beginning of a third-party value, for an error."""
    try:
        return f"{value!r:.100}"
    except Exception:
        return f"a {type(value).__name__}"


def with_extras(output: ToolOutput, result: ToolResult, redactor: Redactor) -> ToolOutput:
    """The output with the shown items, the undo call and the lasting text, without secrets."""
    return output.replace(
        show=redactor.value(result.show),
        undo=redactor.value(result.undo),
        lasting=redactor.text(result.lasting),
        reveals=tuple(result.reveals),
        is_final=result.is_final,
    )
