"""What a session had and has no longer is said when it is gone on with."""

from __future__ import annotations

from marvin_core import Message, ToolCall
from marvin_core.api.messages import user
from marvin_core.engine.resumption import gone
from marvin_core.sessions.records import Header

HEADER = Header(id="s1", title="A chat", time=1.5, provider="p", model="m", working_dir="/w")


def calling(*names: str) -> list[Message]:
    return [user("go"), *(Message(role="assistant", content=(ToolCall(id="c", name=n, arguments=""),)) for n in names)]


def test_nothing_is_said_where_everything_is_still_there() -> None:
    assert gone(HEADER, calling("look", "look"), ["look"], {}, "/w") == []
    assert gone(HEADER.replace(working_dir=""), [], [], {}, "/w") == []


def test_each_tool_that_is_gone_is_named_once_with_the_reason() -> None:
    told = gone(HEADER, calling("look", "run", "look", "run", "stay"), ["stay"], {"run": "denied by config.yaml"}, "/w")
    assert told == [
        "This session used look, which is not available here: no installed pack provides it.",
        "This session used run, which is not available here: denied by config.yaml.",
    ]


def test_another_folder_is_named() -> None:
    assert gone(HEADER, [], [], {}, "/v") == ["This session was in /w; it continues in /v."]


def test_of_many_tools_some_are_named() -> None:
    told = gone(HEADER, calling(*"abcdefgh"), [], {}, "/w")
    assert len(told) == 6
    assert told[-1] == "3 more of the tools that it used are not available here."
