"""Keeping a session on disk: where the disk fails, the conversation goes on and the user is told once."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import textwrap
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from marvin_core.api.errors import SessionError
from marvin_core.api.messages import (
    Image,
    Message,
    ProviderData,
    Text,
    Thinking,
    ToolCall,
    ToolOutput,
    tool,
    user,
)
from marvin_core.api.timeouts import Timeouts
from marvin_core.sessions.doctor import diagnose
from marvin_core.sessions.reader import BackwardReader, branch_backwards, load, load_full
from marvin_core.sessions.search import branches
from marvin_core.sessions.writer import SessionWriter
from tests.support.engine import run, until


def begun(folder: Path, told: list[str]) -> SessionWriter:
    recorder = SessionWriter(folder, Timeouts(), told.append)
    recorder.begin(0.0, "A chat", "p", "m", "/w")
    return recorder


def test_messages_are_on_disk_as_soon_as_they_are_saved(tmp_path: Path) -> None:
    recorder = begun(tmp_path, [])
    recorder.save(user("one"))
    path = tmp_path / f"{recorder.id}.jsonl"
    assert [m.text for m in load(path).messages] == ["one"]
    assert load(path).header.id == recorder.id == "19700101-000000-000-a-chat"


OUTPUTS = tool([ToolOutput(call_id="c", name="t", content=(Text(text="out"),))])


def test_outputs_are_written_when_the_event_loop_is_free_and_in_their_order(tmp_path: Path) -> None:
    recorder = begun(tmp_path, [])
    path = tmp_path / f"{recorder.id}.jsonl"

    async def said() -> list[int]:
        counts = []
        for message in (user("one"), OUTPUTS):
            recorder.save(message)
            counts.append(len(load(path).messages))
        await asyncio.sleep(0)
        counts.append(len(load(path).messages))
        recorder.save(OUTPUTS)
        recorder.save(user("two"))  # what comes after them is written after them
        counts.append(len(load(path).messages))
        return counts

    assert run(said()) == [1, 1, 2, 4]
    assert [message.role for message in load(path).messages] == ["user", "tool", "tool", "user"]


def test_a_message_may_wait_for_the_next_one_and_not_longer_than_allowed(tmp_path: Path) -> None:
    recorder = begun(tmp_path, [])
    path = tmp_path / f"{recorder.id}.jsonl"

    async def said(wait: float) -> list[int]:
        recorder.save(user("a"), within=wait)
        counts = [len(load(path).messages) if path.stat().st_size else 0]
        if wait < 1:
            await until(lambda: path.stat().st_size > 0)
        else:
            recorder.save(OUTPUTS)
            await asyncio.sleep(0)
        return [*counts, len(load(path).messages)]

    assert run(said(0.01)) == [0, 1]
    assert run(said(3_600)) == [1, 3]


def test_what_waits_when_its_event_loop_ends_is_written_in_the_next_one(tmp_path: Path) -> None:
    recorder = begun(tmp_path, [])
    path = tmp_path / f"{recorder.id}.jsonl"

    async def saved(message: Message) -> None:
        recorder.save(message, within=3_600)

    async def free() -> None:
        recorder.save(OUTPUTS)
        await asyncio.sleep(0)

    run(saved(user("one")))
    run(saved(user("two")))
    run(free())
    assert [message.role for message in load(path).messages] == ["user", "user", "tool"]


@pytest.mark.parametrize(
    "end", [lambda recorder: recorder.close(), lambda recorder: recorder.rescue(), lambda recorder: recorder.position]
)
def test_outputs_that_are_not_written_yet_are_written_first(
    end: Callable[[SessionWriter], object], tmp_path: Path
) -> None:
    recorder = begun(tmp_path, [])
    path = tmp_path / f"{recorder.id}.jsonl"

    async def said() -> None:
        recorder.save(user("one"))
        recorder.save(OUTPUTS)
        end(recorder)
        assert len(load(path).messages) == 2

    run(said())


def test_an_output_that_is_saved_while_the_file_is_synced_holds_nothing_up(tmp_path: Path) -> None:
    recorder = begun(tmp_path, [])

    async def said() -> None:
        recorder.save(user("one"))
        ending = asyncio.ensure_future(recorder.flush({}))
        while not ending.done():
            recorder.save(OUTPUTS)
            time.sleep(0.01)  # noqa: ASYNC251  # the thread that syncs ends while the output waits for the loop
            await asyncio.sleep(0)
        await ending
        recorder.save(user("two"))
        await asyncio.wait_for(recorder.finish(), 30)

    run(said())
    messages = load(tmp_path / f"{recorder.id}.jsonl").messages
    assert (messages[0].text, messages[-1].text) == ("one", "two")


def test_a_long_first_prompt_makes_a_short_title(tmp_path: Path) -> None:
    recorder = SessionWriter(tmp_path, Timeouts(), lambda text: None)
    recorder.begin(0.0, "word " * 1_000, "p", "m", "/w")
    recorder.save(user("one"))
    assert len(load(tmp_path / f"{recorder.id}.jsonl").header.title) == 80


def test_before_a_session_has_begun_nothing_is_saved(tmp_path: Path) -> None:
    recorder = SessionWriter(tmp_path, Timeouts(), lambda text: None)
    recorder.save(user("one"))
    run(recorder.flush({"pack": {"n": 1}}))
    recorder.close()
    assert list(tmp_path.iterdir()) == []


def test_a_session_that_was_resumed_goes_on_in_its_file(tmp_path: Path) -> None:
    first = begun(tmp_path, [])
    first.save(user("one"))
    first.close()
    path = tmp_path / f"{first.id}.jsonl"
    second = SessionWriter(tmp_path, Timeouts(), lambda text: None)
    second.resume(path, load(path))
    second.save(user("two"))
    assert second.id == first.id
    assert [m.text for m in load(path).messages] == ["one", "two"]


def test_state_is_written_when_it_changed_and_only_then(tmp_path: Path) -> None:
    recorder = begun(tmp_path, [])
    recorder.save(user("one"))
    states: list[dict[str, Any]] = [{}, {"pack": {"n": 1}}, {"pack": {"n": 1}}, {"pack": {"n": 2, "at": Path("/a")}}]
    for state in states:
        run(recorder.flush(state))
    path = tmp_path / f"{recorder.id}.jsonl"
    kept = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert [line["state"] for line in kept if line["type"] == "state"] == [
        {"pack": {"n": 1}},
        {"pack": {"n": 2, "at": "/a"}},
    ]
    again = SessionWriter(tmp_path, Timeouts(), lambda text: None)
    again.resume(path, load(path))
    run(again.flush(load(path).state))
    assert len(path.read_bytes().splitlines()) == len(kept)


def test_state_that_no_file_can_hold_is_told_and_costs_nothing_else(tmp_path: Path) -> None:
    told: list[str] = []
    recorder = begun(tmp_path, told)
    recorder.save(user("one"))
    run(recorder.flush({"pack": {("a", "b"): 1}}))
    recorder.save(user("two"))
    assert len(told) == 1
    assert "could not be saved" in told[0]
    assert [m.text for m in load(tmp_path / f"{recorder.id}.jsonl").messages] == ["one", "two"]


def test_a_folder_that_cannot_be_written_is_told_once_and_the_conversation_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    folder.write_text("in the way")
    told: list[str] = []
    recorder = begun(folder, told)
    for text in ("one", "two", "three"):
        recorder.save(user(text))
        run(recorder.flush({"pack": {"text": text}}))
    recorder.close()
    assert len(told) == 1
    assert "cannot be saved" in told[0]
    assert "Free space or make the folder writable. Until then, the conversation is not saved" in told[0]


def test_what_could_not_be_written_is_written_as_soon_as_it_can_be(tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    folder.write_text("in the way")
    told: list[str] = []
    recorder = begun(folder, told)
    recorder.save(user("one"))
    run(recorder.flush({"pack": {"n": 1}}))
    recorder.save(user("two"))
    folder.unlink()
    recorder.save(user("three"))
    recorder.close()
    found = load(folder / f"{recorder.id}.jsonl")
    assert [message.text for message in found.messages] == ["one", "two", "three"]
    assert found.state == {"pack": {"n": 1}}
    assert len(told) == 1


def test_a_fork_begins_a_file_of_its_own_with_what_was_said(tmp_path: Path) -> None:
    recorder = begun(tmp_path, [])
    recorder.save(user("one"))
    run(recorder.flush({"pack": {"n": 1}}))
    original = recorder.id
    recorder.fork(86_400.0, [user("one")])
    recorder.save(user("two"))
    assert recorder.id == "19700102-000000-000-a-chat"
    forked = load(tmp_path / f"{recorder.id}.jsonl")
    assert (forked.header.parent, forked.header.time, forked.state) == (original, 86_400.0, {"pack": {"n": 1}})
    assert [m.text for m in forked.messages] == ["one", "two"]
    assert [m.text for m in load(tmp_path / f"{original}.jsonl").messages] == ["one"]


def test_a_fork_keeps_when_things_were_said(tmp_path: Path) -> None:
    """Also of a fork of a session that was gone on with; what a summary stands for has no time."""
    recorder = begun(tmp_path, [])
    recorder.compacted([user("a summary")])
    recorder.save(user("one"))
    recorder.save(user("two"))
    said = load(tmp_path / f"{recorder.id}.jsonl").times
    assert said[0] == 0.0
    assert said[1] > 1e9
    messages = [user("a summary"), user("one"), user("two")]
    recorder.fork(86_400.0, messages)
    first = tmp_path / f"{recorder.id}.jsonl"
    assert load(first).times == said
    recorder.close()
    again = SessionWriter(tmp_path, Timeouts(), pytest.fail)
    again.resume(first, load(first))
    again.step_back()
    again.save(user("another two"))
    messages[-1] = user("another two")
    again.fork(90_000.0, messages)
    forked = load(tmp_path / f"{again.id}.jsonl")
    assert forked.times[:2] == said[:2]
    assert forked.times[2] >= said[2]
    assert [message.text for message in forked.messages] == [message.text for message in messages]


def test_what_is_not_on_disk_cannot_be_forked(tmp_path: Path) -> None:
    recorder = SessionWriter(tmp_path, Timeouts(), lambda text: None)
    with pytest.raises(SessionError, match="Type a request first"):
        recorder.fork(0.0, [])
    assert list(tmp_path.iterdir()) == []


def test_after_clearing_nothing_more_goes_into_the_old_file(tmp_path: Path) -> None:
    recorder = begun(tmp_path, [])
    recorder.save(user("one"))
    path = tmp_path / f"{recorder.id}.jsonl"
    recorder.clear()
    recorder.save(user("lost"))
    assert (recorder.id, recorder.position) == ("", None)
    recorder.begin(86_400.0, "Next", "p", "m", "/w")
    recorder.save(user("two"))
    assert [m.text for m in load(path).messages] == ["one"]
    assert [m.text for m in load(tmp_path / f"{recorder.id}.jsonl").messages] == ["two"]


def test_state_is_written_again_in_a_branch_that_has_none(tmp_path: Path) -> None:
    recorder = begun(tmp_path, [])
    recorder.save(user("one"))
    recorder.save(user("two"))
    run(recorder.flush({"pack": {"n": 1}}))
    recorder.step_back()
    recorder.save(user("three"))
    run(recorder.flush({"pack": {"n": 1}}))
    loaded = load(tmp_path / f"{recorder.id}.jsonl")
    assert ([m.text for m in loaded.messages], loaded.state) == (["one", "three"], {"pack": {"n": 1}})


FULL = """
    import asyncio, os, resource, sys
    from pathlib import Path
    from marvin_core.api.messages import user
    from marvin_core.sessions.writer import SessionWriter
    from marvin_core.sessions.reader import load
    from marvin_core.api.timeouts import Timeouts

    recorder = SessionWriter(Path(sys.argv[1]), Timeouts(), print)
    recorder.begin(0.0, "A chat", "p", "m", "/w")
    recorder.save(user("one"))
    files = len(os.listdir("/dev/fd"))
    sys.dont_write_bytecode = True  # it would be cut off, too, and stay so
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, resource.RLIM_INFINITY))
    recorder.save(user("x" * 2_000))
    recorder.save(user("y"))
    asyncio.run(recorder.flush({"pack": {"n": 1}}))
    print([message.text for message in load(Path(sys.argv[1]) / f"{recorder.id}.jsonl").messages])
    print(len(os.listdir("/dev/fd")) - files)
