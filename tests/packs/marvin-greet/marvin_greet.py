"""A slash command: /greet NAME."""

from collections.abc import Iterable

from marvin_core import Command, SessionControl, hookimpl


async def greet(session: SessionControl, text: str) -> str:
    """What /greet shows."""
    return f"Good day, {text or 'friend'}. There are {len(session.tools)} tools."


@hookimpl
def marvin_register_commands() -> Iterable[Command]:
    """One command."""
    return [Command(name="greet", help="Greet somebody", run=greet)]
