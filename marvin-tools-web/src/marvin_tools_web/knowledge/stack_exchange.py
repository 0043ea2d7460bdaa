"""Questions and answers of Stack Overflow and the other sites of Stack Exchange.

Source: api.stackexchange.com/docs/advanced-search, answers-on-questions, throttle, wrapper
"""

from __future__ import annotations

import html
import re
import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from marvin_core import (
    Field,
    Link,
    RateLimit,
    Record,
    RequestFailed,
    ToolContext,
    ToolError,
    ToolResult,
    head_and_tail,
    numbered,
    one_line,
    plain_text,
    tool,
)

from ..services import values
from ..services.backends import source_line
from ..services.catalog import STACKEXCHANGE
from ..services.client import ServiceClient
from ..services.visible_text import seen

_RESULTS = 6_000
_QUERY = 500
_ANSWERS = 5
_QUESTION = 1_500
_ANSWER = 2_500
_MARKUP = 100_000
_LITTLE = 30
"""Remaining requests of the day's quota below which an answer mentions it."""
_THROTTLED = re.compile(r"more requests available in (\d{1,6}) seconds")
_SITE = re.compile(r"[a-z0-9][a-z0-9.-]{0,60}")


class _Page(Record):
    """One page of an answer. `backoff` is in seconds, before the next request; `left` is the day's remaining quota."""

    items: tuple[Mapping[str, Any], ...]
    has_more: bool
    backoff: float | None
    left: int | None


@tool(access=["net"], labels=["Stack Exchange"], probe={"query": "python", "max_results": 1})
async def stack_search(
    query: Annotated[str, "Words to search for"],
    site: Annotated[str, "A site such as superuser or unix"] = "stackoverflow",
    tagged: Annotated[str | None, "Tags such as python;asyncio"] = None,
    sort: Annotated[Literal["relevance", "votes", "creation", "activity"], "The order of the results"] = "relevance",
    max_results: Annotated[int, Field(ge=1, le=10), "Maximum questions"] = 5,
    *,
    context: ToolContext,
) -> ToolResult:
    """Find questions on Stack Overflow or another site of Stack Exchange."""
    asked = " ".join(query.split())[:_QUERY]
    if not asked and not tagged:
        raise ToolError("query is empty. Give a few words to search for, or tags.")
    params: dict[str, str | float | None] = {
        "q": asked or None,
        "site": _checked_site(site),
        "tagged": ";".join(re.findall(r"[\w.#+-]+", tagged or "")) or None,
        "sort": sort,
        "order": "desc",
        "pagesize": max_results,
    }
    page = await _get(context, "search/advanced", params)
    if not page.items:
        what = repr(asked) if asked else f"the tags {tagged}"
        return ToolResult(
            content=f"No question on {site} matches {what}. Try fewer words, or another site.{_source(page)}"
        )
    entries = [_question_in_short(item) for item in page.items[:max_results]]
    links = [
        Link(url=values.address(item, "link"), text=_title(item))
        for item in page.items[:max_results]
        if values.address(item, "link")
    ]
    more = "\n[There are more. Use other words, or raise max_results.]" if page.has_more else ""
    text = f"{numbered(entries, _RESULTS)}{more}"
    return ToolResult(content=f"{text}\n[Read the answers with stack_answers.]{_source(page)}", show=links)


@tool(access=["net"], labels=["Stack Exchange"], probe={"question_id": 11227809})
async def stack_answers(
    question_id: Annotated[int, "From stack_search"],
    site: Annotated[str, "The site of the question"] = "stackoverflow",
    *,
    context: ToolContext,
) -> ToolResult:
    """Show a question on Stack Exchange with its best answers, the accepted one first."""
    name = _checked_site(site)
    if question_id < 1:
        raise ToolError(f"There is no question {question_id}. Find one with stack_search.")
    params: dict[str, str | float | None] = {"site": name, "filter": "withbody"}
    questions = await _get(context, f"questions/{question_id}", params)
    if not questions.items:
        raise ToolError(f"There is no question {question_id} on {name}. Find one with stack_search, on the right site.")
    question = questions.items[0]
    more: dict[str, str | float | None] = {**params, "sort": "votes", "order": "desc", "pagesize": _ANSWERS}
    page = await _get(context, f"questions/{question_id}/answers", more)
    answers = sorted(
        page.items, key=lambda item: (item.get("is_accepted") is not True, -(values.number(item, "score") or 0))
    )
    link = values.address(question, "link")
    head = [f"{_title(question)}\n{link}", head_and_tail(_body(question), _QUESTION)]
    entries = [f"{_answer_head(item)}\n{head_and_tail(_body(item), _ANSWER)}" for item in answers[:_ANSWERS]]
    count = values.whole(question, "answer_count")
    advice = "The other answers are on the page."
    shown = numbered(entries, _ANSWERS * _ANSWER, total=count, advice=advice) if entries else "[No answers yet.]"
    source = _source(page) + " The texts are licensed under CC BY-SA."
    return ToolResult(content="\n\n".join([*head, shown]) + source, show=[Link(url=link, text=_title(question))])


