"""Dependencies: the tree below a ticket, and cycles. Nothing here recurses, and the work is bounded."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .ticket import Ticket

_LONGEST_TREE = 2_000_000
"""The maximum number of shown characters of a tree. The size of a deep tree grows with the square of its tickets."""
_MOST_CYCLES = 100
_BETWEEN, _LAST = "├── ", "└── "


class DependencyTree:
    """The dependencies of a ticket, and their dependencies.

    Args:
        tickets: all tickets by id. Dependencies that are not among them are left out.
        root: the id of the ticket at the top.
        full: whether a ticket appears below each one that depends on it, and not only once, at its deepest position.
    """

    def __init__(self, tickets: Mapping[str, Ticket], root: str, *, full: bool) -> None:
        self._tickets = tickets
        self._root = root
        self._full = full
        self._depths: dict[str, int] = {root: 0}
        self._below: dict[str, int] = {}
        self._shown: set[str] = set()
        """The tickets that are printed already; with `full`, those above the current line."""
        self._measure()

    def lines(self) -> Iterator[str]:
        """The tree, one line for each ticket. A cycle is cut where it would close; shallower tickets come first."""
        length = 0
        stack: list[tuple[str, int, str, str] | str] = [(self._root, 0, "", "")]
        while stack:
            entry = stack.pop()
            if isinstance(entry, str):  # all that is below this one was printed
                self._shown.discard(entry)
                continue
            ticket_id, depth, prefix, connector = entry
            line = f"{prefix}{connector}{told(self._tickets[ticket_id])}"
            length += len(line)
            if length > _LONGEST_TREE:
                yield f"[the rest is left out: the tree has more than {_LONGEST_TREE:,} characters]"
                return
            yield line
            self._shown.add(ticket_id)
            if self._full:
                stack.append(ticket_id)
            if depth:
                prefix += "    " if connector == _LAST else "│   "
            children = self._children(ticket_id, depth)
            for number, child in enumerate(reversed(children)):
                stack.append((child, depth + 1, prefix, _BETWEEN if number else _LAST))

    def _children(self, ticket_id: str, depth: int) -> list[str]:
        found = {
            one
            for one in self._tickets[ticket_id].deps
            if one in self._depths and one not in self._shown and (self._full or self._depths[one] == depth + 1)
        }
        return sorted(found, key=lambda one: (self._below[one], one))

    def _measure(self) -> None:
        """Determine the maximum depth of each ticket, and the depth below it."""
        order, edges = self._walk()
        for one in reversed(order):  # each comes before what it depends on
            for child in edges[one]:
                self._depths[child] = max(self._depths.get(child, 0), self._depths[one] + 1)
        for one in order:
            self._below[one] = max([self._depths[one], *(self._below[child] for child in edges[one])])

    def _walk(self) -> tuple[list[str], dict[str, list[str]]]:
        """The tickets below the root, each after its dependencies, without dependencies that form cycles."""
        order: list[str] = []
        edges: dict[str, list[str]] = {self._root: []}
        above = {self._root}
        stack = [(self._root, iter(self._tickets[self._root].deps))]
        while stack:
            one, rest = stack[-1]
            child = next(rest, None)
            if child is None:
                stack.pop()
                above.discard(one)
                order.append(one)
            elif child in self._tickets and child not in above:
                edges[one].append(child)
                if child not in edges:
                    edges[child] = []
                    above.add(child)
                    stack.append((child, iter(self._tickets[child].deps)))
        return order, edges


def cycle_lines(tickets: Mapping[str, Ticket]) -> Iterator[str]:
    """The cycles among tickets that are not closed, each with its tickets."""
    number = 0
    for number, cycle in enumerate(_cycles(tickets), 1):
        if number > 1:
            yield ""
        if number > _MOST_CYCLES:
            yield f"[there are more than {_MOST_CYCLES} cycles; the rest is left out]"
            return
        yield f"Cycle {number}: {' -> '.join([*cycle, cycle[0]])}"
        for one in cycle:
            yield f"  {one:<8} [{tickets[one].status}] {tickets[one].title}"
    if not number:
        yield "No dependency cycles found"


def _cycles(tickets: Mapping[str, Ticket]) -> Iterator[tuple[str, ...]]:
    """Cycles, each once, from its first id on."""
    current = {name: ticket for name, ticket in tickets.items() if ticket.status != "closed"}
    done: set[str] = set()
    seen: set[tuple[str, ...]] = set()
    for start in sorted(current):
        if start in done:
            continue
        places = {start: 0}
        path = [start]
        stack = [iter(current[start].deps)]
        while stack:
            child = next(stack[-1], None)
            if child is None:
                stack.pop()
                done.add(path[-1])
                del places[path.pop()]
            elif child in places:
                cycle = path[places[child] :]
                first = cycle.index(min(cycle))
                turned = (*cycle[first:], *cycle[:first])
                if turned not in seen:
                    seen.add(turned)
                    yield turned
            elif child in current and child not in done:
                places[child] = len(path)
                path.append(child)
                stack.append(iter(current[child].deps))


def told(ticket: Ticket) -> str:
    """A ticket in one line: its id, its status and its title."""
    return f"{ticket.id} [{ticket.status}] {ticket.title}"
