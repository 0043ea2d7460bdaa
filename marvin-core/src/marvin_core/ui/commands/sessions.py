"""The slash commands for sessions: list, pick, rename, branch, export, and the changes of the session."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ...api.errors import SessionError, UsageError
from ...config.program import command_name
from ...util.state_files import private
from ...util.text import counted, local_time, one_line
from ...util.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...api.controls import Branch, Choice, Picking, SessionEntry
    from ...api.session import SessionControl

_LISTED = 20
_PICKED = 10
"""The number of sessions offered at once."""
_OFFERED = 100
"""The number of sessions in the picker."""
_SHOWN = 60
_KINDS: Mapping[str, Literal["md", "html", "json"]] = {"md": "md", "html": "html", "json": "json"}
_WHICH = (
    "Which session? Type its number, or words to search for. `rename NUMBER TITLE` renames one. An empty line cancels."
)
_RESUME_USAGE = "Which session? Type /resume ID; the beginning of an id is enough. /sessions lists them."


async def sessions(session: SessionControl, words: str) -> str:
    """List the newest sessions of the folder."""
    found = await in_thread(lambda: session.sessions.recent(_LISTED))
    if not found:
        return "There are no sessions in this folder yet."
    lines = [_entry_line(entry, session.id) for entry in found]
    how = (
        f"/resume lets you choose one, and /resume ID continues it. In a shell, `{command_name()} sessions` lists "
        "those of all folders."
    )
    return "\n".join([*lines, how])


def _entry_line(entry: SessionEntry, current: str) -> str:
    mark = "*" if entry.id == current else " "
    count = counted(entry.messages, "message")
    return f"{mark} {entry.id}  {local_time(entry.time)}  {one_line(entry.title, _SHOWN)} ({count})"


async def resume(session: SessionControl, words: str) -> str:
    """Continue a session: the one with this id, or one that the user picks."""
    if not words:
        picked = await _picked(session)
        if picked is None:
            return _RESUME_USAGE
        if not picked:
            return "No session was chosen."
        words = picked
    count = await session.sessions.resume(words)
    return f"Continuing {session.id} ({counted(count, 'message')})."


async def _picked(session: SessionControl) -> str | None:
    """The id of the session that the user picks; empty for none, None if the interface cannot ask."""
    picked = await session.person.pick(_picking(session))
    return picked if picked is not None else await _picked_by_number(session)


def _picking(session: SessionControl) -> Picking:
    """Sessions for the picker: those of the folder, or with search words those of all folders that contain them."""
    from ...api.controls import Choice, Picking

    async def find(words: str) -> Sequence[Choice]:
        if words:
            found = await in_thread(partial(session.sessions.search, words, _OFFERED))
        else:
            found = await in_thread(lambda: session.sessions.recent(_OFFERED))
        return [Choice(key=one.id, text=one_line(one.title, _SHOWN), facts=_facts(one, session)) for one in found]

    async def rename(identity: str, title: str) -> str:
        kept = await in_thread(lambda: session.sessions.rename(title, identity))
        return f"Now called: {kept}"

    return Picking(title="Which session?", find=find, rename=rename)


async def _picked_by_number(session: SessionControl) -> str | None:
    """The same, asked as text."""
    found: Sequence[SessionEntry] = await in_thread(lambda: session.sessions.recent(_PICKED))
    said = ""
    while True:
        choices = [_choice(entry, session) for entry in found]
        answer = await session.person.ask(f"{said}{_WHICH}", choices)
        if not answer:
            return answer
        if answer in choices:
            return found[choices.index(answer)].id
        head, _, rest = answer.partition(" ")
        if head == "rename":
            said = await _renamed(session, found, rest)
            found = await in_thread(lambda: session.sessions.recent(_PICKED))
            continue
        hits = await in_thread(partial(session.sessions.search, answer, _PICKED))
        said = "" if hits else f"No session contains {one_line(answer, _SHOWN)!r}.\n"
        found = hits or found


def _choice(entry: SessionEntry, session: SessionControl) -> str:
    return f"{one_line(entry.title, _SHOWN)} ({_facts(entry, session)}) {entry.id}"


def _facts(entry: SessionEntry, session: SessionControl) -> str:
    elsewhere = f", in {one_line(entry.working_dir)}" if entry.working_dir != str(session.working_dir) else ""
    return f"{local_time(entry.time)}, {counted(entry.messages, 'message')}{elsewhere}"


async def _renamed(session: SessionControl, found: Sequence[SessionEntry], words: str) -> str:
    number, _, title = words.strip().partition(" ")
    if not (number.isascii() and number.isdecimal() and 1 <= int(number) <= len(found)) or not title.strip():
        return "Use `rename NUMBER TITLE`.\n"
    entry = found[int(number) - 1]
    kept = await in_thread(lambda: session.sessions.rename(title, entry.id))
    return f"{entry.id} was renamed to: {kept}\n"


async def rename(session: SessionControl, words: str) -> str:
    """Give this session another title."""
    if not words:
        raise UsageError("Use /rename TITLE.")
    return f"This session is now called: {await in_thread(lambda: session.sessions.rename(words))}"


async def clear(session: SessionControl, words: str) -> str:
    """Start an empty conversation."""
    earlier = session.id
    session.sessions.clear()
    return "The conversation is empty." + (f" The earlier one is kept: /resume {earlier}" if earlier else "")


async def fork(session: SessionControl, words: str) -> str:
    """Continue in a copy."""
    earlier, prompts = session.id, session.sessions.prompts()
    copy = session.sessions.fork()
    facts = [counted(len(session.snapshot().messages), "message")]
    facts += [f"the last prompt at {local_time(prompts[-1].time)}"] if prompts else []
    return f"Continuing in the copy {copy} ({', '.join(facts)}). The original is unchanged: /resume {earlier}"


async def tree(session: SessionControl, words: str) -> str:
    """List the branches, or continue one."""
    found = await in_thread(session.sessions.branches)
    if words:
        if not words.isdecimal() or not 1 <= int(words) <= len(found):
            raise UsageError(f"There is no branch {words!r}. /tree lists them by number.")
        count = await session.sessions.go_to(found[int(words) - 1])
        return f"Continuing from branch {int(words)} ({counted(count, 'message')})."
    lines = [_branch_line(number, branch) for number, branch in enumerate(found, 1)]
    if len(found) == 1:
        return f"{lines[0]}\nThis session has one branch. /retry creates another one."
    return "\n".join([*lines, "/tree NUMBER continues from another branch."])


def _branch_line(number: int, branch: Branch) -> str:
    mark = "*" if branch.current else " "
    shared = "" if branch.current else f", the first {branch.shared} shared"
    answer = one_line(branch.answer, _SHOWN) or "(no answer)"
    facts = f"{counted(branch.messages, 'message')}{shared}"
    when = f"  {local_time(branch.time)}" if branch.time else ""
    return f"{mark} {number}{when}  {one_line(branch.prompt, _SHOWN)} → {answer} ({facts})"


async def export(session: SessionControl, words: str) -> str:
    """Export the conversation to a file."""
    head, _, rest = words.partition(" ")
    kind = _KINDS.get(head)
    name = (rest if kind else words).strip()
    kind = kind or _KINDS.get(Path(name).suffix.removeprefix(".").lower(), "md")
    text = await session.sessions.export(kind)
    target = await in_thread(lambda: _written(session, name or f"{session.id}.{kind}", text))
    return f"Wrote {target}. It contains the whole conversation and the results of tools."


def _written(session: SessionControl, name: str, text: str) -> Path:
    """Write a new file with a name from the user; returns its path."""
    home = name.startswith("~/")
    target = session.chat.home / name[2:] if home else session.working_dir / name
    try:
        with open(target, "xb", opener=private) as stream:
            stream.write(text.encode("utf-8", "replace"))
        return target
    except FileExistsError as error:
        raise UsageError(f"{target} exists. Name another file: /export FILE.") from error
    except OSError as error:
        raise SessionError(f"{target} cannot be written: {error.strerror}. Name another file: /export FILE.") from error


async def copy(session: SessionControl, words: str) -> str:
    """Copy an answer to the clipboard, as the model wrote it."""
    answers = [message.text for message in session.snapshot().messages if message.role == "assistant" and message.text]
    if not answers:
        return "There is no answer to copy yet."
    if words and not (words.isascii() and words.isdecimal() and 1 <= int(words) <= len(answers)):
        raise UsageError(f"Use /copy, or /copy N for the Nth answer from the end, with N from 1 to {len(answers)}.")
    text = answers[-int(words or 1)]
    if session.person.copy(text):
        return f"Copied {counted(len(text), 'character')}, if the terminal allows it (OSC 52; tmux: set-clipboard on)."
    return "The clipboard is not available here, or the text is too large for it. Use /export FILE to write a file."


async def diff(session: SessionControl, words: str) -> str:
    """Show the changes of this session to files."""
    return await session.undo.difference() or (
        "The tools of this session have changed no file, or their changes were undone."
    )
