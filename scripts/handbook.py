"""The passages of the documentation that a chat without a model answers from, as they ship in the wheel."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

_FOLDERS = ("tutorial", "how-to", "explanation", "extend")
_INDEX = "index.md"
"""Only the beginning of this page is an answer: the rest is links."""
_TABLES = ("reference/command-line.md", "reference/environment.md")
"""Generated pages whose rows are looked up by name; other generated pages are left out."""
_LONGEST = 700
"""Characters of a passage; the first block is kept whole where it has no more than twice as many."""
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_HEADING = re.compile(r"(#{1,4}) (.+)")
_ROW = re.compile(r"`(?:marvin )?(/[a-z]+|-[^`]*--[a-z-]+|--[a-z-]+|[A-Z][A-Z_]{3,})[^|]*\|.+")
_RULE = re.compile(r"\|[\s:|-]+\|?")


def written(docs: Path) -> str:
    """One JSON object a line: `page`, `title`, `heading` and `text` of each section of each page."""
    pages = sorted(page for folder in _FOLDERS for page in (docs / folder).glob("*.md"))
    rows = [row for page in pages for row in _passages(page, page.relative_to(docs).as_posix())]
    rows = [next(_passages(docs / _INDEX, _INDEX)), *rows]
    rows += [row for name in _TABLES for row in _passages(docs / name, name) if row["heading"].startswith("`")]
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


def _passages(page: Path, name: str) -> Iterator[dict[str, str]]:
    title = heading = ""
    blocks: list[str] = []
    for block in _blocks(page.read_text("utf-8")):
        found = _HEADING.fullmatch(block)
        if found is None:
            blocks.append(_plain(block))
            rows = (row for row in blocks[-1].split("\n") if _ROW.fullmatch(row))
            for row in rows:  # a command, a flag or a variable, which is looked up by its name
                yield {"page": name, "title": title, "heading": row.split(" | ")[0], "text": row.replace(" | ", ": ")}
            continue
        if blocks:
            yield {"page": name, "title": title, "heading": heading, "text": _first(blocks)}
        heading, blocks = _plain(found[2]), []
        title = title or heading
    if blocks:
        yield {"page": name, "title": title, "heading": heading, "text": _first(blocks)}


def _blocks(text: str) -> Iterator[str]:
    """Headings, paragraphs, lists, tables and code, each in one piece."""
    held: list[str] = []
    is_code = False
    for line in [*text.splitlines(), ""]:
        is_heading = not is_code and _HEADING.fullmatch(line) is not None
        if held and not is_code and (not line.strip() or is_heading or line.startswith("```")):
            yield "\n".join(held)
            held = []
        if line.startswith("```"):
            is_code = not is_code
        elif is_heading:
            yield line
        elif is_code:
            held.append(f"    {line}".rstrip())
        elif line.strip() and not line.startswith(("<!--", ":::", "---")):
            held.append(line)


def _plain(block: str) -> str:
    """The block without links, and a table without its rulers."""
    rows = [row for row in block.split("\n") if not _RULE.fullmatch(row)]
    if rows and rows[0].startswith("|"):
        rows = [" | ".join(cell.strip() for cell in row.strip("|").split("|")) for row in rows]
    return "\n".join(_LINK.sub(r"\1", row) for row in rows)


def _first(blocks: list[str]) -> str:
    """The blocks that fit, and at least the first one."""
    kept = [blocks[0]]
    for block in blocks[1:]:
        if sum(map(len, kept)) + len(block) > _LONGEST:
            break
        kept.append(block)
    text = "\n\n".join(kept)
    return text if len(text) <= 2 * _LONGEST else text[: 2 * _LONGEST].rsplit("\n", 1)[0]
