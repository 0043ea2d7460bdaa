"""The tool github_search."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, TypeAlias

from marvin_core import Field, ToolContext, ToolError, one_line, tool

from .adapters import SEARCH_IGNORED, SEARCH_NAMES, search_arguments
from .api import ACCEPT, SETTINGS, TOKENS, get

SearchType: TypeAlias = Literal["repositories", "code", "issues", "commits", "users"]

_TEXT_MATCHES = "application/vnd.github.text-match+json"
_LONGEST = 2_000
_LINE = 300
_FRAGMENTS = 2
_FRAGMENT_LINES = 6
_HINTS = {
    "repositories": "language:python, stars:>100, topic:cli, user:NAME, archived:false",
    "code": "language:python, repo:OWNER/REPO, path:src, filename:setup.py, extension:toml",
    "issues": "repo:OWNER/REPO, is:issue or is:pr, is:open, label:bug, author:NAME",
    "commits": "repo:OWNER/REPO, author:NAME, author-date:>2024-01-01",
    "users": "type:org, location:Berlin, language:rust",
}
"""Qualifiers of each kind of search. Source: docs.github.com/en/search-github"""


@tool(
    access=["net"],
    group="github",
    labels=["GitHub"],
    secrets=TOKENS,
    settings=SETTINGS,
    aliases=SEARCH_NAMES,
    unlisted=["sort", "order"],
    ignores=SEARCH_IGNORED,
    adapt=search_arguments,
)
async def github_search(
    context: ToolContext,
    query: Annotated[str, "As on GitHub: 'cli language:rust stars:>50'"],
    search_type: Annotated[SearchType, "issues: and pull requests"] = "repositories",
    max_results: Annotated[int, Field(ge=1, le=30), "Maximum results"] = 10,
    sort: Annotated[str, "A sort key of GitHub's API, such as stars or updated"] = "",
    order: Annotated[Literal["desc", "asc"], "Of sort"] = "desc",
) -> str:
    """Search GitHub."""
    if not query.strip() or "\0" in query or len(query) > _LONGEST:
        wrong = "is empty, or contains NUL" if len(query) <= _LONGEST else f"has more than {_LONGEST:,} characters"
        raise ToolError(f"query {wrong}. Use words, and qualifiers such as {_HINTS[search_type]}.")
    fields = {"q": query, "per_page": str(max_results), **({"sort": sort, "order": order} if sort else {})}
    accept = _TEXT_MATCHES if search_type == "code" else ACCEPT
    found = await get(context, "such a search", f"search/{search_type}", fields, accept=accept)
    if not isinstance(found, Mapping) or not isinstance(found.get("items"), list):
        raise ToolError("GitHub's answer to the search cannot be understood. Try again later.")
    items = [item for item in found["items"] if isinstance(item, Mapping)][:max_results]
    total = found.get("total_count")
    total = total if isinstance(total, int) else len(items)
    partly = " GitHub stopped before it had searched everything." if found.get("incomplete_results") is True else ""
    if not items:
        return f"No {search_type} fit {query!r}.{partly} Use fewer words, or qualifiers: {_HINTS[search_type]}."
    shown = [line for item in items for line in _SHOWN[search_type](item)]
    if partly or total > len(items):
        narrower = "" if len(items) < max_results else f" Narrow the query with {_HINTS[search_type]}."
        shown.append(f"[{len(items):,} of {total:,} {search_type}.{partly}{narrower}]")
    return "\n".join(shown)


def _repository(item: Mapping[str, Any]) -> Iterator[str]:
    facts = [f"{_number(item, 'stargazers_count'):,} stars", _text(item, "language"), _licence(item)]
    facts += [f"pushed {_day(item, 'pushed_at')}" if _day(item, "pushed_at") else ""]
    facts += [word for word in ("archived", "fork", "private") if item.get(word) is True]
    yield f"{_text(item, 'full_name')} ({', '.join(filter(None, facts))})"
    if described := _text(item, "description"):
        yield f"    {described}"


def _licence(item: Mapping[str, Any]) -> str:
    name = _text(item, "license", "spdx_id")
    return "" if name == "NOASSERTION" else name


def _code(item: Mapping[str, Any]) -> Iterator[str]:
    yield f"{_text(item, 'repository', 'full_name')}: {_text(item, 'path')}"
    for match in _objects(item, "text_matches")[:_FRAGMENTS]:
        fragment = match.get("fragment")
        lines = fragment.split("\n") if isinstance(fragment, str) else []
        shown = [_indented(line) for line in lines if line.strip()]
        yield from shown[:_FRAGMENT_LINES]
        if len(shown) > _FRAGMENT_LINES:
            yield "    ..."


def _indented(line: str) -> str:
    begin = re.match(r"[ \t]*", line)
    margin = "" if begin is None else begin[0].expandtabs(4)[:40]
    return f"    {margin}{one_line(line, _LINE)}"


def _issue(item: Mapping[str, Any]) -> Iterator[str]:
    kind = "pull request" if isinstance(item.get("pull_request"), Mapping) else "issue"
    where = "/".join(_text(item, "repository_url").rsplit("/", 2)[-2:])
    names = [_text(label, "name") for label in _objects(item, "labels")]
    facts = [
        f"{_text(item, 'state')} {kind}",
        f"by {_text(item, 'user', 'login') or 'nobody'}",
        f"{_number(item, 'comments'):,} comments",
        f"updated {_day(item, 'updated_at')}" if _day(item, "updated_at") else "",
        ", ".join(filter(None, names)),
    ]
    yield f"{where}#{_number(item, 'number')}: {_text(item, 'title')}"
    yield f"    {'; '.join(filter(None, facts))}"


def _commit(item: Mapping[str, Any]) -> Iterator[str]:
    message = _text(item, "commit", "message", is_first_line=True)
    by = _text(item, "commit", "author", "name")
    day = _text(item, "commit", "author", "date")[:10]
    yield f"{_text(item, 'repository', 'full_name')} {_text(item, 'sha')[:12]} {day} {by}: {message}"


def _user(item: Mapping[str, Any]) -> Iterator[str]:
    kind = _text(item, "type")
    yield f"{_text(item, 'login')}{f' ({kind.lower()})' if kind and kind != 'User' else ''} {_text(item, 'html_url')}"


_SHOWN: Mapping[SearchType, Callable[[Mapping[str, Any]], Iterator[str]]] = {
    "repositories": _repository,
    "code": _code,
    "issues": _issue,
    "commits": _commit,
    "users": _user,
}


def _text(item: Mapping[str, Any], *path: str, is_first_line: bool = False) -> str:
    """A text field of an answer on one line; empty if it is missing."""
    value: Any = item
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    if not isinstance(value, str):
        return ""
    return one_line(value.strip().partition("\n")[0] if is_first_line else value, _LINE)


def _objects(item: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    value = item.get(name)
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _number(item: Mapping[str, Any], name: str) -> int:
    value = item.get(name)
    return value if isinstance(value, int) else 0


def _day(item: Mapping[str, Any], name: str) -> str:
    return _text(item, name)[:10]
