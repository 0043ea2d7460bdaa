"""Parses a page of search results in a process of its own: `python -m marvin_tools_web.search.page_reader`.

ddgs knows the structure of result pages. The request has `engine`; the answer is a list of objects with
`title`, `href` and `body`. The body is the page in UTF-8.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..child_process import serve

_MEMORY = 1500 * 1024 * 1024
"""Bytes of address space; ddgs loads a client with threads of its own, which is not used here."""
_MOST = 50
_LONGEST = 5_000


def read(engine: str, page: str) -> list[dict[str, str]]:
    """The results on a page of a search engine."""
    from ddgs.engines import ENGINES

    made: Any = ENGINES["text"][engine]()
    found = made.post_extract_results(made.extract_results(page)) if page.strip() else []
    return [
        {name: str(getattr(one, name, ""))[:_LONGEST] for name in ("title", "href", "body")} for one in found[:_MOST]
    ]


def _answer(asked: Mapping[str, Any], body: bytes) -> list[dict[str, str]]:
    return read(asked["engine"], body.decode("utf-8", "replace"))


if __name__ == "__main__":
    serve(_answer, _MEMORY)
