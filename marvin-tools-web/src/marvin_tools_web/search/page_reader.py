"""Reads a page of search results in a process of its own: `python -m marvin_tools_web.search.page_reader`.

What a page holds may take any time and memory to parse; a process can be ended and has a limit. How pages of search
engines are built is known by ddgs. Standard input is a line of JSON with `engine`, then the page. Standard output is a
list of objects with `title`, `href` and `body`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

_MEMORY = 1500 * 1024 * 1024
"""Bytes of addresses; ddgs brings a client with threads of its own, which is not used here."""
_MOST = 50
_LONGEST = 5_000


def read(engine: str, page: str) -> list[dict[str, str]]:
    """The results on a page of an engine."""
    from ddgs.engines import ENGINES

    made: Any = ENGINES["text"][engine]()
    found = made.post_extract_results(made.extract_results(page)) if page.strip() else []
    return [
        {name: str(getattr(one, name, ""))[:_LONGEST] for name in ("title", "href", "body")} for one in found[:_MOST]
    ]


def main() -> None:
    """Read from standard input, within limits of the process's own."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    except (ImportError, ValueError, OSError):
        pass  # not every system has that limit; the time-out of the tool holds
    asked = json.loads(sys.stdin.buffer.readline())
    page = sys.stdin.buffer.read().decode("utf-8", "replace")
    sys.stdout.write(json.dumps(read(asked["engine"], page)))


if __name__ == "__main__":
    main()
