"""Names of files as they are shown: one line each, whatever they hold."""

from __future__ import annotations


def shown_name(name: str) -> str:
    """The name; quoted, with escapes, where it holds a line break or anything else that cannot be seen."""
    return name if name.isprintable() else repr(name)
