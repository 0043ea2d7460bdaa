"""The entry point that Marvin loads: the groups of coding tools, their modules imported on first use."""

from __future__ import annotations

from collections.abc import Iterable

from marvin_core import ToolGroup, hookimpl

_LOOK = "Look before you write: use tree, glob, code_grep and read_file with line ranges."
_SECTIONS = "create_file with the first part, then append_file"
_WRITE = f"""
Change existing files with apply_patch: old_str must occur exactly once; include enough lines around it.
Write a large file in sections: {_SECTIONS} for each further one. Arguments that are cut off are not run.
"""
_RUN = "Run the tests or the program after a change, and read what they print."


@hookimpl
def marvin_register_tools() -> Iterable[ToolGroup]:
    """The groups files, git and shell."""
    return (
        ToolGroup(name="files", module=".files.read", tools=("read_file",), sets=("coding",), guidance=_LOOK),
        ToolGroup(
            name="files",
            module=".files.edit",
            tools=("create_file", "append_file", "write_file", "apply_patch"),
            sets=("coding",),
            too_long=f"Write large content in sections: {_SECTIONS} with one further part in each call.",
            guidance=_WRITE,
        ),
        ToolGroup(name="files", module=".files.search", tools=("glob", "code_grep"), sets=("coding",)),
        ToolGroup(
            name="files",
            module=".files.folders",
            tools=("tree", "set_working_dir", "get_working_dir"),
            sets=("coding",),
        ),
        ToolGroup(
            name="git",
            module=".git.repository",
            tools=("git_status", "git_diff", "git_log", "git_commit"),
            sets=("coding", "surf"),
        ),
        ToolGroup(
            name="shell",
            module=".shell.commands",
            tools=("run_command", "jobs"),
            sets=("coding",),
            too_long=f"Write a long script into a file in sections ({_SECTIONS} for each further part), and run that.",
            guidance=_RUN,
        ),
    )
