"""The entry point that Marvin loads: the groups of coding tools, their modules imported on first use."""

from __future__ import annotations

from collections.abc import Iterable

from marvin_core import ToolGroup, hookimpl


@hookimpl
def marvin_register_tools() -> Iterable[ToolGroup]:
    """The groups files, git and shell."""
    return (
        _group("files", "read", "read_file"),
        _group("files", "edit", "create_file", "append_file", "write_file", "apply_patch"),
        _group("files", "search", "glob", "code_grep"),
        _group("files", "folders", "tree", "set_working_dir", "get_working_dir"),
        _group("git", "git", "git_status", "git_diff", "git_log", "git_commit"),
        _group("shell", "shell", "run_command", "jobs"),
    )


def _group(name: str, module: str, *tools: str) -> ToolGroup:
    return ToolGroup(name=name, module=f"{__package__}.{module}", tools=tools, phrases="phrases.toml")
