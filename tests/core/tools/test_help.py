"""Help for one tool or command, in chats and in a shell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from marvin_core.tools.help import in_shell, summary, tool_help, typed_call, with_typed_calls
from marvin_core.tools.schema import describe
from marvin_core.ui.completion import candidates
from marvin_core.ui.manual_calls import help_about
from tests.support import engine_tools
from tests.support.engine import Script, make, says, spec

MAIL = describe(engine_tools.send_mail, source="tests", group="mail")


def test_help_names_what_a_tool_takes_and_touches_and_how_to_call_it() -> None:
    shown = tool_help(MAIL)
    assert shown.startswith("send_mail (tests, group mail)\n\nSend a mail; asks first.\n")
    assert "  to  text, required" in shown
    assert "  also  a list, each item text, optional" in shown
    assert "Access: write" in shown
    assert "Example: /send_mail to=text" in shown
    assert "Example: marvin tools call send_mail to=text" in tool_help(MAIL, in_shell())


def test_defaults_and_allowed_values_are_shown() -> None:
    properties = {"size": {"type": "string", "enum": ["s", "l"], "default": "s", "description": "How large"}}
    shown = tool_help(spec("shirt").replace(parameters={"type": "object", "properties": properties}))
    assert '  size  one of "s", "l", default "s": How large' in shown
    assert "It has no parameters." in tool_help(spec("nothing"))


def test_what_can_be_said_is_shown_and_the_example_is_one_that_people_mean() -> None:
    phrases: tuple[Any, ...] = ({"say": "mail Ada", "arguments": {"to": "Ada L"}, "slots": {}},)
    shown = tool_help(MAIL.replace(phrases=phrases))
    assert "Example: /send_mail to='Ada L'" in shown
    assert "mail Ada" in shown


def test_a_summary_is_the_first_sentence() -> None:
    assert summary(spec("x").replace(description="Read a file\nof text. Fast, too.\n\nMore.")) == "Read a file of text."
    assert summary(spec("x").replace(description="No stop\n\nMore.")) == "No stop"


def test_a_typed_call_quotes_what_a_shell_would_split() -> None:
    assert (
        typed_call("x", {"a": "two words", "b": ["c"], "d": True, "e": ""})
        == "/x a='two words' b='[\"c\"]' d=true e=''"
    )
    assert typed_call("x", {}) == "/x"


def test_help_is_found_by_name_with_and_without_a_slash(tmp_path: Path) -> None:
    session = make(tmp_path).session
    assert help_about(session, "look") == help_about(session, " /look ")
    assert "Read something" in help_about(session, "look")
    assert "'look'" in help_about(session, "loook")
    assert "/help lists them all" in help_about(session, "wibble")
    assert "Keys: Enter sends" in help_about(session, "")


def test_the_names_behind_help_are_completed(tmp_path: Path) -> None:
    session = make(tmp_path).session
    (found,) = candidates("/help send_m", session)
    assert (found.text, found.replaces) == ("send_mail ", len("send_m"))
    assert [found.text for found in candidates("/send_m", session)] == ["/send_mail "]


def test_models_are_completed_behind_the_command(tmp_path: Path) -> None:
    small = Script(says("one"), name="small", model="s1")
    session = make(tmp_path, provider=small).session
    assert [found.text for found in candidates("/model s", session)] == ["s1 ", "small/s1 "]
    assert [found.text for found in candidates("!model small/", session)] == ["small/s1 "]
    assert [found.text for found in candidates("/model hi", session)] == ["high "]


def test_a_call_that_a_tool_tells_is_shown_as_people_type_it() -> None:
    assert with_typed_calls('Try dice({"sides": 6}).') == "Try /dice sides=6."
    deep = "dice(" + '{"a":' * 100_000 + "1" + "}" * 100_000 + ")"
    assert with_typed_calls(deep) == deep
