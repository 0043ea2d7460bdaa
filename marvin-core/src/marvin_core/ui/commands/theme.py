"""The slash command that lists the themes, and switches between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...util.threads import in_thread

if TYPE_CHECKING:
    from ...api.session import SessionControl


async def theme(session: SessionControl, words: str) -> str:
    """List the themes, or switch to another one."""
    from .. import themes

    folder, person = session.chat.config_folder, session.person
    if words:
        await in_thread(lambda: themes.load(words, folder))
        await in_thread(lambda: person.use_theme(words))
        return f"The theme is now {words}." + ("" if session.chat.color else " This terminal shows no colours.")
    found = await in_thread(lambda: themes.names(folder))
    lines = [f"{'*' if name == person.theme else ' '} {name:10}  {meaning}" for name, meaning in found.items()]
    return "\n".join(
        [*lines, f"/theme NAME switches to another theme. Your own themes are in {folder / themes.FOLDER}."]
    )
