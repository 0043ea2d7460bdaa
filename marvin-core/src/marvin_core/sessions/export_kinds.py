"""A session as a page or as JSON, selected by a format name."""

from __future__ import annotations

from typing import Literal, TypeAlias

from .reader import FullTranscript

Kind: TypeAlias = Literal["md", "html", "json"]


def exported(whole: FullTranscript, kind: Kind) -> str:
    """All messages of a branch: Markdown or HTML for reading, or JSON with all data."""
    if kind == "html":
        from .export_html import as_html

        return as_html(whole)
    from .export import as_json, as_markdown

    return as_json(whole) if kind == "json" else as_markdown(whole)
