"""The entry point that Marvin loads: the groups of coding tools, their modules imported on first use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from marvin_core import ToolGroup, hookimpl

if TYPE_CHECKING:
    import typer

    from marvin_core import Command, PackSettings, SessionControl

_READ = "Read what you rely on with read_file; large files in ranges of lines."
_SEARCH = "Find relevant code with code_grep and glob instead of reading many files."
_SECTIONS = "create_file with the first part, then append_file"
_WRITE = f"""
Change existing files with apply_patch: old_str must occur exactly once; include enough lines around it.
Put changes that belong together into one patch. write_file replaces a whole file, which you must have read before.
Write a large file in sections of 2,000 to 4,000 words, below 15 KB: {_SECTIONS} for each further one. \
A call with cut-off arguments is not run.
"""
_RUN = "Run the tests or the program after a change, and read what they print."

_AGENTS = "Give self-contained work to agents: tell each agent all that it needs to know, and check its result."

_GROUPS = (
    ToolGroup(
        name="files",
        module=".files.read",
        tools=("read_file",),
        sets=("coding",),
        guidance=_READ,
        in_code=("read_file",),
        in_chat=("read_file",),
    ),
    ToolGroup(
        name="files",
        module=".files.edit",
        tools=("create_file", "append_file", "write_file", "apply_patch"),
        sets=("coding",),
        too_long=f"Write large content in sections: {_SECTIONS} with one further part in each call.",
        guidance=_WRITE,
        in_code=("apply_patch", "create_file", "write_file"),
        in_chat=("create_file",),
    ),
    ToolGroup(
        name="files",
        module=".files.search",
        tools=("glob", "code_grep"),
        sets=("coding",),
        guidance=_SEARCH,
        in_code=("code_grep", "glob"),
    ),
    ToolGroup(
        name="files",
        module=".files.folders",
        tools=("tree", "set_working_dir", "get_working_dir"),
        sets=("coding",),
    ),
    ToolGroup(
        name="git",
        module=".git.inspecting",
        tools=("git_status", "git_diff", "git_log", "git_branch"),
        in_code=("git_diff", "git_status"),
        sets=("coding", "surf"),
    ),
    ToolGroup(name="git", module=".git.history", tools=("git_show", "git_blame"), sets=("coding", "surf")),
    ToolGroup(name="git", module=".git.committing", tools=("git_commit",), sets=("coding", "surf")),
    ToolGroup(name="git", module=".git.switching", tools=("git_checkout",), sets=("coding", "surf")),
    ToolGroup(
        name="shell",
        module=".shell.commands",
        tools=("run_command",),
        sets=("coding",),
        too_long=f"Write a long script into a file in sections ({_SECTIONS} for each further part), and run that.",
        guidance=_RUN,
        in_code=("run_command",),
        in_chat=("run_command",),
    ),
    ToolGroup(name="shell", module=".shell.jobs", tools=("jobs",), sets=("coding",)),
    ToolGroup(name="shell", module=".shell.installing", tools=("install_packages",), sets=("coding",)),
    ToolGroup(name="tickets", module=".tickets.lines", tools=("tk",), sets=("coding",)),
    ToolGroup(name="github", module=".github.search", tools=("github_search",), sets=("surf", "lockin")),
    ToolGroup(name="github", module=".github.clone", tools=("github_clone",), sets=("surf", "lockin")),
    ToolGroup(
        name="github",
        module=".github.reading",
        tools=("github_read_file", "github_grep"),
        sets=("surf", "lockin"),
    ),
    ToolGroup(name="agents", module=".agents.plan", tools=("plan",), sets=("coding",), in_code=("plan",)),
    ToolGroup(
        name="agents",
        module=".agents.launch",
        tools=("launch_agent", "launch_research_agent"),
        sets=("coding",),
        guidance=_AGENTS,
        in_code=("launch_agent",),
    ),
)


@hookimpl
def marvin_register_tools() -> Iterable[ToolGroup]:
    """The groups files, git, shell, tickets, agents and github."""
    return _GROUPS


@hookimpl
def marvin_register_settings() -> PackSettings:
    """How language servers are used."""
    from marvin_core import PackSettings

    return PackSettings(model=".settings:CodingSettings")


async def _diagnostics(session: SessionControl, text: str) -> str:
    from .lsp.commands import diagnostics

    return await diagnostics(session, text)


@hookimpl
def marvin_register_commands() -> Iterable[Command]:
    """The command `diagnostics`."""
    from marvin_core import Command

    return (Command(name="diagnostics", help="list the language servers and their diagnostics", run=_diagnostics),)


@hookimpl
def marvin_extend_cli(app: typer.Typer) -> None:
    """Add `marvin lsp`."""
    from .lsp.commands import group

    app.add_typer(group(), name="lsp")
