"""The tickets of a run: an epic for the request, and a child for each agent that writes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from marvin_core import MarvinError, TicketError, TicketPlace, Timeouts, in_thread, one_line, run_tickets

from .files import ProjectFiles

EPIC = "logs/pipeline-epic"
"""The file with the id of the epic."""
_TITLE, _TEXT = 80, 20_000
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}")


class TicketFault(MarvinError):
    """A ticket cannot be read or written."""


class Tickets:
    """The tickets of one project. Errors raise `TicketFault`.

    Args:
        files: the pipeline's own files there.
        tickets_dir: TICKETS_DIR, if it is set.
        parent: the ticket that this run itself works on; empty for none.
    """

    def __init__(self, files: ProjectFiles, timeouts: Timeouts, tickets_dir: str = "", parent: str = "") -> None:
        self._files = files
        self._parent = parent
        self._place = TicketPlace(str(files.root), tickets_dir)
        self._place.strict = True
        self._place.timeouts = timeouts
        self.epic = ""

    async def open_epic(self, prompt: str, *, is_new: bool = False) -> str:
        """The epic of the request: that of the last run if it still exists, else a new one.

        Args:
            is_new: whether the last run had another request.
        """
        kept = self._files.text(EPIC, _TEXT).strip()
        if not is_new and _ID.fullmatch(kept) and await self._is_there(kept):
            self.epic = kept
        else:
            title = one_line(prompt)[:_TITLE] or "The pipeline"
            self.epic = await self._create(title, "epic", prompt, parent=self._parent)
            self._files.write(EPIC, self.epic.encode())
        return self.epic

    async def child(self, title: str, description: str) -> str:
        """Create a ticket below the epic and start it; returns its id."""
        made = await self._create(title, "task", description, parent=self.epic)
        await self._run(("start", made))
        return made

    async def close(self, ticket: str, note: str = "") -> None:
        """Close a ticket, with an optional note."""
        if note:
            await self.note(ticket, note)
        await self._run(("close", ticket))

    async def note(self, ticket: str, text: str) -> None:
        """Add a note to a ticket."""
        await self._run(("add-note", ticket, text[:_TEXT]))

    async def _is_there(self, ticket: str) -> bool:
        try:
            await self._run(("show", ticket))
        except TicketFault:
            return False
        return True

    async def _create(self, title: str, kind: str, description: str, *, parent: str) -> str:
        words = ["create", title.lstrip("- ") or "Untitled", "-t", kind, "-a", "marvin", "-d", description[:_TEXT]]
        lines = await self._run((*words, *(("--parent", parent) if parent else ())))
        return lines[-1].strip()

    async def _run(self, words: Sequence[str]) -> Sequence[str]:
        try:
            return await in_thread(lambda: list(run_tickets(words, self._place).lines))
        except (TicketError, OSError) as error:
            raise TicketFault(
                f"tk {words[0]} failed in {self._place.folder}: {error}. Fix that, and run the pipeline again."
            ) from error
