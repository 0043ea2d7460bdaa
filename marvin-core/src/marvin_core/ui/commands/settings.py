"""The slash commands that change a running session: its model, its mode, its tools, its profile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...api.errors import UsageError
from ...api.providers import OFFLINE
from ...api.session import SessionControl
from ...config.program import command_name
from ...tools.sets import SETS
from ...util.text import counted, listed, one_line
from ...util.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...api.controls import ModelControl
    from ...api.models import ModelEntry

_LISTED_TOOLS = 8
_ORIGIN = 60
"""The maximum length of a prompt part's name in characters."""
_TARGET = 50_000
_TARGETS = range(1_000, 1_000_001)
"""The allowed target sizes of a compaction, in tokens."""


async def model(session: SessionControl, words: str) -> str:
    """List the models, or switch to another one."""
    models = session.models
    if not words:
        return _model_list(models, await in_thread(models.listed))  # asks local servers for theirs
    check_free(session)
    await in_thread(lambda: models.know(words))
    check_free(session)
    models.use(words)
    return f"Now using {used(models)}; the conversation is kept."


def used(models: ModelControl) -> str:
    """The current model, with its service."""
    return f"{models.provider_name}/{models.model}" if models.model else f"the default model of {models.provider_name}"


def check_free(session: SessionControl) -> None:
    """Raise `UsageError` during an answer, which the change would affect."""
    if session.busy:
        raise UsageError("An answer is still running. Wait for it, or cancel it first.")


def _model_list(models: ModelControl, entries: Sequence[ModelEntry]) -> str:
    if models.provider_name in ("", OFFLINE) and not any(entry.reason for entry in entries):
        ways = [f"  - {entry.how_to}" for entry in entries if entry.how_to]
        told = (
            "No model is configured. /login NAME stores a key, which works at once. Or do one of these and "
            "restart Marvin:"
        )
        return "\n".join([told, *ways, "A server on this machine can be used at once, for example with /model ollama."])
    lines = []
    for entry in entries:
        if not entry.reason and entry.provider != models.provider_name:
            continue
        lines.append(f"{entry.provider} ({entry.reason or models.reason})")
        names = dict.fromkeys((*entry.models, *([models.model] if entry.provider == models.provider_name else [])))
        for name in filter(None, names):
            current = (entry.provider, name) == (models.provider_name, models.model)
            lines.append(f"{'*' if current else ' '} {entry.provider}/{name}")
    others = [entry.provider for entry in entries if not entry.reason]
    if others:
        lines.append(f"Not set up: {', '.join(others)}; in a shell, `{command_name()} providers` says how.")
    return "\n".join([*lines, "/model PROVIDER/MODEL switches to another one; the conversation is kept."])


async def thinking(session: SessionControl, words: str) -> str:
    """Show the thinking level of the model, or change it."""
    if not words:
        return f"Thinking: {session.models.thinking}. /thinking off, low, medium or high changes it."
    session.models.think(words)
    return f"Thinking: {words}, from the next prompt on, if the model supports it."


async def compact(session: SessionControl, words: str) -> str:
    """Make room in the conversation."""
    number = words.replace(",", "").replace("_", "")
    if words and not (number.isascii() and number.isdecimal() and _TARGETS[0] <= int(number) <= _TARGETS[-1]):
        raise UsageError(f"Use /compact, or /compact TOKENS with {_TARGETS[0]:,} to {_TARGETS[-1]:,} of them.")
    return await session.compact(int(number) if number else _TARGET)


async def pro(session: SessionControl, words: str) -> str | None:
    """Send one prompt to the best model that is set up."""
    if not words:
        return "Write the prompt after it: !pro PROMPT sends this one prompt to the best model that is set up."
    await in_thread(lambda: session.models.know(None))
    check_free(session)
    with session.models.pro():
        (await session.submit(words)).check()
    return None


async def code(session: SessionControl, words: str) -> str:
    """Turn coding mode on or off."""
    if words not in ("", "on", "off"):
        raise UsageError("Use !code, !code on or !code off.")
    on = words == "on" or (not words and session.mode != "coding")
    session.switch_mode("coding" if on else "chat")
    if on:
        return (
            f"Coding mode is on: Marvin works in {session.working_dir}, keeps notes and logs in .marvin there, and "
            "may use 50 rounds of tools for a prompt. !code ends it."
        )
    return "Coding mode is off."


