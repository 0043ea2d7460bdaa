"""The tool ask_user: a question of the model to the user, in interactive sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from ..api.errors import ToolError
from ..api.tool_context import ToolContext
from ..api.tools import tool
from ..util.text import one_line

_MOST = 4
"""The maximum number of choices of a question."""
_LONGEST = 2_000
"""The maximum length of a question, in characters."""
_LINES = 30
_LONGEST_CHOICE = 300
_CAREFUL = "Choose the most careful interpretation, continue, and state it in your answer."
_NAMES = {
    "question": ("prompt", "message", "text", "query"),
    "choices": ("options", "answers", "suggestions", "follow_up"),
}
_IGNORED = (
    *("header", "multiSelect", "multi_select", "multiple", "allow_multiple", "explanation", "description", "context"),
    *("id", "default", "custom"),
)
_LABELS = ("label", "title", "text", "value", "name")


def _arguments(given: dict[str, Any]) -> Mapping[str, Any]:
    """Convert the arguments that other programs use for such a tool: several questions, choices with descriptions.

    Raises:
        ToolError: there are several questions.
    """
    several = given.pop("questions", None)
    if isinstance(several, list) and several:
        if len(several) > 1:
            raise ToolError(f"There are {len(several)} questions, and none was asked. Ask one question in each call.")
        first = several[0]
        given |= {**first, "choices": first.get("options")} if isinstance(first, dict) else {"question": first}
        given.pop("options", None)
    choices = given.get("choices")
    if isinstance(choices, list):
        given["choices"] = [_choice(choice) for choice in choices]
    return given


def _choice(given: Any) -> Any:
    """A choice as text; invalid ones are left to the validation."""
    if not isinstance(given, dict):
        return given
    label = next((given[name] for name in _LABELS if isinstance(given.get(name), str)), None)
    described = given.get("description")
    return given if label is None else f"{label}: {described}" if isinstance(described, str) and described else label


@tool(access=["read"], sets=["coding", "surf"], aliases=_NAMES, ignores=_IGNORED, adapt=_arguments)
async def ask_user(
    context: ToolContext,
    question: Annotated[str, "One question"],
    choices: Annotated[Sequence[str], "Up to 4 choices, the most careful one first"] = [],
) -> str:
    """Ask the user what only they can decide. In a run without a user, the first choice is taken at once."""
    asked, offered = question.strip(), [one_line(choice) for choice in choices]
    _check(asked, offered)
    if not context.session.interactive:
        if not offered:
            return f"Nobody can answer in this run. {_CAREFUL}"
        return f"Nobody can answer in this run, so the first choice was taken: {offered[0]}\nSay so in your answer."
    answer = (await context.ask_text(asked, offered)).strip()
    if not answer:
        return f"The user gave no answer. {_CAREFUL}"
    return f"The user chose: {answer}" if answer in offered else f"The user answers: {answer}"


def _check(question: str, choices: Sequence[str]) -> None:
    """Raise `ToolError` for an invalid question."""
    if not question:
        raise ToolError("The question is empty, so nothing was asked. Say what the user should decide.")
    if len(question) > _LONGEST or question.count("\n") >= _LINES:
        raise ToolError(
            f"The question is too long, so nothing was asked. Use at most {_LONGEST:,} characters and {_LINES} "
            "lines; write explanations as text before the call."
        )
    if len(choices) > _MOST:
        raise ToolError(f"{len(choices)} choices are too many, and nothing was asked. Give {_MOST} at most.")
    if not all(choices) or len(set(choices)) < len(choices):
        raise ToolError("A choice is empty or repeated, so nothing was asked. Give each choice once, in words.")
    if max(map(len, choices), default=0) > _LONGEST_CHOICE:
        raise ToolError(
            f"A choice is too long, so nothing was asked. Use at most {_LONGEST_CHOICE} characters, and explain it "
            "in the question."
        )
