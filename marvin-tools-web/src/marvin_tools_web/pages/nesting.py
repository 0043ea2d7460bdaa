"""Detects pages whose elements are nested so deeply that parsing would not finish."""

from __future__ import annotations

import re

_DEEPEST = 2_000
"""Nested blocks; browsers stop at 512, and parsers look at all open elements for each new one."""
_BLOCK = re.compile(
    r"<(/?)(?:address|article|aside|blockquote|center|details|dialog|dir|div|dl|fieldset|figcaption|figure|footer|form"
    r"|h[1-6]|header|hgroup|main|menu|nav|ol|pre|search|section|summary|ul)(?=[\s/>])",
    re.IGNORECASE,
)


def is_too_deep(markup: str) -> bool:
    """Whether blocks are nested more deeply than on any page made by people."""
    depth = 0
    for tag in _BLOCK.finditer(markup):
        depth = max(0, depth - 1) if tag[1] else depth + 1
        if depth > _DEEPEST:
            return True
    return False
