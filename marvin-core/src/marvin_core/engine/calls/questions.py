"""The details of a call that a person sees before it runs: all of them, with nothing that could hide a part."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ...api.permissions import AskedCall, PermissionAnswer
from ...api.record import Record
from ...api.tools import ToolSpec
from ...guard.permissions.policy import texts_in
from ...guard.permissions.verdicts import Judgement
from ...guard.redaction import Redactor
from ...util.terminal_text import exact, exact_line
from .look_alikes import look_alikes
from .preview import Preview

_LONG = 200
"""The length in characters from which an argument is replaced by its diff, if there is one."""
_PLACES = ("path", "paths", "file", "files", "folder", "to", "url")
"""Parameters that name the location of an action; they come first."""
_ESCAPED = "(Invisible characters are shown as escapes, and a backslash as two.)"


class Asking(Record):
    """Why a call needs approval. `repeats`: only the mode asks, so an approval may apply to later calls."""

    reason: str
    judgement: Judgement
    repeats: bool


def asked_call(
    call_id: str, spec: ToolSpec, arguments: Mapping[str, Any], asking: Asking, preview: Preview, redactor: Redactor
) -> AskedCall:
    """The call as a person sees it."""
    judgement = asking.judgement
    given = arguments.get(spec.command)
    command = given if isinstance(given, str) and redactor.text(given) == given else ""
    remember = judgement.remember if asking.repeats and redactor.text(judgement.remember) == judgement.remember else ""
    findings = [f"{one.text}: {one.why}" for one in judgement.findings if one.says]
    if preview.fails:
        findings.append(f"It would fail now: {preview.fails}")
    return AskedCall(
        call_id=call_id,
        name=spec.name,
        text=_text(spec, redactor.value(dict(arguments)), bool(preview.diff)),
        reason=exact_line(redactor.text(asking.reason)),
        command=command,
        paths=tuple(map(exact_line, preview.paths)),
        diff=exact(redactor.text(preview.diff)),
        findings=tuple(exact(redactor.text(line)) for line in findings),
        alarm=exact_line(redactor.text(judgement.alarm)),
        remember=remember,
        answers=_answers(asking, command, remember),
    )


def _answers(asking: Asking, command: str, remember: str) -> tuple[PermissionAnswer, ...]:
    found: list[PermissionAnswer] = ["once"]
    if asking.repeats:
        found += ["session", "always"] if remember else ["session"]
    if command:
        found.append("edit")
    return (*found, "no")


def _text(spec: ToolSpec, arguments: Mapping[str, Any], has_diff: bool) -> str:
    """The command first, or else the location; then each argument on its own lines."""
    given = dict(arguments)
    command = given.pop(spec.command, None)
    lines = [] if command is None else [_shown(command)]
    first = [name for name in _PLACES if name in given]
    for name in [*first, *(name for name in given if name not in first)]:
        value = given[name]
        if value is None:
            continue
        text = _shown(value)
        if has_diff and name not in _PLACES and (len(text) > _LONG or "\n" in text):
            text = f"{len(text):,} characters, which the difference below shows"
        lines.append(f"{exact(name)}: " + text.replace("\n", "\n    "))
    watched = [arguments[name] for name in (spec.command, *_PLACES) if name in arguments]
    odd = look_alikes([text for value in watched for text in texts_in(value)])
    text = "\n".join([*lines, *([f"({exact_line(odd)})"] if odd else [])])
    return f"{text}\n{_ESCAPED}" if _is_escaped(arguments) else text


def _shown(value: Any) -> str:
    return exact(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))


def _is_escaped(value: Any) -> bool:
    if isinstance(value, str):
        return exact(value) != value
    if isinstance(value, Mapping):
        return any(_is_escaped(part) for pair in value.items() for part in pair)
    return isinstance(value, (list, tuple)) and any(map(_is_escaped, value))
