"""What a chat may write to a terminal, and a text that tries to make it write anything else."""

from __future__ import annotations

import re

ATTACK = (
    "A\x1b]0;PWNED\x07\x1b[2J\x1b[?1049h\x1b]52;c;UFdORUQ=\x07\x9b3J\x1b[77;7H\x1b[38;5;201m\x1b[1;5r\x1b[?1000h\x1bc"
    "\x1b]8;;http://evil.example\x07\x1bPq#0\x1b\\\x1b]9;PWNED\x1b\\\u202e\x08\x7f\x9d2;PWNED\x9cB"
)
"""Title, clipboard, links, notices, colours, places, regions, screens, mice, reset; reordering, erasing; C1 as well."""

_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]"
    "|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
)
_ALLOWED = re.compile(
    r"\x1b\[(?:0;)?(?:[0-9]|[349][0-7]|39|49)?(?:;(?:[0-9]|[349][0-7]|39|49))*m"  # the terminal's own colours
    r"|\x1b\[\d*[ABCD]|\x08"  # the cursor, from where it is
    r"|\x1b\[[0]?[JK]"  # what is after it
    r"|\x1b\[\?(?:25|7|2004)[hl]|\x1b\[\?12l|\x1b\[\?1l"  # whether the cursor is seen, rows are folded, pastes marked
)
_PAGER = re.compile(r"\x1b\[\?1049h.*?\x1b\[\?1049l", re.DOTALL)
_IN_PAGER = re.compile(r"\x1b\[\?1049[hl]|\x1b\[(?:\d+;\d+)?H")


def strange(sent: str, *allowed: str) -> list[str]:
    """The sequences and control characters in what was sent to a terminal that a chat has no use for, each once.

    Args:
        allowed: further ones, as they stand: the bell, a title, what the clipboard gets.
    """
    outside = _PAGER.sub("", sent)
    inside = "".join(_PAGER.findall(sent))
    found = {code for code in _SEQUENCE.findall(outside) if not _ALLOWED.fullmatch(code)}
    found |= {code for code in _SEQUENCE.findall(inside) if not (_ALLOWED.fullmatch(code) or _IN_PAGER.fullmatch(code))}
    return sorted(found - {*allowed})
