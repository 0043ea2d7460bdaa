"""The live context: what is in it, how much it is, and that each message is saved as it comes."""

from __future__ import annotations

from marvin_core import Image, Message, Text, ToolCall, ToolOutput
from marvin_core.api.messages import IMAGE_TOKENS, tool, user
from marvin_core.conversation.conversation import Conversation
from marvin_core.conversation.window import CHARACTERS_PER_TOKEN


def output(name: str, text: str) -> ToolOutput:
    return ToolOutput(call_id="1", name=name, content=(Text(text=text),))


def test_each_message_is_saved_as_it_is_added() -> None:
    saved: list[Message] = []
    conversation = Conversation(saved.append)
    for text in ("one", "two"):
        conversation.append(user(text))
        assert saved == list(conversation.messages)


def test_loaded_messages_are_not_saved_again() -> None:
    saved: list[Message] = []
    conversation = Conversation(saved.append)
    conversation.load([user("old"), user("older")])
    assert (len(conversation.messages), conversation.characters, saved) == (2, 8, [])


def test_characters_count_text_calls_outputs_and_images() -> None:
    conversation = Conversation(lambda message: None)
    conversation.append(user("12345"))
    conversation.append(Message(role="assistant", content=(ToolCall(id="1", name="look", arguments="{}"),)))
    conversation.append(tool([output("look", "123")]))
    assert conversation.characters == 5 + 6 + 3
    conversation.append(user("", Image(media_type="image/png", data="x" * 100_000)))
    assert conversation.characters == 14 + IMAGE_TOKENS * CHARACTERS_PER_TOKEN


def test_the_outputs_of_one_tool_are_counted_apart() -> None:
    conversation = Conversation(lambda message: None)
    conversation.append(tool([output("read_file", "x" * 10), output("look", "y" * 5)]))
    conversation.append(tool([output("read_file", "x" * 3)]))
    assert conversation.output_characters("read_file") == 13
    assert conversation.output_characters("write_file") == 0


def test_the_messages_handed_out_do_not_change_afterwards() -> None:
    conversation = Conversation(lambda message: None)
    conversation.append(user("one"))
    before = conversation.messages
    conversation.append(user("two"))
    assert len(before) == 1


def test_answers_that_are_taken_out_to_make_room_are_still_known() -> None:
    conversation = Conversation(lambda message: None)
    conversation.append(Message(role="assistant", content=(Text(text="before"),)))
    answers = conversation.begin_answers()
    conversation.append(Message(role="assistant", content=(Text(text="one"),)))
    conversation.append(user("go on"))
    conversation.load(())
    conversation.append(Message(role="assistant", content=(Text(text="two"),)))
    assert list(answers) == ["one", "two"]
