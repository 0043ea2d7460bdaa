"""Messages of one conversation in the order that the strictest services and templates of models take.

An answer follows another one where the model goes on without a word of the user's in between. Some services and many
templates refuse that, and what ends with an answer is for some of them a text to be continued.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from .encoding import dump

GO_ON = "Continue."
"""Stands behind a conversation that ends with an answer, as many refuse to go on from one."""
UNDERSTOOD = "I have read the output."
"""Stands between an output and the user's next message where a model must have spoken before the user does."""

_ANSWER = b'{"role":"assistant"'
_OUTPUT = b'{"role":"tool"'
_USER = b'{"role":"user"'


def in_order(forms: Sequence[bytes], *, alternating: bool = False) -> list[bytes]:
    """The encoded messages with neighbouring answers made one, and something to go on from at the end.

    Args:
        alternating: whether messages of the user are joined as well, and an answer stands behind outputs.
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
    """Messages of one role as one: texts and lists go on, and of what else is told twice the last counts."""
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
