"""Pages whose elements lie so deep in each other that taking them apart would not come to an end."""

from __future__ import annotations

import re

_DEEPEST = 2_000
"""Blocks in each other; browsers stop at 512, and what takes pages apart looks at all of them for each new one."""
_BLOCK = re.compile(
    r"<(/?)(?:address|article|aside|blockquote|center|details|dialog|dir|div|dl|fieldset|figcaption|figure|footer|form"
    r"|h[1-6]|header|hgroup|main|menu|nav|ol|pre|search|section|summary|ul)(?=[\s/>])",
    re.IGNORECASE,
)


def is_too_deep(markup: str) -> bool:
    """Whether a page has blocks in blocks in blocks, as none has that people made."""
    depth = 0
    for tag in _BLOCK.finditer(markup):
        depth = max(0, depth - 1) if tag[1] else depth + 1
        if depth > _DEEPEST:
            return True
    return False
