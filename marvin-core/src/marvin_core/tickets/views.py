"""The views of tickets: lists, one ticket with related ones, and all of them as JSON."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from .ticket import Ticket


class Filter:
    """The conditions for the tickets of a list; an empty one does not apply."""

    __slots__ = ("assignee", "limit", "status", "tag")

    def __init__(self) -> None:
        self.status = ""
        self.assignee = ""
        self.tag = ""
        self.limit = "20"

    def holds(self, ticket: Ticket) -> bool:
        """Whether a ticket is on the list."""
        return (
            self.status in ("", ticket.status)
            and self.assignee in ("", ticket.value("assignee"))
            and (not self.tag or self.tag in ticket.items("tags"))
        )


def listed(tickets: Iterable[Ticket], wanted: Filter) -> Iterator[str]:
    """The tickets, with their dependencies."""
    for ticket in filter(wanted.holds, tickets):
        deps = f" <- [{', '.join(ticket.deps)}]" if ticket.deps else ""
        yield f"{ticket.id:<8} [{ticket.status}] - {ticket.title}{deps}"


def closed(newest: Iterable[Ticket], wanted: Filter, most: int) -> Iterator[str]:
    """The closed tickets among those with the latest changes."""
    for ticket in newest:
        if most <= 0:
            return
        if ticket.id and ticket.status in ("closed", "done") and wanted.holds(ticket):
            yield f"{ticket.id:<8} [{ticket.status}] - {ticket.title}"
            most -= 1


def ready(tickets: Mapping[str, Ticket], wanted: Filter) -> Iterator[str]:
    """The tickets that can be started, the most urgent first: all their dependencies are closed."""
    for ticket in _by_priority(tickets, wanted):
        if not _open_deps(tickets, ticket):
            yield _with_priority(ticket)


def blocked(tickets: Mapping[str, Ticket], wanted: Filter) -> Iterator[str]:
    """The tickets that must wait, with those they wait for."""
    for ticket in _by_priority(tickets, wanted):
        waits_for = _open_deps(tickets, ticket)
        if waits_for:
            yield f"{_with_priority(ticket)} <- [{', '.join(waits_for)}]"


def shown(tickets: Mapping[str, Ticket], ticket: Ticket) -> Iterator[str]:
    """A ticket as in its file, with the title of its parent, followed by related tickets."""
    parent = ticket.fields.get("parent")
    text = ticket.text
    if parent is not None and parent.value in tickets:
        text = f"{text[: parent.stop]}  # {tickets[parent.value].title}{text[parent.stop :]}"
    if text:
        yield text.removesuffix("\n")
    others = [tickets[one] for one in sorted(tickets)]
    parts = (
        ("Blockers", _entries(tickets, _open_deps(tickets, ticket))),
        (
            "Blocking",
            _entries(tickets, [one.id for one in others if ticket.name in one.deps and one.status != "closed"]),
        ),
        ("Children", _entries(tickets, [one.id for one in others if one.parent == ticket.name])),
        ("Linked", _entries(tickets, ticket.links)),
    )
    for heading, entries in parts:
        if entries:
            yield from ("", f"## {heading}", "", *entries)


def as_json(tickets: Iterable[Ticket]) -> Iterator[str]:
    """An object for each ticket: its fields as strings, and lists as arrays."""
    from json import dumps  # which is a third of a start

    for ticket in tickets:
        fields = {name: field.value if field.items is None else field.items for name, field in ticket.fields.items()}
        # What is no UTF-8 in the file would be none in the output either.
        text = dumps(fields, ensure_ascii=False, separators=(",", ":"))
        yield text.encode("utf-8", "replace").decode("utf-8")


def _entries(tickets: Mapping[str, Ticket], ids: Sequence[str]) -> list[str]:
    found = []
    for one in ids:
        ticket = tickets.get(one)
        found.append(f"- {one} [{ticket.status}] {ticket.title}" if ticket is not None else f"- {one} [] ")
    return found


def _open_deps(tickets: Mapping[str, Ticket], ticket: Ticket) -> list[str]:
    return [one for one in ticket.deps if one not in tickets or tickets[one].status != "closed"]


def _by_priority(tickets: Mapping[str, Ticket], wanted: Filter) -> list[Ticket]:
    found = [ticket for ticket in tickets.values() if ticket.is_open and wanted.holds(ticket)]
    return sorted(found, key=lambda ticket: (*_order(ticket.priority), ticket.id))


def _order(priority: str) -> tuple[int, int, str]:
    """Sorts numbers by value, before other texts."""
    return (
        (0, int(priority), "") if priority.isascii() and priority.isdigit() and len(priority) < 10 else (1, 0, priority)
    )


def _with_priority(ticket: Ticket) -> str:
    return f"{ticket.id:<8} [P{ticket.priority}][{ticket.status}] - {ticket.title}"
