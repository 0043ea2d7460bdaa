"""The slash commands of the core; interfaces find them by name, beside those of packs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from ...api.errors import UsageError
from ...api.session import Command, SessionControl
from ...config.program import command_name
from ...util.text import one_line
from ...util.threads import in_thread
from . import autonomy, login, sessions, settings, theme, undo
from .permissions import permissions

_SHOWN = 60

_Run: TypeAlias = Callable[[SessionControl, str], Awaitable[str | None]]


def core_commands() -> list[Command]:
    """The commands of the core."""
    return [
        _command("model [NAME]", "list the models; with a name, switch to that one", settings.model),
        _command("login [NAME]", "store the key of a model service; your input is hidden", login.login),
        _command("logout NAME", "delete the stored key of a model service", login.logout),
        _command("thinking [LEVEL]", "set how much the model thinks: off, low, medium or high", settings.thinking),
        _command("pro PROMPT", "send one prompt to the best model that is set up", settings.pro),
        _command("code [on|off]", "coding mode", settings.code),
        _command("mode [TOOLS]", "choose the tools: all, coding, readonly, surf, lockin, or names", settings.mode),
        _command(
            "permissions [MODE]", "which calls need approval before they run: ask, edit, auto, readonly", permissions
        ),
        _command("sessions", "list the newest sessions of this folder", sessions.sessions),
        _command(
            "resume [ID]", "continue an earlier session; without an id, choose or search for one", sessions.resume
        ),
        _command("clear", "start an empty conversation; the old one stays on disk", sessions.clear),
        _command("compact [TOKENS]", "replace older messages by a summary", settings.compact),
        _command("summarize [TOKENS]", "the same as compact", settings.compact),
        _command("fork", "continue in a copy of this session", sessions.fork),
        _command("rename TITLE", "rename this session", sessions.rename),
        _command(
            "tree [NUMBER]", "list the branches of this session; with a number, continue from that one", sessions.tree
        ),
        _command("export [md|html|json] [FILE]", "write the conversation to a file", sessions.export),
        _command("copy [N]", "copy the last answer to the clipboard, or the Nth from the end", sessions.copy),
        _command("diff", "show what this session changed in files", sessions.diff),
        _command("steer TEXT", "send a message that the model reads while it answers", autonomy.steer),
        _command("auto [on|off]", "auto-continue: continue until the task is finished", autonomy.auto),
        _command(
            "play BUDGET", "let the agent explore on its own within a budget in USD, or for --turns N", autonomy.play
        ),
        _command("undo [N]", "undo the newest changes of tools; /undo list lists them", undo.undo),
        _command(
            "rewind [NUMBER] [files|conversation|both]",
            "go back to before a prompt; without a number, list the prompts",
            undo.rewind,
        ),
        _command("retry", "ask the model for another answer to the last prompt", _retry),
        _command("jobs [stop ID]", "list the background jobs, or stop one", _jobs),
        _command("preferences [edit]", "show the preferences of this profile, or edit them", settings.preferences),
        _command("profiles [[new] NAME]", "list the profiles; with a name, switch to that one", settings.profiles),
        _command("saved", "list the saved places of this profile", settings.saved),
        _command("context", "show what the next request contains, and which tools are hidden", settings.context),
        _command("theme [NAME]", "list the themes; with a name, switch to that one", theme.theme),
        _command("raw [on|off]", "show the source of the last answer; on or off: of all following answers", _raw),
        _command("mcp", "list the servers with tools (MCP), and what they bring", _no_servers),
        _command("usage", "show tokens, cost and tool calls, of this session and in total", _usage),
    ]


def _command(usage: str, text: str, run: _Run) -> Command:
    name, _, takes = usage.partition(" ")
    return Command(name=name, help=text, run=run, takes=takes)


async def _retry(session: SessionControl, words: str) -> None:
    (await session.retry()).check()


async def _jobs(session: SessionControl, words: str) -> str:
    action, _, job_id = words.partition(" ")
    if action == "stop" and job_id:
        job = await session.processes.stop_job(job_id.strip())
        return f"{job.id} was stopped. Its output is in {job.log}"
    if words:
        raise UsageError("Use /jobs, or /jobs stop ID.")
    jobs = session.processes.job_list()
    if not jobs:
        return "There are no background jobs."
    return "\n".join(
        f"{job.id}  {'running' if job.running else 'ended'}  {one_line(job.command, _SHOWN)}  ({job.log})"
        for job in jobs
    )


async def _no_servers(session: SessionControl, words: str) -> str:
    """The text of `/mcp` without configured servers; with one, the server package's command replaces it."""
    return f"There are no servers. Add one in a shell: `{command_name()} mcp add NAME COMMAND...` or `--url URL`."


async def _raw(session: SessionControl, words: str) -> str:
    return "This interface does not render Markdown: it always shows the source of answers."


async def _usage(session: SessionControl, words: str) -> str:
    from ...usage.text import usage_text

    return usage_text(await in_thread(lambda: session.usage(lifetime=True)))
