"""What people say for the tools of their own things is understood without a model."""

from __future__ import annotations

from typing import Any

import pytest

from marvin_core.testing.tool_runner import installed_tools
from marvin_core.tools.routing.router import Router

SAID: list[tuple[str, str, str, dict[str, Any]]] = [
    ("list my notes", "act", "notes_ls", {}),
    ("search my notes for tomato plants", "act", "search_notes", {"query": "tomato plants"}),
    (
        "write a note called garden that says plant a tree",
        "confirm",
        "write_note",
        {"path": "garden", "content": "plant a tree"},
    ),
    (
        "add eggs to my shopping note",
        "confirm",
        "write_note",
        {"content": "eggs", "path": "shopping", "append": True},
    ),
    ("read the note garden", "act", "read_note", {"path": "garden"}),
    ("lines 2 to 5 of the note garden", "act", "file_read_lines", {"start": 2, "end": 5, "path": "garden"}),
    ("make a folder ideas for notes", "confirm", "notes_mkdir", {"path": "ideas"}),
    ("show my calendar", "act", "calendar_view", {}),
    ("what is in my calendar", "act", "calendar_list_upcoming", {}),
    ("events of the next 14 days", "act", "calendar_list_upcoming", {"days": 14}),
    ("add an event lunch at 12:30", "confirm", "calendar_add_event", {"title": "lunch", "start": "12:30"}),
    ("delete the event dentist", "confirm", "calendar_delete_event", {"title": "dentist"}),
    (
        "bookmark https://example.org/a as Example",
        "confirm",
        "bookmark_save",
        {"url": "https://example.org/a", "title": "Example"},
    ),
    ("list my bookmarks", "act", "bookmark_list", {}),
    ("search my bookmarks for bread", "act", "bookmark_search", {"query": "bread"}),
    ("my home is at 1 Elm Street", "confirm", "save_place", {"address": "1 Elm Street", "label": "home"}),
    ("show my address book", "act", "list_places", {}),
    ("forget the saved place gym", "confirm", "remove_place", {"label": "gym"}),
    (
        "180 cm in feet and inches",
        "act",
        "convert_units",
        {"value": 180, "from_unit": "cm", "to_unit": "feet and inches"},
    ),
    (
        "remember that I am vegetarian",
        "confirm",
        "update_preferences",
        {"key": "notes", "action": "add", "value": "that I am vegetarian"},
    ),
    ("use miles for distances", "confirm", "update_preferences", {"key": "distance_unit", "value": "miles"}),
]


@pytest.fixture(scope="module")
def router() -> Router:
    return Router(installed_tools())


@pytest.mark.parametrize(("request_text", "action", "tool", "arguments"), SAID)
def test_a_request_is_the_call_that_it_means(
    router: Router, request_text: str, action: str, tool: str, arguments: dict[str, Any]
) -> None:
    """What changes something is confirmed first."""
    route = router.route(request_text)
    assert (route.action, route.proposals[0].spec.name) == (action, tool)
    assert dict(route.proposals[0].arguments) == arguments
