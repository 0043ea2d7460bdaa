"""What a tool may know of, and ask of, the session it runs in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from .tools import UsageSummary


class SessionView(Protocol):
    """What a tool may know of, and ask of, the session it runs in."""

    @property
    def id(self) -> str: ...
    @property
    def interactive(self) -> bool: ...
    @property
    def ticket(self) -> str: ...
    @property
    def depth(self) -> int: ...
    @property
    def memory_folder(self) -> Path:
        """Where dumps of what did not fit go."""
        ...

    def output_characters(self, tool_name: str) -> int:
        """How many characters of this tool's outputs are in the live context."""
        ...

    def compact(self, target_tokens: int) -> str:
        """Have older messages make room before the next request; returns what will happen."""
        ...

    def search_backups(self, query: str, most: int) -> str:
        """Where all words of the query stand in what was taken out of conversations, as text. Blocks."""
        ...

    def set_working_dir(self, path: Path) -> None:
        """Move the sandbox root; takes effect with the next call."""
        ...

    def switch_profile(self, name: str) -> Path:
        """Go on with another profile, made where there is none; returns its folder. Blocks: call it in a thread."""
        ...

    def change_preference(self, key: str, change: Callable[[Any], Any]) -> None:
        """Set a preference of the profile to what `change` makes of its value; None stands for one that is not set.

        Blocks while another Marvin writes the file: call it in a thread.
        """
        ...

    def usage(self, *, lifetime: bool = False) -> UsageSummary:
        """What was used since Marvin was started. Blocks where a price is looked up: call it in a thread."""
        ...

    def finish(self, way: Literal["auto", "play"]) -> None:
        """End auto-continue or play mode with the next answer. Raises `ToolError` where it is not on."""
        ...

    def leave(self, farewell: str) -> None:
        """Have the interface say this and end, once the turn is over."""
        ...
