"""The slash command that shows and changes the permission mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...api.session import SessionControl
from ...util.terminal_text import exact_line
from ...util.text import one_line
from ...util.threads import in_thread

if TYPE_CHECKING:
    from ...api.permissions import ProjectTrust

_SHOWN = 100
_NEXT_START = "\nHooks, tools, commands and settings among it are loaded when Marvin starts next."


async def permissions(session: SessionControl, words: str) -> str:
    """Show the mode, the approvals, and the trust in the folder; or switch to another mode."""
    if words == "trust":
        project = await session.permissions.trust_project()
        return f"{_trust_line(project)}{_NEXT_START if project.trusted else ''}"
    if words == "distrust":
        await in_thread(session.permissions.distrust_project)
        return "This folder is not trusted."
    from ...guard.permissions.modes import MEANINGS

    if words:
        session.permissions.switch(words)
        return f"Permission mode {words}: {MEANINGS[session.permissions.mode]}."
    await session.permissions.settle()
    mode = session.permissions.mode
    lines = [f"{'*' if name == mode else ' '} {name:9} {meaning}" for name, meaning in MEANINGS.items()]
    allowed = [one_line(line, _SHOWN) for line in session.permissions.remembered]
    if allowed:
        lines += ["Allowed in this session:", *(f"  {line}" for line in allowed)]
    project = await in_thread(session.permissions.project)
    if project.brings:
        lines.append(_trust_line(project))
    lines.append(
        "/permissions MODE switches to another mode, Shift+Tab to the next one. Rules in config.yaml take precedence."
    )
    return "\n".join(lines)


def _trust_line(project: ProjectTrust) -> str:
    if not project.brings:
        return "This folder contains nothing that needs to be trusted."
    state = "is trusted" if project.trusted else "is not trusted, and not loaded"
    change = "/permissions distrust revokes that." if project.trusted else "/permissions trust changes that."
    return "\n".join(
        [
            f"This folder {state}: {project.why}. {change}",
            *(f"  {exact_line(line)}" for line in project.details),
        ]
    )
