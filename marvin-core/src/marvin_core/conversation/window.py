"""How much fits: estimating tokens, and fitting tool results to what is left of the window."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..api.messages import IMAGE_TOKENS, Image, Message, Text, Thinking, ToolCall, ToolOutput
from ..api.tools import LONGEST_DESCRIPTION, ToolSpec

CHARACTERS_PER_TOKEN = 4
UNKNOWN_WINDOW = 32_768
WARN, COMPACT, REFUSE = 180_000, 200_000, 226_000
"""Thresholds in tokens, for windows that are large enough; smaller ones scale them down."""
_SCALE = 250_000
"""The window at which the thresholds hold as they are: 80 % of it is COMPACT."""
_SHORTEST = 500


class Window:
    """The context window of the model in use, and the thresholds that follow from it."""

    def __init__(self, size: int | None) -> None:
        self._calibration = 1.0
        self.resize(size or UNKNOWN_WINDOW)
        self.known = bool(size)
        """Whether its size is known from the service or the settings."""

    def resize(self, size: int) -> None:
        """Have the thresholds follow from this size, in tokens."""
        self.size = size
        self.known = True
        scale = min(1.0, self.size / _SCALE)
        self.warn = int(WARN * scale)
        self.compact = int(COMPACT * scale)
        self.refuse = int(REFUSE * scale)

    def calibrate(self, characters: int, counted: int) -> None:
        """Learn from the provider's own count of tokens how far the estimate for these characters is off."""
        if characters > 0 and counted > 0:
            self._calibration = min(max(counted * CHARACTERS_PER_TOKEN / characters, 0.5), 2.0)

    def tokens(self, characters: int) -> int:
        """The tokens that this many characters make."""
        return int(characters / CHARACTERS_PER_TOKEN * self._calibration)

    def room(self, tokens: int) -> int:
        """The characters that make this many tokens."""
        return int(tokens * CHARACTERS_PER_TOKEN / self._calibration)

    def fit(self, text: str, used: int) -> str:
        """The text, cut to what fits below the warning threshold when `used` tokens are taken already.

        Near that threshold a text may still be a quarter of it, up to the refusal threshold: before the next
        request older messages make room, and results cut to nothing would lead nowhere until then.
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
    """What tools take of a request, in characters. Each is measured once, as long as it stays what it is."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[ToolSpec, int]] = {}
        self._newest: tuple[Sequence[ToolSpec], int] = ((), 0)

    def of(self, tool: ToolSpec) -> int:
        """The characters of one: its name, its description and its parameters."""
        known = self._known.get(tool.name)
        if known is None or known[0] is not tool:  # another one has its name now, or it says something else
            import json

            described = min(len(tool.description), LONGEST_DESCRIPTION)
            size = len(tool.name) + described + len(json.dumps(tool.parameters))
            known = self._known[tool.name] = tool, size
        return known[1]

    def of_all(self, tools: Sequence[ToolSpec]) -> int:
        """The characters of several together; nothing is added up where they are those of the last time."""
        if tools is not self._newest[0]:
            self._newest = tools, sum(map(self.of, tools))
        return self._newest[1]


def characters(messages: Iterable[Message]) -> int:
    """The characters of messages that count against the window; an image counts as a fixed number."""
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
