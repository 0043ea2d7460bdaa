"""The tools of the core: usage, compaction, search and leaving."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ..api.errors import ConfigError, ToolError
from ..api.tool_context import ToolContext
from ..api.tools import ToolResult, tool
from ..usage.text import usage_text
from ..util.text import cut, one_line
from ..util.threads import in_thread

_IGNORED = ("description", "explanation", "instructions", "focus")
_QUOTED = 100
"""The maximum number of characters of the query in an error."""
_DESCRIBED = 300
"""The maximum number of characters of a found tool's description; the next request has all of it."""
_TEXTS = ("message", "text", "summary", "reason", "result")


@tool(
    access=["read"],
    sets=["coding", "surf"],
    aliases={"include_lifetime": ("lifetime", "all_sessions", "total", "all")},
    ignores=_IGNORED,
)
async def get_usage(
    context: ToolContext,
    include_lifetime: Annotated[bool, "Whether to include the totals of all sessions"] = False,
) -> str:
    """Show the tokens, the cost and the tool calls since Marvin was started, by model.

    A cost is unknown if the price of the model is unknown. Under a cost ceiling it also shows the rest of the ceiling.
    """
    try:
        summary = await in_thread(lambda: context.session.usage(lifetime=include_lifetime))
    except (OSError, ConfigError) as error:
        raise ToolError(f"The lifetime totals cannot be read: {error} Ask again without include_lifetime.") from error
    return usage_text(summary)


@tool(
    access=["state"],
    sets=["coding", "surf"],
    aliases={"target_tokens": ("tokens", "max_tokens", "target", "limit")},
    ignores=(*_IGNORED, *_TEXTS),
)
async def compact_history(
    context: ToolContext,
    target_tokens: Annotated[
        int, Field(ge=1_000, le=1_000_000), "The approximate size of the conversation afterwards"
    ] = 50_000,
) -> str:
    """Make room in the conversation: older messages are backed up and replaced by a summary, the newest are kept
    unchanged.

    This also happens automatically when the conversation becomes too long.
    """
    return context.session.compact(target_tokens)


@tool(
    access=["read"],
    sets=["coding", "surf"],
    aliases={
        "query": ("pattern", "q", "text", "search", "search_term", "keywords", "regex"),
        "max_results": ("limit", "head_limit", "maxResults", "count", "n"),
    },
    ignores=_IGNORED,
)
async def search_history_backups(
    context: ToolContext,
    query: Annotated[str, "Words that must all occur in one message; case does not matter"],
    max_results: Annotated[int, Field(ge=1, le=200), "The maximum number of messages to show"] = 20,
) -> str:
    """Search the messages that were removed from conversations of this folder to make room, newest first."""
    return await in_thread(lambda: context.session.search_backups(query, max_results))


@tool(
    access=["read"],
    sets=["coding", "surf"],
    aliases={"name": ("skill", "skill_name", "command")},
    ignores=_IGNORED,
)
async def read_skill(
    context: ToolContext, name: Annotated[str, "The skill, or one of its files, such as pdf/references/forms.md"]
) -> str:
    """Read the instructions of a skill that the prompt names, or another file in its folder."""
    return await in_thread(lambda: context.session.read_skill(name))


@tool(
    access=["read"],
    sets=["coding", "surf"],
    aliases={
        "query": ("q", "text", "search", "keywords", "name", "tool_name", "task", "pattern"),
        "max_results": ("limit", "top_k", "count", "n", "maxResults"),
    },
    ignores=_IGNORED,
)
async def tool_search(
    context: ToolContext,
    query: Annotated[str, "What should be done, in words, or names of tools"],
    max_results: Annotated[int, Field(ge=1, le=20), "The maximum number of tools to find"] = 5,
) -> ToolResult:
    """Find more tools by what they do. You can call the found ones from then on. Search before you say you cannot."""
    found = await in_thread(lambda: context.session.find_tools(query, max_results))
    if not found:
        raise ToolError(
            f"No tool fits {cut(one_line(query), _QUOTED)!r}. Describe in other words, in English, what should be done."
        )
    lines = [f"- {spec.name}: {one_line(spec.description, _DESCRIBED)}" for spec in found]
    return ToolResult(
        content="\n".join(["You can call these tools now:", *lines]), reveals=[spec.name for spec in found]
    )


@tool(access=["state"], aliases={"summary": _TEXTS}, ignores=_IGNORED)
async def end_elaborate(context: ToolContext, summary: Annotated[str, "What was done, in a few sentences"] = "") -> str:
    """Report that the task is finished, in autonomous work. Control returns to the user after your answer."""
    context.session.finish("auto")
    return f"The user gets control back after your answer. {_noted(summary)}".strip()


@tool(access=["state"], aliases={"reason": _TEXTS}, ignores=_IGNORED)
async def end_play_mode(context: ToolContext, reason: Annotated[str, "Why you want to stop"] = "") -> str:
    """Leave play mode. It ends with your next answer."""
    context.session.finish("play")
    return f"Play mode ends with your answer. {_noted(reason)}".strip()


def _noted(text: str) -> str:
    return f"Noted: {text}" if text.strip() else ""


@tool(access=["state"], interactive=True, aliases={"message": ("farewell", "text")}, ignores=(*_IGNORED, "reason"))
async def exit_app(context: ToolContext, message: Annotated[str, "The last message to the user"] = "Goodbye!") -> str:
    """End the chat with a farewell, when the user asks to leave. The chat closes after your answer."""
    if not context.session.interactive:
        raise ToolError(
            "This is not a chat, so there is nothing to leave: the run ends with your answer. Answer "
            "without a tool call."
        )
    context.session.leave(message)
    return "The chat ends with your answer, and the user reads the farewell. Do not repeat it."
