"""A session as a page of Markdown, as JSON, and as plain text for a terminal."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Sequence

from .archive import local_time, one_line
from .messages import Image, Message, Text, ToolCall, ToolOutput, to_dict
from .session_records import Header
from .transcript import heal

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_SHOWN = 100


def as_json(header: Header, messages: Sequence[Message]) -> str:
    """Everything that the session's branch holds, as one JSON object."""
    data = {**header.as_dict(), "messages": [to_dict(message) for message in messages]}
    return json.dumps(data, ensure_ascii=False, indent=2) + "\n"


def as_markdown(header: Header, messages: Sequence[Message]) -> str:
    """A page to read or to share: what was said, and each call with its output folded away. Thinking is left out."""
    parts = [f"# {_plain(header.title) or 'A session'}", "\n".join(f"- {line}" for line in facts(header))]
    for message, outputs in _paired(messages):
        if message.role == "user":
            parts.append("## You")
        elif message.role == "assistant":
            parts.append("## Marvin")
        for block in message.content:
            if isinstance(block, Text) and block.text.strip():
                parts.append(_balanced(block.text.strip("\n")))
            elif isinstance(block, Image):
                parts.append(_image(block))
            elif isinstance(block, ToolCall):
                parts.append(_folded(block, outputs.get(block.id)))
    return "\n\n".join(parts) + "\n"


def facts(header: Header) -> list[str]:
    """What the header says, a line each."""
    lines = [
        f"Session: {header.id}",
        f"Time: {local_time(header.time)}",
        f"Model: {one_line('/'.join(filter(None, (header.provider, header.model))))}",
        f"Folder: {one_line(header.working_dir)}",
    ]
    return [*lines, f"Forked from: {header.parent}"] if header.parent else lines


def _paired(messages: Sequence[Message]) -> Iterator[tuple[Message, dict[str, ToolOutput]]]:
    """Each message of a person or a model, with the outputs of its calls."""
    healed, _ = heal(messages)
    for message, following in zip(healed, [*healed[1:], None], strict=True):
        if message.role != "tool":
            outputs = following.outputs if following is not None else ()
            yield message, {output.call_id: output for output in outputs}


def _folded(call: ToolCall, output: ToolOutput | None) -> str:
    summary = f"🔧 {one_line(call.name)}{' (failed)' if output is not None and output.is_error else ''}"
    parts = [f"<details><summary>{html.escape(summary)}</summary>", _fenced(_arguments(call), "json")]
    if output is not None:
        parts += [_fenced(block.text, "text") if isinstance(block, Text) else _image(block) for block in output.content]
    return "\n\n".join([*parts, "</details>"])


def _arguments(call: ToolCall) -> str:
    try:
        return json.dumps(json.loads(call.arguments), ensure_ascii=False, indent=2)
    except ValueError:
        return call.arguments


def _fenced(text: str, language: str) -> str:
    """A code block whose fence is longer than any run of backticks in the text."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.strip(chr(10))}\n{fence}"


def _balanced(text: str) -> str:
    """Markdown that somebody wrote, with a code block that was left open closed: what follows must not fall into it."""
    fence = ""
    for line in text.splitlines():
        found = _FENCE.match(line)
        if found is None:
            continue
        if not fence:
            fence = found[1]
        elif found[1].startswith(fence) and not line[found.end() :].strip():
            fence = ""
    return f"{text}\n{fence}" if fence else text


def _image(image: Image) -> str:
    return f"*(an image, {html.escape(one_line(image.media_type))})*"


def _plain(text: str) -> str:
    """A title without anything that Markdown or HTML would take for markup."""
    return re.sub(r"([\\`*_\[\]<>#])", r"\\\1", one_line(text))


def as_text(header: Header, messages: Sequence[Message]) -> str:
    """For a terminal: what was said in full, each call and its output on a line."""
    parts = ["\n".join([one_line(header.title), *facts(header)])]
    for message, outputs in _paired(messages):
        who = "You" if message.role == "user" else "Marvin"
        if message.text.strip():
            parts.append(f"{who}: {_printable(message.text.strip())}")
        for call in message.calls:
            output = outputs.get(call.id)
            told = one_line(output.text)[:_SHOWN] if output is not None else ""
            parts.append(f"  🔧 {one_line(f'{call.name} {call.arguments}')[:_SHOWN]}\n     {told}".rstrip())
    return "\n\n".join(parts) + "\n"


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() or c in "\n\t" else " " for c in text)
