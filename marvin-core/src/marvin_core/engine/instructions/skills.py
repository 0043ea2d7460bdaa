"""Skills: folders with a SKILL.md. The model knows their names and descriptions, and reads the text of one when needed.

The format is that of https://agentskills.io/specification.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...api.errors import ToolError
from ...api.record import Record
from ...guard.files.sandbox import SandboxPaths
from ...util.state_files import read_trusted_json, write_cache
from ...util.text import one_line, unknown_name
from .places import SkillRoot, project_folders, skill_names, skill_roots, stamp_of
from .texts import read_text, seen

if TYPE_CHECKING:
    from ...api.config import Config
    from ..parts import SessionParts

_FILE = "SKILL.md"
_NAME = r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}"
_DESCRIPTION = 1_024
"""The maximum length of a description in characters, as in the specification."""
_LISTED = 50
"""How many other files of a skill are named with its text, and how many folders are searched for them."""
_DEEPEST = 3
_HEADS = 200_000
"""The maximum number of characters of front matter that is parsed at once. To parse that much YAML takes seconds."""
_FORM = 1
"""The version of the cached front matter; it is increased when the meaning of the data changes."""
_OF_HEAD = {"description": str, "problem": str, "size": int}
_INTRODUCTION = """\
# Skills
Instructions for certain kinds of tasks. If one fits the task, read it with read_skill before you begin."""

Paths = Callable[[Path], SandboxPaths]


class Skill(Record):
    """A folder with a SKILL.md. `folder` is its path, `origin` its owner; without a problem it can be used."""

    name: str
    folder: str
    base: str
    """The folder that its links do not lead out of."""
    origin: str
    description: str = ""
    size: int = 0
    """The size of its SKILL.md in bytes."""
    problem: str = ""
    double: bool = False
    """Whether the only problem is that another skill with its name comes first."""


class SkillFinder:
    """Finds and reads skills. Front matter is cached by the time and size of its file, since loading YAML takes long.

    Args:
        paths: gives access to the files below a folder.
        cache: the file of the cache.
    """

    def __init__(self, paths: Paths, cache: Path) -> None:
        self._paths = paths
        self._cache = cache
        self._left = _HEADS

    def find(self, roots: Sequence[SkillRoot]) -> list[Skill]:
        """All skills in these places, the nearest first; one with a problem is not used. Blocks."""
        kept = read_trusted_json(self._cache)
        heads = kept if isinstance(kept, dict) else {}
        fresh: dict[str, Any] = {}
        found: list[Skill] = []
        real: set[str] = set()
        for root in roots:
            names, more = skill_names(root)
            if more:
                found.append(_more(root, more))
            for name in names:
                folder = os.path.realpath(f"{root.folder}/{name}")
                if folder not in real:  # else one place has a link to the other
                    found.append(self._skill(root, name, folder, heads, fresh))
                    if not found[-1].problem:  # a project's link to a skill of the user replaces nothing
                        real.add(folder)
        if fresh != {file: heads.get(file) for file in fresh}:
            write_cache(self._cache, {**heads, **fresh} if len(heads) < 2 * len(fresh) + 1_000 else fresh)
        return list(_without_doubles(found))

    def _skill(self, root: SkillRoot, name: str, real: str, heads: Mapping[str, Any], fresh: dict[str, Any]) -> Skill:
        folder = f"{root.folder}/{name}"
        skill = Skill(name=one_line(name, 64), folder=folder, base=root.base or real, origin=root.origin)
        file = f"{folder}/{_FILE}"
        stamp = [_FORM, skill.base, *(stamp_of(file) or ())]
        entry = _kept(heads.get(file), stamp)
        if entry is None:
            if self._left <= 0:
                return skill.replace(problem="too many skills are new; the next session reads it")
            try:
                entry = {"stamp": stamp, **self._head(skill)}
            except ToolError as error:
                return skill.replace(problem=_reason(error))
        fresh[file] = entry
        return skill.replace(**{key: entry[key] for key in _OF_HEAD}, name=entry["name"] or skill.name)

    def _head(self, skill: Skill) -> dict[str, Any]:
        """The front matter in its cached form. Raises `ToolError` if its file cannot be read."""
        from ...util.yaml.head import load_head, split_head

        read = read_text(self._paths(Path(skill.base)), _below(skill, _FILE))
        found = {"name": "", "description": "", "problem": "", "size": read.size}
        try:
            head, _ = split_head(read.text)
            if head is None:
                raise ValueError("it has none between two lines of ---")
            self._left -= len(head)
            fields = load_head(head)
        except ValueError as error:
            return {**found, "problem": f"its front matter cannot be used: {one_line(str(error), 200)}"}
        name, description = fields.get("name", skill.name), fields.get("description")
        if not isinstance(name, str) or not re.fullmatch(_NAME, name):
            return {**found, "problem": "its name has other characters than letters, digits, hyphens and dots"}
        if not isinstance(description, str) or not seen(description).strip():
            return {**found, "name": name, "problem": "its front matter has no description"}
        return {**found, "name": name, "description": one_line(seen(description), _DESCRIPTION)}

    def read(self, skills: Sequence[Skill], wanted: str) -> str:
        """The text of a skill, or of another file in its folder: `pdf`, `pdf/references/forms.md`. Blocks.

        Raises:
            ToolError: it does not exist, or cannot be read.
        """
        name, _, file = wanted.strip().partition("/")
        usable = {skill.name: skill for skill in skills if not skill.problem}
        skill = usable.get(name) or next((one for key, one in usable.items() if key.lower() == name.lower()), None)
        if skill is None:
            broken = next((one for one in skills if one.name == name), None)
            if broken is not None:
                raise ToolError(
                    f"The skill {name} cannot be used: {broken.problem}. Do the task without it, and tell the user."
                )
            raise ToolError(unknown_name("skill", one_line(name, 64), usable))
        return self._text(skill, file or _FILE)

    def _text(self, skill: Skill, file: str) -> str:
        wanted = os.path.normpath(file)
        if os.path.isabs(wanted) or wanted.startswith(".."):
            raise ToolError(f"{file!r} is not in the skill {skill.name}. Name a file by its path in that folder.")
        paths = self._paths(Path(skill.base))
        try:
            found = read_text(paths, _below(skill, wanted))
        except ToolError as error:
            names = ", ".join(self._files(skill)) or "none"
            reason = _reason(error).partition("\n")[0]
            raise ToolError(f"{wanted} of the skill {skill.name} cannot be read: {reason}. Files: {names}.") from error
        if wanted != _FILE:
            return found.text
        from ...util.yaml.head import split_head

        body = split_head(found.text)[1].strip()
        others = self._files(skill)
        listed = f"\n\n[Other files of it: {', '.join(others)}. Read them as {skill.name}/FILE.]" if others else ""
        return f"[The skill {skill.name}, in {one_line(skill.folder)}]\n\n{body}{listed}"

    def _files(self, skill: Skill) -> list[str]:
        """Some of the other files of a skill."""
        found: list[str] = []
        for place, folders, names in islice(os.walk(skill.folder), _LISTED):
            below = os.path.relpath(place, skill.folder)
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            if below.count("/") + 2 > _DEEPEST:
                folders.clear()
            found += sorted(os.path.normpath(f"{below}/{name}") for name in names if not name.startswith("."))
        return [one_line(name, 200) for name in found if name != _FILE][:_LISTED]


def _more(root: SkillRoot, count: int) -> Skill:
    """The entry that represents the unchecked folders of a place."""
    problem = (
        "they are ignored: there are too many, and only the first ones by name are used. Keep fewer in this folder"
    )
    return Skill(name=f"({count:,} more)", folder=root.folder, base=root.folder, origin=root.origin, problem=problem)


def _kept(entry: Any, stamp: Sequence[object]) -> dict[str, Any] | None:
    """The cached front matter of a file in this state; None if there is none."""
    if not isinstance(entry, dict) or entry.get("stamp") != stamp:
        return None
    sound = all(isinstance(entry.get(key), kind) for key, kind in _OF_HEAD.items())
    return entry if sound and isinstance(entry.get("name"), str) else None


def _below(skill: Skill, file: str) -> str:
    """A file of a skill, relative to the folder that links do not lead out of."""
    inside = os.path.relpath(skill.folder, skill.base) if skill.folder.startswith(f"{skill.base}/") else "."
    return os.path.normpath(f"{inside}/{file}")


def _reason(error: ToolError) -> str:
    return str(error).splitlines()[0].removesuffix(".")


def _without_doubles(skills: Sequence[Skill]) -> Iterator[Skill]:
    """All skills; if several have the same name, the first one is used."""
    first: dict[str, Skill] = {}
    for skill in skills:
        other = first.get(skill.name.lower())
        if skill.problem or other is None:
            if not skill.problem:
                first[skill.name.lower()] = skill
            yield skill
        else:
            yield skill.replace(problem=f"{other.folder} has the same name and comes first", double=True)


def skill_cache(config: Config) -> Path:
    """The file of the cache."""
    return config.cache_folder / "skills.json"


def session_skills(parts: SessionParts) -> tuple[SkillFinder, list[Skill]]:
    """The skills that a session can use now, and the object that reads them. Blocks."""
    config, workspace = parts.config, parts.workspace
    folders = project_folders(workspace.root, config.home)
    roots = skill_roots(folders, config, parts.setup.data_folders)
    finder = SkillFinder(workspace.paths_of, skill_cache(config))
    return finder, finder.find(roots)


def catalogue(skills: Sequence[Skill], most: int) -> str:
    """The usable skills as text for the prompt; only names if the number of characters does not suffice."""
    usable = [skill for skill in skills if not skill.problem]
    if not usable:
        return ""
    lines: list[str] = []
    bare: list[str] = []
    room = most
    for skill in usable:
        line = f"- {skill.name}: {skill.description}"
        if not bare and len(line) < room:
            lines.append(line)
            room -= len(line) + 1
        elif len(skill.name) + 2 <= room:
            bare.append(skill.name)
            room -= len(skill.name) + 2
    if bare:
        lines.append(f"- Without a description here: {', '.join(bare)}")
    if more := len(usable) - len(lines) - max(len(bare) - 1, 0):
        lines.append(f"- {more:,} more do not fit here (limits.skills).")
    return "\n".join([_INTRODUCTION, *lines])
