"""What programs print, made fit for a model: decoded, without terminal codes, cut with a note."""

from __future__ import annotations

import re

# CSI sequences, strings (titles, links, images), character sets, other escapes; then the controls that neither end nor
# indent a line.
_TERMINAL_CODES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]+[0-~]"
    r"|\x1b[0-Z\\-~]"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"
)
_LINE_SEARCH = 2_000


def plain_text(data: bytes) -> str:
    """Text without colours and cursor movements; undecodable bytes are shown as U+FFFD."""
    return _TERMINAL_CODES.sub("", data.decode("utf-8", "replace"))


def head_and_tail(data: bytes, omitted: int, advice: str) -> str:
    """Captured output as text, with a note in its middle where bytes were dropped.

    Args:
        data: the first half from the head of the output, the second from its tail.
        omitted: how many bytes between them are missing.
        advice: how to see the rest.
    """
    if not omitted:
        return plain_text(data)
    middle = len(data) - len(data) // 2
    head, tail = data[:middle], data[middle:]
    line_end = head.rfind(b"\n", max(0, len(head) - _LINE_SEARCH)) + 1
    if line_end:
        omitted += len(head) - line_end
        head = head[:line_end]
    line_start = tail.find(b"\n", 0, _LINE_SEARCH) + 1
    omitted += line_start
    note = f"[... {omitted:,} bytes omitted. {advice}]"
    return f"{plain_text(head).rstrip()}\n{note}\n{plain_text(tail[line_start:])}"