"""


def test_a_disk_that_fills_up_is_told_once_and_leaves_a_file_that_can_be_resumed(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FULL), str(tmp_path)],
        capture_output=True,
        check=False,
        text=True,
        timeout=150,
    )
    assert done.returncode == 0, done.stderr
    told, kept, files = done.stdout.splitlines()
    assert "the disk is full" in told
    assert (kept, files) == ("['one']", "-1")


# --- compaction, and a header that changes -------------------------------------------------------------------------


def test_a_compaction_keeps_the_state_and_the_live_context_goes_on_from_it(tmp_path: Path) -> None:
    recorder = begun(tmp_path, [])
    recorder.save(user("one"))
    run(recorder.flush({"pack": {"n": 1}}))
    recorder.compacted([user("summary")])
    recorder.save(user("two"))
    run(recorder.flush({"pack": {"n": 1}}))
    path = tmp_path / f"{recorder.id}.jsonl"
    loaded = load(path)
    assert ([m.text for m in loaded.messages], loaded.state) == (["summary", "two"], {"pack": {"n": 1}})
    again = SessionWriter(tmp_path, Timeouts(), lambda text: None)
    again.resume(path, loaded)
    again.fork(86_400.0, loaded.messages)
    forked = load(tmp_path / f"{again.id}.jsonl")
    assert ([m.text for m in forked.messages], forked.state) == (["summary", "two"], {"pack": {"n": 1}})


def test_what_changes_in_the_header_is_in_the_file(tmp_path: Path) -> None:
    recorder = begun(tmp_path, [])
    recorder.changed(model="early")
    recorder.save(user("one"))
    recorder.changed(provider="q", model="late", thinking="high")
    header = load(tmp_path / f"{recorder.id}.jsonl").header
    assert (header.provider, header.model, header.thinking, header.title) == ("q", "late", "high", "A chat")
    unbegun = SessionWriter(tmp_path, Timeouts(), lambda text: None)
    unbegun.changed(model="x")
    unbegun.compacted([user("x")])
    assert len(list(tmp_path.iterdir())) == 1


# --- a file that somebody else has ---------------------------------------------------------------------------------


@contextmanager
def held(path: Path) -> Iterator[subprocess.Popen[str]]:
    """The lock of a file in the hands of another process, until that is killed."""
    code = (
        "import fcntl, sys; f = open(sys.argv[1], 'rb+'); fcntl.flock(f, fcntl.LOCK_EX); "
        "print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


async def stood_still(work: Callable[[], Awaitable[None]]) -> float:
    """How long the loop did nothing else at most while something was done."""
    longest, last = 0.0, time.monotonic()
    task = asyncio.ensure_future(work())
    while not task.done():
        await asyncio.sleep(0.005)
        now = time.monotonic()
        longest, last = max(longest, now - last), now
    await task
    return longest


def begun_with_one(folder: Path, lock: float, told: list[str]) -> tuple[SessionWriter, Path]:
    """A session with one message, and its file; `lock` is how long that is waited for, in seconds."""
    recorder = SessionWriter(folder, Timeouts(lock=lock), told.append)
    recorder.begin(0.0, "A chat", "p", "m", "/w")
    recorder.save(user("0"))
    return recorder, folder / f"{recorder.id}.jsonl"


def test_a_file_that_another_process_has_is_waited_for_without_the_loop(tmp_path: Path) -> None:
    """What is said meanwhile is written in its order as soon as the file is free, and nobody is told."""
    told: list[str] = []
    recorder, path = begun_with_one(tmp_path, 60.0, told)
    with held(path) as other:

        async def go() -> None:
            for number in range(1, 6):
                recorder.save(user(str(number)))
                await asyncio.sleep(0.05)
            assert load(path).count == 1
            other.kill()
            await recorder.flush({"pack": {"n": 1}})

        assert run(stood_still(go)) < 2.0  # the lock may be waited for 60 s
    loaded = load(path)
    assert [message.text for message in loaded.messages] == list("012345")
    assert (loaded.state, told) == ({"pack": {"n": 1}}, [])


def test_a_file_that_stays_with_another_process_is_told_once_and_written_later(tmp_path: Path) -> None:
    told: list[str] = []
    recorder, path = begun_with_one(tmp_path, 0.2, told)

    async def talk() -> None:
        recorder.save(user("1"))
        await recorder.flush({})
        recorder.save(user("2"))
        await recorder.flush({})

    with held(path):
        run(talk())
        (text,) = told
        assert "is locked by another process. Try again when that process has finished" in text
        assert load(path).count == 1

    async def go_on() -> None:
        recorder.save(user("3"))
        await recorder.finish()

    run(go_on())
    assert [message.text for message in load(path).messages] == list("0123")
    assert len(told) == 1


def test_who_begins_another_session_meanwhile_loses_nothing_of_the_first(tmp_path: Path) -> None:
    told: list[str] = []
    recorder, first = begun_with_one(tmp_path, 60.0, told)
    with held(first) as other:

        async def go() -> None:
            recorder.save(user("1"))
            recorder.clear()
            recorder.begin(1.0, "Another", "p", "m", "/w")
            recorder.save(user("2"))
            other.kill()
            await recorder.finish()

        run(go())
    assert [message.text for message in load(first).messages] == ["0", "1"]
    assert [message.text for message in load(tmp_path / f"{recorder.id}.jsonl").messages] == ["2"]
    assert told == []


def test_what_is_still_unwritten_at_the_end_is_told(tmp_path: Path) -> None:
    told: list[str] = []
    recorder, path = begun_with_one(tmp_path, 0.2, told)

    async def go() -> None:
        recorder.save(user("1"))
        await recorder.finish()

    with held(path):
        run(go())
    assert "is locked by another process. Try again when that process has finished" in told[0]
    assert told[1:] == [f"{path} does not contain the end of the conversation: it could not be written."]


# --- names ---------------------------------------------------------------------------------------------------------


def test_two_sessions_of_one_moment_and_title_have_a_file_each(tmp_path: Path) -> None:
    recorders = [begun(tmp_path, []) for _ in range(4)]
    for number, recorder in enumerate(recorders):
        recorder.save(user(str(number)))
        recorder.close()
    assert len({recorder.id for recorder in recorders}) == 4
    for number, recorder in enumerate(recorders):
        loaded = load(tmp_path / f"{recorder.id}.jsonl")
        assert ([message.text for message in loaded.messages], loaded.header.id) == ([str(number)], recorder.id)
        assert recorder.id.startswith("19700101-000000-000-a-chat")


def test_a_session_in_which_nothing_is_said_leaves_no_file(tmp_path: Path) -> None:
    recorder = begun(tmp_path, [])
    recorder.changed(model="other")
    recorder.close()
    assert list(tmp_path.iterdir()) == []


# --- lines that are too long ---------------------------------------------------------------------------------------


def test_what_is_too_long_for_a_line_is_cut_and_every_call_keeps_its_output(tmp_path: Path) -> None:
    recorder = SessionWriter(tmp_path, Timeouts(), pytest.fail, 100_000)
    recorder.begin(0.0, "A chat", "p", "m", "/w")
    long = "\x00ü" * 50_000
    call = ToolCall(id="1", name="look", arguments=json.dumps({"path": long}))
    image = Image(media_type="image/png", data="A" * 200_000)
    data = ProviderData(provider="p", data={"signature": long})
    output = ToolOutput(call_id="1", name="look", content=(Text(text=long), image))
    recorder.save(user(long))
    recorder.save(Message(role="assistant", content=(Thinking(text=long, provider_data=data), Text(text="ok"), call)))
    recorder.save(tool([output]))
    recorder.compacted([user("short"), user(long)])
    recorder.save(user("last"))
    path = tmp_path / f"{recorder.id}.jsonl"
    assert max(map(len, path.read_bytes().split(b"\n"))) <= 100_000
    whole = load_full(path, 100_000)
    assert whole.problems == ()
    asked, called, told, last = whole.messages
    assert asked.text.startswith("\x00ü")
    assert "characters were left out.]" in asked.text
    assert (called.text, called.calls[0].id, called.calls[0].complete) == ("ok", "1", False)
    assert isinstance(called.content[0], Thinking)
    assert called.content[0].provider_data is None
    assert told.outputs[0].call_id == "1"
    assert told.outputs[0].text.endswith("[An image was too large for the session file.]")
    assert last.text == "last"
    assert [message.text[:5] for message in load(path).messages] == ["short", asked.text[:5], "last"]
    assert diagnose(path, Timeouts()).problems == ()


def test_state_that_is_too_long_for_a_line_is_told_and_holds_up_nothing(tmp_path: Path) -> None:
    told: list[str] = []
    recorder = SessionWriter(tmp_path, Timeouts(), told.append, 10_000)
    recorder.begin(0.0, "A chat", "p", "m", "/w")
    recorder.save(user("one"))
    run(recorder.flush({"pack": {"text": "x" * 20_000}}))
    recorder.save(user("two"))
    (text,) = told
    assert "A state of 20,1" in text
    assert "limits.session_line" in text
    assert [message.text for message in load(tmp_path / f"{recorder.id}.jsonl").messages] == ["one", "two"]


def test_what_no_file_can_hold_is_told_and_holds_up_nothing(tmp_path: Path) -> None:
    told: list[str] = []
    recorder = begun(tmp_path, told)
    recorder.save(user("one"))
    odd = ProviderData(provider="p", data={"raw": b"bytes"})
    recorder.save(Message(role="assistant", content=(Text(text="odd", provider_data=odd),)))
    recorder.save(user("two"))
    (text,) = told
    assert "cannot be saved" in text
    assert [message.text for message in load(tmp_path / f"{recorder.id}.jsonl").messages] == ["one", "two"]


# --- real processes ------------------------------------------------------------------------------------------------

PROCESS = """
    import sys
    from pathlib import Path
    from marvin_core.api.messages import user
    from marvin_core.sessions.writer import SessionWriter
    from marvin_core.sessions.reader import load
    from marvin_core.api.timeouts import Timeouts

    path, name, limit = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    recorder = SessionWriter(path.parent, Timeouts(), sys.exit)
    loaded = load(path)
    recorder.resume(path, loaded)
    newest = loaded.messages[-1].text.split(":")
    first = int(newest[1]) + 1 if newest[0] == name else 0
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(first, first + limit):
        recorder.save(user(f"{name}:{number}:" + "x" * (number * 97 % 9_000)))
        print(number, flush=True)
        if number % 20 == 19:
            recorder.compacted([user(f"summary by {name}"), user(f"{name}:{number}:")])
            recorder.changed(**({"model": f"{name}:{number}"} if name == "left" else {"thinking": f"{name}:{number}"}))
