"""Converts a page or a document to text in a process of its own: `python -m marvin_tools_web.pages.page_reader`.

The request has `kind` ("html" or "pdf"), `url`, and `type` (the media type with its parameters). The answer has `title`
and `text`, or `error`. The body of a page is UTF-8.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from marvin_core import plain_text

from ..child_process import serve
from .nesting import is_too_deep

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

TEXT = 2_000_000
"""Characters of the text of a page or document; nobody pages further."""
_LARGE = 3_000_000
"""Bytes of a page beyond which only its plain text is extracted: finding the article would take too long."""
_SCANT = 4
"""The extracted article is used unless the whole page has more than this many times its text."""
_SHORT = 600
"""Characters of a page that is shown as a whole: article extraction drops parts of short pages."""
_TITLE = 300


def read(asked: Mapping[str, Any], body: bytes) -> dict[str, str]:
    """The title and the text of a response."""
    return _document(body) if asked["kind"] == "pdf" else page(body, str(asked["url"]))


def page(body: bytes, url: str) -> dict[str, str]:
    """The title and the text of a web page: its article, or the whole page where none is found."""
    from selectolax.lexbor import LexborHTMLParser

    markup = body.decode("utf-8", "replace")
    if len(body) > _LARGE or is_too_deep(markup):
        return {"title": "", "text": plain_text(markup)[:TEXT]}
    tree = LexborHTMLParser(markup)
    title = tree.css_first("title")
    whole = plain_text(tree.html or markup)
    article = _article(markup, url) if len(whole) > _SHORT else ""
    text = article if len(article) * _SCANT >= len(whole) else whole
    found = {"title": _line(title.text() if title is not None else ""), "text": text[:TEXT]}
    if text is whole:
        found["text"] = f"{whole[:TEXT]}{_links(tree, url)}"[:TEXT]
    return found


def _article(markup: str, url: str) -> str:
    import trafilatura

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)  # it logs pages without an article as errors
    try:
        found = trafilatura.extract(
            markup, url=url, output_format="markdown", include_links=True, include_tables=True, favor_recall=True
        )
    except Exception:  # such as tables whose cells span more than the memory holds; the whole page is used instead
        return ""
    return found or ""


def _links(tree: LexborHTMLParser, url: str) -> str:
    """The links of a page as a list after its text."""
    from .links import links_in

    lines = [f"- {link.text}: {link.url}" for link in links_in(tree, url)]
    return "\n\nLinks:\n" + "\n".join(lines) if lines else ""


def _document(body: bytes) -> dict[str, str]:
    import pypdf

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # its messages about repairs are of no use here
    try:
        reader = pypdf.PdfReader(io.BytesIO(body))
        if reader.is_encrypted and not reader.decrypt(""):
            return {"error": "it is protected by a password"}
        title = str((reader.metadata.title if reader.metadata else "") or "")
        parts: list[str] = []
        size = 0
        for number, sheet in enumerate(reader.pages, 1):
            parts.append(f"[page {number}]\n{sheet.extract_text().strip()}")
            size += len(parts[-1])
            if size > TEXT:
                break
    except MemoryError:
        raise
    except Exception as error:  # it is meant to raise its own errors only, and fails at some documents in many ways
        return {"error": f"it is damaged ({_line(str(error)) or type(error).__name__})"}
    if not parts:
        return {"error": "it has no pages"}
    if size < len(parts) * (len("[page 1]") + 4):
        return {"error": f"its {len(parts)} pages contain only images, as in a scan"}
    return {"title": _line(title), "text": "\n\n".join(parts)[:TEXT]}


def _line(text: str) -> str:
    return " ".join(text.split())[:_TITLE]


if __name__ == "__main__":
    serve(read)
