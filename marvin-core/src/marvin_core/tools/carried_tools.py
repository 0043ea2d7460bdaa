"""Selects the offered tools that a request includes; the others are deferred until the model searches for them."""

from __future__ import annotations

import os.path
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ..api.providers import OFFLINE, Provider, adds_revealed, found_in
from ..api.record import Record
from ..api.tools import SEARCH, ToolSpec
from ..conversation.window import CHARACTERS_PER_TOKEN
from .toolbox import HOT, Toolbox

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..api.config import Config
    from ..api.messages import Message
    from ..conversation.conversation import Conversation
    from ..conversation.window import ToolSizes
    from ..guard.files.workspace import Workspace
    from .finding import Finder

    class CallCounts(Protocol):
        """The active profile, for the selection of tools."""

        @property
        def name(self) -> str: ...
        def calls(self) -> Mapping[str, int]:
            """The number of calls of each tool in the user's work."""
            ...


_MANY = 40
"""Up to this number all tools are included; of more, most are deferred."""
_SHARE = 20
"""The maximum fraction of the context window for all of them."""
_FOUND_SHARE = 4
"""The maximum fraction of the window for found tools; beyond it, those found first are deferred again."""
_HOT_SHARE = 8
"""The maximum fraction of the window for tools that are always included, when most are deferred."""
_OWNER = "marvin-core"
_FOUND = "found_tools"
_NAMED = 8
"""The maximum number of tools that a warning names."""


class Carried(Record):
    """The tools of a request: the included ones and the deferred ones.

    `told` are all tools that the model sees: the included ones, and deferred ones that the service adds.
    """

    tools: tuple[ToolSpec, ...] = ()
    waiting: tuple[ToolSpec, ...] = ()
    told: tuple[ToolSpec, ...] = ()

    @classmethod
    def of(cls, tools: tuple[ToolSpec, ...]) -> Carried:
        """These tools, with none deferred."""
        return cls(tools=tools, told=tools)


class Surroundings(Record):
    """The inputs of the selection.

    `window` is that of the model, in tokens. `state` is the session state of packs. `warn` shows the user a
    warning.
    """

    config: Config
    workspace: Workspace
    conversation: Conversation
    state: dict[str, dict[str, Any]]
    sizes: ToolSizes
    window: Callable[[], int]
    profile: CallCounts
    warn: Callable[[str], None]


