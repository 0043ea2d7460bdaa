"""Searches an article in a process of its own, so that an endless regular expression can be killed.

`python -m marvin_tools_web.knowledge.article_search`: the request has `pattern` and `most`, the answer has `matches`
and `total`, or `error`. The body is the article in UTF-8.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..child_process import serve

_AROUND = 300
"""Characters that are shown before and after a match in a long paragraph."""


def search(asked: Mapping[str, Any], body: bytes) -> dict[str, Any]:
    """The matching paragraphs, each with its section."""
    try:
        expression = re.compile(str(asked["pattern"]), re.IGNORECASE)
    except (re.error, RecursionError, OverflowError) as error:
        return {"error": str(error)}
    section, total = "", 0
    matches: list[str] = []
    for number, line in enumerate(body.decode("utf-8", "replace").split("\n"), 1):
        if line.startswith("==") and line.rstrip().endswith("=="):
            section = line.strip("= ")
        found = expression.search(line)
        if found is None or not line.strip():
            continue
        total += 1
        if len(matches) < asked["most"]:
            place = f"line {number}, {section}" if section else f"line {number}"
            matches.append(f"{place}: {_around(line, found.start(), found.end())}")
    return {"matches": matches, "total": total}


def _around(line: str, begin: int, end: int) -> str:
    start, stop = max(0, begin - _AROUND), min(len(line), end + _AROUND, begin + 2 * _AROUND)
    return f"{'…' if start else ''}{line[start:stop].strip()}{'…' if stop < len(line) else ''}"


if __name__ == "__main__":
    serve(search)
