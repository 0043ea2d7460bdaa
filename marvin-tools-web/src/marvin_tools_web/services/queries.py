"""Validation of the queries that models send to services."""

from __future__ import annotations

from marvin_core import ToolError


def checked(text: str, what: str, most: int, advice: str = "Give a few words.") -> str:
    """The query on one line.

    Args:
        what: the parameter's name in errors.
        most: the maximum length in characters.
        advice: what to send instead.

    Raises:
        ToolError: it is empty or too long.
    """
    asked = " ".join(text.split())
    if not asked or len(asked) > most:
        raise ToolError(f"{what} is {'empty' if not asked else f'longer than {most:,} characters'}. {advice}")
    return asked
