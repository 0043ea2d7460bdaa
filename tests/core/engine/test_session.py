"""A session as interfaces see it: begun, resumed, listened to, closed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from marvin_core import Event, Hook, HookContext, TextDelta
from marvin_core.api.errors import ConfigError, SessionError
from marvin_core.api.events import AppStart, Notice, SessionResume, SessionStart
from marvin_core.api.messages import ToolOutput
from marvin_core.conversation.pairing import INTERRUPTED
from marvin_core.sessions.reader import load
from marvin_core.sessions.store import sessions
from tests.support.engine import QUICK, Hang, Made, Script, calls, make, run, says, until


async def submitted(made: Made, *prompts: str) -> list[Any]:
    try:
        return [await made.session.submit(prompt) for prompt in prompts]
    finally:
        await made.session.close()


def file_of(made: Made) -> Path:
    (path,) = sessions(made.config.data_folder / "sessions")
    return path


# --- beginning -----------------------------------------------------------------------------------------------------


def test_a_session_begins_with_its_first_prompt_and_is_on_disk(tmp_path: Path) -> None:
    made = make(tmp_path, says("One."), says("Two."))
    assert (made.session.id, sessions(made.config.data_folder / "sessions")) == ("", [])
    run(submitted(made, "Fix the bug", "and the other"))
    assert [type(event) for event in made.events][:2] == [AppStart, SessionStart]
    assert len(made.seen(SessionStart)) == 1
    path = file_of(made)
    assert path.stem == made.session.id
    assert path.stem.endswith("-fix-the-bug")
    loaded = load(path)
    assert loaded.header.title == "Fix the bug"
    assert (loaded.header.provider, loaded.header.model) == ("scripted", "scripted")
    assert loaded.header.working_dir == str(tmp_path / "project")
    assert [message.text for message in loaded.messages] == ["Fix the bug", "One.", "and the other", "Two."]


@pytest.mark.parametrize("name", ["look", "mark"])
def test_an_answer_is_on_disk_while_its_calls_run(tmp_path: Path, name: str) -> None:
    """I15: what a process was doing when it died can be healed. Only an answer that just reads may be saved later."""
    made = make(tmp_path, calls(("a", name, '{"name": "x", "seconds": 300}')))

    def roles() -> list[str]:
        return [json.loads(line)["message"]["role"] for line in file_of(made).read_bytes().splitlines()[1:]]

    async def go() -> None:
        task = asyncio.ensure_future(made.session.submit("go"))
        await until(lambda: made.log == ["+x"])
        if name == "look":
            await until(lambda: len(roles()) == 2)
        assert roles() == ["user", "assistant"]
        task.cancel()
        await asyncio.wait([task])
        await made.session.close()

    run(go())


def test_without_a_model_a_prompt_says_how_to_set_one_and_tools_can_still_be_called(tmp_path: Path) -> None:
    made = make(tmp_path, configured=False)
    assert not made.session.configured
    assert (made.session.models.provider_name, made.session.models.model) == ("", "")

    async def go() -> tuple[Any, ToolOutput]:
        result = await made.session.submit("hi")
        output = await made.session.call_tool("look", {"name": "x"})
        await made.session.close()
        return result, output

    result, output = run(go())
    assert isinstance(result.error, ConfigError)
    assert "export A_KEY" in str(result.error)
    assert output.text == "x done"
    assert sessions(made.config.data_folder / "sessions") == []


def test_a_disk_that_fails_is_told_and_the_conversation_goes_on(tmp_path: Path) -> None:
    made = make(tmp_path, says("One."), says("Two."))
    made.config.data_folder.mkdir(parents=True, exist_ok=True)
    (made.config.data_folder / "sessions").write_text("in the way")
    assert [result.text for result in run(submitted(made, "a", "b"))] == ["One.", "Two."]
    assert len([notice for notice in made.seen(Notice) if "cannot be saved" in notice.text]) == 1


def test_state_that_cannot_be_saved_does_not_fail_the_prompt(tmp_path: Path) -> None:
    made = make(tmp_path, calls(("a", "hoard", "{}")), says("Fine."))
    result = run(submitted(made, "go"))[0]
    assert (result.text, result.error) == ("Fine.", None)
    assert any("could not be saved" in notice.text for notice in made.seen(Notice))


# --- resuming ------------------------------------------------------------------------------------------------------


def test_a_resumed_session_goes_on_with_what_was_said_and_what_packs_kept(tmp_path: Path) -> None:
    first = make(tmp_path, calls(("a", "keep", '{"value": "blue"}')), says("Kept."))
    run(submitted(first, "keep it"))
    second = make(tmp_path, calls(("b", "keep", '{"value": "red"}')), says("Done."))
    second.session.resume(file_of(first))
    assert second.session.id == first.session.id
    run(submitted(second, "what was it?"))
    assert second.provider is not None
    request = second.provider.requests[1]
    assert [message.role for message in request.messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
        "assistant",
        "tool",
    ]
    assert request.messages[-1].outputs[0].text == "before: blue"
    (event,) = second.seen(SessionResume)
    assert (event.messages, event.healed) == (4, 0)
    assert second.seen(SessionStart) == []
    assert len(load(file_of(first)).messages) == 8
    assert load(file_of(first)).state["tests"]["kept"] == "red"


def test_calls_that_were_interrupted_are_healed_on_the_way_in(tmp_path: Path) -> None:
    """I15: the process died in the middle of a round."""
    first = make(tmp_path, calls(("a", "look", '{"name": "x"}'), ("b", "look", '{"name": "y"}')), says("Fine."))
    run(submitted(first, "go"))
    path = file_of(first)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    second = make(tmp_path, says("Again, then."), says("Once more."))
    second.session.resume(path)
    run(submitted(second, "go on"))
    assert second.provider is not None
    outputs = second.provider.requests[0].messages[2].outputs
    assert [(output.call_id, output.text) for output in outputs] == [("a", INTERRUPTED), ("b", INTERRUPTED)]
    assert second.seen(SessionResume)[0].healed == 2
    third = make(tmp_path, says("Yes."))
    third.session.resume(path)
    run(submitted(third, "and now?"))
    assert third.provider is not None
    assert [message.role for message in third.provider.requests[0].messages] == [
        "user",
        "assistant",
        "tool",
        "user",
        "assistant",
        "user",
    ]


def test_who_begins_to_listen_after_a_resume_hears_of_it_and_of_every_damaged_line(tmp_path: Path) -> None:
    first = make(tmp_path, says("One."))
    run(submitted(first, "go"))
    path = file_of(first)
    path.write_bytes(path.read_bytes() + b"damaged\n")
    second = make(tmp_path, says("Two."), hooks=[Hook()], listening=False)
    second.session.resume(path)
    second.session.subscribe(second.events.append)
    assert [type(event) for event in second.events] == [AppStart, Notice, SessionResume]
    assert "line 4" in second.seen(Notice)[0].text
    run(submitted(second, "on"))
    assert len(second.seen(SessionResume)) == 1
    assert [message.text for message in load(path).messages] == ["go", "One.", "on", "Two."]


def test_a_session_that_is_not_there_cannot_be_resumed(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="cannot be read"):
        make(tmp_path).session.resume(tmp_path / "gone.jsonl")


def test_the_program_is_up_once_somebody_listens(tmp_path: Path) -> None:
    made = make(tmp_path, says("Fine."), listening=False)
    seen: list[list[Event]] = [[], []]
    made.session.subscribe(seen[0].append)
    assert [event.type for event in seen[0]] == ["app_start"]
    made.session.subscribe(seen[1].append)
    run(submitted(made, "go"))
    assert [event.type for event in seen[0]].count("app_start") == 1
    assert "app_start" not in [event.type for event in seen[1]]


# --- listening -----------------------------------------------------------------------------------------------------


def test_a_listener_that_raises_is_dropped_and_disturbs_nobody(tmp_path: Path) -> None:
    made = make(tmp_path, says("Fine."))
    counts = {"broken": 0, "sound": 0}

    def broken(event: Event) -> None:
        counts["broken"] += 1
        raise RuntimeError("broken interface")

    def sound(event: Event) -> None:
        counts["sound"] += 1

    made.session.subscribe(broken)
    made.session.subscribe(sound)
    assert run(submitted(made, "go"))[0].text == "Fine."
    assert counts["broken"] == 2  # the event at which it failed, and the notice of that
    assert counts["sound"] == len(made.events) - 1  # the first one was told that the program is up
    (told,) = [notice.text for notice in made.seen(Notice) if notice.level == "error"]
    assert "broken failed at " in told
    assert "RuntimeError: broken interface" in told


def test_a_listener_can_leave_at_any_time_and_twice(tmp_path: Path) -> None:
    made = make(tmp_path, says("Fine."))
    heard: list[Event] = []

    def once(event: Event) -> None:
        heard.append(event)
        leave()

    leave = made.session.subscribe(once)
    run(submitted(made, "go"))
    leave()
    assert len(heard) == 1


def test_hooks_of_packs_hear_every_event(tmp_path: Path) -> None:
    class Hears(Hook):
        def __init__(self) -> None:
            self.kinds: list[str] = []

        async def on_event(self, context: HookContext, event: Event) -> None:
            self.kinds.append(event.type)

    hook = Hears()
    made = make(tmp_path, says("Fine."), hooks=[hook])
    run(submitted(made, "go"))
    assert hook.kinds == [event.type for event in made.events]


# --- closing -------------------------------------------------------------------------------------------------------

_LOG: list[str] = []


class Closing(Script):
    """A provider that writes down when it is closed."""

    async def aclose(self) -> None:
        """Close."""
        _LOG.append("provider")
        await super().aclose()


@asynccontextmanager
async def _resource() -> AsyncIterator[None]:
    yield
    _LOG.append("resource")


class LastWords(Hook):
    """Sees the last event late."""

    async def on_event(self, context: HookContext, event: Event) -> None:
        await asyncio.sleep(0.01)
        if event.type == "agent_end":
            _LOG.append("hook")


def test_a_session_closes_hooks_then_resources_then_jobs_then_connections(tmp_path: Path) -> None:
    _LOG.clear()
    provider = Closing(says("Fine."))
    made = make(tmp_path, hooks=[LastWords()], provider=provider)

    async def go() -> None:
        await made.parts.resources.get(_resource)
        await made.session.submit("go")
        await made.session.close()

    run(go())
    assert _LOG == ["hook", "resource", "provider"]
    assert provider.closed


def test_closing_ends_the_jobs(tmp_path: Path) -> None:
    """I25."""
    made = make(tmp_path)

    async def go() -> int:
        await made.parts.processes.run(["sh", "-c", "sleep 60 & exit 0"], leave_jobs=True)
        (job,) = made.parts.processes.job_list()
        assert job.running
        await made.session.close()
        return job.pid

    run(go())
    assert not any(job.running for job in made.parts.processes.job_list())


@asynccontextmanager
async def _stubborn() -> AsyncIterator[None]:
    yield
    await asyncio.Event().wait()


@asynccontextmanager
async def _failing() -> AsyncIterator[None]:
    yield
    raise OSError("the browser does not stop")


def test_closing_takes_its_time_and_no_more_and_tells_what_went_wrong(tmp_path: Path) -> None:
    provider = Script(says("Fine."))
    made = make(tmp_path, provider=provider, timeouts=QUICK.replace(close=0.05))

    async def go() -> None:
        await made.parts.resources.get(_stubborn)
        await made.session.close()

    run(go())
    assert provider.closed
    assert any("longer than `timeouts.close`" in notice.text for notice in made.seen(Notice))


def test_a_resource_that_fails_to_close_is_told(tmp_path: Path) -> None:
    made = make(tmp_path)

    async def go() -> None:
        await made.parts.resources.get(_failing)
        await made.session.close()

    run(go())
    assert any("the browser does not stop" in notice.text for notice in made.seen(Notice))


def test_closing_in_the_middle_of_an_answer_or_twice_raises_nothing(tmp_path: Path) -> None:
    made = make(tmp_path, [TextDelta(text="Once"), Hang()])

    async def go() -> None:
        task = asyncio.ensure_future(made.session.submit("go"))
        await until(lambda: made.session.busy)
        await made.session.close()
        await made.session.close()
        task.cancel()
        await asyncio.wait([task])

    run(go())
