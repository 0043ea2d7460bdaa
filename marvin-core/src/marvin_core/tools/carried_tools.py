"""Which of the tools on offer a request carries, and which wait until the model looks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..api.providers import Provider, adds_revealed
from ..api.record import Record
from ..api.tools import ToolSpec
from ..conversation.window import CHARACTERS_PER_TOKEN
from .toolbox import HOT, SEARCH, Toolbox

if TYPE_CHECKING:
    from ..api.config import Config
    from ..conversation.conversation import Conversation
    from ..guard.files.workspace import Workspace
    from .routing.ranking import Ranking

_MANY = 40
"""So many tools are offered at once; of more, most wait."""
_SHARE = 20
"""That part of the window they may take together."""
_OWNER = "marvin-core"
_FOUND = "found_tools"
_NAMED = 8
"""How many tools that are left out are told by name."""


class Carried(Record):
    """The tools of a request: those that it carries, and those that wait."""

    tools: tuple[ToolSpec, ...] = ()
    waiting: tuple[ToolSpec, ...] = ()


class Surroundings(Record):
    """What it depends on which tools a request carries.

    `window` is that of the model, in tokens. `calls` says how often the user's work called each tool. `state` is what
    packs keep in the session. `warn` tells the user something.
    """

    config: Config
    workspace: Workspace
    conversation: Conversation
    state: dict[str, dict[str, Any]]
    window: Callable[[], int]
    calls: Callable[[], Mapping[str, int]]
    warn: Callable[[str], None]


class CarriedTools:
    """The tools that the requests of one session carry.

    The list only grows, in one order, as long as one model answers and the user chooses no others: services keep what
    they read by its beginning.
    """

    def __init__(self, toolbox: Toolbox, around: Surroundings) -> None:
        self._toolbox = toolbox
        self._around = around
        self._key: object = None
        self._names: list[str] = []
        self._hot: dict[bool, list[str]] = {}
        self._search: ToolSpec | None = None
        self._carried = Carried()
        self._told: list[str] = []
        self._ranked: tuple[tuple[ToolSpec, ...], Ranking] | None = None

    def of(self, provider: Provider) -> Carried:
        """Those of the next request to a provider; the same object as long as they are the same ones."""
        offered = self._toolbox.offered
        key = (provider.name, provider.model, provider.max_tools, self._toolbox.selection)
        if key != self._key:
            self._key, self._names, self._hot, self._search = key, [], {}, None
        known = {spec.name: spec for spec in offered}
        search = known.pop(SEARCH, None)
        if search is None or not self._are_many(tuple(known.values()), provider):
            return self._kept(tuple(known[name] for name in self._grown(known, [*known])[: provider.max_tools]), ())
        wanted = [*self._hot_names(offered, provider), *self._found(provider)]
        names = _within(self._grown({**known, SEARCH: search}, wanted), self._hot_names(offered, provider), provider)
        if self._search is None:
            from .deferral import advertised

            waiting = [spec for spec in known.values() if spec.name not in names]
            self._search = advertised(search, waiting)
        known[SEARCH] = self._search
        return self._kept(
            tuple(known[name] for name in names), tuple(spec for name, spec in known.items() if name not in names)
        )

    def _kept(self, tools: tuple[ToolSpec, ...], waiting: tuple[ToolSpec, ...]) -> Carried:
        if (tools, waiting) != (self._carried.tools, self._carried.waiting):
            self._carried = Carried(tools=tools, waiting=waiting)
        return self._carried

    def _grown(self, known: Mapping[str, ToolSpec], wanted: Sequence[str]) -> list[str]:
        """The names of those before that are still there, and after them those that are new."""
        names = dict.fromkeys(name for name in (*self._names, *wanted) if name in known)
        self._names = [*names]
        return self._names

    def _are_many(self, specs: Sequence[ToolSpec], provider: Provider) -> bool:
        """Whether some of them have to wait."""
        if provider.max_tools is not None and len(specs) > provider.max_tools:
            return True
        how = self._around.config.tool_search
        if how != "auto":
            return how == "on" and len(specs) > HOT
        return len(specs) > _MANY or sum(map(_tokens, specs)) > self._around.window() // _SHARE

    def _hot_names(self, specs: Sequence[ToolSpec], provider: Provider) -> list[str]:
        """What is offered at once, in coding mode or a repository, or elsewhere."""
        workspace = self._around.workspace
        is_code = workspace.mode == "coding" or (workspace.root / ".git").exists()
        if is_code not in self._hot:
            from .deferral import Wish, hot

            most = HOT if provider.max_tools is None else max(1, min(HOT, provider.max_tools // 2))
            wish = Wish(is_code=is_code, calls=self._around.calls(), first=SEARCH, most=most)
            self._hot[is_code] = [spec.name for spec in hot(specs, wish, _tokens)]
        return self._hot[is_code]

    def _found(self, provider: Provider) -> list[str]:
        """What the model found or called; where the service itself adds what a result names, only what none names."""
        found = self._state()
        if not adds_revealed(provider):
            return found
        named = {
            name
            for message in self._around.conversation.messages
            for output in message.outputs
            for name in output.reveals
        }
        return [name for name in found if name not in named]

    def _state(self) -> list[str]:
        kept = self._around.state.get(_OWNER, {}).get(_FOUND)
        return [name for name in kept if isinstance(name, str)] if isinstance(kept, list) else []

    def reveal(self, names: Iterable[str]) -> None:
        """Have the next requests carry these, too, as the model found or called them. The session keeps that.

        Where a service takes few, those that were found last stay longest, so the best one, the first, is added last.
        """
        waiting = {spec.name for spec in self._carried.waiting}
        fresh = [name for name in dict.fromkeys(names) if name in waiting]
        if fresh:
            self._names = [name for name in self._names if name not in fresh]
            found = [name for name in self._state() if name not in fresh]
            self._around.state.setdefault(_OWNER, {})[_FOUND] = [*found, *reversed(fresh)]

    def find(self, query: str, most: int) -> list[ToolSpec]:
        """The tools on offer that a query means, the best first: by their names, else by words. Blocks for a moment."""
        specs = tuple(spec for spec in self._toolbox.offered if spec.name != SEARCH)
        asked = {*query.removeprefix("select:").replace(",", " ").split()}
        named = [spec for spec in specs if spec.name in asked]
        ranked = (spec for spec, _ in self._ranking(specs).best(query, most))
        return [*{spec.name: spec for spec in (*named, *ranked)}.values()][:most]

    def _ranking(self, specs: tuple[ToolSpec, ...]) -> Ranking:
        """What ranks these tools; made anew only where they are others."""
        if self._ranked is None or self._ranked[0] != specs:
            from .routing.documents import documents
            from .routing.ranking import Ranking

            self._ranked = specs, Ranking(specs, documents(specs, self._around.config.cache_folder))
        return self._ranked[1]

    def tell_left_out(self, provider: Provider) -> None:
        """Tell which tools nobody can find that do not come along, where that is not what was told last."""
        carried = self.of(provider)
        here = {spec.name for spec in (*carried.tools, *carried.waiting)}
        names = [spec.name for spec in self._toolbox.offered if spec.name not in here and spec.name != SEARCH]
        if names and names != self._told:
            few = f"{', '.join(names[:_NAMED])}{' and others' if len(names) > _NAMED else ''}"
            self._around.warn(
                f"{provider.name} takes {provider.max_tools} tools. Left out: {few}. "
                "--tools, or !mode in a chat, chooses which are offered."
            )
        self._told = names


def _within(names: list[str], hot: Sequence[str], provider: Provider) -> list[str]:
    """As many of them as the service takes: those offered at once, and of the others the newest."""
    if provider.max_tools is None or len(names) <= provider.max_tools:
        return names
    others = [name for name in names if name not in hot]
    room = max(0, provider.max_tools - (len(names) - len(others)))
    dropped = set(others[: len(others) - room])
    return [name for name in names if name not in dropped][: provider.max_tools]


def _tokens(spec: ToolSpec) -> int:
    """What a tool takes of a request; a token is four bytes."""
    import json

    return (len(spec.name) + len(spec.description) + len(json.dumps(spec.parameters))) // CHARACTERS_PER_TOKEN
