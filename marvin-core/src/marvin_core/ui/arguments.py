"""The arguments of chat commands, for completion: models, levels, modes, sessions by title, and so on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

from ..api.record import Record
from ..api.session import SessionControl
from ..util.text import local_time, one_line

_SESSIONS = 100
_FRESH = 5.0
"""The seconds for which data from the disk is assumed to be unchanged."""
_TITLE = 60


class Argument(Record):
    """An argument of a command; `also` is searched too, like the title of a session, and `help` is shown."""

    text: str
    help: str = ""
    also: str = ""


class Arguments:
    """The arguments of the commands of one chat."""

    def __init__(self, session: SessionControl) -> None:
        self._session = session
        self._kept: dict[str, tuple[float, list[Argument]]] = {}

    def of(self, command: str, word: str) -> Iterator[Argument]:
        """The arguments that begin with a word, or whose title contains it."""
        find = _FOUND.get(command)
        if find is None:
            return
        made, known = self._kept.get(command, (float("-inf"), []))
        if time.monotonic() - made > _FRESH:
            known = find(self._session)
            self._kept[command] = time.monotonic(), known
        lowered = word.lower()
        yield from (one for one in known if one.text.startswith(word) or (word and lowered in one.also.lower()))


def _models(session: SessionControl) -> list[Argument]:
    """The models of configured services, in both forms of their names."""
    entries = [entry for entry in session.models.listed() if entry.reason]
    full = {f"{entry.provider}/{model}": "" for entry in entries for model in entry.models}
    current = [model for entry in entries if entry.provider == session.models.provider_name for model in entry.models]
    named = {**full, **dict.fromkeys(current, "of the service in use"), "high": "a tier", "low": "a tier"}
    return [Argument(text=name, help=named[name]) for name in sorted(named)]


def _sessions(session: SessionControl) -> list[Argument]:
    return [
        Argument(text=one.id, help=f"{local_time(one.time)} {one_line(one.title, _TITLE)}", also=one.title)
        for one in session.sessions.recent(_SESSIONS)
    ]


def _profiles(session: SessionControl) -> list[Argument]:
    return [Argument(text=name) for name in session.profile.names()]


def _modes(session: SessionControl) -> list[Argument]:
    from ..guard.permissions.modes import MEANINGS

    return [Argument(text=mode, help=meaning) for mode, meaning in MEANINGS.items()]


def _themes(session: SessionControl) -> list[Argument]:
    from .themes import names

    return [Argument(text=name, help=meaning) for name, meaning in names(session.chat.config_folder).items()]


def _tools(session: SessionControl) -> list[Argument]:
    from ..tools.sets import SETS

    groups = sorted({spec.group for spec in session.tools if spec.group})
    names = [Argument(text=spec.name, help=spec.description.partition("\n")[0]) for spec in session.tools]
    sets = [Argument(text=name, help="a set") for name in SETS]
    return [*sets, *(Argument(text=name, help="a group") for name in groups), *names]


def _services(session: SessionControl) -> list[Argument]:
    return [Argument(text=entry.provider, help=entry.reason) for entry in session.models.listed()]


def _words(**meanings: str) -> Callable[[SessionControl], list[Argument]]:
    return lambda session: [Argument(text=word, help=meaning) for word, meaning in meanings.items()]


_SWITCH = _words(on="", off="")
_FOUND: Mapping[str, Callable[[SessionControl], list[Argument]]] = {
    "model": _models,
    "thinking": _words(off="the lowest level of the model", low="", medium="", high=""),
    "resume": _sessions,
    "profiles": _profiles,
    "permissions": _modes,
    "mode": _tools,
    "theme": _themes,
    "raw": _SWITCH,
    "login": _services,
    "logout": _services,
    "code": _SWITCH,
    "auto": _SWITCH,
    "undo": _words(list="list what can be undone"),
    "jobs": _words(stop="end one"),
}
