"""The slash commands for autonomous work: steering, auto-continue, play mode."""

from __future__ import annotations

from ...api.errors import BudgetExceeded, ConfigError, MarvinError, UsageError
from ...api.providers import OFFLINE
from ...api.session import SessionControl
from ...util.numbers import amount
from .settings import check_free

_TURNS = 50
_PLAY = "/play BUDGET with an amount in USD, such as /play 0.5, or /play --turns N"


async def steer(session: SessionControl, words: str) -> str:
    """Send the model a line during its answer."""
    if not words:
        return (
            "Write the text after the command: the model reads the text of /steer TEXT with its next request, while "
            "an answer is running."
        )
    if not session.busy:
        return "No answer is running. Type it as a request."
    session.autonomy.send(words)
    return "The model reads this with its next request."


async def auto(session: SessionControl, words: str) -> str:
    """Turn auto-continue on or off."""
    if words not in ("", "on", "off"):
        raise UsageError("Use /auto, /auto on or /auto off.")
    on = words == "on" or (not words and session.autonomy.going != "auto")
    if on:
        _check_model(session)
    session.autonomy.switch("auto" if on else "off")
    if on:
        return (
            "Auto-continue is on: after an answer that used tools, the agent continues until it reports that the "
            "task is finished. Ctrl+C ends an answer; /auto turns this off."
        )
    return "Auto-continue is off."


async def play(session: SessionControl, words: str) -> str:
    """Let the agent explore by itself."""
    _check_model(session)
    dollars, turns = _limits(words)
    check_free(session)
    async with session.autonomy.playing(dollars, turns) as prompt:
        folder = session.working_dir
        result = await session.submit(prompt)
    ended = f"Play mode has ended. Its files are in {folder}."
    if isinstance(result.error, BudgetExceeded) and result.error.within:
        return f"{ended} Its budget of {dollars:g} USD does not cover another request."
    if isinstance(result.error, ConfigError):
        raise ConfigError(f"{result.error}\nWithout a budget: /play --turns N.") from result.error
    if result.error is not None:
        raise MarvinError(f"{result.error}\n{ended}") from result.error
    return ended


def _check_model(session: SessionControl) -> None:
    """Raise `ConfigError` if there is no model for autonomous work."""
    if session.models.provider_name in ("", OFFLINE):
        raise ConfigError("This needs a model, and none is configured. Type /model to see how to set one up.")


def _limits(words: str) -> tuple[float | None, int]:
    """The budget in USD and the number of turns.

    Raises:
        UsageError: if both are missing, or one is not a number.
    """
    budget, flag, count = words.partition("--turns")
    try:
        turns = int(count) if flag else _TURNS
        dollars = float(budget) if budget.strip() else None
    except ValueError:
        raise UsageError(f"That is not a number. Use {_PLAY}.") from None
    if turns < 1 or (dollars is None and not flag) or (dollars is not None and not amount(dollars)):
        raise UsageError(f"Give a budget. Use {_PLAY}.")
    return dollars, turns
