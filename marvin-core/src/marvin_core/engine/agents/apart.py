"""Starts a Marvin that outlives this one: with the models of this session, and without its limits."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ...api.agents import ApartTask
from ...api.config import Config
from ...api.errors import MarvinError, ToolError
from ...api.models import AgentModel
from ...api.processes import Job
from ...config.tiers import TIERS
from ...guard.processes.apart import ApartJobs, ApartOrder
from ...guard.processes.tree import MARKER
from ...guard.trust import TrustStore
from ...util.threads import in_thread
from .command_line import NOT_INHERITED, tier_flags
from .host import AgentHost

_OF_THIS_RUN = (
    *("MARVIN_DEPTH", "MARVIN_LEDGER", "MARVIN_MAX_COST", "MARVIN_MODEL", "MARVIN_SUBAGENT_LOG", "MARVIN_TICKET"),
    MARKER,
)
"""Variables that apply to this run only."""


async def start_apart(host: AgentHost, task: ApartTask) -> Job:
    """Start it, as `Agents.start_apart` does."""
    config = host.config
    if config.depth:
        raise ToolError(
            "An agent may not start anything that continues after it ends. Say in your answer what should be started."
        )
    if host.workspace.playing:
        raise ToolError("Play mode does not start background processes.")
    if config.read_only or config.writable_files is not None:
        raise ToolError("A read-only agent may not start something that writes.")
    given = task.root or host.workspace.root
    models, root = await in_thread(lambda: (_models(host), Path(os.path.realpath(given))))
    trusts = await in_thread(lambda: _trusts(config, root, task.folder))
    order = ApartOrder(
        name=task.name,
        title=task.title,
        root=root,
        argv=_argv(host, task, models[0], trusts=trusts),
        environment=_environment(host, models),
        most=task.most,
    )
    return await ApartJobs.of(config).start(order)


def _models(host: AgentHost) -> Sequence[AgentModel]:
    """The model of this session, followed by the available models of the tiers."""
    active = host.model
    try:
        found = [active.source.for_agent("", active.provider)]
    except MarvinError as error:
        raise ToolError(f"Nothing was started: {str(error) or 'no model is configured.'}") from error
    for tier in TIERS:
        with suppress(MarvinError):
            found.append(active.source.for_agent(tier, active.provider))
    return found


def _trusts(config: Config, root: Path, folder: Path) -> bool:
    """Whether a person trusts the extensions of the session's folder, and its target folder has the same ones."""
    store = TrustStore(config)
    trust, there = store.look(root), store.look(folder)
    return trust.trusted and there.digest == trust.digest


def _argv(host: AgentHost, task: ApartTask, model: AgentModel, *, trusts: bool) -> list[str]:
    config = host.config
    ceilings = [one for one in (task.max_cost, config.max_cost) if one is not None]
    flags = [
        f"--working-dir={task.folder}",
        f"--provider={model.provider}",
        f"--model={model.model}",
        *tier_flags(config),
        *(["--trust-project"] if trusts else []),
        *([f"--ntfy={config.ntfy}"] if config.ntfy else []),
        *([f"--max-cost={min(ceilings):.6f}"] if ceilings else []),
    ]
    return [sys.executable, "-P", "-m", "marvin_core", *flags, *task.words]


def _environment(host: AgentHost, models: Sequence[AgentModel]) -> dict[str, str]:
    """The environment of a command, without the variables of this run, and with the keys of the models."""
    left_out = {*NOT_INHERITED, *_OF_THIS_RUN}
    environment = {name: value for name, value in host.environment.items() if name not in left_out}
    needed = (*(name for model in models for name in model.variables), *host.secrets.of_agents)
    for variable in dict.fromkeys(needed):
        if key := host.secrets.given(variable).reveal():
            environment[variable] = key
    return environment
