"""What is told of diagnostics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .documents import Diagnostic

_SHOWN = 20
"""Diagnostics in the result of one edit."""


def listed(found: Mapping[str, Sequence[Diagnostic]], most: int = _SHOWN) -> str:
    """Diagnostics by files, one a line, as many as fit; errors first in each file."""
    lines = [f"{path}:{one.line}: {one.severity}: {one.message}" for path, said in found.items() for one in said]
    more = f"\n[{len(lines) - most:,} more]" if len(lines) > most else ""
    return "\n".join(lines[:most]) + more


def told(found: Mapping[str, Sequence[Diagnostic]], by: Sequence[str]) -> str:
    """What servers say of edited files, for the model and people."""
    names = ", ".join(dict.fromkeys(by))
    if not found:
        return ""
    if any(found.values()):
        return f"Diagnostics ({names}):\n{listed(found)}"
    files = next(iter(found)) if len(found) == 1 else f"{len(found)} files"
    return f"No problems in {files} ({names})."


def pending(waited: Mapping[str, Sequence[str]]) -> str:
    """What did not come in time, by the names of servers."""
    return "\n".join(
        f"[{name} has not looked at {', '.join(paths)} yet: what it finds comes with a later edit.]"
        for name, paths in waited.items()
    )
