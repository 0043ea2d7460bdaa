"""A session as a page of Markdown, as JSON, and as plain text for a terminal; see `export_html` for HTML."""

from __future__ import annotations

import html
import json
import re
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import accumulate, zip_longest

from ..api.messages import Cell, Image, Link, Message, Picture, Shown, Text, ToolCall, ToolOutput, to_dict
from ..api.record import Record
from ..conversation.pairing import heal
from ..util.shown import cell_text, picture_text, shown_lines
from ..util.terminal_text import disarm, json_for_terminals, without_sequences
from ..util.text import counted, local_time, one_line
from ..util.untrusted_json import parse_json
from .reader import Compaction, FullTranscript
from .records import Header

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_SHOWN = 100
_COMPACTED = "The conversation was compacted here"
_SEEDED = "Earlier chats"


class MessageItem(Record):
    """A message of a person or a model, with the outputs of its calls by id."""

    message: Message
    outputs: dict[str, ToolOutput]
    time: float = 0.0
    """Its time in seconds since the epoch; 0 if unknown."""


class CompactionItem(Record):
    """A place where other messages replaced earlier ones; at the beginning, messages of earlier chats."""

    title: str
    texts: tuple[str, ...]


def as_json(whole: FullTranscript) -> str:
    """All messages of the session's branch, and the results of its compactions, as one JSON object."""
    compactions = [{"before": each.before, "messages": list(map(to_dict, each.messages))} for each in whole.compactions]
    messages = [
        {**to_dict(message), **({"time": time} if time else {})}
        for message, time in zip_longest(whole.messages, whole.times, fillvalue=0.0)
        if isinstance(message, Message)
    ]
    data = {**whole.header.as_dict(), "messages": messages, "compactions": compactions}
    return json_for_terminals(json.dumps(data, ensure_ascii=False, indent=2)) + "\n"


def as_markdown(whole: FullTranscript) -> str:
    """A page to read or share: the messages, and each call with its output collapsed. Thinking is left out."""
    header = whole.header
    parts = [f"# {_plain(header.title) or 'A session'}", "\n".join(f"- {line}" for line in facts(header))]
    for item in story(whole):
        parts += _said(item) if isinstance(item, MessageItem) else [_summary(item)]
    return disarm("\n\n".join(parts)) + "\n"


def _said(said: MessageItem) -> list[str]:
    parts = [f"## {heading(said)}"]
    for block in said.message.content:
        if isinstance(block, Text) and block.text.strip():
            parts.append(_balanced(block.text.strip("\n")))
        elif isinstance(block, Image):
            parts.append(_image(block))
        elif isinstance(block, ToolCall):
            parts.append(_folded(block, said.outputs.get(block.id)))
    return parts


def _summary(compacted: CompactionItem) -> str:
    texts = [_fenced(text, "text") for text in compacted.texts]
    return "\n\n".join([f"<details><summary>{compacted.title}</summary>", *texts, "</details>"])


def speaker(said: MessageItem) -> str:
    """The speaker."""
    return {"user": "You", "assistant": "Marvin"}.get(said.message.role, "System")


def heading(said: MessageItem) -> str:
    """The speaker and the time, if known."""
    return f"{speaker(said)}, {local_time(said.time)}" if said.time else speaker(said)


def facts(header: Header) -> list[str]:
    """The data of the header, one per line."""
    lines = [
        f"Session: {header.id}",
        f"Time: {local_time(header.time)}",
        f"Model: {one_line('/'.join(filter(None, (header.provider, header.model))))}",
        f"Folder: {one_line(header.working_dir)}",
    ]
    return [*lines, f"Forked from: {header.parent}"] if header.parent else lines


def story(whole: FullTranscript) -> Iterator[MessageItem | CompactionItem]:
    """The messages, each call with an output, and the compactions, in order."""
    healed, _ = heal(whole.messages)
    # Healing changes only tool messages, so the positions of compactions follow from the others.
    others = [0, *accumulate(message.role != "tool" for message in whole.messages)]
    places = deque((others[each.before], each) for each in whole.compactions)
    times = [time for said, time in zip_longest(whole.messages, whole.times, fillvalue=0.0) if _is_said(said)]
    first: dict[tuple[str, str], int] = {}
    for number, said in enumerate(whole.messages):
        first.setdefault((said.role, said.text), number)
    shown = 0
    for message, following in zip(healed, [*healed[1:], *([None] if healed else [])], strict=True):
        if message.role == "tool":
            continue
        while places and places[0][0] <= shown:
            yield _compacted(places.popleft()[1], first)
        outputs = following.outputs if following is not None else ()
        time = times[shown] if shown < len(times) else 0.0
        yield MessageItem(message=message, outputs={output.call_id: output for output in outputs}, time=time)
        shown += 1
    for _, compaction in places:
        yield _compacted(compaction, first)


