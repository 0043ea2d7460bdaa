"""The live context: what is in it, how much it is, and that each message is saved as it comes."""

from __future__ import annotations

from pathlib import Path

import pytest

from marvin_core import Image, Message, Text, ToolCall, ToolOutput
from marvin_core.api.messages import IMAGE_TOKENS, tool, user
from marvin_core.api.timeouts import Timeouts
from marvin_core.conversation.conversation import Conversation
from marvin_core.conversation.window import CHARACTERS_PER_TOKEN
from marvin_core.guard.redaction import Redactor
from marvin_core.sessions.reader import load
from marvin_core.sessions.writer import SessionWriter


def output(name: str, text: str) -> ToolOutput:
    return ToolOutput(call_id="1", name=name, content=(Text(text=text),))


@pytest.fixture
def writer(tmp_path: Path) -> SessionWriter:
    made = SessionWriter(tmp_path, Timeouts(), pytest.fail)
    made.begin(0.0, "go", "p", "m", str(tmp_path))
    return made


@pytest.fixture
def conversation(writer: SessionWriter) -> Conversation:
    return Conversation(writer, Redactor(tuple))


def on_disk(writer: SessionWriter) -> list[Message]:
    assert writer.position is not None
    return list(load(writer.position[0]).messages)


def test_each_message_is_saved_as_it_is_added(writer: SessionWriter, conversation: Conversation) -> None:
    for text in ("one", "two"):
        conversation.append(user(text))
        assert on_disk(writer) == list(conversation.messages)


def test_loaded_messages_are_not_saved_again(writer: SessionWriter, conversation: Conversation) -> None:
    conversation.load([user("old"), user("older")])
    assert (len(conversation.messages), conversation.characters) == (2, 8)
    conversation.append(user("new"))
    assert on_disk(writer) == [user("new")]


def test_messages_that_stand_for_all_others_are_saved(writer: SessionWriter, conversation: Conversation) -> None:
    conversation.append(user("old"))
    conversation.replace([user("a summary")])
    assert on_disk(writer) == list(conversation.messages) == [user("a summary")]


def test_characters_count_text_calls_outputs_and_images(conversation: Conversation) -> None:
    conversation.append(user("12345"))
    conversation.append(Message(role="assistant", content=(ToolCall(id="1", name="look", arguments="{}"),)))
    conversation.append(tool([output("look", "123")]))
    assert conversation.characters == 5 + 6 + 3
    conversation.append(user("", Image(media_type="image/png", data="x" * 100_000)))
    assert conversation.characters == 14 + IMAGE_TOKENS * CHARACTERS_PER_TOKEN


def test_the_outputs_of_one_tool_are_counted_apart(conversation: Conversation) -> None:
    conversation.append(tool([output("read_file", "x" * 10), output("look", "y" * 5)]))
    conversation.append(tool([output("read_file", "x" * 3)]))
    assert conversation.output_characters("read_file") == 13
    assert conversation.output_characters("write_file") == 0


def test_the_messages_handed_out_do_not_change_afterwards(conversation: Conversation) -> None:
    conversation.append(user("one"))
    before = conversation.messages
    conversation.append(user("two"))
    assert len(before) == 1


def test_answers_that_are_taken_out_to_make_room_are_still_known(conversation: Conversation) -> None:
    conversation.append(Message(role="assistant", content=(Text(text="before"),)))
    answers = conversation.begin_answers()
    conversation.append(Message(role="assistant", content=(Text(text="one"),)))
    conversation.append(user("go on"))
    conversation.load(())
    conversation.append(Message(role="assistant", content=(Text(text="two"),)))
    assert list(answers) == ["one", "two"]
