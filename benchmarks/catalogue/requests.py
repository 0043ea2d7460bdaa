"""Requests of people with the intended tools, and third-party tools next to ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from marvin_core.api.tools import Access, ToolSpec
from marvin_core.tools.routing.words import words

NOTHING = "nothing"
"""The section of requests without an intended tool."""
_ABOUT_MARVIN = "marvin"
"""The section of questions on Marvin itself, which mean no tool either."""
PRACTICE = Path(__file__).with_name("practice.txt")
"""Further requests, all for tuning."""
TALK = Path(__file__).with_name("talk.txt")
"""Talk that means no tool, all for tuning."""
ABOUT_MARVIN = Path(__file__).with_name("about_marvin.txt")
"""Questions about Marvin, all for tuning."""
MORE = Path(__file__).with_name("set_aside.txt")
"""Further requests, all held out."""
OTHER_AUTHOR = Path(__file__).with_name("other_author.txt")
"""Requests by somebody who knew only the names, parameters and purposes of the tools, all held out."""
THIRD_AUTHOR = Path(__file__).with_name("third_author.txt")
"""Later requests by a third author, who knew no more, all held out."""
FOURTH_AUTHOR = Path(__file__).with_name("fourth_author.txt")
"""Requests and talk by a fourth author, half for tuning and half held out."""
FIFTH_AUTHOR = Path(__file__).with_name("fifth_author.txt")
"""The same by a fifth author, with questions on Marvin itself."""
SIXTH_AUTHOR = Path(__file__).with_name("sixth_author.txt")
"""Fewer requests and talk by a sixth author; nothing was tuned on either half so far."""
SEVENTH_AUTHOR = Path(__file__).with_name("seventh_author.txt")
"""Requests, talk and questions on Marvin by a seventh author, all held out; written after the form was settled."""
EIGHTH_AUTHOR = Path(__file__).with_name("eighth_author.txt")
"""Requests and talk by an eighth author, all held out. The one rule that was changed later left their figures alone."""
_GROUP, _TUNED = 5, 3
"""Of each five requests the first three are for tuning."""

_SERVICES: Mapping[str, tuple[str, ...]] = {
    "slack": ("message", "channel", "user", "thread"),
    "jira": ("issue", "sprint", "board", "comment"),
    "notion": ("page", "database", "block", "comment"),
    "linear": ("issue", "project", "cycle", "label"),
    "gmail": ("email", "draft", "label", "attachment"),
    "outlook": ("email", "meeting", "contact", "folder"),
    "todoist": ("task", "project", "section", "label"),
    "trello": ("card", "list", "board", "checklist"),
    "dropbox": ("file", "folder", "link", "version"),
    "gdrive": ("document", "folder", "permission", "comment"),
    "gitlab": ("merge_request", "pipeline", "branch", "issue"),
    "postgres": ("table", "query", "index", "schema"),
    "docker": ("container", "image", "volume", "network"),
    "kubernetes": ("pod", "deployment", "service", "namespace"),
    "aws": ("bucket", "instance", "function", "alarm"),
    "stripe": ("invoice", "customer", "payment", "subscription"),
    "hue": ("light", "scene", "room", "sensor"),
    "strava": ("activity", "route", "segment", "athlete"),
    "zotero": ("reference", "collection", "note", "tag"),
}
_VERBS: Mapping[str, tuple[str, Access, tuple[str, ...]]] = {
    "list": ("List the {things} in {service}, the newest first.", "read", ("limit",)),
    "get": ("Show one {thing} of {service} with its details.", "read", ("id",)),
    "search": ("Search {service} for {things} that match a text.", "net", ("query", "limit")),
    "create": ("Create a new {thing} in {service}.", "write", ("title", "text")),
    "delete": ("Delete a {thing} from {service} for good.", "write", ("id",)),
}


def requests(
    file: Path | None = None, group: int = _GROUP, for_tuning: int = _TUNED
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The requests, each with the name of its tool or `NOTHING`: those for tuning, and those held out.

    An author may name several tools that would all do, with blanks between them.

    Args:
        group: the size of the groups of which some are for tuning, within a section.
        for_tuning: the number of those for tuning, at the beginning of each group.
    """
    tuned: list[tuple[str, str]] = []
    held: list[tuple[str, str]] = []
    name, number = "", 0
    for line in (file or Path(__file__).with_name("requests.txt")).read_text("utf-8").splitlines():
        if line.startswith("["):
            section = line[1:-1]
            name, number = NOTHING if section == _ABOUT_MARVIN else section, 0
        elif line and not line.startswith("#"):
            (tuned if number % group < for_tuning else held).append((line, name))
            number += 1
    return tuned, held


def set_aside() -> list[tuple[str, str]]:
    """All held-out requests."""
    return [*requests()[1], *(request for part in requests(MORE) for request in part)]


def for_tuning() -> list[tuple[str, str]]:
    """All requests and talk for tuning."""
    parts = (*requests(PRACTICE), *requests(TALK), *requests(ABOUT_MARVIN))
    said = [*requests()[0], *(request for part in parts for request in part)]
    return [*said, *by_the_fourth_author()[0], *by_the_fifth_author()[0]]


def by_the_fourth_author() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The requests of the fourth author: those for tuning, and those held out."""
    return requests(FOURTH_AUTHOR, group=2, for_tuning=1)


def by_the_fifth_author() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The requests of the fifth author: those for tuning, and those held out."""
    return requests(FIFTH_AUTHOR, group=2, for_tuning=1)


def by_the_sixth_author() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The requests of the sixth author: those that may be looked at, and those held out."""
    return requests(SIXTH_AUTHOR, group=2, for_tuning=1)


def by_another_author(file: Path = OTHER_AUTHOR) -> list[tuple[str, str]]:
    """The held-out requests of one of the other authors, without those that are also among the ones for tuning."""
    known = {tuple(words(text)) for text, _ in for_tuning()}
    said = [request for part in requests(file) for request in part]
    return [(text, name) for text, name in said if tuple(words(text)) not in known]


def third_party_tools() -> Iterator[ToolSpec]:
    """380 tools such as servers of others bring: many services, with the same verbs for all that they hold."""
    for service, things in _SERVICES.items():
        for thing in things:
            for verb, (text, access, parameters) in _VERBS.items():
                plain = thing.replace("_", " ")
                properties = {name: {"type": "integer" if name == "limit" else "string"} for name in parameters}
                yield ToolSpec(
                    name=f"{service}_{verb}_{thing}",
                    description=text.format(thing=plain, things=f"{plain}s", service=service.capitalize()),
                    parameters={"type": "object", "properties": properties, "required": [*parameters][:1]},
                    access=frozenset({access}),
                    source=f"marvin-{service}",
                )
