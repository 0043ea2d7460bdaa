"""The context window: estimates tokens, and fits tool results to the remaining room."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..api.messages import IMAGE_TOKENS, Image, Message, Text, Thinking, ToolCall, ToolOutput
from ..api.tools import LONGEST_DESCRIPTION, ToolSpec

CHARACTERS_PER_TOKEN = 4
UNKNOWN_WINDOW = 32_768
WARN, COMPACT, REFUSE = 180_000, 200_000, 226_000
"""Thresholds in tokens for large windows; smaller windows scale them down."""
_SCALE = 250_000
"""The window for which the thresholds apply unscaled: COMPACT is 80 % of it."""
_SHORTEST = 500


class Window:
    """The context window of the current model, and the resulting thresholds."""

    def __init__(self, size: int | None) -> None:
        self._calibration = 1.0
        self.resize(size or UNKNOWN_WINDOW)
        self.known = bool(size)
        """Whether its size is known from the service or the settings."""

    def resize(self, size: int) -> None:
        """Derive the thresholds from this size in tokens."""
        self.size = size
        self.known = True
        scale = min(1.0, self.size / _SCALE)
        self.warn = int(WARN * scale)
        self.compact = int(COMPACT * scale)
        self.refuse = int(REFUSE * scale)

    def calibrate(self, characters: int, counted: int) -> None:
        """Correct the estimate by the provider's own token count for this many characters."""
        if characters > 0 and counted > 0:
            self._calibration = min(max(counted * CHARACTERS_PER_TOKEN / characters, 0.5), 2.0)

    def tokens(self, characters: int) -> int:
        """The estimated number of tokens of this many characters."""
        return int(characters / CHARACTERS_PER_TOKEN * self._calibration)

    def room(self, tokens: int) -> int:
        """The estimated number of characters of this many tokens."""
        return int(tokens * CHARACTERS_PER_TOKEN / self._calibration)

    def fit(self, text: str, used: int) -> str:
        """The text, cut to stay below the warning threshold if `used` tokens are already taken.

        Near that threshold a text may still take a quarter of it, up to the refusal threshold: older messages are
        removed before the next request, and results without content would not help until then.
        """
        if used >= self.refuse:
            return (
                f"Error: the context budget of {self.refuse:,} tokens is used up, so this result was left out. "
                "Finish with what you know, or call compact_history if it is available."
            )
        room = max(self.room(max(self.warn - used, min(self.warn // 4, self.refuse - used))), _SHORTEST)
        if len(text) <= room:
            return text
        omitted = len(text) - room
        return (
            f"{text[:room]}\n[Result truncated: {omitted:,} characters left out to stay within the context budget. "
            "Ask for a smaller part.]"
        )


class ToolSizes:
    """The size of tools in a request, in characters. Each is measured once until it changes."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[ToolSpec, int]] = {}
        self._newest: tuple[Sequence[ToolSpec], int] = ((), 0)

    def of(self, tool: ToolSpec) -> int:
        """The characters of one tool: its name, its description and its parameters."""
        known = self._known.get(tool.name)
        if known is None or known[0] is not tool:  # another tool has its name now, or its description has changed
            import json

            described = min(len(tool.description), LONGEST_DESCRIPTION)
            size = len(tool.name) + described + len(json.dumps(tool.parameters))
            known = self._known[tool.name] = tool, size
        return known[1]

    def of_all(self, tools: Sequence[ToolSpec]) -> int:
        """The characters of several tools together; cached for the previous list of tools."""
        if tools is not self._newest[0]:
            self._newest = tools, sum(map(self.of, tools))
        return self._newest[1]


def characters(messages: Iterable[Message]) -> int:
    """The characters of messages that count towards the window; an image counts as a fixed number."""
    return sum(_block_characters(block) for message in messages for block in message.content)


def _block_characters(block: object) -> int:
    if isinstance(block, (Text, Thinking)):
        return len(block.text)
    if isinstance(block, ToolCall):
        return len(block.arguments) + len(block.name)
    if isinstance(block, ToolOutput):
        return sum(map(_block_characters, block.content))
    if isinstance(block, Image):
        return IMAGE_TOKENS * CHARACTERS_PER_TOKEN
    return 0
