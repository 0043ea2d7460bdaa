"""The command line and the complete environment of an agent. A test compares both name by name."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...api.agents import AgentTask
from ...api.config import Config
from ...api.errors import ToolError
from ...api.models import AgentModel
from ...api.record import Record
from ...config.tiers import ALIASES, TIERS

if TYPE_CHECKING:
    from ...config.secrets import Secrets

NOT_INHERITED = ("PYTHONPATH", "MARVIN_LIFELINE")
"""If PYTHONPATH contains a folder of the project, a file in it could be imported instead of a library."""


class AgentPlace(Record):
    """The folder of an agent, and the files that are made for it."""

    folder: Path
    prompt_file: Path
    log: Path
    environment: tuple[tuple[str, str], ...] = ()
    """The variables that its folder needs."""
    is_trusted: bool = False
    """Whether the folder's extensions may be loaded, although it is not the working directory of the session."""


def argv_of(task: AgentTask, model: AgentModel, place: AgentPlace, config: Config, tools: str) -> list[str]:
    """The command line of an agent. Each value is joined to its flag, so that none is parsed as another flag.

    Raises:
        ToolError: if the name of a model would be parsed as something else.
    """
    if "=" in model.model or model.model.startswith("-"):  # it would set a tier, or Python 3.11 would drop it
        raise ToolError(f"The model {model.model!r} cannot be passed to an agent: its name looks like a flag.")
    flags = [
        "--non-interactive",
        "--output-format=stream-json",
        f"--working-dir={place.folder}",
        f"--provider={model.provider}",
        f"--model={model.model}",
        *tier_flags(config),
        *([f"--thinking={level}"] if (level := _thinking(task, config)) else []),
        *([f"--tools={tools}"] if tools else []),
        *(["--trust-project"] if _trusts(place, config) else []),
        *([f"--record={config.record}"] if config.record is not None else []),
        *(["--design-first", f"--from={task.phase}", "--yes"] if task.phase else []),
        f"--prompt-file={place.prompt_file}",
    ]
    return [sys.executable, "-P", "-m", "marvin_core", *flags]


def _trusts(place: AgentPlace, config: Config) -> bool:
    return place.is_trusted or (config.trust_project and place.folder == config.working_dir)


def tier_flags(config: Config) -> list[str]:
    """The models of tiers as set for this run; a flag may have set them, which an agent does not get."""
    set_here = {name: model for name, model in config.tiers.items() if model != TIERS[name].model}
    return [f"--model={name}={model}" for name, model in set_here.items()]


def _thinking(task: AgentTask, config: Config) -> str:
    tier = ALIASES.get(task.model, task.model)
    if tier in config.tier_thinking:
        return config.tier_thinking[tier]
    return config.thinking if config.thinking_from == "flag" and task.model in ("", "auto") else ""


def environment_of(
    task: AgentTask, model: AgentModel, place: AgentPlace, base: Mapping[str, str], secrets: Secrets
) -> dict[str, str]:
    """The complete environment of an agent: that of a command, with the limits of this run, and its own variables.

    Args:
        base: the environment of commands. It contains no secret, and its MARVIN_DEPTH is one higher.
        secrets: the secrets, of which the agent gets the key of its model's service and those for all agents.
    """
    environment = {name: value for name, value in base.items() if name not in NOT_INHERITED}
    environment["MARVIN_MODEL"] = model.model
    environment["MARVIN_SUBAGENT_LOG"] = str(place.log)
    environment.update(place.environment)
    if task.ticket:
        environment["MARVIN_TICKET"] = task.ticket
    if task.read_only:
        environment["MARVIN_READONLY"] = "1"
    if task.writable_files is not None:
        environment["MARVIN_WRITABLE_FILES"] = _writable(task.writable_files, place.folder, base)
    for variable in (*model.variables, *secrets.of_agents):
        if key := secrets.given(variable).reveal():
            environment[variable] = key
    return environment


def _writable(files: Sequence[str], folder: Path, base: Mapping[str, str]) -> str:
    """The files that an agent may write, without those that its parent may not. A single comma names no file at all."""
    wanted = [os.path.join(folder, file) for file in files]
    if "MARVIN_WRITABLE_FILES" in base:
        allowed = {os.path.normpath(file) for file in base["MARVIN_WRITABLE_FILES"].split(",") if file}
        wanted = [file for file in wanted if os.path.normpath(file) in allowed]
    return ",".join(wanted) or ","
