"""The changes of tickets: creation, status, dependencies, links, and notes."""

from __future__ import annotations

import os
import time

from .ticket import STATUSES, TicketError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .folder import TicketFolder
    from .ticket import Ticket

_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
_OPTIONS = {
    "-d": "description",
    "--description": "description",
    "--design": "design",
    "--acceptance": "acceptance",
    "-t": "type",
    "--type": "type",
    "-p": "priority",
    "--priority": "priority",
    "-a": "assignee",
    "--assignee": "assignee",
    "--external-ref": "external-ref",
    "--parent": "parent",
    "--tags": "tags",
}
"""The options of `create`. Each is followed by its value, in any form."""
_SECTIONS = (("description", ""), ("design", "## Design"), ("acceptance", "## Acceptance Criteria"))


def apart(words: Sequence[str]) -> Sequence[str]:
    """The words after `create`, with `--parent=ID` split into two. Models write it like that."""
    found: list[str] = []
    rest = iter(words)
    for word in rest:
        option, equals, value = word.partition("=")
        if word in _OPTIONS:
            found += [word, *[value for value in [next(rest, None)] if value is not None]]
        elif equals and option in _OPTIONS:
            found += [option, value]
        else:
            found.append(word)
    return found


class NewTicket:
    """The parsed words after `create`.

    Raises:
        TicketError: an unknown option, or an option without a value.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.titles: list[str] = []
        self.given: dict[str, str] = {}
        rest = iter(words)
        for word in rest:
            if not word.startswith("-"):
                self.titles.append(word)
                continue
            name = _OPTIONS.get(word)
            if name is None:
                raise TicketError(f"Unknown option: {word}")
            value = next(rest, None)
            if value is None:
                raise TicketError(f"Error: option {word} needs a value")
            self.given[name] = value

    def create(self, folder: TicketFolder, place: str, user: Callable[[], str]) -> str:
        """Create the ticket; returns its id.

        Args:
            place: the folder whose name determines the beginning of the id.
            user: the default assignee.

        Raises:
            TicketError: the parent does not exist, or the file cannot be written.
        """
        given = self.given
        if given.get("parent"):
            given["parent"] = _listable(folder.resolve(given["parent"]))
        if "assignee" not in given:
            given["assignee"] = user()
        prefix = _prefix(os.path.basename(place))
        with folder.locked():
            return folder.create(lambda: f"{prefix}-{_random()}", self._text)

    def _text(self, ticket_id: str) -> str:
        given = {name: value for name, value in self.given.items() if value}
        head = {
            "id": ticket_id,
            "status": "open",
            "deps": "[]",
            "links": "[]",
            "created": timestamp(),
            "type": self.given.get("type", "task"),
            "priority": self.given.get("priority", "2"),
        }
        for name in ("assignee", "external-ref", "parent"):
            if name in given:
                head[name] = given[name]
        if "tags" in given:
            head["tags"] = f"[{given['tags'].replace(',', ', ')}]"
        # A value of several lines would be read as further fields.
        lines = ["---", *(f"{name}: {' '.join(value.splitlines())}" for name, value in head.items()), "---"]
        title = (self.titles[-1] if self.titles else "") or "Untitled"
        lines += [f"# {title}", ""]
        for name, heading in _SECTIONS:
            if name in given:
                lines += [*([heading, ""] if heading else []), given[name], ""]
        return "\n".join(lines) + "\n"


def set_status(folder: TicketFolder, given: str, status: str) -> tuple[str, str]:
    """Set the status of a ticket; returns its name and the previous status."""
    if status not in STATUSES:
        raise TicketError(f"Error: invalid status '{status}'. Must be one of: {' '.join(STATUSES)}")
    name = folder.resolve(given)
    with folder.locked():
        ticket = folder.read(name)
        folder.write(name, ticket.with_field("status", status))
    return name, ticket.status


def add_dependency(folder: TicketFolder, given: str, on: str) -> tuple[str, str, bool]:
    """Make a ticket depend on another one; returns both names, and whether the dependency is new."""
    name = folder.resolve(given)
    dependency = _listable(folder.resolve(on))
    with folder.locked():
        return name, dependency, _add(folder, name, "deps", [dependency]) > 0


def remove_dependency(folder: TicketFolder, given: str, on: str) -> tuple[str, str, bool]:
    """Remove a dependency; returns both names, and whether it existed."""
    name = folder.resolve(given)
    dependency = folder.resolve(on)
    with folder.locked():
        return name, dependency, _remove(folder, name, "deps", dependency)


def link(folder: TicketFolder, given: Sequence[str]) -> tuple[list[str], int]:
    """Link tickets with one another; returns their names, and the number of new links, counted in both directions."""
    names = [_listable(folder.resolve(one)) for one in given]
    with folder.locked():
        for name in names:  # nothing is written where one of them cannot be
            folder.read(name).with_items("links", ())
        return names, sum(_add(folder, name, "links", [one for one in names if one != name]) for name in names)


def unlink(folder: TicketFolder, given: str, other: str) -> tuple[str, str, bool]:
    """Remove the link between two tickets; returns their names, and whether there was one."""
    name = folder.resolve(given)
    target = folder.resolve(other)
    with folder.locked():
        removed = _remove(folder, name, "links", target)
        if removed:
            _remove(folder, target, "links", name)
    return name, target, removed


def add_note(folder: TicketFolder, given: str, note: Callable[[], str]) -> str:
    """Add a note to the end of a ticket; returns its name."""
    name = folder.resolve(given)
    text = note()
    with folder.locked():
        folder.write(name, folder.read(name).with_note(timestamp(), text))
    return name


def timestamp() -> str:
    """The time in the format of tickets: UTC, in seconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _add(folder: TicketFolder, name: str, field: str, ids: Sequence[str]) -> int:
    """Add the missing items to a list; returns their number."""
    ticket = folder.read(name)
    there = list(ticket.items(field))
    missing = [one for one in dict.fromkeys(ids) if one not in there]
    if missing:
        folder.write(name, ticket.with_items(field, [*there, *missing]))
    return len(missing)


def _remove(folder: TicketFolder, name: str, field: str, gone: str) -> bool:
    ticket: Ticket = folder.read(name)
    there = ticket.items(field)
    if gone not in there:
        return False
    folder.write(name, ticket.with_items(field, [one for one in there if one != gone]))
    return True


def _listable(name: str) -> str:
    """The name of a ticket, if a list can contain it.

    Raises:
        TicketError: a list would contain several names, or another one.
    """
    if name != name.strip() or not name.isprintable() or any(letter in ",[]#'\"" for letter in name):
        raise TicketError(f"Error: ticket '{name}' has a name that no other ticket can refer to. Rename its file")
    return name


def _prefix(folder_name: str) -> str:
    """The beginning of ids: the first letters of the parts of a folder's name, or its first three characters."""
    parts = folder_name.replace("-", " ").replace("_", " ").split()
    prefix = "".join(part[0] for part in parts)
    if len(prefix) < 2:
        prefix = folder_name[:3]
    # Other characters would part an id in a list, or hide its file.
    return "".join(letter for letter in prefix if letter.isascii() and letter.isalnum()) or "t"


def _random() -> str:
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in os.urandom(4))
