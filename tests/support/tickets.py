"""A project with tickets, and the ticket program in it, in this process."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from marvin_core import TicketError, TicketFolder, TicketPlace, run_tickets

TEXT = """\
---
id: {id}
status: {status}
deps: [{deps}]
links: [{links}]
created: 2024-05-06T07:08:09Z
type: task
priority: {priority}
{more}---
# {title}

What should be done.
"""


class Desk:
    """A folder with tickets. `run` is the program without a terminal; `put` writes a ticket by hand."""

    def __init__(self, root: Path, *, strict: bool = False) -> None:
        self.root = root
        self.tickets = root / ".tickets"
        self.tickets.mkdir(parents=True, exist_ok=True)
        self.place = TicketPlace(str(root))
        self.place.strict = strict

    def put(self, name: str, title: str = "A ticket", more: str = "", **fields: Any) -> Path:
        """Write a ticket. `more` are further lines of its front matter."""
        given = {"id": name, "status": "open", "deps": "", "links": "", "priority": 2, **fields}
        path = self.tickets / f"{name}.md"
        path.write_text(TEXT.format(title=title, more=more, **given), encoding="utf-8")
        return path

    def chain(self, count: int, *, closed_circle: bool = False) -> None:
        """Tickets of which each depends on the next, the last one on the first if the circle is closed."""
        for number in range(count):
            after = number + 1
            deps = f"n{after}" if after < count else "n0" if closed_circle else ""
            self.put(f"n{number}", deps=deps)

    def run(self, *words: str) -> str:
        """What a command line prints; it must succeed."""
        outcome = run_tickets(words, self.place)
        text = "\n".join(outcome.lines)
        assert outcome.exit_code == 0, text
        return text

    def fails(self, *words: str) -> str:
        """What is said of a command line that must fail with exit code 1."""
        try:
            outcome = run_tickets(words, self.place)
        except TicketError as error:
            return str(error)
        assert outcome.exit_code == 1
        return "\n".join(outcome.lines)

    def create(self, *words: str) -> Path:
        """The file of a ticket that `create` makes."""
        return self.tickets / f"{self.run('create', *words)}.md"

    def text(self, name: str) -> str:
        """The file of a ticket, byte for byte."""
        return (self.tickets / f"{name}.md").read_bytes().decode("utf-8", "surrogateescape")

    def field(self, name: str, field: str) -> str:
        """The value of a field of a ticket."""
        with TicketFolder(str(self.tickets)) as folder:
            return folder.read(name).value(field)

    def records(self) -> Sequence[Mapping[str, Any]]:
        """What `query` prints."""
        return [json.loads(line) for line in filter(None, self.run("query").split("\n"))]

    def files(self) -> list[str]:
        """All that is in the folder."""
        return sorted(path.name for path in self.tickets.iterdir())


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """An empty folder of tickets, in a project with a name that gives ids the prefix mp."""
    return Desk(tmp_path / "my-project")
