"""Agents that Markdown files define: a head with name, description, tools and model, followed by instructions."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...api.agents import AgentTask
from ...api.errors import ToolError
from ...api.record import Record
from ...config.tiers import ALIASES, TIERS
from ...guard.files.no_links import READ, opened_folder
from ...guard.trust import TrustStore
from ...util.text import one_line, unknown_name

if TYPE_CHECKING:
    from ...api.config import Config

KINDS = ("build", "research")
"""The built-in kinds of agents."""
PROJECT, USER = "project", "user"
"""The origin of an agent that does not come from a pack."""
_PROJECT_FOLDER, _FOLDER = ".marvin/agents", "agents"
_RESERVED = frozenset({"auto", *KINDS, *TIERS, *ALIASES})
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_LARGEST = 100_000
"""The maximum size of a file in bytes."""
_MOST = 200
"""The maximum number of files read in one folder."""
_DESCRIPTION = 300


class AgentDefinition(Record):
    """An agent that a file defines. An agent with a problem is not used."""

    name: str
    origin: str
    """`PROJECT`, `USER` or the name of a pack."""
    file: str
    description: str = ""
    tools: str = ""
    """Its tools, in the syntax of `--tools`; empty for the default tools of agents."""
    model: str = "auto"
    read_only: bool = False
    instructions: str = ""
    problem: str = ""


def find_definitions(config: Config, root: Path, packs: Mapping[str, str]) -> list[AgentDefinition]:
    """All agents that files define, in order of precedence: of the project, the user, then packs. Blocks.

    Those of an untrusted project are listed with that as their problem, and not read.

    Args:
        root: the working directory.
        packs: the folders of packs, by their names.
    """
    found = list(_of_project(config, root))
    found += _read_all(config.config_folder, _FOLDER, USER)
    for name, folder in packs.items():
        found += _read_all(Path(folder), _FOLDER, name)
    return list(_without_doubles(found))


def _of_project(config: Config, root: Path) -> Iterator[AgentDefinition]:
    if not os.path.isdir(root / _PROJECT_FOLDER):
        return
    store = TrustStore(config)
    trust, why = store.look(root), ""
    if trust.trusted:
        found = _read_all(root, _PROJECT_FOLDER, PROJECT)
        if store.look(root).digest == trust.digest:  # exactly the content that was checked
            yield from found
            return
        why = "it was changed just now"
    problem = f"the project is not trusted: {why or trust.why}"
    for name in _names(root, _PROJECT_FOLDER):
        file = str(root / _PROJECT_FOLDER / name)
        yield AgentDefinition(name=_shown(name), origin=PROJECT, file=file, problem=problem)


def _read_all(base: Path, folder: str, origin: str) -> list[AgentDefinition]:
    return [_read(base, folder, name, origin) for name in _names(base, folder)]


def _names(base: Path, folder: str) -> list[str]:
    try:
        with opened_folder(base, folder) as opened:
            return sorted(name for name in os.listdir(opened) if name.endswith(".md"))[:_MOST]
    except OSError:
        return []


def _read(base: Path, folder: str, name: str, origin: str) -> AgentDefinition:
    known = AgentDefinition(name=_shown(name), origin=origin, file=str(base / folder / name))
    try:
        with opened_folder(base, folder) as opened, os.fdopen(os.open(name, READ, dir_fd=opened), "rb") as file:
            data = file.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise ValueError(f"it has more than {_LARGEST:,} bytes")
        return _parsed(known, data.decode("utf-8"))
    except OSError as error:
        return known.replace(problem=f"it cannot be read: {error.strerror}")
    except UnicodeDecodeError:
        return known.replace(problem="it is not UTF-8")
    except ValueError as error:
        return known.replace(problem=one_line(str(error), _DESCRIPTION))


def _parsed(known: AgentDefinition, text: str) -> AgentDefinition:
    """Raises `ValueError` if the text does not define an agent."""
    from ...util.yaml.head import load_head, split_head

    head, body = split_head(text)
    if head is None:
        raise ValueError("it has no front matter between two lines of ---")
    fields = load_head(head)
    name = _text(fields, "name") or known.name
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"the name {one_line(name, 80)!r} may contain only lower-case letters, digits, hyphens and underscores"
        )
    if name in _RESERVED:
        raise ValueError(f"{name} is a reserved name")
    if not body.strip():
        raise ValueError("there are no instructions below its front matter")
    read_only = fields.get("read-only", False)
    if not isinstance(read_only, bool):
        raise ValueError("read-only must be true or false")
    return known.replace(
        name=name,
        description=one_line(_text(fields, "description"), _DESCRIPTION),
        tools=_list(fields, "tools"),
        model=_text(fields, "model") or "auto",
        read_only=read_only,
        instructions=body.strip(),
    )


def _text(fields: Mapping[str, Any], key: str) -> str:
    value = fields.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"{key} is not text")
    return value.strip()


def _list(fields: Mapping[str, Any], key: str) -> str:
    """Names, given as a list or as one comma-separated text."""
    value = fields.get(key)
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return ",".join(name.strip() for name in value)
    return ",".join(name.strip() for name in _text(fields, key).split(",") if name.strip())


def _shown(file: str) -> str:
    return one_line(file.removesuffix(".md"), 64)


def _without_doubles(found: Sequence[AgentDefinition]) -> Iterator[AgentDefinition]:
    """All agents; of several with one name, the first applies."""
    first: dict[str, AgentDefinition] = {}
    for one in found:
        other = None if one.problem else first.get(one.name)
        if other is not None:
            yield one.replace(problem=f"{other.file} has the same name and comes first")
            continue
        if not one.problem:
            first[one.name] = one
        yield one


def is_defined(task: AgentTask) -> bool:
    """Whether a task may refer to an agent from a file, so that files must be searched."""
    return task.kind not in KINDS or task.model not in _RESERVED


def as_defined(task: AgentTask, definitions: Sequence[AgentDefinition]) -> AgentTask:
    """The task with the definition of its agent. The agent is given as the kind, or in place of a model.

    Raises:
        ToolError: there is no such agent, or its file is not a valid definition.
    """
    wanted = task.kind if task.kind not in KINDS else task.model
    usable = {one.name: one for one in definitions if not one.problem}
    found = usable.get(wanted)
    if found is None:
        broken = next((one for one in definitions if one.name == wanted), None)
        if broken is not None:
            raise ToolError(f"The agent {wanted} cannot be used: {broken.problem} ({broken.file}). Tell the user.")
        if task.kind not in KINDS:
            raise ToolError(unknown_name("agent", one_line(wanted, 64), [*KINDS, *usable]))
        return task
    model = found.model if task.model in ("auto", found.name) else task.model
    return task.replace(
        kind=found.name,
        model=model,
        tools=task.tools or found.tools,
        read_only=task.read_only or found.read_only,
        instructions="\n\n".join(filter(None, (found.instructions, task.instructions))),
    )
