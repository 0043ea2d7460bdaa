"""One ticket: a Markdown file whose front matter holds its state. An edit changes one field and no other byte.

The format is that of the public program tk (https://github.com/wedow/ticket), so both work on the same files.
"""

from __future__ import annotations

# Type checkers take it for the constant of `typing`; each import here would be felt at every start of `marvin-tk`.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

STATUSES = ("open", "in_progress", "closed")
_FENCE = "---"
_BOM = "\ufeff"


class TicketError(Exception):
    """A ticket command failed; the text says why. `exit_code` is that of the program."""

    def __init__(self, text: str, exit_code: int = 1) -> None:
        super().__init__(text)
        self.exit_code = exit_code


class Field:
    """A field of the front matter. `start` and `stop` are its offsets in the text, without the line end."""

    __slots__ = ("items", "name", "start", "stop", "value")

    def __init__(self, name: str, value: str, start: int, stop: int) -> None:
        self.name = name
        self.value = value
        self.start = start
        self.stop = stop
        self.items = _items(value) if value[:1] == "[" and value[-1:] == "]" else None


class Ticket:
    """The content of a ticket's file.

    `name` is the name of the file without `.md`, and identifies the ticket. Missing fields are empty here; a missing
    priority is 2.
    """

    __slots__ = ("fields", "name", "text", "title")

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self.fields: dict[str, Field] = {}
        self.title = ""
        self._read()

    @property
    def id(self) -> str:
        """The id in the file; lists leave out a file without one."""
        return self.value("id")

    @property
    def status(self) -> str:
        return self.value("status")

    @property
    def priority(self) -> str:
        return self.value("priority") or "2"

    @property
    def parent(self) -> str:
        """The id of the parent, without the comment that `show` adds."""
        return self.value("parent").partition(" #")[0].rstrip()

    @property
    def deps(self) -> Sequence[str]:
        return self.items("deps")

    @property
    def links(self) -> Sequence[str]:
        return self.items("links")

    @property
    def is_open(self) -> bool:
        """Whether it is open or in progress."""
        return self.status in ("open", "in_progress")

    @property
    def line_end(self) -> str:
        """The line end that the file uses."""
        end = self.text.find("\n")
        return "\r\n" if end > 0 and self.text[end - 1] == "\r" else "\n"

    def value(self, name: str) -> str:
        """The value of a field, as written."""
        found = self.fields.get(name)
        return found.value if found is not None else ""

    def items(self, name: str) -> Sequence[str]:
        """The items of a field that holds a list."""
        found = self.fields.get(name)
        return [] if found is None or found.items is None else found.items

    def with_field(self, name: str, value: str) -> str:
        """The text with another value of a field. A missing field is added at the beginning.

        Raises:
            TicketError: the file has no front matter.
        """
        found = self.fields.get(name)
        if found is not None:
            return f"{self.text[: found.start]}{name}: {value}{self.text[found.stop :]}"
        if not _has_front_matter(self.text):
            raise TicketError(f"Error: ticket '{self.name}' has no front matter: its first line is not '{_FENCE}'")
        begin = self.text.find("\n") + 1
        if not begin:
            return f"{self.text}\n{name}: {value}\n"
        return f"{self.text[:begin]}{name}: {value}{self.line_end}{self.text[begin:]}"

    def with_items(self, name: str, items: Sequence[str]) -> str:
        """The text with other items in a list; see `with_field`."""
        return self.with_field(name, f"[{', '.join(items)}]")

    def with_note(self, timestamp: str, note: str) -> str:
        """The text with a note at its end, below a heading that is created for the first note."""
        has_notes = self.text.startswith("## Notes") or "\n## Notes" in self.text
        heading = "" if has_notes else "\n## Notes\n"
        added = f"{heading}\n**{timestamp}**\n\n{note}\n"
        return self.text + (added.replace("\n", "\r\n") if self.line_end == "\r\n" else added)

    def _read(self) -> None:
        text = self.text
        place = 0
        if _has_front_matter(text):
            place = _line_end(text, 0) + 1
            while place < len(text):
                end = _line_end(text, place)
                line = text[place:end].rstrip()
                if line == _FENCE:
                    place = end + 1
                    break
                place = self._read_field(line, place, end)
        self.title = _title(text, place)

    def _read_field(self, line: str, start: int, end: int) -> int:
        """Read the field of a line; returns the offset of the next field."""
        name, colon, value = line.partition(":")
        if not colon or not (name[:1].isalpha() and name.isascii()) or " " in name:
            return end + 1
        if name in self.fields:  # the first one counts, and is the one that is changed
            return end + 1
        found = Field(name, value.strip(), start, start + len(line))
        self.fields[name] = found
        return end + 1 if found.value else self._read_block(found, end)

    def _read_block(self, field: Field, end: int) -> int:
        """Read the items below a field, each on a line with a dash; returns the offset of the next field."""
        text, items = self.text, []
        place = end + 1
        while place < len(text):
            end = _line_end(text, place)
            line = text[place:end].strip()
            if line[:2] != "- ":
                break
            items.append(_unquoted(line[2:]))
            field.stop = place + len(text[place:end].rstrip())
            place = end + 1
        if items:
            field.items = items
        return place


def is_complete(text: str) -> bool:
    """Whether the beginning of a file contains everything that lists show of the ticket: its front matter and title."""
    if not _has_front_matter(text):
        return "\n# " in text
    end = text.find(f"\n{_FENCE}", len(_FENCE))
    title = text.find("\n# ", end + 1) if end >= 0 else -1
    return title >= 0 and text.find("\n", title + 1) >= 0


def _has_front_matter(text: str) -> bool:
    return text[: _line_end(text, 0)].removeprefix(_BOM).rstrip() == _FENCE


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return end if end >= 0 else len(text)


def _title(text: str, start: int) -> str:
    """The text of the first heading after the front matter."""
    if text.startswith("# ", start):
        begin = start + 2
    else:
        found = text.find("\n# ", max(start - 1, 0))
        if found < 0:
            return ""
        begin = found + 3
    return text[begin : _line_end(text, begin)].removesuffix("\r")


def _items(value: str) -> list[str]:
    return [item for item in (_unquoted(part) for part in value[1:-1].split(",")) if item]


def _unquoted(item: str) -> str:
    item = item.strip()
    return item[1:-1].strip() if len(item) > 1 and item[0] == item[-1] and item[0] in "'\"" else item
