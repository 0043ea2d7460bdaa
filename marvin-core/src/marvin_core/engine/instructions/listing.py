"""Lists the instructions and skills for a working directory for people, and says which of them apply."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...api.config import Config
from ...guard.files.workspace import Workspace
from ...util.text import one_line
from .files import InstructionReader
from .places import PROJECT, USER, project_folders, skill_roots
from .skills import SkillFinder, skill_cache

_ORIGINS = {PROJECT: "the project's", USER: "yours"}
_LONGEST = 500
"""The maximum length of one part of a line, in characters."""


def listed_instructions(config: Config) -> Iterator[str]:
    """A line for each file that may contain instructions for the working directory. Blocks."""
    workspace = Workspace(config)
    reader = InstructionReader(workspace.paths_of, config.home, config.limits)
    for one in reader.look(project_folders(workspace.root, config.home)):
        yield f"instructions   {_plain(one.name)} ({one.size:,} bytes): {_plain(one.state)}"


def listed_skills(config: Config, packs: Mapping[str, str]) -> Iterator[str]:
    """A line for each folder with a SKILL.md. Blocks.

    Args:
        packs: the folders of packs by their names.
    """
    workspace = Workspace(config)
    roots = skill_roots(project_folders(workspace.root, config.home), config, packs)
    for skill in SkillFinder(workspace.paths_of, skill_cache(config)).find(roots):
        whose = _ORIGINS.get(skill.origin, f"the pack {skill.origin}")
        state = f"not used: {skill.problem}" if skill.problem else "used"
        place = f"{_plain(skill.folder)} ({skill.size:,} bytes, {whose})"
        yield f"skill          {_plain(skill.name)}: {place}: {_plain(state)}"


def _plain(text: str) -> str:
    return one_line(text, _LONGEST)
