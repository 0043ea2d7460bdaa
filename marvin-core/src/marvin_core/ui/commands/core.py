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
        _command("model [NAME]", "the models; with a name, go on with that one", settings.model),
        _command("login [NAME]", "set the key of a model service; it is not shown", login.login),
        _command("logout NAME", "forget the key that Marvin keeps for a service", login.logout),
        _command("thinking [LEVEL]", "how hard the model thinks: off, low, medium or high", settings.thinking),
        _command("pro PROMPT", "send one prompt to the best model that is set up", settings.pro),
        _command("code [on|off]", "coding mode", settings.code),
        _command(
            "mode [TOOLS]", "which tools are offered: all, coding, readonly, surf, lockin, or names", settings.mode
        ),
        _command("permissions [MODE]", "how much is asked before calls run: ask, edit, auto, readonly", permissions),
        _command("sessions", "the newest sessions of this folder", sessions.sessions),
        _command("resume [ID]", "go on with an earlier session; without an id, pick or look for one", sessions.resume),
        _command("clear", "begin an empty conversation; the old one stays on disk", sessions.clear),
        _command("compact [TOKENS]", "have a summary take the place of older messages", settings.compact),
        _command("summarize [TOKENS]", "the same as compact", settings.compact),
        _command("fork", "go on in a copy of this session", sessions.fork),
        _command("rename TITLE", "give this session another title", sessions.rename),
        _command("tree [NUMBER]", "the branches of this session; with a number, go on from that one", sessions.tree),
        _command("export [md|html|json] [FILE]", "write what was said to a file", sessions.export),
        _command("copy [N]", "put the last answer on the clipboard, or the Nth from the end", sessions.copy),
        _command("diff", "what this session changed in files", sessions.diff),
        _command("steer TEXT", "have the model read this in the middle of its answer", autonomy.steer),
        _command("auto [on|off]", "auto-continue: go on until the task is finished", autonomy.auto),
        _command("play BUDGET", "let the agent explore on its own for so many USD, or --turns N", autonomy.play),
        _command("undo [N]", "take back what tools did, the newest first; /undo list lists it", undo.undo),
        _command(
            "rewind [NUMBER] [files|conversation|both]",
            "go back to before a prompt; without one, list them",
            undo.rewind,
        ),
        _command("retry", "ask the model for its last answer again", _retry),
        _command("jobs [stop ID]", "what runs in the background; stop one", _jobs),
        _command("preferences [edit]", "what this profile prefers; change it in your editor", settings.preferences),
        _command("profiles [[new] NAME]", "the profiles; with a name, switch to that one", settings.profiles),
        _command("saved", "the places that this profile saved", settings.saved),
        _command("context", "what the next request holds, and what waits outside of it", settings.context),
        _command("theme [NAME]", "the themes; with a name, draw with that one from now on", theme.theme),
        _command("raw [on|off]", "the last answer as it was typed; on and off: all that follow", _raw),
        _command("mcp", "the servers with tools (MCP), and what they bring", _no_servers),
        _command("usage", "tokens, cost and tool calls of this session and of all", _usage),
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
        return "Nothing runs in the background."
    return "\n".join(
        f"{job.id}  {'running' if job.running else 'ended'}  {one_line(job.command, _SHOWN)}  ({job.log})"
        for job in jobs
    )


async def _no_servers(session: SessionControl, words: str) -> str:
    """What `/mcp` says where no server is set up: with one, its own command takes the place of this."""
    return f"There are no servers. Add one in a shell: `{command_name()} mcp add NAME COMMAND...` or `--url URL`."


async def _raw(session: SessionControl, words: str) -> str:
    return "Nothing is drawn in this interface: answers are shown as they were typed."


async def _usage(session: SessionControl, words: str) -> str:
    from ...usage.text import usage_text

    return usage_text(await in_thread(lambda: session.usage(lifetime=True)))
