"""Restrictions of sub-agents that apply to all tools, and the environment that passes them on to programs."""

from __future__ import annotations

import os

from ...api.config import Config
from ...api.tools import ToolSpec


def closed_to(spec: ToolSpec, config: Config) -> str:
    """Why an agent never gets a tool, to complete "not available here: ..."; empty if it may.

    A tool that declares no access counts as one that writes and runs programs.
    """
    if config.read_only and spec.changes and "readonly" not in spec.passes:
        return "this agent is read-only (MARVIN_READONLY)"
    if config.writable_files is not None:
        if spec.changes and ("writable-files" not in spec.passes or "exec" in spec.access):
            return "this agent may only edit its files (MARVIN_WRITABLE_FILES)"
        if spec.interactive:
            return "only in a chat"
    if spec.interactive and (config.non_interactive or config.read_only or config.depth):
        return "only in a chat"
    return ""


def needs_ticket(config: Config) -> bool:
    """Whether writing needs a ticket first; an agent that may write next to nothing needs none."""
    return bool(config.ticket) and not config.read_only and config.writable_files is None


def child_variables(config: Config, *, attended: bool) -> dict[str, str]:
    """Variables that apply the limits of this Marvin to one that a command starts, one level deeper.

    Flags of this run take precedence over its variables. A command can unset them, so they limit only a Marvin that is
    started as usual. The sandbox of the command applies in any case.

    Args:
        attended: whether a person answers questions here; none does in the child.
    """
    found = {
        "MARVIN_DEPTH": str(config.depth + 1),
        "MARVIN_SANDBOX": config.sandbox,
        "MARVIN_ON_ASK": config.on_ask_text,
        "MARVIN_TOOL_SEARCH": config.tool_search,
    }
    if config.network is not None:
        found["MARVIN_NETWORK"] = config.network.as_text()
    elif attended:  # as in a chat, while a non-interactive run would reach everything
        found["MARVIN_NETWORK"] = "loopback"
    if config.permission_mode is not None:
        found["MARVIN_PERMISSION_MODE"] = config.permission_mode
    if config.read_only:
        found["MARVIN_READONLY"] = "1"
    if config.writable_files is not None:
        # Absolute, since the child may have another working directory; a comma alone names no file at all.
        found["MARVIN_WRITABLE_FILES"] = (
            ",".join(os.path.join(config.working_dir, file) for file in config.writable_files) or ","
        )
    if config.ticket:
        found["MARVIN_TICKET"] = config.ticket
    if config.data_folder == config.config_folder / "data":  # MARVIN_HOME may be a relative path
        found["MARVIN_HOME"] = str(config.config_folder)
    if config.subagent_log is not None:
        found["MARVIN_SUBAGENT_LOG"] = str(config.subagent_log)
    return found
