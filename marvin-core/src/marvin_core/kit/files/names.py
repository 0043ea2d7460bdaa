"""File names for display, each on one line."""

from __future__ import annotations


def shown_name(name: str) -> str:
    """The name; quoted and escaped if it holds a line break or another invisible character."""
    return name if name.isprintable() else repr(name)
