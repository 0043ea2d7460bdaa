"""Selects the tools that are always included when most of many are deferred."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from ..api.record import Record
from ..api.tools import ToolSpec
from ..util.text import cut, one_line

TOKENS = 2_500
"""The maximum size of these tools in a request, in tokens. With the note about the others it is about 3,000."""
_CALLED, _OFTEN = 6, 3
"""The maximum number of tools included because the user's work calls them, and the minimum number of their calls."""
_GROUPS, _GROUP_NAME = 30, 20
"""The maximum number of deferred groups that are named, and of characters of each name."""
_OF_ONE = 12
"""The maximum number of tools of one distribution that it declares as always included."""


class Wish(Record):
    """The inputs of this selection.

    `calls` is the number of calls of each tool in the user's work; `first` is always included. There are at most `most`
    tools, with at most `tokens` tokens together.
    """

    is_code: bool
    calls: Mapping[str, int]
    first: str
    most: int
    tokens: int = TOKENS


def hot(specs: Sequence[ToolSpec], wish: Wish, tokens_of: Callable[[ToolSpec], int]) -> tuple[ToolSpec, ...]:
    """The tools that are always included, in the order of `specs`, with the first one of the wish first.

    Args:
        tokens_of: the size of a tool in a request, in tokens.
    """
    known = {spec.name: spec for spec in specs}
    often = [name for name, count in Counter(wish.calls).most_common() if count >= _OFTEN and name in known]
    usual = [*_declared(specs, is_code=wish.is_code), *_declared(specs, is_code=not wish.is_code)]
    # First the often called tools that are not declared, then the declared ones, beginning with those called often.
    more = [name for name in often if name not in usual][:_CALLED]
    wanted = dict.fromkeys([*more, *(name for name in often if name in usual), *usual, *known])
    chosen = {wish.first} & set(known)
    left = wish.tokens - sum(tokens_of(known[name]) for name in chosen)
    for name in wanted:
        if len(chosen) >= wish.most:
            break
        tokens = tokens_of(known[name])
        if tokens <= left and name not in chosen:
            chosen.add(name)
            left -= tokens
    return tuple(sorted((known[name] for name in known if name in chosen), key=lambda spec: spec.name != wish.first))


def _declared(specs: Sequence[ToolSpec], *, is_code: bool) -> list[str]:
    """The tools that packs declare as always included, the first ones of all groups before the second ones."""
    places = [(spec.in_code if is_code else spec.in_chat, spec) for spec in specs]
    names: list[str] = []
    of_one: Counter[str] = Counter()
    for _, spec in sorted(((place, spec) for place, spec in places if place > 0), key=lambda pair: pair[0]):
        of_one[spec.source] += 1
        if of_one[spec.source] <= _OF_ONE:
            names.append(spec.name)
    return names


def advertised(search: ToolSpec, waiting: Sequence[ToolSpec]) -> ToolSpec:
    """The search tool, with the number of deferred tools and their groups."""
    groups: Counter[str] = Counter()
    for group, count in Counter(spec.group or spec.source for spec in waiting).items():
        groups[cut(one_line(group), _GROUP_NAME)] += count
    named = ", ".join(f"{group} {count}" for group, count in groups.most_common(_GROUPS))
    more = f" and {len(groups) - _GROUPS} more groups" if len(groups) > _GROUPS else ""
    return search.replace(description=f"{search.description} {len(waiting)} tools wait: {named}{more}.")
