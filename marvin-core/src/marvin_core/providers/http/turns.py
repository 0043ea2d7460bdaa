"""Messages of one conversation in the order that the strictest services and chat templates accept.

Two answers are adjacent if the model continues without a message of the user in between. Some services and many
templates refuse that. For some of them, a conversation that ends with an answer is a text to be continued.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from .encoding import dump

GO_ON = "Continue."
"""The message after a conversation that ends with an answer, since many services refuse to continue one."""
UNDERSTOOD = "I have read the output."
"""The answer between a tool output and the user's next message, for models that must speak before the user does."""

_ANSWER = b'{"role":"assistant"'
_OUTPUT = b'{"role":"tool"'
_USER = b'{"role":"user"'


def in_order(forms: Sequence[bytes], *, alternating: bool = False) -> list[bytes]:
    """The encoded messages with adjacent answers merged, and a message to continue from at the end.

    Args:
        alternating: whether the user's messages are merged as well, and an answer follows outputs.
    """
    ordered: list[bytes] = []
    for role, group in groupby(forms, _role):
        run = list(group)
        if alternating and role == _USER and ordered and ordered[-1].startswith(_OUTPUT):
            ordered.append(dump({"role": "assistant", "content": UNDERSTOOD}))
        joins = role == _ANSWER or (alternating and role == _USER)
        ordered += [_joined(run)] if joins and len(run) > 1 else run
    if ordered and ordered[-1].startswith(_ANSWER):
        ordered.append(dump({"role": "user", "content": GO_ON}))
    return ordered


def _role(form: bytes) -> bytes:
    return next((role for role in (_ANSWER, _USER) if form.startswith(role)), b"")


def _joined(run: Sequence[bytes]) -> bytes:
    """Messages of one role, merged: texts and lists are concatenated, of other fields the last one counts."""
    whole: dict[str, Any] = {}
    for form in run:
        for name, value in json.loads(form).items():
            whole[name] = _both(whole.get(name), value) if name != "role" else value
    return dump(whole)


def _both(first: Any, second: Any) -> Any:
    if not first or not second:
        return second or first
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    if isinstance(first, (str, list)) and isinstance(second, (str, list)):
        return [*_parts(first), *_parts(second)]
    return second


def _parts(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]
