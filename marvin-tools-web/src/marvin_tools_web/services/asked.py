"""What a model asks a service for."""

from __future__ import annotations

from marvin_core import ToolError


def checked(text: str, what: str, most: int, advice: str = "Give a few words.") -> str:
    """The words of a question on one line.

    Args:
        what: what it is called in an error, as the parameter.
        most: characters that it may have.
        advice: what to give instead.

    Raises:
        ToolError: it is empty, or longer than that.
    """
    asked = " ".join(text.split())
    if not asked or len(asked) > most:
        raise ToolError(f"{what} is {'empty' if not asked else f'longer than {most:,} characters'}. {advice}")
    return asked
