"""Compaction inside a real session: when a conversation outgrows the window, and what the model is sent then."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st

from marvin_core import ContextOverflow, Delta
from marvin_core.api.events import Notice
from marvin_core.api.messages import Message, Text, ToolOutput, tool, user
from marvin_core.api.models import CostCeiling, ModelListener
from marvin_core.api.providers import Provider
from marvin_core.api.tools import Tool
from marvin_core.conversation.plan import KEPT
from marvin_core.conversation.window import Window, characters
from marvin_core.providers.resilient import Resilient
from marvin_core.sessions.reader import load
from marvin_core.testing import Answer, ModelServer, RecordedRequest, ScriptedModels, answers
from marvin_core.tools import session_tools as tools
from marvin_core.tools.schema import describe
from tests.support import answers_ollama as ollama
from tests.support.chat import Chat, chatting
from tests.support.chatting import chat as adapter
from tests.support.conversations import answer, assert_accepted, call, conversations, rounds, turns
from tests.support.engine import QUICK, SPECS, Hang, Made, Script, calls, make, run, says, until
from tests.support.examples import examples

FOUND = [value for value in vars(tools).values() if isinstance(value, Tool)]
WITH_SESSION = (*SPECS, *(describe(one, source="marvin-core", module=tools.__name__, group="session") for one in FOUND))
LONG = [user("Build the parser"), *rounds(30, size=4_000)]
TOO_MANY_A_MINUTE = (
    "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 4096, Requested 9999. The input "
    "or output tokens must be reduced in order to run successfully."
)
SHORTER = [user("Build the parser"), *rounds(10, size=3_000)]
OVERFLOW = answers.error(
    400,
    {
        "error": {
            "message": "Your input exceeds the context window of this model.",
            "type": "invalid_request_error",
            "code": "context_length_exceeded",
        }
    },
)


class SmallServer(ModelServer):
    """A server that refuses, in its own words, what does not fit into its window of so many tokens."""

    def __init__(self, window: int, said: Mapping[str, Any], listed: Mapping[str, Any] | None = None) -> None:
        self.room = window * 4
        self._said = said
        self._listed = listed or {}
        super().__init__()

    def answer_to(self, request: RecordedRequest) -> Answer:
        if request.method == "GET":
            return answers.document({"object": "list", "data": [{"id": "scripted", **self._listed}]})
        if len(request.content) > self.room:
            return answers.error(self._said.get("status", 400), {"error": self._said})
        return answers.text("Fine.", usage=None)


class SmallOllama(ollama.OllamaServer):
    """An Ollama whose model takes 4,096 tokens, whatever is asked for."""

    room = 4096 * 4

    def answer_to(self, request: RecordedRequest) -> Answer:
        if request.path == "/api/show":
            return answers.document({"model_info": {"qwen3.context_length": 4096}})
        if len(request.content) > self.room:
            return answers.error(400, {"error": "prompt too long; exceeded max context length by 100 tokens"})
        return ollama.text("Fine.", usage=None)


def falling_back(tmp_path: Path, *chain: tuple[ModelServer, int]) -> Made:
    """A session with services that go on one after the other, each with its window."""
    first, *others = [
        adapter(server.url, context_window=window, provider=f"p{n}") for n, (server, window) in enumerate(chain, 1)
    ]
    return make(tmp_path, provider=cast("Script", first), models=FallingBack(first, *others))


class FallingBack(ScriptedModels):
    """Providers that are there already; those behind the first one stand in for it."""

    def __init__(self, first: Provider, *others: Provider) -> None:
        super().__init__(first, *others)
        self.others = others

    def resilient(
        self, provider: Provider, follower: ModelListener, *, restarts: bool, ceiling: CostCeiling | None
    ) -> Provider:
        return Resilient(provider, QUICK, self, follower, restarts=restarts)

    async def fallbacks(self, failed: Provider) -> AsyncIterator[Provider]:
        for other in self.others:
            yield other

    def larger(self, small: Provider) -> Provider | None:
        return None

    def successor(self, gone: Provider, served: Sequence[str]) -> Provider | None:
        return None


def at(tmp_path: Path, server: ModelServer, window: int | None, earlier: Sequence[Message]) -> Made:
    """A session with a chat completions service, in the middle of a conversation."""
    made = make(tmp_path, provider=cast("Script", adapter(server.url, context_window=window)))
    made.parts.conversation.load(earlier)
    return made


def submit(made: Made, *prompts: str) -> list[Any]:
    async def go() -> list[Any]:
        try:
            return [await made.session.submit(prompt) for prompt in prompts]
        finally:
            await made.session.close()

    return run(go())


def told(made: Made) -> list[str]:
    return [event.text for event in made.seen(Notice)]


def backed_up(made: Made) -> list[list[str]]:
    """The lines of each backup, oldest first."""
    folder = made.config.working_dir / ".marvin" / "logs"
    return [path.read_text().splitlines() for path in sorted(folder.glob("context-backup-*.jsonl"))]


class TestInTheMiddleOfATurn:
    def test_the_third_request_carries_the_summary_and_the_newest_messages(self, tmp_path: Path) -> None:
        """I15, I16: with the second one the model summarised what went, since the service had counted many tokens."""
        earlier = [user("The port is 4711"), *rounds(2, size=4_800), *rounds(3, start=2), answer("Ready.")]
        script = [
            answers.calls(("run_command", {"command": "seq 1 200"}), text="Looking.", usage={"prompt_tokens": 9_000}),
            answers.text("Parts 0 to 2 were read.", usage=None),
            answers.text("Done.", usage=None),
        ]
        with ModelServer(*script) as server:
            made = at(tmp_path, server, 8_500, earlier)
            (result,) = submit(made, "Go on")
            first, second, third = [request.body for request in server.requests]
        assert result.error is None
        assert result.text == "Looking.\nDone.", "what was said before the compaction is part of the answer"
        assert len(first["messages"]) == 14
        assert "tools" not in second
        assert "part2.py" in second["messages"][-1]["content"]
        system, port, summary, *newest = third["messages"]
        assert system == first["messages"][0]
        assert port == {"role": "user", "content": "The port is 4711"}
        assert "Parts 0 to 2 were read." in summary["content"]
        assert newest[:-2] == first["messages"][-6:], "word for word"
        assert newest[-2]["tool_calls"][0]["id"] == newest[-1]["tool_call_id"]
        assert newest[-1]["content"].startswith("1\n2\n3\n")
        assert len(json.dumps(third)) / 4 < Window(8_500).compact
        assert len(backed_up(made)[0]) == 15
        assert [text for text in told(made) if text.startswith("The conversation was compacted: 15 messages became 10")]
        assert run_usage(made) == 3

    def test_a_request_that_the_service_finds_too_long_is_made_smaller_and_sent_again(self, tmp_path: Path) -> None:
        script = [OVERFLOW, answers.text("A parser, part by part."), OVERFLOW, answers.text("Fine.")]
        with ModelServer(*script) as server:
            made = at(tmp_path, server, 250_000, LONG)
            (result,) = submit(made, "Go on")
            sizes = [len(request.content) for request in server.requests]
            last = server.requests[-1].body
        assert result.error is None
        assert result.text == "Fine."
        assert sizes[3] < sizes[2] < sizes[0]
        assert "A parser, part by part." in last["messages"][2]["content"]
        assert last["messages"][-1]["content"] == "Go on"
        assert [
            text
            for text in told(made)
            if text.startswith("The request did not fit into the context window of the model")
        ]

    def test_one_that_never_fits_ends_with_what_to_do(self, tmp_path: Path) -> None:
        """I10"""
        with ModelServer(*[OVERFLOW] * 10) as server:
            made = at(tmp_path, server, 250_000, LONG)
            (result,) = submit(made, "Go on")
        assert isinstance(result.error, ContextOverflow)
        assert "Offer fewer tools (--tools)" in told(made)[-1]
        assert made.parts.conversation.messages[-1].text == "Go on"

    @pytest.mark.parametrize(
        ("said", "listed"),
        [
            ({"message": "the request exceeds the available context size, try increasing it", "n_ctx": 4096}, {}),
            ({"message": "The decoder prompt (length 9999) is longer than the maximum model length of 4096."}, {}),
            ({"message": "the request exceeds the available context size"}, {"max_model_len": 4096}),
            ({"message": "Requested tokens (9999) exceed context window of 4096"}, {"context_length": 262_144}),
            ({"message": TOO_MANY_A_MINUTE, "code": "rate_limit_exceeded", "status": 429}, {}),
        ],
        ids=["llama.cpp", "vLLM", "asked once it did not fit", "lists what it was made for", "tokens a minute"],
    )
    def test_what_a_server_says_of_its_window_is_learnt(
        self, tmp_path: Path, said: Mapping[str, Any], listed: Mapping[str, Any]
    ) -> None:
        """The conversation fits after one overflow, and later prompts never overflow."""
        with SmallServer(4096, said, listed) as server:
            made = at(tmp_path, server, None, SHORTER)
            results = submit(made, "Go on", "And on", *["And on. " * 300] * 20)
            sizes = [len(request.content) for request in server.requests if request.method == "POST"]
        assert [result.error for result in results] == [None] * 22
        assert made.parts.model.window.size == 4096
        assert len([size for size in sizes if size > server.room]) == 1
        assert not [text for text in told(made) if "The request does not fit into the context window, and" in text]

    def test_ollama_is_asked_what_its_model_takes_with_the_first_request(self, tmp_path: Path) -> None:
        """A model may take less than the window that is asked for."""
        with SmallOllama() as server:
            provider = ollama.connected(server)
            made = make(tmp_path, provider=cast("Script", provider))
            made.parts.conversation.load(SHORTER)
            results = submit(made, "Go on", *["And on. " * 300] * 20)
            asked = [request for request in server.requests if request.path == "/api/chat"]
        assert [result.error for result in results] == [None] * 21
        assert made.parts.model.window.size == 4096
        assert [len(request.content) > server.room for request in asked].count(True) == 1
        assert {request.body["options"]["num_ctx"] for request in asked} == {4096}
        assert len(server.shows) == 1

    def test_a_prompt_that_is_larger_than_the_window_is_shortened_and_told_as_that(self, tmp_path: Path) -> None:
        said = {"message": "the request exceeds the available context size, try increasing it", "n_ctx": 2048}
        with SmallServer(2048, said) as server:
            made = make(tmp_path, provider=cast("Script", adapter(server.url)), specs=())
            (result,) = submit(made, "word " * 1_600)
        assert result.error is None
        (line,) = [text for text in told(made) if "did not fit" in text]
        assert "The conversation was shortened: about 2,000 tokens became " in line
        assert len(server.requests) == 2

    def test_a_window_that_a_service_says_is_never_larger_than_what_is_known(self, tmp_path: Path) -> None:
        """What did not fit into a small window did not fit because of a larger one."""
        said = {"message": "This model's maximum context length is 1000000 tokens."}
        with ModelServer(answers.error(400, {"error": said}), *[answers.text("Fine.")] * 9) as server:
            made = at(tmp_path, server, 100_000, LONG)
            (result,) = submit(made, "Go on")
        assert result.error is None
        assert made.parts.model.window.size == 100_000

    def test_a_conversation_that_goes_over_to_a_small_model_is_made_to_fit_it(self, tmp_path: Path) -> None:
        """What a prompt may take follows the window of the one that stands in; the next prompt begins as before."""
        said = {"message": "the request exceeds the available context size"}
        with ModelServer(answers.error(401, "no"), answers.text("Back.")) as first, SmallServer(8_000, said) as second:
            made = falling_back(tmp_path, (first, 400_000), (second, 8_000))
            made.parts.conversation.load(LONG)
            results = submit(made, "Go on", "And on")
            sizes = [len(request.content) for request in second.requests]
        assert [result.text for result in results] == ["Fine.", "Back."]
        assert [size > second.room for size in sizes].count(True) == 1
        assert made.parts.model.window.size == 400_000
        assert len(first.requests) == 2, "the one that stands in also makes the summary"

    def test_cancelling_while_room_is_made_keeps_everything(self, tmp_path: Path) -> None:
        """I16: Ctrl+C during the summary."""
        made = make(tmp_path, [Hang()], provider=None)
        made.parts.conversation.load([user("w" * 900_000), *rounds(20)])

        async def go() -> None:
            task = asyncio.ensure_future(made.session.submit("Go on"))
            await until(lambda: made.provider is not None and made.provider.requests != [])
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await made.session.close()

        run(go())
        assert made.parts.conversation.messages[1:] == (*rounds(20), user("Go on"))
        assert not made.session.busy

    def test_what_was_read_before_no_longer_counts_for_read_file(self, tmp_path: Path) -> None:
        """I9: its budget is that of the live context."""
        made = make(tmp_path, says("Summary"), says("Fine."))
        made.parts.conversation.load(LONG)
        before = made.parts.conversation.output_characters("read_file")
        made.session.compactor.compact_later(50_000)
        submit(made, "Go on")
        assert made.parts.conversation.output_characters("read_file") < before // 5


def run_usage(made: Made) -> int:
    turns_made: int = made.meter.summary()["llm_turns"]
    return turns_made


class TestTheTools:
    def test_compact_history_works_before_the_next_request_and_its_call_has_its_output(self, tmp_path: Path) -> None:
        """I15"""
        script = [calls(("a", "compact_history", '{"target_tokens": 20000}')), says("The summary."), says("Fine.")]
        made = make(tmp_path, provider=Script(*script, context_window=250_000), specs=WITH_SESSION)
        made.parts.conversation.load(LONG)
        (result,) = submit(made, "Make room")
        assert result.error is None
        assert made.provider is not None
        last = made.provider.requests[-1].messages
        assert_accepted(last)
        assert len(last) == 10 + 1, "a call and its output are not parted"
        assert "Before the next request" in last[-1].outputs[0].text
        assert "The summary." in last[1].text

    def test_what_went_is_found_again(self, tmp_path: Path) -> None:
        script: list[Sequence[Delta | BaseException]] = [
            calls(("a", "compact_history", "{}")),
            says("The summary."),
            calls(("b", "search_history_backups", '{"query": "part3.py"}')),
            says("Fine."),
        ]
        made = make(tmp_path, provider=Script(*script, context_window=250_000), specs=WITH_SESSION)
        made.parts.conversation.load(LONG)
        submit(made, "Make room")
        found = made.parts.conversation.messages[-2].outputs[0].text
        assert "1 place in 1 backup" in found
        assert "call of read_file:" in found

    def test_a_search_without_words_says_so(self, tmp_path: Path) -> None:
        """I10"""
        found = make(tmp_path, specs=WITH_SESSION).call("search_history_backups", query="  ")
        assert found.is_error
        assert "no word to search for" in found.text

    def test_by_hand_with_nothing_to_compact_it_says_so(self, tmp_path: Path) -> None:
        found = make(tmp_path, specs=WITH_SESSION).call("compact_history")
        assert "There is nothing to compact: the conversation is empty" in found.text


class TestBetweenPrompts:
    def test_the_command_compacts_at_once_and_tells_what_became_of_it(self, tmp_path: Path) -> None:
        made = make(tmp_path, says("The summary."), says("Again."))
        made.parts.conversation.load(LONG)

        async def work(chat: Chat) -> None:
            assert "Use /compact, or /compact TOKENS" in await chat.do("/compact much")
            assert "1,000 to 1,000,000" in await chat.do("/compact 3")
            said = await chat.do("/compact 20,000")
            assert said.startswith("The conversation was compacted: 61 messages became 10")
            assert "nothing to compact" in await chat.do("/summarize")

        chat = chatting(made, work)
        assert made.parts.conversation.messages[1].is_summary
        assert not [text for text in told(made) if text.startswith("The conversation was compacted")], "told once"
        assert chat.texts[0] == "Build the parser"

    def test_the_command_waits_for_the_answer(self, tmp_path: Path) -> None:
        """I17"""
        made = make(tmp_path, [Hang()])
        made.parts.conversation.load(LONG)

        async def work(chat: Chat) -> None:
            task = asyncio.ensure_future(chat.session.submit("first"))
            await until(lambda: chat.session.busy)
            assert "still running" in await chat.do("/compact")
            task.cancel()
            await asyncio.wait([task])

        chatting(made, work)

    @pytest.mark.parametrize(("argv", "most"), [((), 40), (("--non-interactive",), 100)])
    def test_the_oldest_turns_go_beyond_the_cap_of_the_mode(
        self, tmp_path: Path, argv: Sequence[str], most: int
    ) -> None:
        made = make(tmp_path, says("One."), says("Two."), argv=argv)
        made.parts.conversation.load(turns(most // 2))
        submit(made, "at the cap", "above it")
        assert made.provider is not None
        first, second = [request.messages for request in made.provider.requests]
        assert len(first) == most + 1
        assert len(second) < most * 3 // 4 + 2
        assert second[0].text == "Request number 0"
        assert second[1].is_summary
        assert second[-2].text == "One."
        assert_accepted(second)

    @pytest.mark.parametrize(("size", "stays"), [(10, True), (3_000, False)])
    def test_messages_may_be_many_while_they_take_half_of_a_known_window_at_most(
        self, tmp_path: Path, size: int, stays: bool
    ) -> None:
        """60 messages of 10 or 3,000 characters are 150 or 45,000 of 80,000 tokens."""
        made = make(tmp_path, provider=Script(says("One."), context_window=80_000), argv=())
        made.parts.conversation.load([message for _ in range(30) for message in (user("r" * size), answer("a" * size))])
        submit(made, "next")
        assert made.provider is not None
        messages = made.provider.requests[0].messages
        assert (len(messages) == 61) == stays
        assert any(message.is_summary for message in messages) != stays
        assert_accepted(messages)

    def test_an_empty_chat_has_nothing_to_compact(self, tmp_path: Path) -> None:
        async def work(chat: Chat) -> None:
            assert await chat.do("/compact") == "There is nothing to compact: the conversation is empty."
            await chat.session.submit("first")
            assert "2 messages, and the newest" in await chat.do("/compact")

        chatting(make(tmp_path, says("One.")), work)

    def test_a_session_goes_on_from_its_compacted_conversation(self, tmp_path: Path) -> None:
        """I16: also after a resume; what was said before stays in the file."""
        made = make(tmp_path, provider=Script(says("One."), says("The summary."), says("Two."), context_window=250_000))

        async def go() -> Path:
            made.session.sessions.begin("Build the parser")
            for message in LONG:
                made.parts.conversation.append(message)
            await made.session.submit("first")
            await made.session.compact(50_000)
            await made.session.submit("second")
            await made.session.close()
            return made.config.data_folder / "sessions" / f"{made.session.id}.jsonl"

        path = run(go())
        assert load(path).messages == made.parts.conversation.messages
        assert "part3.py" in path.read_text()
        again = make(tmp_path, says("Three."))
        again.session.resume(path)
        submit(again, "third")
        assert again.provider is not None
        sent = again.provider.requests[0].messages
        assert sent[:-1] == made.parts.conversation.messages
        assert "The summary." in sent[1].text


BINDING = st.sampled_from(
    [
        ({"MARVIN_READONLY": "1"}, ["You may only read"]),
        ({"MARVIN_WRITABLE_FILES": "report.md"}, ["You may write only these files: report.md"]),
        ({"MARVIN_TICKET": "tic-4711", "MARVIN_DEPTH": "1"}, ["tic-4711", "started by another agent"]),
        ({"MARVIN_MAX_COST": "2.5"}, ["may cost 2.5 USD"]),
    ]
)


def test_what_was_found_and_failed_is_listed_for_whoever_comes_next(tmp_path: Path) -> None:
    """Also for agents, which the system prompt tells of the list from then on."""
    wrong = tool([ToolOutput(call_id="e", name="look", content=(Text(text="Error: no port 4711"),), is_error=True)])
    earlier = [user("Where is the port?"), answer("", call("e", "look")), wrong, answer("It is in net.py.")]
    made = make(tmp_path, says("Sums it up."), says("Fine."), says("And fine."))
    made.parts.conversation.load([*earlier, *rounds(30, size=4_000)])

    async def go() -> None:
        assert "became" in await made.session.compact(5_000)
        await made.session.submit("Go on")
        await made.session.close()

    run(go())
    index = (made.config.working_dir / ".marvin" / "memories" / "INDEX.md").read_text("utf-8")
    assert "- Where is the port?\n" in index
    assert "- It is in net.py.\n" in index
    assert "\nErrors:\n- look: Error: no port 4711\n" in index
    assert made.provider is not None
    assert "is listed in .marvin/memories/INDEX.md." in made.provider.requests[-1].system


class TestWhatBinds:
    @pytest.mark.slow
    @given(conversations(), BINDING, st.lists(st.sampled_from([1_000, 8_000, 60_000]), min_size=1, max_size=3))
    @examples(20, phases=[Phase.generate])
    def test_it_is_in_every_request_however_often_the_conversation_was_compacted(
        self, messages: list[Message], binding: tuple[Mapping[str, str], Sequence[str]], targets: list[int]
    ) -> None:
        """I23, I15: rules, the first request, and the newest messages as far as they fit."""
        env, bounds = binding
        with tempfile.TemporaryDirectory() as folder:
            script = [says("Fine.")] * 20
            made = make(Path(folder), provider=Script(*script, context_window=250_000), env=env)
            (made.config.working_dir / "AGENTS.md").write_text("Indent with tabs.")
            made.parts.conversation.load(messages)

            async def go() -> None:
                for target in targets:
                    made.session.compactor.compact_later(target)
                    before = made.parts.conversation.messages
                    await asked(made, before, bounds, made.parts.model.window.room(target))
                await made.session.close()

            run(go())


async def asked(made: Made, before: Sequence[Message], bounds: Sequence[str], limit: int) -> None:
    """Send a prompt and look at its request."""
    result = await made.session.submit("And now?")
    assert result.error is None
    assert made.provider is not None
    request = made.provider.requests[-1]
    for told_again in (*bounds, "Indent with tabs.", str(made.config.working_dir)):
        assert told_again in request.system
    assert_accepted(request.messages)
    kept = [*before, user("And now?")][-KEPT:]
    if characters(kept) + characters(before[:1]) < limit // 2:
        assert list(request.messages[-len(kept) :]) == kept
        assert request.messages[0] == before[0]
    else:
        assert request.messages[0].text[:10] == before[0].text[:10]
