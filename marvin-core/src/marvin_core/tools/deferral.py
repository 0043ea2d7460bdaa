"""Which of many tools a model is offered at once, and which wait until it looks for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from ..api.record import Record
from ..api.tools import ToolSpec
from ..util.text import cut, one_line

TOKENS = 2_500
"""What those may take of a request at most: with what says that there are more, 3,000."""
_CALLED, _OFTEN = 6, 3
"""How many tools are offered at once since the user's work calls them, and how often it called each at least."""
_GROUPS, _GROUP_NAME = 30, 20
"""Groups of tools that wait and are named, and characters of each name: no service takes an endless description."""
_OF_ONE = 12
"""Tools of one distribution that are offered at once because it says so."""


class Wish(Record):
    """What the tools that are offered at once follow.

    `calls` says how often each was called in the user's work until now; `first` is always among them. There are `most`
    at most, and together they take so many `tokens` at most.
    """

    is_code: bool
    calls: Mapping[str, int]
    first: str
    most: int
    tokens: int = TOKENS


def hot(specs: Sequence[ToolSpec], wish: Wish, tokens_of: Callable[[ToolSpec], int]) -> tuple[ToolSpec, ...]:
    """The tools that are offered at once, in the order of `specs`, but the first one of the wish first.

    Args:
        tokens_of: what a tool takes of a request, in tokens.
    """
    known = {spec.name: spec for spec in specs}
    often = [name for name, count in Counter(wish.calls).most_common() if count >= _OFTEN and name in known]
    usual = [*_declared(specs, is_code=wish.is_code), *_declared(specs, is_code=not wish.is_code)]
    # What is usual anyway takes no place from what else is called often, and is kept from making room for it.
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
    """The tools that packs have offered at once, the first ones of all groups before the second ones."""
    places = [(spec.in_code if is_code else spec.in_chat, spec) for spec in specs]
    names: list[str] = []
    of_one: Counter[str] = Counter()
    for _, spec in sorted(((place, spec) for place, spec in places if place > 0), key=lambda pair: pair[0]):
        of_one[spec.source] += 1
        if of_one[spec.source] <= _OF_ONE:
            names.append(spec.name)
    return names


def advertised(search: ToolSpec, waiting: Sequence[ToolSpec]) -> ToolSpec:
    """The search, saying how many tools of which groups wait."""
    groups: Counter[str] = Counter()
    for group, count in Counter(spec.group or spec.source for spec in waiting).items():
        groups[cut(one_line(group), _GROUP_NAME)] += count
    named = ", ".join(f"{group} {count}" for group, count in groups.most_common(_GROUPS))
    more = f" and {len(groups) - _GROUPS} more groups" if len(groups) > _GROUPS else ""
    return search.replace(description=f"{search.description} {len(waiting)} tools wait: {named}{more}.")
