"""The sub-command `marvin agents`: the agents that Markdown files define, and the problems of such files."""

from __future__ import annotations

import typer

from ...engine.agents.definitions import AgentDefinition, find_definitions
from ..run import CommandContext, group


def extend(app: typer.Typer) -> None:
    """Add the sub-command."""
    agents = group(
        "Agents that are defined by files: in the project, in your configuration folder and in packs.", list_agents
    )
    agents.command("list")(list_agents)
    app.add_typer(agents, name="agents")


def list_agents(context: typer.Context) -> None:
    """List the agents that are defined by files. A file that is not used is listed with the reason."""
    run: CommandContext = context.obj
    config = run.config
    found = find_definitions(config, config.working_dir, run.app().plugins.data_folders)
    if not found:
        run.write(
            f"No agent is defined. Create {config.config_folder / 'agents'}/NAME.md or .marvin/agents/NAME.md to "
            "define one.\n"
        )
    for one in found:
        run.write(_shown(one))


def _shown(one: AgentDefinition) -> str:
    if one.problem:
        return f"{one.name}  ({one.origin}) not used: {one.problem}\n  {one.file}\n"
    bound = [f"tools {one.tools}"] if one.tools else []
    bound += [f"model {one.model}"] if one.model != "auto" else []
    bound += ["reads only"] if one.read_only else []
    described = f" {one.description}" if one.description else ""
    return f"{one.name}  ({one.origin}){described}\n  {'; '.join([*bound, one.file])}\n"
