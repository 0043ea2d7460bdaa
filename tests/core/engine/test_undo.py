"""Taking calls back: what tools did to files, and what they say how to take back."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from marvin_core import ToolContext, ToolError, ToolResult, tool
from marvin_core.api.errors import MarvinError
from marvin_core.api.limits import Limits
from marvin_core.api.messages import Call, ToolCall
from marvin_core.guard.undo.inverses import Inverse
from marvin_core.guard.undo.ledger import LedgerEntry, UndoLedger, is_live, sweep, this_process
from marvin_core.testing import ToolRunner
from marvin_core.tools.schema import describe
from tests.support import undo_tools
from tests.support.chat import Chat, chatting
from tests.support.engine import Hang, Made, calls, make, run, says, until
from tests.support.examples import examples
from tests.support.undo_tools import add, book, cancel, fill, put, works_and_waits
from tests.support.undoing import Desk

SECRET = "sk-live-0123456789abcdef"
SPECS = tuple(describe(tool, source="tests", module=undo_tools.__name__) for tool in undo_tools.ALL)

LATE = {name: threading.Event() for name in ("begun", "go on", "done")}


@tool(access=["write"], timeout=lambda values: float(values["limit"]))
async def write_late(context: ToolContext, limit: float) -> str:
    """Write a file, and more in a thread that nothing stops."""

    def work() -> None:
        try:
            context.paths.replace("early", b"x")
            LATE["begun"].set()
            LATE["go on"].wait(30)
            with suppress(ToolError):
                context.paths.replace("late", b"x")
            context.paths.remove("early")
        finally:
            LATE["done"].set()

    await asyncio.to_thread(work)
    return f"done in {limit}"


class Files(Desk):
    """Files in a project, and what the ledger keeps."""

    @property
    def tree(self) -> dict[str, str]:
        """The files of the project."""
        files = [path for path in self.project.rglob("*") if path.is_file()]
        return {str(path.relative_to(self.project)): path.read_text() for path in files}

    @property
    def kept(self) -> list[Path]:
        """The calls in the ledger."""
        return sorted((self.home / ".local/share/marvin/undo").rglob("*.json*"))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Files]:
    made = Files(tmp_path)
    yield made
    made.runner.close()


# --- files ----------------------------------------------------------------------------------------------------------


def test_what_was_created_changed_and_removed_is_as_it_was(desk: Files) -> None:
    (desk.project / "old.txt").write_text("old")
    (desk.project / "gone.txt").write_text("gone")
    before = desk.tree
    desk.runner.call(put, files={"new/a.txt": "new", "old.txt": "newer", "gone.txt": None})
    assert desk.tree == {"new/a.txt": "new", "old.txt": "newer"}
    assert desk.runner.take_back() == ("put: created new/a.txt, changed old.txt, removed gone.txt",)
    assert desk.tree == before
    assert desk.runner.take_back() == ()
    assert desk.kept == []


def test_a_file_that_was_removed_has_its_permissions_again(desk: Files) -> None:
    file = desk.project / "run.sh"
    file.write_text("#!/bin/sh")
    file.chmod(0o750)
    desk.runner.call(put, files={"run.sh": None})
    desk.runner.take_back()
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("#!/bin/sh", 0o750)


def test_the_newest_call_is_taken_back_first_after_a_restart_too(desk: Files) -> None:
    for number in range(4):
        desk.runner.call(put, files={"a.txt": f"{number}"})
    desk.again().take_back()
    assert desk.tree == {"a.txt": "2"}
    assert len(desk.again().take_back(2)) == 2
    assert desk.tree == {"a.txt": "0"}
    assert len(desk.again().take_back(9)) == 1
    assert desk.tree == {}


def test_a_tool_in_a_thread_and_one_that_writes_by_a_real_path_are_taken_back(desk: Files) -> None:
    (desk.project / "a.txt").write_text("one\n")
    desk.runner.call(add, path="a.txt", content="two\n")
    desk.runner.call(fill, path="b.bin", size=10)
    desk.runner.call(fill, path="b.bin", size=20)
    assert len(desk.runner.take_back(3)) == 3
    assert desk.tree == {"a.txt": "one\n"}


def test_what_a_call_changed_before_it_failed_is_taken_back(desk: Files) -> None:
    assert desk.runner.call(put, files={"a.txt": "half"}, fails=True).is_error
    assert desk.runner.take_back() == ("put: created a.txt",)
    assert desk.tree == {}


def test_what_a_call_changed_before_it_was_cancelled_is_taken_back(tmp_path: Path) -> None:
    made = make(tmp_path, specs=SPECS)

    async def work() -> None:
        arguments = json.dumps({"files": {"a.txt": "half"}, "waits": True})
        task = asyncio.ensure_future(
            made.session.dispatcher.batch([ToolCall(id="a", name="put", arguments=arguments)], [])
        )
        while not (tmp_path / "project" / "a.txt").exists():  # noqa: ASYNC110
            await asyncio.sleep(0.002)
        task.cancel()
        await asyncio.wait([task])
        assert await made.session.undo.take_back(1) == ["put: created a.txt"]
        await made.session.close()

    run(work())
    assert not (tmp_path / "project" / "a.txt").exists()


@pytest.mark.parametrize("ends", ["cancel", "time-out"])
def test_a_thread_that_a_stopped_call_left_behind_writes_nothing_more(tmp_path: Path, ends: str) -> None:
    """Nobody would know of it: the model was told that the call was stopped, and nothing could be taken back."""
    for event in LATE.values():
        event.clear()
    made = make(tmp_path, specs=(describe(write_late, source="tests", module=__name__),))

    async def work() -> None:
        arguments = json.dumps({"limit": 0.5 if ends == "time-out" else 100})
        task = asyncio.ensure_future(
            made.session.dispatcher.batch([ToolCall(id="a", name="write_late", arguments=arguments)], [])
        )
        await asyncio.to_thread(LATE["begun"].wait, 30)
        if ends == "cancel":
            task.cancel()
        await asyncio.wait([task])
        LATE["go on"].set()
        await asyncio.to_thread(LATE["done"].wait, 30)
        await made.session.close()

    run(work())
    assert LATE["done"].is_set()
    assert sorted(path.name for path in (tmp_path / "project").iterdir()) == ["early"]


def test_a_call_that_changes_nothing_leaves_nothing_to_take_back(desk: Files) -> None:
    (desk.project / "a.txt").write_text("same")
    desk.runner.call(put, files={"a.txt": "same"})
    desk.runner.call(put, files={"../outside.txt": "refused"})
    assert desk.kept == []


def test_what_the_user_changed_since_is_left_and_shown(desk: Files) -> None:
    (desk.project / "b.txt").write_text("b")
    desk.runner.call(put, files={"a.txt": "one\ntwo\n", "b.txt": "B"})
    (desk.project / "a.txt").write_text("one\nmine\n")
    text = desk.refused()
    assert (
        "Not undone: put: created a.txt, changed b.txt. These files have changed since then. Undo the later change"
        in text
    )
    assert "-two\n+mine\n" in text
    assert desk.tree == {"a.txt": "one\nmine\n", "b.txt": "B"}, "all of a call or nothing"
    (desk.project / "a.txt").write_text("one\ntwo\n")
    desk.runner.take_back()
    assert desk.tree == {"b.txt": "b"}


@pytest.mark.parametrize(
    ("after", "now", "said"),
    [
        ("text", None, "a.txt was removed"),
        (None, b"again", "a.txt was restored"),
        ("text", b"\xff\xfe\x00", "a.txt is not text; it has 3 bytes, and had 4"),
        ("text", b"x\n" * 20_000, "-text"),
        ("text", b"x" * 1_100_000, "a.txt is too large to show the difference; it had 4 bytes"),
    ],
)
def test_every_kind_of_change_by_the_user_is_told(desk: Files, after: str | None, now: bytes | None, said: str) -> None:
    file = desk.project / "a.txt"
    file.write_text("before")
    desk.runner.call(put, files={"a.txt": after})
    if now is None:
        file.unlink()
    else:
        file.write_bytes(now)
    text = desk.refused()
    assert said in text
    assert len(text) < 5_000
    assert (file.read_bytes() if file.exists() else None) == now


def test_it_stops_at_what_cannot_be_taken_back_and_tells_what_was(desk: Files) -> None:
    for name in ("a", "b", "c"):
        desk.runner.call(put, files={name: name})
    (desk.project / "b").write_text("mine")
    text = desk.refused(3)
    assert text.startswith("Undone: put: created c\nNot undone: put: created b.")
    assert desk.tree == {"a": "a", "b": "mine"}


def test_what_was_restored_is_told_if_a_later_file_of_the_call_cannot_be(desk: Files) -> None:
    (desk.project / "d").mkdir()
    for name in ("a", "d/b"):
        (desk.project / name).write_text("old")
    desk.runner.call(put, files={"a": "new", "d/b": None})
    (desk.project / "d").rmdir()
    (desk.project / "d").write_text("mine")
    assert desk.refused().endswith("\nRestored before: a.")
    assert desk.tree == {"a": "old", "d": "mine"}
    (desk.project / "d").unlink()
    desk.runner.take_back()
    assert desk.tree == {"a": "old", "d/b": "old"}


def test_a_file_that_was_put_back_by_hand_already_is_no_obstacle(desk: Files) -> None:
    (desk.project / "a.txt").write_text("old")
    desk.runner.call(put, files={"a.txt": "new", "b.txt": "new"})
    (desk.project / "a.txt").write_text("old")
    desk.runner.take_back()
    assert desk.tree == {"a.txt": "old"}


@pytest.mark.parametrize("linked", ["d/a.txt", "d"])
def test_no_other_file_is_changed_by_way_of_a_link(desk: Files, linked: str) -> None:
    """The user put a link there since: what it leads to is another file, though it may read the same."""
    (desk.project / "d").mkdir()
    (desk.project / "other").mkdir()
    (desk.project / "d/a.txt").write_text("old")
    (desk.project / "other/a.txt").write_text("new")
    desk.runner.call(put, files={"d/a.txt": "new"})
    (desk.project / "d").rename(desk.project / "before")
    if linked == "d":
        (desk.project / "d").symlink_to("other")
    else:
        (desk.project / "d").mkdir()
        (desk.project / "d/a.txt").symlink_to("../other/a.txt")
    assert "d/a.txt was replaced by a link" in desk.refused()
    assert (desk.project / "other/a.txt").read_text() == "new"
    assert len(desk.kept) == 1, "once the link is gone it can be taken back"


def test_what_can_never_be_taken_back_is_not_in_the_way_of_the_rest(desk: Files) -> None:
    (desk.project / "link").symlink_to("a.txt")
    desk.runner.call(put, files={"a.txt": "one"})
    desk.runner.call(put, files={"link": None})
    assert "Not undone: put: changed link. It cannot be undone: link: it was a link. It is no longer" in desk.refused()
    assert desk.runner.take_back() == ("put: created a.txt",)
    assert desk.kept == []


def test_a_file_that_is_too_large_is_said_to_be(tmp_path: Path) -> None:
    made = make(tmp_path, specs=SPECS, yaml="limits: {undo_file: 1000}")

    async def work() -> None:
        await made.session.call_tool("fill", {"path": "a.bin", "size": 1_001})
        with pytest.raises(MarvinError, match=r"a\.bin: it is larger than 1,000 bytes \(limits\.undo_file\)"):
            await made.session.undo.take_back(1)
        await made.session.close()

    run(work())


def test_a_call_that_changes_too_much_is_said_to(tmp_path: Path) -> None:
    """What is kept of one call stays small in memory, however many files it changes."""
    made = make(tmp_path, specs=SPECS, yaml="limits: {undo_file: 1000}")

    async def work() -> None:
        await made.session.call_tool("put", {"files": {f"{number}.txt": "x" * 1000 for number in range(5)}})
        with pytest.raises(MarvinError, match="the call changed too much to be recorded"):
            await made.session.undo.take_back(1)
        await made.session.call_tool("put", {"files": {f"{number}.txt": "y" for number in range(3)}})
        assert len(await made.session.undo.take_back(1)) == 1
        await made.session.close()

    run(work())
    assert (tmp_path / "project" / "0.txt").read_text() == "x" * 1000


def test_taking_back_writes_no_more_than_a_tool_may(desk: Files, tmp_path: Path) -> None:
    """I4: a folder that has become a link leads nowhere else."""
    desk.runner.call(put, files={"sub/a.txt": "new"})
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.txt").write_text("new")
    shutil.rmtree(desk.project / "sub")
    (desk.project / "sub").symlink_to(tmp_path / "outside")
    assert "sub/a.txt was replaced by a link" in desk.refused()
    assert (tmp_path / "outside" / "a.txt").exists()


def test_a_read_only_agent_takes_nothing_back(desk: Files) -> None:
    desk.runner.call(put, files={"a.txt": "new"})
    desk.again(read_only=True)
    assert "MARVIN_READONLY" in desk.refused()
    desk.again(env={"MARVIN_WRITABLE_FILES": "b.txt"})
    assert "is refused: you may write only these files: b.txt" in desk.refused()
    assert desk.tree == {"a.txt": "new"}
    desk.again().take_back()


CHANGE = st.dictionaries(
    st.sampled_from(["a", "b", "sub/c", "sub/d"]), st.none() | st.text(alphabet="ab\n", max_size=4), min_size=1
)


@examples(25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.lists(CHANGE, min_size=1, max_size=5))
def test_whatever_was_done_is_undone_step_by_step(desk: Files, changes: list[dict[str, str | None]]) -> None:
    shutil.rmtree(desk.project)
    desk.project.mkdir()
    states = [desk.tree]
    for change in changes:
        desk.runner.call(put, files=change)
        if desk.tree != states[-1]:
            states.append(desk.tree)
    states.pop()
    while states:
        assert len(desk.runner.take_back()) == 1
        assert desk.tree == states.pop()
    assert desk.runner.take_back() == ()


# --- calls that take others back ------------------------------------------------------------------------------------


def test_a_call_is_taken_back_by_the_call_that_its_tool_names(desk: Files) -> None:
    """Nobody is asked: the person has just said it. Taking back cannot be taken back itself."""
    runner = desk.again(answers=["yes", "yes"])
    runner.call(cancel, place="Paris")  # a failure; the tool is known from here on
    assert runner.call(book, place="Rome").text == "booked"
    assert runner.take_back() == ("book: place=Rome",)
    assert [kept.get("booked") for kept in runner.state.values()] == [[]]
    assert runner.take_back() == ()


def test_a_refusal_of_that_call_is_told_and_it_can_be_tried_again(desk: Files) -> None:
    runner = desk.again(answers=["yes", "yes", "yes"])
    runner.call(book, place="Rome")
    runner.call(cancel, place="Rome")
    runner.take_back()  # of the cancelling: Rome is booked again
    runner.call(cancel, place="Rome")
    for path in desk.kept[-1:]:
        path.unlink()
    assert "Rome is not booked" in desk.refused()
    assert len(desk.kept) == 1


def test_a_rule_that_denies_the_call_holds(tmp_path: Path) -> None:
    made = make(tmp_path, specs=SPECS, yaml="permissions: {deny: ['cancel(Rome)']}")

    async def work() -> None:
        await made.session.call_tool("book", {"place": "Rome"})
        with pytest.raises(MarvinError, match=r"the rule `deny: cancel\(Rome\)`"):
            await made.session.undo.take_back(1)
        await made.session.close()

    run(work())


def test_secrets_are_redacted_in_what_is_shown_and_not_in_what_is_put_back(tmp_path: Path) -> None:
    """I24: neither the list nor the session file has them; the ledger is for this user alone."""
    script = [
        calls(("a", "book", json.dumps({"place": "Rome", "key": SECRET}))),
        calls(("b", "put", json.dumps({"files": {".env": "KEY=other"}}))),
        says("Done."),
    ]
    made = make(tmp_path, *script, specs=SPECS, env={"OPENAI_API_KEY": SECRET})
    (tmp_path / "project" / ".env").write_text(f"KEY={SECRET}")

    async def work(chat: Chat) -> None:
        await chat.session.submit("Go.")
        lines = [line for file in chat.files for line in file.read_text().splitlines() if '"tool_output"' in line]
        assert lines
        assert SECRET not in "".join(lines)
        assert SECRET not in await chat.do("/undo list")
        await chat.do("/undo 2")

    chatting(made, work)
    assert (tmp_path / "project" / ".env").read_text() == f"KEY={SECRET}"
    assert made.parts.state["tests"]["key"] == "[redacted]"


@tool(access=["write"], unlisted=["since"])
async def mark(context: ToolContext, place: str = "here", times: int = 1, since: float = 0) -> ToolResult:
    """Mark a place."""
    return ToolResult(content="marked", undo=Call(name="mark", arguments={}))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"place": "there", "times": 1, "since": 5}, "mark: place=there"),
        ({"times": "2"}, "mark: times=2"),
        ({"place": None}, "mark: no arguments"),
        ({}, "mark: no arguments"),
    ],
)
def test_a_call_is_listed_as_a_person_would_type_it(desk: Files, arguments: dict[str, object], told: str) -> None:
    """Neither defaults nor what no schema tells of; and never nothing, which would stand for a call that still runs."""
    desk.runner.call(mark, **arguments)
    assert desk.runner.take_back() == (told,)


# --- the ledger -----------------------------------------------------------------------------------------------------


def test_what_is_kept_is_for_this_user_alone(desk: Files) -> None:
    desk.runner.call(put, files={"a.txt": "new"})
    (file,) = desk.kept
    assert file.stat().st_mode & 0o777 == 0o600
    assert {folder.stat().st_mode & 0o777 for folder in (file.parent, file.parent.parent)} == {0o700}


def test_a_ledger_that_cannot_be_written_is_told_once_and_stops_nothing(desk: Files) -> None:
    place = desk.home / ".local/share/marvin/undo"
    place.parent.mkdir(parents=True)
    place.write_text("in the way")
    for name in ("a", "b"):
        assert not desk.runner.call(put, files={name: name}).is_error
    assert len([text for text in desk.runner.notices if "cannot be undone" in text]) == 1
    assert desk.tree == {"a": "a", "b": "b"}


def test_another_folder_has_changes_of_its_own(desk: Files, tmp_path: Path) -> None:
    desk.runner.call(put, files={"a.txt": "new"})
    (tmp_path / "elsewhere").mkdir()
    with ToolRunner(desk.home, tmp_path / "elsewhere") as other:
        assert other.take_back() == ()
    assert desk.tree == {"a.txt": "new"}


@pytest.mark.parametrize("damage", [b"", b"{}", b"{}\n{}\n", b"\xff\n", b"[1]\nnull\n", b'{"process": "x"}\n'])
def test_a_file_of_the_ledger_that_is_none_is_passed_over(desk: Files, damage: bytes) -> None:
    desk.runner.call(put, files={"a.txt": "new"})
    (desk.kept[0].parent / f"{'9' * 20}-x.json").write_bytes(damage)
    assert len(desk.runner.take_back()) == 1
    assert desk.tree == {}


def test_a_call_of_which_too_little_is_left_is_told_and_forgotten(desk: Files) -> None:
    desk.runner.call(put, files={"a.txt": "1"})
    desk.runner.call(put, files={"a.txt": "2"})
    last = desk.kept[-1]
    last.write_bytes(last.read_bytes().split(b"\n")[0] + b"\n" + b'{"files": [{"path": "a.txt"}]}\n')
    assert "was removed" in desk.refused()
    assert (
        "These files have changed since then. Undo the later change first, or restore them by hand" in desk.refused()
    ), "the file is as the call left it that was forgotten"


def entry(what: str) -> LedgerEntry:
    return LedgerEntry(path=Path(), time=0.0, session="", process=this_process(), tool="t", what=what)


def test_what_is_old_and_what_is_too_much_is_removed(tmp_path: Path) -> None:
    limits = Limits(undo_bytes=100_000, undo_days=30)
    ledgers = [UndoLedger(tmp_path / "undo", tmp_path / name, limits) for name in ("a", "b")]
    for number in range(40):
        ledgers[number % 2].record(entry(str(number)), Inverse(call=Call(name="t", arguments={"x": "y" * 400})))
    kept = [[int(one.what) for one in ledger.entries()] for ledger in ledgers]
    count = len(list((tmp_path / "undo").rglob("*.json")))
    assert 20 <= count <= 30, "a file counts as a block of a disk, however little is in it"
    assert kept[0][0] == 38
    assert kept[1][0] == 39
    assert all(numbers == sorted(numbers, reverse=True) for numbers in kept)
    sweep(tmp_path / "undo", limits, time.time() + 29 * 86_400)
    assert list(ledgers[0].entries())
    sweep(tmp_path / "undo", limits, time.time() + 31 * 86_400)
    assert not list(ledgers[0].entries())


def test_what_another_marvin_is_writing_is_not_swept_away(tmp_path: Path) -> None:
    """Each begins with a look for what is old, also where others work in the same moment."""
    ledger = UndoLedger(tmp_path / "undo", tmp_path, Limits())
    folder = ledger.record(entry("first"), Inverse(call=Call(name="t", arguments={}))).parent
    fresh, left = folder / ".new.json.1.2.marvin-tmp", folder / ".old.json.1.2.marvin-tmp"
    for path in (fresh, left):
        path.touch()
    os.utime(left, (0, 0))
    sweep(tmp_path / "undo", Limits(), time.time())
    assert (fresh.exists(), left.exists()) == (True, False)


def test_only_one_takes_a_call_back(tmp_path: Path) -> None:
    ledger = UndoLedger(tmp_path / "undo", tmp_path, Limits())
    taken: list[str] = []
    for number in range(30):
        ledger.record(entry(str(number)), Inverse(call=Call(name="t", arguments={})))

    def take() -> None:
        mine = UndoLedger(tmp_path / "undo", tmp_path, Limits())
        for one in mine.entries():
            claim = mine.claim(one)
            if claim is not None:
                taken.append(one.what)
                claim.done()

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(50)
    assert sorted(map(int, taken)) == list(range(30))


def test_what_a_killed_marvin_was_taking_back_can_be_taken_back(tmp_path: Path) -> None:
    ledger = UndoLedger(tmp_path / "undo", tmp_path, Limits())
    ledger.record(entry("x"), Inverse(call=Call(name="t", arguments={})))
    (one,) = ledger.entries()
    claim = ledger.claim(one)
    assert claim is not None
    assert list(ledger.entries()) == [], "it is being taken back by this very process"
    (path,) = one.path.parent.iterdir()
    path.rename(path.with_name(path.name.rpartition("-")[0] + "-1"))  # a process that had this number before
    assert [found.what for found in ledger.entries()] == ["x"]


@pytest.mark.slow
def test_two_marvins_in_a_folder_take_back_their_own_until_one_is_gone(desk: Files) -> None:
    """What was done before SIGKILL is there afterwards."""
    process = multiprocessing.get_context("spawn").Process(target=works_and_waits, args=(desk.home, desk.project))
    process.start()
    try:
        deadline = time.monotonic() + 50
        while not (desk.project / "ready").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        desk.runner.call(put, files={"mine.txt": "mine"})
        assert desk.runner.take_back(5) == ("put: created mine.txt",)
        assert (desk.project / "other.txt").exists()
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join(50)
        assert not is_live((process.pid, 1))
        assert desk.runner.take_back(5) == ("put: created other.txt",)
    finally:
        process.kill()
        process.join(50)


# --- the slash command ----------------------------------------------------------------------------------------------


def test_the_slash_command_lists_and_takes_back_and_tells_the_model(tmp_path: Path) -> None:
    script = [calls(("a", "put", json.dumps({"files": {"a.txt": "new"}}))), says("Done."), says("I see.")]
    made: Made = make(tmp_path, *script, specs=SPECS)
    said: list[str] = []

    async def work(chat: Chat) -> None:
        await chat.session.submit("Go.")
        said.extend(
            [await chat.do(line) for line in ("/undo list", "/undo 0", "/undo x", "/undo", "/undo", "/undo list")]
        )
        await chat.session.submit("And now?")

    chatting(made, work)
    assert "put: created a.txt" in said[0]
    assert "/undo N undoes the newest N." in said[0]
    assert [text.startswith("Error: Use /undo, /undo N or /undo list") for text in said[1:3]] == [True, True]
    assert said[3] == "Undone: put: created a.txt"
    assert said[4] == said[5] == "There is nothing to undo in this folder."
    assert made.provider is not None
    assert "[The user undid: put: created a.txt]" in [m.text for m in made.provider.requests[-1].messages]


def test_nothing_is_taken_back_while_an_answer_runs(tmp_path: Path) -> None:
    made = make(tmp_path, [Hang()], specs=SPECS)

    async def work(chat: Chat) -> None:
        answering = asyncio.ensure_future(chat.session.submit("Go."))
        await until(lambda: chat.session.busy)
        assert "still running" in await chat.do("/undo")
        answering.cancel()
        await asyncio.wait([answering])

    chatting(made, work)
