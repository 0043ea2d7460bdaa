"""Formats diagnostics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .documents import Diagnostic

if TYPE_CHECKING:
    from .status import ServerStatus

_SHOWN = 20
"""Diagnostics in the result of one edit at most."""
_LISTED = 5_000
"""Diagnostics of one folder at most, in a list of all."""
_NAMED = 5
"""Files without diagnostics yet that are named at most."""


def listed(found: Mapping[str, Sequence[Diagnostic]], most: int = _SHOWN) -> str:
    """Diagnostics by file, one a line, as many as fit; errors first in each file."""
    lines = [f"{path}:{one.line}: {one.severity}: {one.message}" for path, said in found.items() for one in said]
    more = f"\n[{len(lines) - most:,} more]" if len(lines) > most else ""
    return "\n".join(lines[:most]) + more


def overview(statuses: Sequence[ServerStatus]) -> str:
    """Language servers, each folder followed by its diagnostics; empty if there are none."""
    return "\n\n".join(_of_folder([one for one in statuses if one.root == root]) for root in _roots(statuses))


def _roots(statuses: Sequence[ServerStatus]) -> Sequence[str]:
    return list(dict.fromkeys(one.root for one in statuses))


def _of_folder(statuses: Sequence[ServerStatus]) -> str:
    lines = []
    found: dict[str, dict[Diagnostic, None]] = {}
    for one in statuses:
        names = [*one.waiting[:_NAMED], *(["others"] if len(one.waiting) > _NAMED else [])]
        waiting = f"; it has not looked at {', '.join(names)} yet" if names else ""
        lines.append(f"{one.name}: {one.state}, process {one.pid or '-'}, {one.root}{waiting}")
        for path, said in one.said.items():
            found.setdefault(path, {}).update(dict.fromkeys(said))  # sessions of a folder may share diagnostics
    told = listed({path: list(said) for path, said in sorted(found.items())}, _LISTED)
    return "\n".join([*lines, "", told or "No problems are known."])


def told(found: Mapping[str, Sequence[Diagnostic]], by: Sequence[str]) -> str:
    """Diagnostics of edited files, for the model and people."""
    names = ", ".join(dict.fromkeys(by))
    if not found:
        return ""
    if any(found.values()):
        return f"Diagnostics ({names}):\n{listed(found)}"
    files = next(iter(found)) if len(found) == 1 else f"{len(found)} files"
    return f"No problems in {files} ({names})."


def pending(waited: Mapping[str, Sequence[str]]) -> str:
    """Files whose diagnostics did not come in time, by server."""
    return "\n".join(
        f"[{name} has not checked {', '.join(paths)} yet: its results are shown with a later edit.]"
        for name, paths in waited.items()
    )
