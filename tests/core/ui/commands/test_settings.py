"""The slash commands that change how a session goes on, on a real session."""

from __future__ import annotations

from pathlib import Path

import pytest

from marvin_core.api.events import Notice
from marvin_core.sessions.reader import load
from tests.core.tools.test_carried_tools import FIND, many
from tests.support.chat import Chat, chatting, kept
from tests.support.engine import Made, Script, make, says


def two_models(tmp_path: Path, **options: object) -> Made:
    """A session on `small/s1` that could go on with `large/l1`."""
    small = Script(says("one"), says("three"), name="small", model="s1", context_window=8_000)
    large = Script(says("two"), says("four"), name="large", model="l1", context_window=200_000)
    return make(tmp_path, provider=small, others=[large], **options)  # type: ignore[arg-type]


def test_another_model_goes_on_with_what_was_said(tmp_path: Path) -> None:
    async def work(chat: Chat) -> None:
        await chat.session.submit("first")
        assert await chat.do("/model l1") == "Now using large/l1; the conversation is kept."
        assert chat.made.parts.model.window.size == 200_000
        assert (await chat.session.submit("second")).text == "two"
        listed = await chat.do("/model")
        assert "* large/l1" in listed
        assert "  small/s1" in listed

    chat = chatting(two_models(tmp_path), work)
    assert kept(chat.files[0]) == ["first", "one", "second", "two"]
    header = load(chat.files[0]).header
    assert (header.provider, header.model) == ("large", "l1")


def test_a_resumed_session_goes_on_with_its_model(tmp_path: Path) -> None:
    async def first(chat: Chat) -> None:
        await chat.session.submit("first")
        await chat.do("/model large/l1")
        await chat.do("/thinking high")

    path = chatting(two_models(tmp_path), first).files[0]

    async def again(chat: Chat) -> None:
        chat.session.resume(path)
        assert (chat.session.models.provider_name, chat.session.models.thinking) == ("large", "high")

    chatting(two_models(tmp_path), again)

    async def fixed(chat: Chat) -> None:
        chat.session.resume(path)
        assert chat.session.models.provider_name == "small", "a flag says more than the session"

    chatting(two_models(tmp_path, argv=("--non-interactive", "--model", "s1")), fixed)


def test_a_model_that_is_gone_is_told_of_and_another_one_goes_on(tmp_path: Path) -> None:
    async def first(chat: Chat) -> None:
        await chat.do("/model large/l1")
        await chat.session.submit("first")

    path = chatting(two_models(tmp_path), first).files[0]

    async def again(chat: Chat) -> None:
        chat.session.resume(path)
        assert chat.session.models.provider_name == "small"
        told = [event.text for event in chat.made.seen(Notice)]
        assert any("This session used large/l1, which cannot be used" in text for text in told)
        assert any("small/s1 continues" in text for text in told)

    small = Script(says("x"), name="small", model="s1")
    chatting(make(tmp_path, provider=small), again)


@pytest.mark.parametrize("other", [("gone", "g1"), ("offline", "offline")])
def test_why_a_model_answers_is_not_said_of_another_conversation(tmp_path: Path, other: tuple[str, str]) -> None:
    async def prompt(chat: Chat) -> None:
        await chat.session.submit("first")

    def kept_with(name: str, model: str) -> Path:
        (tmp_path / name).mkdir()
        script = Script(says("x"), name=name, model=model)
        return chatting(make(tmp_path / name, provider=script), prompt).files[0]

    first, second = kept_with("large", "l1"), kept_with(*other)

    async def work(chat: Chat) -> None:
        models = chat.session.models
        chat.session.resume(first)
        assert (models.model, models.reason) == ("l1", "the session used it")
        chat.session.resume(second)
        assert (models.model, models.reason) == ("l1", "it answered before")
        chat.session.resume(first)
        assert models.reason == "the session used it"
        chat.session.sessions.clear()
        assert (models.model, models.reason) == ("l1", "it answered before")

    chatting(two_models(tmp_path), work)


def test_a_session_without_a_model_goes_on_with_one_where_there_is_one_now(tmp_path: Path) -> None:
    async def first(chat: Chat) -> None:
        await chat.session.submit("first")

    path = chatting(make(tmp_path, provider=Script(says("x"), name="offline", model="offline")), first).files[0]

    async def again(chat: Chat) -> None:
        chat.session.resume(path)
        assert chat.session.models.provider_name == "small"

    chatting(two_models(tmp_path), again)


def test_a_model_that_there_is_not(tmp_path: Path) -> None:
    async def work(chat: Chat) -> None:
        assert (await chat.do("/model nonsense")).startswith("Error: ")
        assert chat.session.models.model == "s1"

    chatting(two_models(tmp_path), work)


def test_how_hard_the_model_thinks(tmp_path: Path) -> None:
    async def work(chat: Chat) -> None:
        assert (await chat.do("/thinking")).startswith("Thinking: off.")
        await chat.do("/thinking high")
        await chat.session.submit("first")
        assert (await chat.do("/thinking hard")).startswith("Error: Unknown thinking level 'hard'.")

    chat = chatting(two_models(tmp_path), work)
    assert chat.made.provider is not None
    assert chat.made.provider.requests[0].thinking == "high"