async def mode(session: SessionControl, words: str) -> str:
    """List the offered tools, or select others."""
    if words:
        session.toolbox.choose(words)
    names = [spec.name for spec in session.tools]
    more = len(names) - _LISTED_TOOLS
    some = ", ".join(names[:_LISTED_TOOLS]) + (f" and {more} more" if more > 0 else "")
    count = f"{len(names)} {'tool is' if len(names) == 1 else 'tools are'} offered"
    shown = f"Tools: {session.toolbox.selection}; {count}: {some or 'none'}."
    if words:
        return shown
    group = next((spec.group for spec in session.tools if spec.group), "")
    example = f" as in all,-{group}" if group else ""
    return f"{shown}\nUse !mode NAME to choose other tools: {', '.join(SETS)}, or groups and names{example}."


async def context(session: SessionControl, words: str) -> str:
    """Show the parts of the next request in tokens, and the deferred tools."""
    use = await session.context_use()
    by_origin: dict[str, int] = {}
    for origin, tokens in use.prompt:
        by_origin[origin] = by_origin.get(origin, 0) + tokens
    rows = [(f"system prompt: {one_line(origin, _ORIGIN)}", tokens) for origin, tokens in by_origin.items()]
    rows.append((counted(len(use.tools), "tool"), sum(use.tools.values())))
    rows.append((counted(use.messages, "message"), use.message_tokens))
    total = sum(tokens for _, tokens in rows)
    lines = [f"{tokens:9,}  {name}" for name, tokens in rows]
    lines.append(f"{total:9,}  tokens of {use.window:,} in all; from {use.compact:,} on, a summary makes room")
    if use.waiting:
        saved = sum(use.waiting.values())
        lines.append(
            f"{saved:9,}  tokens are saved: {counted(len(use.waiting), 'tool')} hidden until the model searches for one"
        )
    return "\n".join([*lines, "These are estimates. /compact makes room now."])


async def preferences(session: SessionControl, words: str) -> str:
    """Show the preferences of the profile, or edit them in the user's editor."""
    if words == "edit":
        return await _edited(session)
    if words:
        raise UsageError("Use /preferences, or /preferences edit.")
    found = await in_thread(session.profile.preferences)
    file = session.profile.folder / "preferences.yaml"
    lines = [f"{key}: {listed(value)}" for key, value in found.items()] or ["No preferences are set."]
    return "\n".join([*lines, f"They are in {file}: change them with /preferences edit, or ask Marvin to change them."])


async def _edited(session: SessionControl) -> str:
    """Open a draft in the editor; if the result is invalid, the preferences and the draft stay."""
    profile = session.profile
    draft, before = await in_thread(profile.draft_preferences)
    if not await session.person.edit(draft):
        return f"This interface cannot open an editor. Edit {profile.folder / 'preferences.yaml'}"
    if not await in_thread(lambda: profile.take_draft(before)):
        return "Nothing was changed."
    return "Saved. It applies from the next prompt on."


async def profiles(session: SessionControl, words: str) -> str:
    """Show the profiles, or switch to another one."""
    profile = session.profile
    names = await in_thread(profile.names)
    if words:
        asked, _, name = words.partition(" ")
        name = name.strip() if asked == "new" and name else words
        meant = await in_thread(lambda: profile.misspelled(name)) if name == words else ""
        if meant:
            raise UsageError(f"There is no profile {name!r}. {meant} /profiles new {name} creates it.")
        folder = await in_thread(lambda: profile.switch(name))
        return f"{'Switched to' if name in names else 'Created'} the profile {name}: {folder}"
    lines = [f"{'*' if name == profile.name else ' '} {name}" for name in names]
    return "\n".join([*lines, "/profiles NAME switches to another profile; /profiles new NAME creates one."])


async def saved(session: SessionControl, words: str) -> str:
    """Show the saved places."""
    places = await in_thread(session.profile.saved_places)
    if not places:
        return "This profile has no saved places."
    return "\n".join(map(_place, places))


def _place(place: Mapping[str, Any]) -> str:
    where = [str(place.get(key) or "") for key in ("name", "address", "notes")]
    return f"{place.get('label') or 'place'}: {', '.join(filter(None, where)) or 'no address'}"