def _is_said(message: Message | float) -> bool:
    """Whether it is a message of a person or a model, which healing does not change."""
    return isinstance(message, Message) and message.role != "tool"


def _compacted(compaction: Compaction, first: Mapping[tuple[str, str], int]) -> CompactionItem:
    """A compaction, and its text besides the messages that it kept; `first` maps each text to its first position."""
    new = (
        message.text.strip()
        for message in compaction.messages
        if first.get((message.role, message.text), compaction.before) >= compaction.before
    )
    return CompactionItem(title=_COMPACTED if compaction.before else _SEEDED, texts=tuple(filter(None, new)))


def _folded(call: ToolCall, output: ToolOutput | None) -> str:
    summary = title_of(call, output)
    parts = [f"<details><summary>{html.escape(summary)}</summary>", _fenced(arguments(call), "json")]
    if output is not None:
        parts += [_fenced(block.text, "text") if isinstance(block, Text) else _image(block) for block in output.content]
        parts += map(_shown, output.show)
    return "\n\n".join([*parts, "</details>"])


def _shown(item: Shown) -> str:
    """The items that a tool showed to people, as Markdown."""
    if isinstance(item, Link):
        url, text = one_line(item.url), _plain(item.text)
        return f"[{text or _plain(item.url)}](<{_address(url)}>)" if is_safe(url) else _plain(f"{item.text} {item.url}")
    if isinstance(item, Picture):
        return f"*({_plain(picture_text(item)[1:-1])})*"
    rows = [list(map(_cell, row)) for row in item.rows]
    names = list(map(_cell, item.columns))
    count = max(map(len, [names, *rows]), default=0)
    lines = [f"| {' | '.join([*row, *[''] * (count - len(row))])} |" for row in [names, ["---"] * count, *rows]]
    left = [f"\n… {counted(item.omitted, 'more row')}"] if item.omitted > 0 else []
    title = [f"**{_plain(item.title)}**\n"] if item.title.strip() else []
    return "\n".join([*title, *(lines if count else []), *left])


def _cell(cell: Cell) -> str:
    return _plain(cell_text(cell)).replace("|", "\\|")


def _address(url: str) -> str:
    """An address as it stands between angle brackets."""
    return url.replace("<", "%3C").replace(">", "%3E")


def is_safe(url: str) -> bool:
    """Whether an address may be followed from a page: it loads no script and no file of this machine."""
    return url.partition(":")[0].lower() in ("http", "https", "mailto")


def title_of(call: ToolCall, output: ToolOutput | None) -> str:
    """A call in one line."""
    return f"🔧 {one_line(call.name)}{' (failed)' if output is not None and output.is_error else ''}"


def arguments(call: ToolCall) -> str:
    """The arguments of a call as indented JSON."""
    try:
        return json.dumps(parse_json(call.arguments), ensure_ascii=False, indent=2)
    except ValueError:
        return call.arguments


def _fenced(text: str, language: str) -> str:
    """A code block whose fence is longer than any run of backticks in the text."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.strip(chr(10))}\n{fence}"


def _balanced(text: str) -> str:
    """Markdown text in which an open code block is closed, so that it does not include what follows."""
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
    """A title without characters that Markdown or HTML would treat as markup."""
    return re.sub(r"([\\`*_\[\]<>#])", r"\\\1", one_line(text))


def as_text(whole: FullTranscript) -> str:
    """Plain text for a terminal: messages in full, each call and its output in one line."""
    parts = ["\n".join([one_line(whole.header.title), *facts(whole.header)])]
    for item in story(whole):
        if isinstance(item, CompactionItem):
            parts.append(f"({item.title})")
            continue
        if item.message.text.strip():
            parts.append(f"{_moment(item)}{speaker(item)}: {_printable(item.message.text.strip())}")
        for call in item.message.calls:
            output = item.outputs.get(call.id)
            told = one_line(output.text, _SHOWN) if output is not None else ""
            shown = shown_lines(output.for_people) if output is not None else []
            lines = [
                f"  🔧 {one_line(f'{call.name} {call.arguments}', _SHOWN)}",
                *(f"     {line}" for line in [told, *shown]),
            ]
            parts.append("\n".join(line.rstrip() for line in lines if line.strip()))
    return "\n\n".join(parts) + "\n"


def _moment(said: MessageItem) -> str:
    return f"[{local_time(said.time)}] " if said.time else ""


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() or c in "\n\t" else " " for c in without_sequences(text))
