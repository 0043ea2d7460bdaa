"""The instructions and skills of a session. The code that reads them is imported only if there are some."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ...config.program import command_name
from ...util.text import one_line, shortened
from ..parts import SessionParts
from .places import SkillRoot, instruction_places, project_folders, skill_roots, skill_stamps, stamp_of

if TYPE_CHECKING:
    from ...conversation.documents import Document
    from .skills import Skill

_TOOL = "read_skill"
"""The tool that is offered if there are skills."""
_LONGEST = 1_000
"""The maximum length of a notice in characters."""
_NONE = "there is no skill here (a folder with a SKILL.md)"


class SessionInstructions:
    """The instructions and skills of a session, checked again for each prompt."""

    def __init__(self, parts: SessionParts) -> None:
        self._parts = parts
        self._folders: list[str] = []
        self._roots: list[SkillRoot] = []
        self._others: tuple[str, ...] = ()
        self._told: set[str] = set()
        self.begin()
        if not self._roots:  # listing the tools of a session sends no prompt
            parts.toolbox.hold(_TOOL, _NONE)

    def begin(self) -> None:
        """Find the places where they may be."""
        parts = self._parts
        self._folders = project_folders(parts.workspace.root, parts.config.home)
        self._roots = skill_roots(self._folders, parts.config, parts.setup.data_folders)

    def stamps(self) -> object:
        """A value that changes if one of them is added, changed or removed."""
        places = instruction_places(self._folders, self._parts.config.home)
        files = [stamp_of(file) for file in (*(place.file for place in places), *self._others)]
        return files, skill_stamps(self._roots)

    async def look(self) -> tuple[list[Document], str]:
        """The instructions for the prompt, and its text about skills, which is empty if there are none."""
        return await self._documents() if self._any() else [], await self._skills()

    def _any(self) -> bool:
        return any(os.path.lexists(place.file) for place in instruction_places(self._folders, self._parts.config.home))

    async def _documents(self) -> list[Document]:
        from ...util.threads import in_thread
        from .files import InstructionReader, as_documents

        config = self._parts.config
        reader = InstructionReader(self._parts.workspace.paths_of, config.home, config.limits)
        folders = self._folders
        found = await in_thread(lambda: reader.look(folders))
        self._others = tuple(file for one in found for file in one.files)
        for one in found:
            if one.cut:
                self._tell(f"{one.name} is {one.state} (limits.instruction_file and limits.instructions).")
        return as_documents([one.replace(text=self._parts.redactor.text(one.text)) for one in found])

    async def _skills(self) -> str:
        toolbox = self._parts.toolbox
        found = await self._found() if self._roots else []
        if unused := [f"{one.folder}: {one.problem}" for one in found if one.problem and not one.double]:
            self._tell(f"Skills that are not used: {shortened(unused)}. `{command_name()} config show` lists all.")
        usable = any(not skill.problem for skill in found)
        if usable:
            toolbox.release(_TOOL)
        else:
            toolbox.hold(_TOOL, _NONE)
        if not usable or all(spec.name != _TOOL for spec in toolbox.offered):
            return ""
        from .skills import catalogue

        return self._parts.redactor.text(catalogue(found, self._parts.config.limits.skills))

    async def _found(self) -> list[Skill]:
        from ...util.threads import in_thread
        from .skills import session_skills

        parts = self._parts
        return await in_thread(lambda: session_skills(parts)[1])

    def _tell(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self._parts.bus.warn(one_line(text, _LONGEST))
