"""The slash commands of the core; interfaces find them by name, beside those of packs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from ...api.errors import UsageError
from ...api.session import Command, SessionControl
from ...config.program import command_name
from ...util.text import counted, local_time, one_line
from ...util.threads import in_thread
from . import autonomy, login, settings, undo
from .permissions import permissions

if TYPE_CHECKING:
    from ...api.controls import Branch, SessionEntry

_LISTED = 20
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
        _command("sessions", "the newest sessions of this folder", _sessions),
        _command("resume ID", "go on with an earlier session", _resume),
        _command("clear", "begin an empty conversation; the old one stays on disk", _clear),
        _command("compact [TOKENS]", "have a summary take the place of older messages", settings.compact),
        _command("summarize [TOKENS]", "the same as compact", settings.compact),
        _command("fork", "go on in a copy of this session", _fork),
        _command("tree [NUMBER]", "the branches of this session; with a number, go on from that one", _tree),
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
        _command("preferences", "what this profile prefers", settings.preferences),
        _command("profiles [[new] NAME]", "the profiles; with a name, switch to that one", settings.profiles),
        _command("saved", "the places that this profile saved", settings.saved),
        _command("context", "what the next request holds, and what waits outside of it", settings.context),
        _command("raw [on|off]", "the last answer as it was typed; on and off: all that follow", _raw),
        _command("usage", "tokens, cost and tool calls of this session and of all", _usage),
    ]


def _command(usage: str, text: str, run: _Run) -> Command:
    name, _, takes = usage.partition(" ")
    return Command(name=name, help=text, run=run, takes=takes)


async def _sessions(session: SessionControl, words: str) -> str:
    found = await in_thread(lambda: session.sessions.recent(_LISTED))
    if not found:
        return "There are no sessions of this folder yet."
    lines = [_entry_line(entry, session.id) for entry in found]
    return "\n".join(
        [*lines, f"/resume ID goes on with one; in a shell, `{command_name()} sessions` lists those of all folders."]
    )


def _entry_line(entry: SessionEntry, current: str) -> str:
    mark = "*" if entry.id == current else " "
    count = counted(entry.messages, "message")
    return f"{mark} {entry.id}  {local_time(entry.time)}  {one_line(entry.title, _SHOWN)} ({count})"


async def _resume(session: SessionControl, words: str) -> str:
    if not words:
        return "Which one? /resume ID, where the beginning of an id is enough; /sessions lists them."
    count = await session.sessions.resume(words)
    return f"Going on with {session.id} ({counted(count, 'message')})."


async def _clear(session: SessionControl, words: str) -> str:
    earlier = session.id
    session.sessions.clear()
    return "The conversation is empty." + (f" The earlier one is kept: /resume {earlier}" if earlier else "")


async def _fork(session: SessionControl, words: str) -> str:
    earlier = session.id
    return f"Going on in the copy {session.sessions.fork()}. The original stays as it is: /resume {earlier}"


async def _tree(session: SessionControl, words: str) -> str:
    found = await in_thread(session.sessions.branches)
    if words:
        if not words.isdecimal() or not 1 <= int(words) <= len(found):
            raise UsageError(f"There is no branch {words!r}. /tree lists them by number.")
        count = await session.sessions.go_to(found[int(words) - 1])
        return f"Going on from branch {int(words)} ({counted(count, 'message')})."
    lines = [_branch_line(number, branch) for number, branch in enumerate(found, 1)]
    if len(found) == 1:
        return f"{lines[0]}\nThis session has one branch. /retry makes another one."
    return "\n".join([*lines, "/tree NUMBER goes on from another branch."])


def _branch_line(number: int, branch: Branch) -> str:
    mark = "*" if branch.current else " "
    shared = "" if branch.current else f", the first {branch.shared} shared"
    answer = one_line(branch.answer, _SHOWN) or "(no answer)"
    return (
        f"{mark} {number}  {one_line(branch.prompt, _SHOWN)} → {answer} ({counted(branch.messages, 'message')}{shared})"
    )


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


async def _raw(session: SessionControl, words: str) -> str:
    return "Nothing is drawn in this interface: answers are shown as they were typed."


async def _usage(session: SessionControl, words: str) -> str:
    from ...usage.text import usage_text

    return usage_text(await in_thread(lambda: session.usage(lifetime=True)))
