"""The slash commands on sessions: pick, rename, export, copy, compare, and going back after a resume."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from marvin_core.sessions.reader import load
from tests.support.chat import Chat, chatting
from tests.support.engine import Made, calls, make, says


class Person:
    """Answers questions with lines, and keeps what was asked."""

    def __init__(self, *lines: str) -> None:
        self.lines = [*lines]
        self.asked: list[tuple[str, Sequence[str]]] = []

    async def ask(self, question: str, choices: Sequence[str]) -> str:
        self.asked.append((question, choices))
        line = self.lines.pop(0) if self.lines else ""
        return choices[int(line) - 1] if line.isdecimal() else line


def attended(tmp_path: Path, person: Person, *script: str) -> Made:
    answers = [says(text) for text in script]
    return make(tmp_path, *answers, argv=(), asker=person.ask, text_asker=person.ask)


# --- picking -------------------------------------------------------------------------------------------------------


def test_a_session_is_picked_by_number_and_its_end_is_shown_again(tmp_path: Path) -> None:
    person = Person("2")

    async def work(chat: Chat) -> None:
        await chat.session.submit("about apples")
        first = chat.session.id
        await chat.do("/clear")
        await chat.session.submit("about pears")
        assert first in await chat.do("/resume")
        assert chat.session.id == first
        assert [entry.text for entry in chat.session.sessions.replay()] == ["about apples", "One."]
        await chat.session.submit("and plums")
        assert chat.session.sessions.replay() == (), "what was said here is on the screen"

    chatting(attended(tmp_path, person, "One.", "Two.", "Three."), work)
    ((question, choices),) = person.asked
    assert "number" in question
    assert "about pears" in choices[0]
    assert "about apples" in choices[1]


def test_what_was_said_in_earlier_chats_is_not_shown_as_said_in_this_one(tmp_path: Path) -> None:
    async def first(chat: Chat) -> None:
        await chat.session.submit("about apples")

    chatting(attended(tmp_path, Person(), "One."), first)

    async def second(chat: Chat) -> None:
        await chat.session.submit("about pears")

    written = chatting(attended(tmp_path, Person(), "Two."), second)
    assert "about apples" in written.texts, "the model was told of it"

    async def third(chat: Chat) -> None:
        await chat.do(f"/resume {written.files[1].stem}")
        assert [entry.text for entry in chat.session.sessions.replay()] == ["about pears", "Two."]
        assert "about apples" not in await chat.do("/rewind")

    chatting(attended(tmp_path, Person()), third)


def test_words_look_in_titles_and_in_what_was_said(tmp_path: Path) -> None:
    person = Person("NOTHING LIKE it", "secret word", "1")

    async def work(chat: Chat) -> None:
        await chat.session.submit("about apples")
        first = chat.session.id
        await chat.do("/clear")
        await chat.session.submit("about pears")
        assert first in await chat.do("/resume")

    chatting(attended(tmp_path, person, "The secret word.", "Two."), work)
    assert [len(choices) for _, choices in person.asked] == [2, 2, 1]
    assert "No session contains" in person.asked[1][0]


def test_an_empty_line_leaves_the_picker_and_changes_nothing(tmp_path: Path) -> None:
    async def work(chat: Chat) -> None:
        await chat.session.submit("about apples")
        before = chat.session.id
        assert await chat.do("/resume") == "No session was chosen."
        assert chat.session.id == before

    chatting(attended(tmp_path, Person(""), "One."), work)


def test_the_picker_renames(tmp_path: Path) -> None:
    person = Person("rename 1  A better name ", "rename 9 x", "rename 1", "")

    async def work(chat: Chat) -> None:
        await chat.session.submit("about apples")
        await chat.do("/clear")
        await chat.do("/resume")

    chat = chatting(attended(tmp_path, person, "One."), work)
    assert load(chat.files[0]).header.title == "A better name"
    assert "A better name" in person.asked[1][1][0]
    assert "Use `rename NUMBER TITLE`" in person.asked[2][0]


def test_without_anybody_to_ask_the_picker_says_what_to_type(tmp_path: Path) -> None:
    async def work(chat: Chat) -> None:
        assert "/resume ID" in await chat.do("/resume")

    chatting(make(tmp_path), work)


def test_a_copy_says_what_it_begins_with_and_keeps_the_times(tmp_path: Path) -> None:
    async def work(chat: Chat) -> None:
        await chat.session.submit("about apples")
        told = await chat.do("/fork")
        assert re.search(
            r" \(2 messages, the last prompt at \d{4}-\d\d-\d\d \d\d:\d\d\)\. The original is unchanged", told
        )
        await chat.session.submit("and plums")

    chat = chatting(attended(tmp_path, Person(), "One.", "Two."), work)
    original, copy = (load(path) for path in chat.files)
    assert len(chat.files) == 2
    assert copy.times[:2] == original.times
    assert [prompt.text for prompt in copy.prompts] == ["about apples", "and plums"]


# --- renaming ------------------------------------------------------------------------------------------------------


def test_a_title_is_one_line_without_sequences_and_keeps_the_id(tmp_path: Path) -> None:
    async def work(chat: Chat) -> None:
        assert "not on disk yet" in await chat.do("/rename x")
        await chat.session.submit("about apples")
        identity = chat.session.id
        assert await chat.do("/rename") == "Error: Use /rename TITLE."
        assert "empty" in await chat.do("/rename \x1b]0;PWNED\x07")
        assert (
            await chat.do("/rename Fruit \x1b[31mred\x1b[0m\tthings") == "This session is now called: Fruit red things"
        )
        assert chat.session.id == identity
        assert "Fruit red things" in await chat.do("/sessions")
        await chat.session.submit("more")

    chat = chatting(make(tmp_path, says("One."), says("Two.")), work)
    assert load(chat.files[0]).header.title == "Fruit red things"


# --- going back ----------------------------------------------------------------------------------------------------


def test_rewind_knows_the_prompts_of_a_session_that_is_gone_on_with(tmp_path: Path) -> None:
    async def first(chat: Chat) -> None:
        await chat.session.submit("one")
        await chat.session.submit("two")

    earlier = chatting(attended(tmp_path, Person(), "A.", "B."), first)

    async def second(chat: Chat) -> None:
        await chat.do(f"/resume {earlier.files[0].stem}")
        listed = (await chat.do("/rewind")).splitlines()
        assert [line.split()[-1] for line in listed[:2]] == ["one", "two"]
        assert "The conversation was restored to the state before that prompt" in await chat.do("/rewind 2")
        assert chat.texts == ["one", "A."]
        await chat.session.submit("three")
        assert "three" in await chat.do("/rewind")

    chatting(attended(tmp_path, Person(), "C."), second)


# --- export, copy --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "name", "begins"),
    [
        ("/export", "*.md", "# about apples"),
        ("/export html", "*.html", "<!DOCTYPE html>"),
        ("/export json talk", "talk", "{"),
        ("/export notes/../talk.JSON", "talk.JSON", "{"),
        ("/export my talk.md", "my talk.md", "# about apples"),
    ],
)
def test_export_writes_a_file_for_its_owner_alone(tmp_path: Path, line: str, name: str, begins: str) -> None:
    (tmp_path / "project" / "notes").mkdir(parents=True)

    async def work(chat: Chat) -> None:
        await chat.session.submit("about apples")
        said = await chat.do(line)
        (file,) = chat.session.working_dir.glob(name)
        assert str(file.resolve()) in said or file.name in said
        assert file.read_text().startswith(begins)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        before = file.read_bytes()
        assert "exists" in await chat.do(line), "nothing is overwritten"
        assert file.read_bytes() == before

    chatting(make(tmp_path, says("One.")), work)


def test_export_knows_the_home_folder(tmp_path: Path) -> None:
    async def work(chat: Chat) -> None:
        await chat.session.submit("about apples")
        assert str(tmp_path / "home" / "talk.md") in await chat.do("/export ~/talk.md")

    chatting(make(tmp_path, says("One.")), work)
    assert (tmp_path / "home" / "talk.md").exists()


def test_export_holds_the_branch_in_use_and_no_secret(tmp_path: Path) -> None:
    secret = "sk-verysecret-0123456789"

    async def work(chat: Chat) -> None:
        await chat.session.submit("about apples")
        await chat.do("/retry")
        await chat.do("/tree 1")
        await chat.do("/export talk.json")
        text = (chat.session.working_dir / "talk.json").read_text()
        assert secret not in text
        assert [message["content"][0]["text"] for message in json.loads(text)["messages"]][1] != "Two."
        assert "cannot be written" in await chat.do("/export no/such/folder/talk.md")

    made = make(tmp_path, says(f"One, {secret}."), says("Two."), env={"OPENAI_API_KEY": secret})
    chatting(made, work)


def test_there_is_nothing_to_export_or_copy_before_the_first_prompt(tmp_path: Path) -> None:
    async def work(chat: Chat) -> None:
        assert "not on disk yet" in await chat.do("/export")
        assert "no answer" in await chat.do("/copy")
        assert "no answer" in await chat.do("/copy 1")

    chatting(make(tmp_path), work)


def test_copy_says_where_no_clipboard_is_reached(tmp_path: Path) -> None:
    async def work(chat: Chat) -> None:
        await chat.session.submit("about apples")
        assert "/export FILE" in await chat.do("/copy")
        assert "Use /copy, or /copy N for the Nth answer from the end, with N from 1 to 1" in await chat.do("/copy 2")

    chatting(make(tmp_path, says("One.")), work)


def test_titles_that_are_all_sequences_do_not_name_an_exported_page(tmp_path: Path) -> None:
    async def work(chat: Chat) -> None:
        await chat.session.submit("\x1b[2J")
        assert "Wrote" in await chat.do("/export")

    made = make(tmp_path, says("One."))
    chat = chatting(made, work)
    assert all("\x1b" not in file.read_text() for file in chat.session.working_dir.glob("*.md"))
    assert "One." in next(chat.session.working_dir.glob("*.md")).read_text()


# --- what changed --------------------------------------------------------------------------------------------------


def test_diff_without_changes_says_so(tmp_path: Path) -> None:
    made = make(tmp_path, calls(("a", "look", '{"name": "x"}')), says("Done."))

    async def work(chat: Chat) -> None:
        assert "The tools of this session have changed no file, or their changes were undone" in await chat.do("/diff")
        await chat.session.submit("go")
        assert "The tools of this session have changed no file, or their changes were undone" in await chat.do("/diff")

    chatting(made, work)
