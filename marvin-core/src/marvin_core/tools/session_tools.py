"""The tools of the core: what the session used, making room in it, and leaving."""

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
"""Characters of what was looked for, in an error."""
_DESCRIBED = 300
"""Characters of what is said of a tool that was found: the whole of it comes with the next request."""
_TEXTS = ("message", "text", "summary", "reason", "result")


@tool(
    access=["read"],
    sets=["coding", "surf"],
    aliases={"include_lifetime": ("lifetime", "all_sessions", "total", "all")},
    ignores=_IGNORED,
)
async def get_usage(
    context: ToolContext,
    include_lifetime: Annotated[bool, "Also the totals of all sessions"] = False,
) -> str:
    """Tell the tokens, the cost and the tool calls since Marvin was started, by model.

    A cost is unknown where the price of the model is. Under a cost ceiling it also tells what is left of it.
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
    target_tokens: Annotated[int, Field(ge=1_000, le=1_000_000), "About how much the conversation may take"] = 50_000,
) -> str:
    """Make room in the conversation: older messages are backed up and become a summary, the newest stay as they are.

    That happens by itself, too, when the conversation becomes too long.
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
    query: Annotated[str, "Words that all stand in one message; upper and lower case are the same"],
    max_results: Annotated[int, Field(ge=1, le=200), "Messages shown at most"] = 20,
) -> str:
    """Search everything that was taken out of conversations of this folder to make room, newest first."""
    return await in_thread(lambda: context.session.search_backups(query, max_results))


@tool(
    access=["read"],
    sets=["coding", "surf"],
    aliases={"name": ("skill", "skill_name", "command")},
    ignores=_IGNORED,
)
async def read_skill(
    context: ToolContext, name: Annotated[str, "The skill, or a file of it as in pdf/references/forms.md"]
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
    query: Annotated[str, "What is to be done, in words, or names of tools"],
    max_results: Annotated[int, Field(ge=1, le=20), "Tools found at most"] = 5,
) -> ToolResult:
    """Find more tools by what they do. You can call the found ones from then on. Search before you say you cannot."""
    found = await in_thread(lambda: context.session.find_tools(query, max_results))
    if not found:
        raise ToolError(
            f"No tool fits {cut(one_line(query), _QUOTED)!r}. Say in other words, and in English, what is to be done."
        )
    lines = [f"- {spec.name}: {one_line(spec.description, _DESCRIBED)}" for spec in found]
    return ToolResult(
        content="\n".join(["You can call these tools now:", *lines]), reveals=[spec.name for spec in found]
    )


@tool(access=["state"], aliases={"summary": _TEXTS}, ignores=_IGNORED)
async def end_elaborate(context: ToolContext, summary: Annotated[str, "What was done, in a few sentences"] = "") -> str:
    """Say that the task is finished, when you work on by yourself. Control goes back to the user after your answer."""
    context.session.finish("auto")
    return f"The user gets control back after your answer. {_noted(summary)}".strip()


@tool(access=["state"], aliases={"reason": _TEXTS}, ignores=_IGNORED)
async def end_play_mode(context: ToolContext, reason: Annotated[str, "Why you have had enough"] = "") -> str:
    """Leave play mode. It ends with your next answer."""
    context.session.finish("play")
    return f"Play mode ends with your answer. {_noted(reason)}".strip()


def _noted(text: str) -> str:
    return f"Noted: {text}" if text.strip() else ""


@tool(access=["state"], interactive=True, aliases={"message": ("farewell", "text")}, ignores=(*_IGNORED, "reason"))
async def exit_app(context: ToolContext, message: Annotated[str, "What the user reads last"] = "Goodbye!") -> str:
    """End the chat with a farewell, when the user asks to leave. The chat closes after your answer."""
    if not context.session.interactive:
        raise ToolError("There is no chat to leave: this run ends with your answer. Answer without a tool call.")
    context.session.leave(message)
    return "The chat ends with your answer, and the user reads the farewell. Do not repeat it."
