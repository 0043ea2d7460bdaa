"""A session as a self-contained HTML page: no scripts, and no external resources."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence

from ..api.messages import Cell, Image, Link, Picture, Shown, Text, ToolCall, ToolOutput
from ..util.shown import cell_text, picture_text
from ..util.terminal_text import without_sequences
from ..util.text import counted, one_line
from .export import CompactionItem, MessageItem, arguments, facts, heading, is_safe, speaker, story, title_of
from .reader import FullTranscript

_NOT_ALLOWED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_IMAGE_TYPE = re.compile(r"image/[a-z0-9.+-]+")
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
# The policy also tells the browser to run and load nothing, whatever a text contains.
_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; }}
ul {{ list-style: none; padding: 0; opacity: .7; font-size: .875rem; }}
section {{ border-left: .25rem solid #8888; padding-left: 1rem; margin: 1.5rem 0; }}
section.you {{ border-color: #36c; }}
h2 {{ font-size: .875rem; opacity: .7; margin: 0; }}
p, pre {{ white-space: pre-wrap; overflow-wrap: anywhere; }}
pre {{ font-size: .875rem; background: #8882; padding: .5rem; max-height: 30rem; overflow-y: auto; }}
summary {{ cursor: pointer; }}
img {{ max-width: 100%; }}
table {{ border-collapse: collapse; font-size: .875rem; display: block; overflow-x: auto; }}
th, td {{ border: 1px solid #8888; padding: .125rem .5rem; text-align: start; }}
</style>
</head>
<body>
"""


def as_html(whole: FullTranscript) -> str:
    """A page to read or share, like `as_markdown` but with the images."""
    title = _escaped(one_line(whole.header.title) or "A session")
    parts = [_HEAD.format(title=title), f"<h1>{title}</h1>\n<ul>\n"]
    parts += [f"<li>{_escaped(line)}</li>\n" for line in facts(whole.header)]
    parts.append("</ul>\n")
    for item in story(whole):
        parts += _said(item) if isinstance(item, MessageItem) else _summary(item)
    return "".join([*parts, "</body>\n</html>\n"])


def _said(said: MessageItem) -> Iterator[str]:
    who = speaker(said)
    yield f'<section class="{who.lower()}">\n<h2>{_escaped(heading(said))}</h2>\n'
    for block in said.message.content:
        if isinstance(block, Text) and block.text.strip():
            yield f"<p>{_escaped(block.text.strip())}</p>\n"
        elif isinstance(block, Image):
            yield _image(block)
        elif isinstance(block, ToolCall):
            yield from _folded(block, said.outputs.get(block.id))
    yield "</section>\n"


def _folded(call: ToolCall, output: ToolOutput | None) -> Iterator[str]:
    yield f"<details><summary>{_escaped(title_of(call, output))}</summary>\n<pre>{_escaped(arguments(call))}</pre>\n"
    for block in output.content if output is not None else ():
        yield f"<pre>{_escaped(block.text)}</pre>\n" if isinstance(block, Text) else _image(block)
    for item in output.show if output is not None else ():
        yield from _shown(item)
    yield "</details>\n"


def _shown(item: Shown) -> Iterator[str]:
    """The items that a tool showed to people. A picture is given by its path: its content may be private by now."""
    if isinstance(item, Picture):
        yield f"<p>{_escaped(picture_text(item))}</p>\n"
    elif isinstance(item, Link):
        text = _escaped(one_line(item.text) or item.url)
        safe = is_safe(item.url.strip())
        yield (
            f'<p><a href="{_escaped(item.url.strip())}" rel="noreferrer">{text}</a></p>\n'
            if safe
            else f"<p>{text}</p>\n"
        )
    else:
        yield "<table>\n"
        yield f"<caption>{_escaped(item.title)}</caption>\n" if item.title.strip() else ""
        yield _row("th", item.columns)
        yield from (_row("td", row) for row in item.rows)
        yield "</table>\n"
        yield f"<p>… {counted(item.omitted, 'more row')}</p>\n" if item.omitted > 0 else ""


def _row(tag: str, cells: Sequence[Cell]) -> str:
    return f"<tr>{''.join(f'<{tag}>{_escaped(cell_text(cell))}</{tag}>' for cell in cells)}</tr>\n"


def _summary(compacted: CompactionItem) -> Iterator[str]:
    yield f"<details><summary>{compacted.title}</summary>\n"
    for text in compacted.texts:
        yield f"<pre>{_escaped(text)}</pre>\n"
    yield "</details>\n"


def _image(image: Image) -> str:
    data = "".join(image.data.split())
    if not _IMAGE_TYPE.fullmatch(image.media_type) or not _BASE64.fullmatch(data):
        return f"<p>(an image, {_escaped(one_line(image.media_type))}, that cannot be shown)</p>\n"
    return f'<p><img src="data:{image.media_type};base64,{data}" alt="An image"></p>\n'


def _escaped(text: str) -> str:
    """Text for a page, without terminal sequences and characters that HTML forbids."""
    return html.escape(_NOT_ALLOWED.sub("\N{REPLACEMENT CHARACTER}", without_sequences(text)))