def test_one_prompt_for_the_best_model_and_then_back(tmp_path: Path) -> None:
    async def work(chat: Chat) -> None:
        assert not await chat.do("/pro think of something")
        assert chat.session.models.provider_name == "small"
        assert (await chat.session.submit("next")).text == "one"
        assert "Write the prompt after it" in await chat.do("/pro")

    chat = chatting(two_models(tmp_path), work)
    assert kept(chat.files[0]) == ["think of something", "two", "next", "one"]
    assert [event.text for event in chat.made.seen(Notice)] == ["l1 of large answers this one: it is the best."]


def test_coding_mode_on_and_off(tmp_path: Path) -> None:
    async def work(chat: Chat) -> None:
        assert chat.session.mode == "coding"
        assert await chat.do("/code") == "Coding mode is off."
        await chat.session.submit("first")
        assert (await chat.do("/code on")).startswith("Coding mode is on")
        await chat.session.submit("second")
        assert (await chat.do("/code maybe")).startswith("Error: Use !code")

    chat = chatting(two_models(tmp_path), work)
    assert chat.made.provider is not None
    plain, coding = (request.system for request in chat.made.provider.requests)
    assert "The working directory is" not in plain
    assert "The working directory is" in coding


def test_other_tools(tmp_path: Path) -> None:
    async def work(chat: Chat) -> None:
        every = [spec.name for spec in chat.session.tools]
        assert f"Tools: all; {len(every)} tools are offered: {every[0]}" in await chat.do("/mode")
        await chat.do(f"/mode -{every[0]}")
        await chat.session.submit("first")
        assert (await chat.do("/mode nonsense")).startswith("Error: ")
        assert [spec.name for spec in chat.session.tools] == every[1:], "what is wrong changes nothing"
        await chat.do("/mode all")
        assert [spec.name for spec in chat.session.tools] == every

    chat = chatting(two_models(tmp_path), work)
    assert chat.made.provider is not None
    offered = [spec.name for spec in chat.made.provider.requests[0].tools]
    assert offered == [spec.name for spec in chat.session.tools][1:]


def test_what_the_profile_holds(tmp_path: Path) -> None:
    async def work(chat: Chat) -> None:
        assert (await chat.do("/saved")) == "This profile has no saved places."
        assert "* main" in await chat.do("/profiles")
        told = await chat.do("/profiles work")
        assert told.startswith("Created the profile work: ")
        folder = chat.session.profile.folder
        (folder / "preferences.yaml").write_text("units: metric # always\nlanguages: [en, de]\nbrief: true\n")
        (folder / "saved_places.json").write_text('[{"label": "home", "name": "Ada", "address": "1 Hill Rd"}]')
        assert "units: metric\nlanguages: en, de\nbrief: yes\n" in await chat.do("/preferences")
        assert await chat.do("/saved") == "home: Ada, 1 Hill Rd"
        assert (await chat.do("/profiles ../x")).startswith("Error: ")
        assert (await chat.do("/profiles main")).startswith("Switched to the profile main: ")
        for near in ("wrok", "work2", "mian"):
            told = await chat.do(f"/profiles {near}")
            assert told.startswith(f"Error: There is no profile {near!r}. Did you mean ")
            assert f"/profiles new {near} creates it" in told
        assert chat.session.profile.name == "main"
        assert chat.session.profile.names() == ["main", "work"]
        assert (await chat.do("/profiles new work2")).startswith("Created the profile work2: ")

    chatting(make(tmp_path), work)


@pytest.mark.parametrize("command", ["/model l1", "/code", "/thinking high"])
def test_nothing_of_it_needs_a_model(tmp_path: Path, command: str) -> None:
    async def work(chat: Chat) -> None:
        assert await chat.do(command)

    chatting(make(tmp_path, configured=False), work)


def test_the_context_tells_what_a_request_holds_and_what_waits(tmp_path: Path) -> None:
    made = make(tmp_path, says("one"), specs=(FIND, *many(300)), argv=())

    async def work(chat: Chat) -> None:
        await chat.session.submit("first")
        use = await chat.session.context_use()
        assert (len(use.tools), len(use.waiting)) == (15, 286)
        shown = await chat.do("/context")
        assert f"{sum(use.tools.values()):9,}  15 tools\n" in shown
        assert f"{sum(use.waiting.values()):9,}  tokens are saved: 286 tools hidden" in shown
        assert "2 messages" in shown
        assert "system prompt: built in" in shown
        total = sum(tokens for _, tokens in use.prompt) + sum(use.tools.values()) + use.message_tokens
        assert f"{total:9,}  tokens of {use.window:,} in all" in shown

    chatting(made, work)


def test_the_context_saves_nothing_where_nothing_waits(tmp_path: Path) -> None:
    async def work(chat: Chat) -> None:
        assert "saved" not in await chat.do("/context")

    chatting(make(tmp_path, argv=()), work)
