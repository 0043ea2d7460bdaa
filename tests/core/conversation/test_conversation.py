"""The live context: what is in it, how much it is, and that each message is saved as it comes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core import Image, Message, Text, ToolCall, ToolOutput
from marvin_core.api.messages import IMAGE_TOKENS, tool, user
from marvin_core.api.timeouts import Timeouts
from marvin_core.conversation.conversation import Conversation
from marvin_core.conversation.window import CHARACTERS_PER_TOKEN
from marvin_core.guard.redaction import Redactor
from marvin_core.sessions.reader import load
from marvin_core.sessions.writer import SessionWriter
from tests.support.counting import calls_in_this_thread
from tests.support.examples import examples


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


@examples(100)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["append", "load", "replace"]),
            st.lists(st.tuples(st.sampled_from(["read_file", "look"]), st.integers(0, 5)), max_size=3),
        ),
        max_size=6,
    )
)
def test_what_is_counted_once_is_what_counting_anew_would_give(
    steps: list[tuple[str, list[tuple[str, int]]]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Each call of a tool asks for these sums: they must be right whatever became of the conversation meanwhile."""
    conversation = Conversation(SessionWriter(tmp_path_factory.getbasetemp(), Timeouts(), pytest.fail), Redactor(tuple))
    for what, outputs in steps:
        message = tool([output(name, "x" * size) for name, size in outputs])
        if what == "append":
            conversation.append(message)
        else:
            getattr(conversation, what)([user("before"), message])
        sums = {name: conversation.output_characters(name) for name in ("read_file", "look")}
        whole = [each for one in conversation.messages for each in one.outputs]
        assert sums == {name: sum(len(each.text) for each in whole if each.name == name) for name in sums}
        assert conversation.messages[-1] == message
        assert conversation.messages is conversation.messages


def test_what_a_tool_asks_of_a_long_conversation_does_not_go_through_all_of_it(conversation: Conversation) -> None:
    for _ in range(500):
        conversation.append(tool([output("read_file", "x")]))
    assert conversation.output_characters("read_file") == 500
    conversation.append(tool([output("read_file", "x")]))
    assert calls_in_this_thread(lambda: conversation.output_characters("read_file"), "marvin_core") < 5


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