def _checked_site(site: str) -> str:
    """The short name of a site, from that name, its title or a URL on it."""
    given = site.strip().lower()
    try:
        host = (urlsplit(given).hostname or "") if "://" in given else given.partition("/")[0]
    except ValueError:  # such as brackets in something that is not a URL
        host = ""
    name = re.sub(r"\.stackexchange\.com$|\.com$", "", "".join(host.split()))
    if not _SITE.fullmatch(name):
        raise ToolError(
            f"{one_line(site, 80)!r} is not a Stack Exchange site. Use a short name such as stackoverflow or unix."
        )
    return name


async def _get(context: ToolContext, path: str, params: Mapping[str, str | float | None]) -> _Page:
    client = ServiceClient(context, STACKEXCHANGE)
    try:
        page = await client.get_json(path, page_in, params={**params, "key": context.secret("STACKEXCHANGE_KEY", None)})
    except RequestFailed as error:
        # It answers 400 to too many requests, and puts the wait into the message.
        found = _THROTTLED.search(str(error))
        if found is not None and not client.is_own:
            await _leave_alone(context, client, float(found[1]))
        raise
    if page.backoff and not client.is_kept and not client.is_own:
        # Repeating a request sooner gets the user blocked, and requests of other Marvins count as well.
        await _leave_alone(context, client, page.backoff)
    return page


async def _leave_alone(context: ToolContext, client: ServiceClient, seconds: float) -> None:
    turns = RateLimit(context.folders.cache, client.service.interval, timeouts=context.timeouts)
    await turns.postpone(urlsplit(client.url).hostname or "", seconds)


def page_in(answer: Any) -> _Page:
    if values.text(answer, "error_name"):
        raise RequestFailed(f"it refused this: {values.text(answer, 'error_message')}. Change the request.")
    items = values.objects(values.required(answer, "items"))
    return _Page(
        items=tuple(items),
        has_more=answer.get("has_more") is True,
        backoff=values.number(answer, "backoff"),
        left=values.whole(answer, "quota_remaining"),
    )


def _source(page: _Page) -> str:
    low = f" {page.left} requests are left today." if page.left is not None and page.left < _LITTLE else ""
    return f"\n{source_line([STACKEXCHANGE])}{low}"


def _title(item: Mapping[str, Any]) -> str:
    return one_line(html.unescape(values.text(item, "title", limit=300))) or "(no title)"


def _question_in_short(item: Mapping[str, Any]) -> str:
    answers = values.whole(item, "answer_count") or 0
    accepted = ", one accepted" if values.whole(item, "accepted_answer_id") else ""
    tags: Sequence[Any] = values.inner(item, "tags") if isinstance(values.inner(item, "tags"), list) else []
    facts = [
        f"question {values.whole(item, 'question_id')}",
        f"score {values.whole(item, 'score') or 0}",
        f"{answers} answer{'' if answers == 1 else 's'}{accepted}",
        _day(item, "creation_date"),
        " ".join(one_line(str(tag), 40) for tag in tags[:6]),
    ]
    return f"{_title(item)}\n{'; '.join(filter(None, facts))}\n{values.address(item, 'link')}"


def _answer_head(item: Mapping[str, Any]) -> str:
    who = html.unescape(values.text(item, "owner", "display_name", limit=80))
    facts = [f"score {values.whole(item, 'score') or 0}", f"by {who}" if who else "", _day(item, "creation_date")]
    return f"{'ACCEPTED, ' if item.get('is_accepted') is True else ''}{', '.join(filter(None, facts))}:"


def _body(item: Mapping[str, Any]) -> str:
    body = item.get("body")
    return seen(plain_text(body[:_MARKUP])) if isinstance(body, str) else ""


def _day(item: Mapping[str, Any], name: str) -> str:
    seconds = values.number(item, name)
    return time.strftime("%Y-%m-%d", time.gmtime(seconds)) if seconds and 0 < seconds < 1e11 else ""
