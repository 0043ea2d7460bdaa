"""Events as lines of `--output-format stream-json`."""

from __future__ import annotations

import json
from typing import Any

from ..api.events import Event
from ..api.messages import Link, Message, Picture, Table, ToolOutput, block_to_dict, to_dict
from ..api.record import Record
from .terminal_text import json_for_terminals


def event_line(event: Event) -> str:
    """The event as one line of JSON, without a newline.

    Raises:
        ValueError: it contains itself, or a value that is too large to be written.
    """
    data = {"type": event.type, **_plain(event)}
    try:
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        from .plain_data import plain

        text = json.dumps(plain(data), ensure_ascii=False, separators=(",", ":"))
    return json_for_terminals(text)


def _plain(record: Record) -> dict[str, Any]:
    data = {name: _plain_value(value) for name, value in record.as_dict().items()}
    return {"type": record.type, **data} if isinstance(record, (Table, Picture, Link)) else data


def _plain_value(value: Any) -> Any:
    if isinstance(value, Message):
        return to_dict(value)
    if isinstance(value, ToolOutput):
        return block_to_dict(value)
    if isinstance(value, Record):
        return _plain(value)
    if isinstance(value, tuple):
        return [_plain_value(one) for one in value]
    return value
