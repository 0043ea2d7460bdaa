"""The chat log: nothing of it is lost, whoever else writes, and a new chat begins with it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from marvin_core.api.errors import ProviderError
from marvin_core.api.events import Notice
from marvin_core.api.timeouts import Timeouts
from marvin_core.profiles.chat_log import COMPACT, KEPT, ChatEntry, ChatLog, compact, entry, seed
from marvin_core.sessions.search import search
from tests.support.engine import Made, make, run, says

WRITER = """
import sys
from pathlib import Path
from marvin_core.sessions.search import search
from marvin_core.profiles.chat_log import ChatLog, entry
from marvin_core.api.timeouts import Timeouts
log = ChatLog(Path(sys.argv[1]), Timeouts(lock=60), print)
for number in range(10):
    log.append([entry("you", f"{sys.argv[2]}-{number}", 0.0)])
"""


def said(path: Path) -> list[tuple[str, str]]:
    return [(one["role"], one["text"]) for one in json.loads(path.read_text("utf-8"))]


def log_of(tmp_path: Path) -> Path:
    return tmp_path / "home" / "marvin" / "profiles" / "main" / "chat_log.json"


def here(tmp_path: Path) -> str:
    """The folder that sessions of `make` work in."""
    return str(tmp_path / "project")


@pytest.mark.slow
def test_eight_processes_at_once_lose_no_entry(tmp_path: Path) -> None:
    path = tmp_path / "chat_log.json"
    writers = [subprocess.Popen([sys.executable, "-P", "-c", WRITER, str(path), str(n)]) for n in range(8)]
    assert [writer.wait(60) for writer in writers] == [0] * 8
    texts = [text for _, text in said(path)]
    assert sorted(texts) == sorted(f"{writer}-{number}" for writer in range(8) for number in range(10))
    for writer in range(8):
        own = [text for text in texts if text.startswith(f"{writer}-")]
        assert own == [f"{writer}-{number}" for number in range(10)]


def test_only_the_newest_entries_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "chat_log.json"
    log = ChatLog(path, Timeouts(), print)
    log.append([entry("you", str(number), 0.0) for number in range(KEPT)])
    log.append([entry("assistant", "last", 0.0)])
    texts = [text for _, text in said(path)]
    assert (len(texts), texts[0], texts[-1]) == (KEPT, "1", "last")


def test_an_entry_says_who_what_and_when(tmp_path: Path) -> None:
    """I18: the roles are you, assistant and system."""
    path = tmp_path / "chat_log.json"
    log = ChatLog(path, Timeouts(), print)
    log.append([entry(role, "漢字 🎉", 1_700_000_000.0) for role in ("you", "assistant", "system")])
    data = json.loads(path.read_text("utf-8"))
    assert [list(one) for one in data] == [["role", "text", "time", "folder"]] * 3
    assert [one["role"] for one in data] == ["you", "assistant", "system"]
    assert data[0]["time"].startswith("2023-11-1")
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_damaged_log_is_moved_aside_and_said_once(tmp_path: Path) -> None:
    path = tmp_path / "chat_log.json"
    path.write_text('[{"role": "you", "te')
    told: list[str] = []
    log = ChatLog(path, Timeouts(), told.append)
    assert log.newest(5) == []
    log.append([entry("you", "new", 0.0)])
    assert [one.text for one in log.newest(5)] == ["new"]
    (kept,) = tmp_path.glob("chat_log.json.damaged-*")
    assert kept.read_text() == '[{"role": "you", "te'
    assert len(told) == 1
    assert kept.name in told[0]


def test_two_damaged_logs_of_one_second_are_both_kept(tmp_path: Path) -> None:
    path = tmp_path / "chat_log.json"
    log = ChatLog(path, Timeouts(), lambda text: None)
    for text in ("first", "second", "third"):
        path.write_text(text)
        assert log.newest(1) == []
    assert sorted(kept.read_text() for kept in tmp_path.glob("*.damaged-*")) == ["first", "second", "third"]


def test_what_another_program_wrote_into_the_log_stays(tmp_path: Path) -> None:
    path = tmp_path / "chat_log.json"
    strange: list[Any] = [
        7,
        {"role": "robot", "text": "?"},
        {"role": "you", "text": "Hi", "time": "then", "mood": "ok"},
    ]
    path.write_text(json.dumps(strange))
    log = ChatLog(path, Timeouts(), print)
    log.append([entry("assistant", "Hello", 0.0)])
    assert json.loads(path.read_text())[:3] == strange
    assert [one.text for one in log.newest(9)] == ["Hi", "Hello"]


def one(role: Any, text: str) -> ChatEntry:
    return ChatEntry(role=role, text=text, time="")


def test_a_seed_has_the_roles_of_a_conversation_and_begins_with_the_user() -> None:
    """I18: you becomes user, and what the system said is left out."""
    found = seed([one("assistant", "x"), one("you", "a"), one("system", "[Cancelled]"), one("assistant", "b")])
    assert [(message.role, message.text) for message in found] == [("user", "a"), ("assistant", "b")]


def test_the_compact_history_is_one_short_line_an_entry() -> None:
    lines = compact([one("you", "a\nb"), one("assistant", "x" * 500)]).splitlines()
    assert lines[0] == "- you: a b"
    assert lines[1] == f"- assistant: {'x' * (COMPACT - 1)}…"


def chatted(made: Made, *prompts: str) -> None:
    async def go() -> None:
        for prompt in prompts:
            await made.session.submit(prompt)
        await made.session.close()

    run(go())


def test_a_chat_is_logged_and_the_next_one_begins_with_it(tmp_path: Path) -> None:
    chatted(make(tmp_path, says("Hello Ada."), argv=()), "I am Ada")
    assert said(log_of(tmp_path)) == [("you", "I am Ada"), ("assistant", "Hello Ada.")]
    made = make(tmp_path, says("Ada."), argv=())
    chatted(made, "Who am I?")
    assert made.provider is not None
    sent = [(message.role, message.text) for message in made.provider.requests[0].messages]
    assert sent == [("user", "I am Ada"), ("assistant", "Hello Ada."), ("user", "Who am I?")]
    assert "I am Ada" not in made.provider.requests[0].system
    assert len(said(log_of(tmp_path))) == 4


def test_a_chat_that_is_gone_on_with_still_begins_with_what_was_said_before_it(tmp_path: Path) -> None:
    ChatLog(log_of(tmp_path), Timeouts(), print).append([entry("you", "old", 0.0, here(tmp_path))])
    first = make(tmp_path, says("Fine."), argv=())
    chatted(first, "new")
    (path,) = tmp_path.rglob("*.jsonl")
    entries = list(search(path.parent, "old"))
    assert entries == []  # it was said in another session
    again = make(tmp_path, says("Fine."), argv=())
    again.session.resume(path)
    chatted(again, "more")
    assert again.provider is not None
    assert [message.text for message in again.provider.requests[0].messages] == ["old", "new", "Fine.", "more"]


def test_only_the_last_twenty_entries_are_seeded(tmp_path: Path) -> None:
    log = ChatLog(log_of(tmp_path), Timeouts(), print)
    others = [entry("you", "elsewhere", 0.0, "/elsewhere"), entry("you", "of an older version", 0.0)]
    for number in range(30):
        log.append([entry("assistant" if number % 2 else "you", str(number), 0.0, here(tmp_path)), *others])
    made = make(tmp_path, says("Fine."), argv=())
    chatted(made, "new")
    assert made.provider is not None
    assert [message.text for message in made.provider.requests[0].messages] == [*map(str, range(10, 30)), "new"]


def test_what_was_said_in_another_folder_is_not_sent(tmp_path: Path) -> None:
    chatted(make(tmp_path, says("Hello Ada."), argv=()), "I am Ada")
    other = tmp_path / "other"
    other.mkdir()
    made = make(tmp_path, says("No."), argv=())
    made.parts.workspace.move(other)
    assert made.session.profile.earlier() == 0
    chatted(made, "Who am I?")
    assert made.provider is not None
    assert [message.text for message in made.provider.requests[0].messages] == ["Who am I?"]


def test_where_a_log_does_not_say_the_folder_its_sessions_do(tmp_path: Path) -> None:
    """Logs of older Marvins, and those that were taken over, have no folders."""
    chatted(make(tmp_path, says("Hello Ada."), argv=()), "I am Ada")
    path = log_of(tmp_path)
    entries = [{**one, "folder": ""} for one in json.loads(path.read_text("utf-8"))]
    elsewhere = {"role": "you", "text": "said elsewhere", "time": ""}
    path.write_text(json.dumps([*entries, elsewhere, {"role": "assistant", "text": "I am Ada", "time": ""}]))
    made = make(tmp_path, says("Ada."), argv=())
    assert made.session.profile.earlier() == 2
    chatted(made, "Who am I?")
    assert made.provider is not None
    sent = [message.text for message in made.provider.requests[0].messages]
    assert sent == ["I am Ada", "Hello Ada.", "Who am I?"]
    (tmp_path / "other").mkdir()
    other = make(tmp_path, argv=())
    other.parts.workspace.move(tmp_path / "other")
    assert other.session.profile.earlier() == 0


def test_seeding_can_be_turned_off(tmp_path: Path) -> None:
    ChatLog(log_of(tmp_path), Timeouts(), print).append([entry("you", "old", 0.0, here(tmp_path))])
    made = make(tmp_path, says("Fine."), argv=(), yaml="seed: off\n")
    assert made.session.profile.earlier() == 0
    chatted(made, "new")
    assert made.provider is not None
    assert [message.text for message in made.provider.requests[0].messages] == ["new"]
    assert said(log_of(tmp_path))[-2:] == [("you", "new"), ("assistant", "Fine.")], "it is still logged"


def test_a_cleared_chat_is_not_seeded_again(tmp_path: Path) -> None:
    ChatLog(log_of(tmp_path), Timeouts(), print).append([entry("you", "old", 0.0, here(tmp_path))])
    made = make(tmp_path, says("Fine."), argv=())
    made.session.sessions.clear()
    chatted(made, "new")
    assert made.provider is not None
    assert [message.text for message in made.provider.requests[0].messages] == ["new"]


def test_a_non_interactive_run_neither_logs_nor_seeds(tmp_path: Path) -> None:
    ChatLog(log_of(tmp_path), Timeouts(), print).append([entry("you", "old", 0.0, here(tmp_path))])
    made = make(tmp_path, says("Fine."))
    chatted(made, "new")
    assert made.provider is not None
    assert [message.text for message in made.provider.requests[0].messages] == ["new"]
    assert said(log_of(tmp_path)) == [("you", "old")]


def test_a_log_that_cannot_be_written_costs_no_answer(tmp_path: Path) -> None:
    log_of(tmp_path).mkdir(parents=True)  # a folder of that name
    made = make(tmp_path, says("Fine."), argv=())
    chatted(made, "Hi")
    assert made.provider is not None
    assert len(made.provider.requests) == 1
    assert any("chat log" in notice.text for notice in made.seen(Notice))


def test_a_failed_request_is_logged_with_its_reason(tmp_path: Path) -> None:
    chatted(make(tmp_path, [ProviderError("no wire")], argv=()), "Hi")
    assert said(log_of(tmp_path)) == [("you", "Hi"), ("system", "no wire")]