"""


def start(path: Path, name: str, limit: int) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROCESS), str(path), name, str(limit)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def numbers(path: Path, name: str) -> list[int]:
    """The numbers of what a process said, on the branch that ends in its newest message."""
    with BackwardReader(path) as reader:
        reader.read_all()
        said = {
            key: record["message"]["content"][0]["text"].split(":")
            for key, record in reader.records.items()
            if record["type"] == "message"
        }
        newest = next(key for key, words in said.items() if words[0] == name)
        words = [said[record["id"]] for record in branch_backwards(reader, newest, []) if record["id"] in said]
    return [int(number) for who, number, _ in words[::-1] if who == name]


@pytest.fixture
def session(tmp_path: Path) -> Path:
    recorder = begun(tmp_path, [])
    recorder.save(user("base:0:"))
    recorder.close()
    return tmp_path / f"{recorder.id}.jsonl"


@pytest.mark.slow
def test_a_session_that_is_killed_again_and_again_loses_at_most_the_line_being_written(session: Path) -> None:
    chance = random.Random(7)
    printed = -1
    for _ in range(6):
        with start(session, "one", 1_000_000) as process:
            assert process.stdout is not None
            go(process)
            for _ in range(chance.randrange(1, 90)):
                printed = int(process.stdout.readline())
            process.kill()
            rest = process.stdout.read().rpartition("\n")[0].split()
            printed = int(rest[-1]) if rest else printed
        texts = [message.text for message in load_full(session).messages[1:]]
        said = [int(text.split(":")[1]) for text in texts]
        assert said == list(range(len(said)))
        assert printed <= said[-1] <= printed + 1
        assert all(len(text.split(":")[2]) == int(text.split(":")[1]) * 97 % 9_000 for text in texts)
        assert len(load(session).messages) <= 42
        printed = said[-1]


@pytest.mark.slow
def test_two_processes_on_one_session_make_two_branches_and_lose_nothing(session: Path) -> None:
    with start(session, "left", 150) as left, start(session, "right", 150) as right:
        go(left)
        go(right)
        for process in (left, right):
            process.communicate(timeout=150)
            assert process.returncode == 0
    assert diagnose(session, Timeouts()).problems == ()
    assert [branch.messages for branch in branches(session, "")] == [151, 151]
    for name in ("left", "right"):
        assert numbers(session, name) == list(range(150))
    loaded = load(session)
    assert (loaded.header.model, loaded.header.thinking) == ("left:139", "right:139")
    assert loaded.count == 301
