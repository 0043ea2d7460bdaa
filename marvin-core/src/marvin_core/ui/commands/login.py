"""The slash commands `/login` and `/logout`: the key of a model service, set without leaving the chat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...api.errors import UsageError
from ...api.providers import OFFLINE, Secret
from ...config.program import command_name
from ...util.threads import in_thread
from .settings import check_free, used

if TYPE_CHECKING:
    from ...api.session import SessionControl


async def login(session: SessionControl, words: str) -> str:
    """Read a key, test it, store it, and switch to its service if no other one answers."""
    keys = session.keys()
    if not words:
        return (
            f"/login NAME sets the key of a service: {', '.join(keys.services())}. "
            f"Services with accounts: `{command_name()} login codex` in a shell; Copilot: `gh auth login`."
        )
    name, *more = words.split()
    if more:
        return (
            f"Do not type the key after the name: it would stay on the screen. Type /login {name}, which asks for "
            "the key and hides it. If others could see this key, revoke it at its service."
        )
    check_free(session)
    if keys.has_login(words):
        return f"{words} needs a login in the browser. In a shell, run: {command_name()} login {words}"
    variable = keys.variable(words)
    read = await keys.read(f"The key of {words} ({variable}), which is not shown:")
    if read is None:
        return f"This interface cannot hide the key while you type it. In a shell, run: {command_name()} login {words}"
    key = Secret(read.strip())
    if not key:
        return "No key was given, so nothing was changed."
    said = await keys.try_out(words, key)
    place = await keys.place()
    kept = await in_thread(lambda: keys.keep(words, key, place))
    return "\n".join(filter(None, [said, kept, _gone_on(session, words)]))


def _gone_on(session: SessionControl, service: str) -> str:
    models = session.models
    if session.configured and models.provider_name not in (OFFLINE, service):
        return f"/model {service} switches to it."
    models.use(f"{service}/{models.model}" if models.provider_name == service and models.model else service)
    return f"Now using {used(models)}; the conversation is kept."


async def logout(session: SessionControl, words: str) -> str:
    """Remove the stored key of a service."""
    keys = session.keys()
    if not words:
        raise UsageError(f"Which one? /logout NAME, as in /logout {keys.services()[0]}.")
    check_free(session)
    return await in_thread(lambda: keys.forget(words))
