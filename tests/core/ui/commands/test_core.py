"""The slash commands of the core, on a real session: sessions on disk, branches, jobs, usage."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from marvin_core import Message, Unreachable
from marvin_core.api.errors import MarvinError, SessionError
from marvin_core.api.events import AgentStart, AppStart, SessionClear, SessionResume, SessionStart
from marvin_core.sessions.reader import load
from tests.support.chat import Chat, chatting, kept
from tests.support.engine import Hang, Made, calls, make, run, says, until


def asked(made: Made, number: int) -> tuple[Message, ...]:
    assert made.provider is not None
    return tuple(made.provider.requests[number].messages)


# --- clear ---------------------------------------------------------------------------------------------------------


def test_clear_begins_an_empty_conversation_with_an_id_of_its_own(tmp_path: Path) -> None:
    made = make(tmp_path, calls(("a", "keep", '{"value": "blue"}')), says("One."), says("Two."))

    async def work(chat: Chat) -> None:
        await chat.session.submit("first")
        earlier = chat.session.id
        assert f"/resume {earlier}" in await chat.do("/clear")
        assert (chat.session.id, chat.texts, made.parts.state) == ("", [], {})
        await chat.session.submit("second")
        assert chat.session.id not in ("", earlier)

    chat = chatting(made, work)
    assert [message.text for message in asked(made, 2)] == ["second"]
    assert [kept(path)[0] for path in chat.files] == ["first", "second"]
    assert load(chat.files[1]).state == {}
    assert [event.session_id for event in made.seen(SessionClear)] == [chat.files[0].stem]
    assert (len(made.seen(AppStart)), len(made.seen(SessionStart))) == (1, 2)


def test_what_moves_between_sessions_waits_for_the_answer(tmp_path: Path) -> None:
    """I17: while an answer runs, the conversation under it stays what it is."""
    made = make(tmp_path, [Hang()])

    async def work(chat: Chat) -> None:
        task = asyncio.ensure_future(chat.session.submit("first"))
        await until(lambda: chat.session.busy)
        for line in ("/clear", "/fork", "/retry", f"/resume {chat.session.id}"):
            assert "still running" in await chat.do(line)
        assert chat.texts == ["first"]
        task.cancel()
        await asyncio.wait([task])

    chatting(made, work)


# --- fork ----------------------------------------------------------------------------------------------------------


def test_a_fork_goes_on_in_a_copy_and_leaves_the_original_as_it_is(tmp_path: Path) -> None:
    made = make(tmp_path, calls(("a", "keep", '{"value": "blue"}')), says("One."), says("Two."))

    async def work(chat: Chat) -> None:
        await chat.session.submit("first")
        original = chat.session.id
        assert original in await chat.do("/fork")
        assert chat.session.id != original
        forked = load(chat.files[1])
        assert (forked.header.parent, forked.header.title) == (original, "first")
        assert forked.state["tests"]["kept"] == "blue", "what packs keep goes along, before any further turn"
        await chat.session.submit("second")

    chat = chatting(made, work)
    first, second = chat.files
    assert kept(first) == ["first", "", "", "One."]
    assert kept(second) == ["first", "", "", "One.", "second", "Two."]


def test_there_is_nothing_to_fork_before_the_first_prompt(tmp_path: Path) -> None:
    made = make(tmp_path)

    async def work(chat: Chat) -> None:
        assert "Type a request first" in await chat.do("/fork")
        assert "Type a request first" in await chat.do("/tree")
        assert "nothing to retry" in await chat.do("/retry")
        assert "no sessions" in await chat.do("/sessions")

    assert chatting(made, work).files == []


# --- retry and branches --------------------------------------------------------------------------------------------


def test_retry_asks_again_without_a_new_message_and_keeps_the_earlier_answer_as_a_branch(tmp_path: Path) -> None:
    made = make(tmp_path, says("One."), says("Two."), says("Three."))

    async def work(chat: Chat) -> None:
        await chat.session.submit("first")
        assert await chat.do("/retry") == ""
        assert chat.texts == ["first", "Two."]
        tree = (await chat.do("/tree")).splitlines()
        assert "One." in tree[0]
        assert re.match(r"\* 2  \d{4}-\d\d-\d\d \d\d:\d\d  first → Two", tree[1]), "with its time"
        assert "Two." in tree[1]
        assert "branch 1" in await chat.do("/tree 1")
        assert chat.texts == ["first", "One."]
        await chat.session.submit("second")

    chat = chatting(made, work)
    assert [message.text for message in asked(made, 1)] == ["first"]
    assert [event.prompt for event in made.seen(AgentStart)] == ["first", "first", "second"]
    (path,) = chat.files
    assert kept(path) == ["first", "One.", "second", "Three."]
    assert b"Two." in path.read_bytes()


def test_retry_after_a_failure_goes_on_from_what_was_done(tmp_path: Path) -> None:
    """No call that was executed runs again."""
    failure = Unreachable("The service cannot be reached.", provider="scripted")
    made = make(tmp_path, calls(("a", "look", '{"name": "x"}')), [failure], [failure], says("Done."))

    async def work(chat: Chat) -> None:
        assert (await chat.session.submit("go")).error is not None
        assert "cannot be reached" in await chat.do("/retry")
        assert await chat.do("/retry") == ""

    chat = chatting(made, work)
    assert made.log == ["+x", "-x"]
    assert [message.role for message in asked(made, 3)] == ["user", "assistant", "tool"]
    assert kept(chat.files[0])[-1] == "Done."


def test_a_retry_that_fails_loses_nothing_on_disk(tmp_path: Path) -> None:
    made = make(tmp_path, says("One."), [Unreachable("Gone.", provider="scripted")])

    async def work(chat: Chat) -> None:
        await chat.session.submit("first")
        assert "Gone." in await chat.do("/retry")

    chat = chatting(made, work)
    assert kept(chat.files[0]) == ["first", "One."]


def test_a_retry_after_resuming_makes_a_branch_in_the_same_file(tmp_path: Path) -> None:
    first = make(tmp_path, calls(("a", "keep", '{"value": "blue"}')), says("One."))
    file = chatting(first, lambda chat: chat.session.submit("first")).files[0]
    second = make(tmp_path, says("Two."))

    async def work(chat: Chat) -> None:
        assert "4 messages" in await chat.do(f"/resume {file.stem[:15]}")
        assert await chat.do("/retry") == ""

    chatting(second, work)
    loaded = load(file)
    assert [message.text for message in loaded.messages] == ["first", "", "", "Two."]
    assert loaded.state["tests"]["kept"] == "blue", "the new branch has what packs keep, too"
    assert b"One." in file.read_bytes()


@pytest.mark.parametrize("words", ["0", "2", "one", "-1", "1 2", "²"])
def test_a_branch_that_does_not_exist(tmp_path: Path, words: str) -> None:
    made = make(tmp_path, says("One."))

    async def work(chat: Chat) -> None:
        await chat.session.submit("first")
        assert "no branch" in await chat.do(f"/tree {words}")
        assert "one branch" in await chat.do("/tree")
        assert chat.texts == ["first", "One."]

    chatting(made, work)


def test_without_a_model_retry_says_how_to_set_one(tmp_path: Path) -> None:
    made = make(tmp_path, configured=False)

    async def work(chat: Chat) -> None:
        assert "export A_KEY" in await chat.do("/retry")

    chatting(made, work)


# --- sessions and resume -------------------------------------------------------------------------------------------


def test_sessions_lists_those_of_this_folder_and_marks_the_open_one(tmp_path: Path) -> None:
    made = make(tmp_path, says("One."), says("Two."), says("Three."))

    async def work(chat: Chat) -> None:
        await chat.session.submit("first\nquestion")
        await chat.do("/clear")
        await chat.session.submit("second")
        lines = (await chat.do("/sessions")).splitlines()
        assert [line[0] for line in lines[:2]] == ["*", " "]
        assert "second" in lines[0]
        assert "first question (2 messages)" in lines[1]
        other = tmp_path / "other"
        other.mkdir()
        made.parts.workspace.move(other)
        assert "no sessions" in await chat.do("/sessions")

    chatting(made, work)


def test_resume_moves_to_another_session_and_goes_on_there(tmp_path: Path) -> None:
    made = make(tmp_path, says("One."), says("Two."), says("Three."))

    async def work(chat: Chat) -> None:
        await chat.session.submit("first")
        earlier = chat.session.id
        await chat.do("/clear")
        await chat.session.submit("second")
        assert earlier in await chat.do(f"/resume {earlier}")
        assert chat.texts == ["first", "One."]
        await chat.session.submit("third")

    chat = chatting(made, work)
    assert [kept(path) for path in chat.files] == [["first", "One.", "third", "Three."], ["second", "Two."]]
    assert [event.messages for event in made.seen(SessionResume)] == [2]


def test_a_session_that_does_not_exist_leaves_the_open_one_alone(tmp_path: Path) -> None:
    made = make(tmp_path, says("One."))

    async def work(chat: Chat) -> None:
        await chat.session.submit("first")
        assert "There is no session 'nope'" in await chat.do("/resume nope")
        assert "/sessions" in await chat.do("/resume")
        damaged = chat.files[0].with_name("damaged.jsonl")
        damaged.write_text("{}\n")
        assert "no header" in await chat.do("/resume damaged")
        assert chat.texts == ["first", "One."]

    chatting(made, work)


# --- jobs and usage ------------------------------------------------------------------------------------------------


def test_jobs_lists_and_stops_what_runs_in_the_background(tmp_path: Path) -> None:
    """I25: a job that was stopped is gone."""
    made = make(tmp_path)

    async def work(chat: Chat) -> None:
        assert "no background jobs" in await chat.do("/jobs")
        await chat.session.processes.run(["sh", "-c", "sleep 60 & exit"], leave_jobs=True)
        (job,) = chat.session.processes.job_list()
        listed = await chat.do("/jobs")
        assert f"{job.id}  running" in listed
        assert str(job.log) in listed
        assert "was stopped" in await chat.do(f"/jobs stop {job.id}")
        assert "running" not in await chat.do("/jobs")
        assert "Error" in await chat.do("/jobs stop job-77")
        assert "/jobs stop ID" in await chat.do("/jobs halt")

    chatting(made, work)


def test_usage_tells_what_this_session_and_all_have_used(tmp_path: Path) -> None:
    made = make(tmp_path, says("One."))
    totals = made.config.config_folder / "usage.json"
    totals.write_text('{"turns": {"old": 3}, "cost": {"old": 1.5}}')

    async def work(chat: Chat) -> None:
        await chat.session.submit("first")
        told = await chat.do("/usage")
        assert "1 model request, cost 0.0000 USD" in told
        assert "All sessions: 4 model requests, cost 1.5000 USD" in told
        totals.write_text("{")
        assert "damaged" in await chat.do("/usage")

    chatting(made, work)


def test_the_errors_of_the_archive_are_those_it_promises(tmp_path: Path) -> None:
    made = make(tmp_path)
    with pytest.raises(SessionError, match="no session"):
        run(made.session.sessions.resume("nope"))
    with pytest.raises(MarvinError, match="not on disk"):
        made.session.sessions.branches()
    run(made.session.close())
