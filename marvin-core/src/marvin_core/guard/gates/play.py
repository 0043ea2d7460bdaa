"""Play mode: the tools of an unattended agent in its playground, and its questions."""

from __future__ import annotations

from ...api.hooks import Ask, Deny, Verdict
from ...api.tools import Access, ToolSpec
from ..permissions.verdicts import Allow

_PROGRAMS_ALONE: frozenset[Access] = frozenset({"read", "exec", "state"})
"""The access of a tool that works by programs alone, which the sandbox confines."""


def closed_in_play(spec: ToolSpec, *, holds: bool) -> str:
    """Why a tool is not offered in play mode, to complete "not available here: ..."; empty if it is.

    A tool that changes something is offered if the changes stay in the playground: files that it reaches through the
    context, and programs in the sandbox.

    Args:
        holds: whether the sandbox confines programs.
    """
    if spec.interactive:
        return "nobody can answer in play mode"
    if "exec" in spec.access:
        if not holds:
            return "there is no working sandbox here, so play mode runs no programs"
        if not spec.typed and not spec.access <= _PROGRAMS_ALONE:
            return "in play mode programs run in the sandbox only"
    elif "write" in spec.access and "writable-files" not in spec.passes:
        return "in play mode nothing is changed outside of the playground"
    if spec.confirm and not spec.typed:
        return "it asks before each call, and nobody can answer in play mode"
    return ""


def verdict_in_play(verdict: Allow | Verdict, *, by_declaration: bool) -> Allow | Verdict:
    """The verdict in play mode, which has no one to ask: questions of rules and hooks become denials.

    Args:
        by_declaration: only the tool or the permission mode asks; such calls are allowed in the playground.
    """
    if not isinstance(verdict, Ask):
        return verdict
    return None if by_declaration else Deny(reason=f"{verdict.reason}, and nobody can answer in play mode")
