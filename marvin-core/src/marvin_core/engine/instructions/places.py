"""The places of instructions and skills. Every prompt checks them first, so nothing is read here."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from ...api.record import Record

if TYPE_CHECKING:
    from ...api.config import Config


FOR_ALL_AGENTS = ("AGENTS.md", "CLAUDE.md")
"""Files that many programs read. In each folder, the first existing one applies."""
_FOR_MARVIN = (".marvin-instructions", ".marvin/instructions.md")
_SKILLS = (".marvin/skills", ".agents/skills", ".claude/skills")
_SKILL = "SKILL.md"
PROJECT, USER = "project", "user"
"""The owners of skills that do not belong to a pack."""
_HIGHEST = 64
"""The maximum number of folders above the working directory that are searched for the root of its repository."""
_MOST_SKILLS = 500
"""The maximum number of folders with skills in one place: the first ones by name."""
_MOST_ENTRIES = 20_000


class InstructionPlace(Record):
    """A file that may contain instructions; `path` is below `base`, and links do not lead out of `base`. `name` is for
    people."""

    name: str
    base: str
    path: str
    is_own: bool = False
    """Whether it is the user's, on this machine; all others come with the repository."""

    @property
    def file(self) -> str:
        """Its path."""
        return f"{self.base}/{self.path}"


class SkillRoot(Record):
    """A folder with skills. `origin` is the owner: `PROJECT`, `USER` or the name of a pack."""

    folder: str
    base: str
    """The folder that links of the project do not lead out of; empty for skills of the user and of packs."""
    origin: str


def project_folders(root: Path, home: Path) -> list[str]:
    """The folders from the root of the repository down to the working directory, or only the latter.

    If a folder in between belongs to another user, none above it counts. The home folder and those above it never
    count: their files do not belong to the project.
    """
    here = str(root)
    if os.path.lexists(f"{here}/.git"):
        return [here]
    found = [here]
    highest, folder = os.path.realpath(home), here
    for _ in range(_HIGHEST):
        above = os.path.dirname(folder)
        if above in (folder, highest) or not _is_own(above):
            break
        found.append(above)
        if os.path.lexists(f"{above}/.git"):
            return found[::-1]
        folder = above
    return [here]


def _is_own(folder: str) -> bool:
    try:
        return os.stat(folder).st_uid == os.getuid()
    except OSError:
        return False


def instruction_places(folders: Sequence[str], home: Path) -> list[InstructionPlace]:
    """The files that may contain instructions, the nearest last: in each folder those for all agents, for Marvin, and
    yours."""
    top, here = folders[0], folders[-1]
    own = f"{home}/.marvin/instructions"
    found = []
    for folder in folders:
        above = "../" * (here[len(folder) :].count("/") if here != folder else 0)
        below = folder[len(top) :].lstrip("/")
        for name in (*FOR_ALL_AGENTS, *_FOR_MARVIN):
            path = f"{below}/{name}" if below else name
            found.append(InstructionPlace(name=above + name, base=top, path=path))
        path = f"{folder.lstrip('/')}.md"
        found.append(InstructionPlace(name=f"{own}/{path}", base=own, path=path, is_own=True))
    return found


def skill_roots(folders: Sequence[str], config: Config, packs: Mapping[str, str]) -> list[SkillRoot]:
    """The existing folders with skills, the nearest first: of the project, of the user, of packs.

    Args:
        packs: the folders of packs by their names.
    """
    places = [(f"{folder}/{name}", folders[0], PROJECT) for folder in reversed(folders) for name in _SKILLS]
    own = (f"{config.config_folder}/skills", *(f"{config.home}/{name}" for name in _SKILLS[1:]))
    places = [place for place in places if place[0] not in own]  # if the home folder is the working directory
    places += [(folder, "", USER) for folder in own]
    places += [(f"{folder}/skills", "", name) for name, folder in packs.items()]
    seen: set[str] = set()
    found = []
    for folder, base, origin in places:
        if folder not in seen and os.path.isdir(folder):
            seen.add(folder)
            found.append(SkillRoot(folder=folder, base=base, origin=origin))
    return found


def skill_names(root: SkillRoot) -> tuple[Sequence[str], int]:
    """The names of the subfolders with a skill, sorted, and the number of subfolders that were not checked."""
    try:
        with os.scandir(root.folder) as entries:
            names = sorted(entry.name for entry in islice(entries, _MOST_ENTRIES))
    except OSError:
        return (), 0
    found = [name for name in names[:_MOST_SKILLS] if os.path.lexists(f"{root.folder}/{name}/{_SKILL}")]
    return found, len(names[_MOST_SKILLS:])


def stamp_of(file: str) -> tuple[int, int, int] | None:
    """A value that changes with the file; None if there is no file."""
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def skill_stamps(roots: Sequence[SkillRoot]) -> list[object]:
    """A value that changes if a skill is added, changed or removed."""
    return [
        (root.folder, name, stamp_of(f"{root.folder}/{name}/{_SKILL}"))
        for root in roots
        for name in skill_names(root)[0]
    ]
