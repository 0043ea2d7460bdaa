"""The options of a session in an editor: permission mode, model, thinking level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, get_args

from acp import schema

from ..api.errors import UsageError
from ..api.models import ModelEntry
from ..api.providers import OFFLINE, ThinkingLevel
from ..api.session import SessionControl
from ..guard.permissions.modes import MEANINGS, MODES
from ..util.text import unknown_name
from ..util.threads import in_thread

Option: TypeAlias = schema.SessionConfigOptionSelect | schema.SessionConfigOptionBoolean
_TITLES = {"ask": "Ask", "edit": "Edit", "auto": "Auto", "readonly": "Read only"}
_MODE, _MODEL, _THINKING = "mode", "model", "thinking"
_MOST_MODELS = 200


def modes(session: SessionControl) -> schema.SessionModeState:
    """The permission modes."""
    found = [schema.SessionMode(id=mode, name=_TITLES[mode], description=MEANINGS[mode]) for mode in MODES]
    return schema.SessionModeState(current_mode_id=session.permissions.mode, available_modes=found)


async def options(session: SessionControl) -> list[Option]:
    """All options, with their current values."""
    models = await in_thread(session.models.listed)  # local servers are queried for theirs
    found: list[Option] = [
        _select(_MODE, "Permissions", "mode", session.permissions.mode, [(mode, _TITLES[mode]) for mode in MODES])
    ]
    current = _current(session)
    names = _names(models, current)
    if names:
        found.append(_select(_MODEL, "Model", "model", current, [(name, name) for name in names]))
        levels = [(level, level.capitalize()) for level in get_args(ThinkingLevel)]
        found.append(_select(_THINKING, "Thinking", "thought_level", session.models.thinking, levels))
    return found


async def choose(session: SessionControl, option: str, value: str) -> None:
    """Set the value of an option.

    Raises:
        MarvinError: the option or value does not exist, or a running answer prevents the change.
    """
    if option == _MODE:
        session.permissions.switch(value)
    elif option == _MODEL:
        if session.busy:
            raise UsageError("An answer is still running. Wait for it, or cancel it first.")
        await in_thread(lambda: session.models.know(value))
        session.models.use(value)
    elif option == _THINKING:
        session.models.think(value)
    else:
        raise UsageError(unknown_name("option", option, (_MODE, _MODEL, _THINKING)))


def _current(session: SessionControl) -> str:
    models = session.models
    if models.provider_name in ("", OFFLINE):
        return ""
    return f"{models.provider_name}/{models.model}" if models.model else models.provider_name


def _names(entries: Sequence[ModelEntry], current: str) -> list[str]:
    """The usable models, the current one first."""
    set_up = [entry for entry in entries if entry.reason and entry.provider != OFFLINE]
    found = [f"{entry.provider}/{name}" if name else entry.provider for entry in set_up for name in entry.models]
    return list(dict.fromkeys(filter(None, [current, *found])))[:_MOST_MODELS]


def _select(identity: str, name: str, category: str, current: str, values: Sequence[tuple[str, str]]) -> Option:
    chosen = [schema.SessionConfigSelectOption(value=value, name=title) for value, title in values]
    if current not in (value for value, _ in values):
        chosen.insert(0, schema.SessionConfigSelectOption(value=current, name=current or "(none)"))
    return schema.SessionConfigOptionSelect.model_validate(
        {
            "type": "select",
            "id": identity,
            "name": name,
            "category": category,
            "currentValue": current,
            "options": [one.model_dump() for one in chosen],
        }
    )
