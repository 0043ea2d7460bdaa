"""Unified diffs, in bounded time."""

from __future__ import annotations

from itertools import takewhile

_CONTEXT = 3
_COMPARED_LINES = 3_000


def unified_diff(path: str, old: str, new: str) -> str:
    """The unified diff of two texts; empty if they are equal.

    Their common beginning and end are left out of the comparison, which takes quadratic time. If too many lines are
    left, all old ones are shown as replaced by all new ones.
    """
    before, after = _lines(old), _lines(new)
    if before == after:
        return ""
    start = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))
    rest = min(len(before), len(after)) - start
    backwards = zip(reversed(before), reversed(after), strict=False)
    end = min(rest, sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], backwards)))
    first = max(0, start - _CONTEXT)
    old_part = before[first : len(before) - max(0, end - _CONTEXT)]
    new_part = after[first : len(after) - max(0, end - _CONTEXT)]
    header = [f"--- a/{path}\n", f"+++ b/{path}\n"]
    return "".join(_closed(line) for line in [*header, *_hunks(old_part, new_part, first)])


def _lines(text: str) -> list[str]:
    # str.splitlines also splits at form feeds and other characters that end no line of a file.
    *lines, rest = text.split("\n")
    return [f"{line}\n" for line in lines] + ([rest] if rest else [])


def _hunks(old: list[str], new: list[str], offset: int) -> list[str]:
    if max(len(old), len(new)) > _COMPARED_LINES:
        header = f"@@ -{offset + 1},{len(old)} +{offset + 1},{len(new)} @@\n"
        return [header, *(f"-{line}" for line in old), *(f"+{line}" for line in new)]
    from difflib import SequenceMatcher  # 2 ms, and not every call of this module's users compares

    lines: list[str] = []
    for group in SequenceMatcher(None, old, new).get_grouped_opcodes(_CONTEXT):
        old_start, old_end, new_start, new_end = group[0][1], group[-1][2], group[0][3], group[-1][4]
        lines.append(
            f"@@ -{_range(old_start + offset, old_end - old_start)} "
            f"+{_range(new_start + offset, new_end - new_start)} @@\n"
        )
        for tag, i, j, k, m in group:
            if tag == "equal":
                lines += [f" {line}" for line in old[i:j]]
            else:
                lines += [f"-{line}" for line in old[i:j]]
                lines += [f"+{line}" for line in new[k:m]]
    return lines


def _range(start: int, length: int) -> str:
    # An empty range is written with the line before it.
    return f"{start + 1 if length else start},{length}"


def _closed(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