class _List:
    """The tools offered to one model, in the order of their addition; a tool that is withdrawn keeps its place."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}
        self.search: ToolSpec | None = None

    def with_(self, known: Collection[str], wanted: Iterable[str]) -> list[str]:
        """The names of earlier tools that are still offered, followed by the new ones."""
        self.names.update(dict.fromkeys(name for name in wanted if name in known))
        return [name for name in self.names if name in known]


class CarriedTools:
    """The tools in the requests of one session.

    For each model the list only grows, in a fixed order, until the conversation ends or the user selects other tools:
    services cache a common prefix of requests. After a switch back to a model its list is the same as before.
    """

    def __init__(self, toolbox: Toolbox, around: Surroundings) -> None:
        self._toolbox = toolbox
        self._around = around
        self._lists: dict[object, _List] = {}
        self._list = _List()
        self._hot: dict[object, list[str]] = {}
        self._offered: Sequence[ToolSpec] = ()
        self._calls: dict[str, Mapping[str, int]] = {}
        self._found: list[str] = []
        self._carried = Carried()
        self._follows_from: tuple[object, ...] | None = None
        self._looked_at: tuple[tuple[Message, ...], dict[str, None]] = (), {}
        self._told: list[str] = []
        self._finder: Finder | None = None

    def of(self, provider: Provider) -> Carried:
        """The tools of the next request to a provider; the same object as long as they do not change."""
        offered = self._toolbox.offered
        if provider.name == OFFLINE:  # it searches all of them, and has no context window
            return self._kept(Carried(tools=offered))
        named = self._named()
        if self._follows_from is not None and self._follows_from == self._what_counts(provider, named):
            return self._carried
        carried = self._kept(self._chosen(provider, offered, named))
        self._follows_from = self._what_counts(provider, named)  # computed last, since the selection stores found tools
        return carried

    def _what_counts(self, provider: Provider, named: Mapping[str, None]) -> tuple[object, ...]:
        """The cache key of the selection: it is computed again only if one of these has changed."""
        around, toolbox = self._around, self._toolbox
        of_model = (provider.name, provider.model, provider.max_tools, adds_revealed(provider), around.window())
        found = tuple(named), tuple(self._state())
        return toolbox.offered, toolbox.selection, of_model, found, self._is_code, around.profile.name

    @property
    def _is_code(self) -> bool:
        workspace = self._around.workspace
        return workspace.mode == "coding" or os.path.exists(workspace.root / ".git")

    def _named(self) -> dict[str, None]:
        """The tools that searches in the conversation found; only new messages are examined."""
        messages, (before, found) = self._around.conversation.messages, self._looked_at
        if messages is not before:
            goes_on = messages[: len(before)] == before
            found = {**found, **found_in(messages[len(before) :])} if goes_on else found_in(messages)
            self._looked_at = messages, found
        return found

    def _chosen(self, provider: Provider, offered: tuple[ToolSpec, ...], named: Mapping[str, None]) -> Carried:
        known = {spec.name: spec for spec in offered}
        self._choose_list(provider, [name for name in named if name in known])
        search = known.pop(SEARCH, None)
        if search is None or not self._are_many(tuple(known.values()), provider):
            few = self._list.with_(known, known)[: provider.max_tools]
            return Carried.of(tuple(known[name] for name in few))
        # The service itself adds found tools to the conversation, if it can.
        hot, added = self._hot_names(offered, provider), named if adds_revealed(provider) else {}
        known[SEARCH] = self._advertised(search, [spec for name, spec in known.items() if name not in hot])
        grown = self._list.with_(known, [*hot, *(name for name in self._found if name not in added)])
        names = self._within([known[name] for name in grown], hot, provider.max_tools)
        tools = tuple(known[name] for name in names)
        waiting = tuple(spec for name, spec in known.items() if name not in names)
        told = (*tools, *(spec for spec in waiting if spec.name in added))
        return Carried(tools=tools, waiting=waiting, told=told)

    def _choose_list(self, provider: Provider, named: Sequence[str]) -> None:
        """Continue the list of a model, or begin an empty one for a new conversation.

        `named` are the tools that searches in the conversation found, after a crash the only record of them.
        """
        found = self._state()
        if missing := [name for name in named if name not in found]:
            found = self._keep([*found, *missing])
        if not set(self._found) <= set(found):
            self._lists.clear()
        self._found = found
        key = (provider.name, provider.model, provider.max_tools, self._toolbox.selection)
        self._list = self._lists.setdefault(key, _List())

    def _kept(self, carried: Carried) -> Carried:
        self._follows_from = None
        if carried != self._carried:
            self._carried = carried
        return self._carried

    def _advertised(self, search: ToolSpec, others: Sequence[ToolSpec]) -> ToolSpec:
        """The search tool as the list began with it: its description must not change with each found tool."""
        if self._list.search is None:
            from .deferral import advertised

            self._list.search = advertised(search, others)
        return self._list.search

    def _are_many(self, specs: Sequence[ToolSpec], provider: Provider) -> bool:
        """Whether some of them have to be deferred."""
        if provider.max_tools is not None and len(specs) > provider.max_tools:
            return True
        how = self._around.config.tool_search
        if how != "auto":
            return how == "on" and len(specs) > HOT
        return len(specs) > _MANY or sum(map(self._tokens, specs)) > self._around.window() // _SHARE

    def _tokens(self, spec: ToolSpec) -> int:
        return self._around.sizes.of(spec) // CHARACTERS_PER_TOKEN

    def _hot_names(self, specs: Sequence[ToolSpec], provider: Provider) -> list[str]:
        """The tools that are always included, in coding mode or a repository, or elsewhere."""
        if specs is not self._offered:  # for instance after a mode that withdrew some
            self._offered, self._hot = specs, {}
        is_code, profile = self._is_code, self._around.profile
        most = HOT if provider.max_tools is None else max(1, min(HOT, provider.max_tools // 2))
        key = (is_code, profile.name, most)
        if key not in self._hot:
            from .deferral import TOKENS, Wish, hot

            if profile.name not in self._calls:  # read once: the selection must not change during a session
                self._calls[profile.name] = profile.calls()
            calls, tokens = self._calls[profile.name], min(TOKENS, self._around.window() // _HOT_SHARE)
            wish = Wish(is_code=is_code, calls=calls, first=SEARCH, most=most, tokens=tokens)
            self._hot[key] = [spec.name for spec in hot(specs, wish, self._tokens)]
        return self._hot[key]

    def _within(self, specs: Sequence[ToolSpec], hot: Collection[str], most: int | None) -> dict[str, None]:
        """As many as the service and the context window allow: those always included, and the newest others."""
        others = [spec for spec in specs if spec.name not in hot]
        room = len(others) if most is None else max(0, most - (len(specs) - len(others)))
        tokens = self._around.window() // _FOUND_SHARE
        dropped: set[str] = set()
        for place, spec in enumerate(reversed(others)):
            tokens -= self._tokens(spec)
            if place >= room or (place and tokens < 0):
                dropped.update(other.name for other in others[: len(others) - place])
                break
        return dict.fromkeys([spec.name for spec in specs if spec.name not in dropped][:most])

    def _state(self) -> list[str]:
        kept: Any = self._around.state.get(_OWNER)
        found = kept.get(_FOUND) if isinstance(kept, dict) else None
        return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []

    def reveal(self, names: Iterable[str]) -> None:
        """Include these in the next requests as well, because the model found or called them. Stored in the session.

        If a service allows few, those found last are kept longest, so the best one, the first, is added last.
        """
        if not self._carried.waiting:
            return
        waiting = {spec.name for spec in self._carried.waiting}.difference(spec.name for spec in self._carried.told)
        fresh = [name for name in dict.fromkeys(names) if name in waiting]
        if not fresh:
            return
        for name in fresh:
            self._list.names.pop(name, None)
        self._follows_from = None
        self._keep([*(name for name in self._state() if name not in fresh), *reversed(fresh)])

    def _keep(self, found: list[str]) -> list[str]:
        kept: Any = self._around.state.get(_OWNER)
        own = self._around.state[_OWNER] = kept if isinstance(kept, dict) else {}
        own[_FOUND] = found
        return found

    def find(self, query: str, most: int) -> list[ToolSpec]:
        """The offered tools that match a query, best first; see `Finder.find`. Blocks briefly."""
        specs = tuple(spec for spec in self._toolbox.offered if spec.name != SEARCH)
        finder = self._finder
        if finder is None or finder.specs != specs:
            from .finding import Finder

            finder = self._finder = Finder(specs, self._around.config.cache_folder)
        return finder.find(query, most)

    def tell_left_out(self, provider: Provider) -> None:
        """Warn about tools that are neither included nor can be found, unless the last warning named the same ones."""
        if provider.max_tools is None:  # all tools are included or deferred
            self._told = []
            return
        carried = self.of(provider)
        here = {spec.name for spec in (*carried.tools, *carried.waiting)}
        names = [spec.name for spec in self._toolbox.offered if spec.name not in here and spec.name != SEARCH]
        if names and names != self._told:
            few = f"{', '.join(names[:_NAMED])}{' and others' if len(names) > _NAMED else ''}"
            self._around.warn(
                f"{provider.name} takes {provider.max_tools} tools. Left out: {few}. --tools, or !mode in a chat, "
                "chooses the offered tools."
            )
        self._told = names
