"""The log of calls that a sub-agent keeps for whoever started it."""

from __future__ import annotations

import json
import multiprocessing
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from marvin_core.api.events import Notice
from marvin_core.api.messages import ToolCall
from marvin_core.engine.calls.log import CallLog
from tests.support.engine import Made, make, run

SECRET = "sk-live-0123456789abcdef"
OF_SOMEBODY = "ghp_" + "Ab3" * 12


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def called(made: Made, *given: tuple[str, str]) -> None:
    async def go() -> None:
        for number, (name, arguments) in enumerate(given):
            await made.session.dispatcher.call(ToolCall(id=f"c{number}", name=name, arguments=arguments))
        await made.session.close()

    run(go())


@pytest.mark.parametrize(
    ("received", "shown"),
    [
        ('{"name": "a"}', "name=a"),
        ("{}", ""),
        ("", ""),
        ("this is not valid JSON", "this is not valid JSON"),
        ('{"name": "a', '{"name": "a'),
        ("[" * 5_000, "[" * 200),
        ('{"path": "x' + "y" * 500, ('{"path": "x' + "y" * 500)[:200]),
    ],
)
def test_the_arguments_are_logged_as_they_came_where_they_cannot_be_read(
    tmp_path: Path, received: str, shown: str
) -> None:
    log = tmp_path / "calls.jsonl"
    made = make(tmp_path, env={"MARVIN_SUBAGENT_LOG": str(log)})
    called(made, ("mark", received))
    assert [line["args"] for line in lines_of(log)] == [shown]


def test_arguments_for_a_tool_that_there_is_not_are_logged_too(tmp_path: Path) -> None:
    log = tmp_path / "calls.jsonl"
    made = make(tmp_path, env={"MARVIN_SUBAGENT_LOG": str(log)})
    called(made, ("no_such_tool" * 500, '{"x": 1}'))
    (line,) = lines_of(log)
    assert line["args"] == '{"x": 1}'
    assert len(line["tool"]) == 100


def test_a_secret_is_redacted_before_anything_is_cut(tmp_path: Path) -> None:
    """I24: half of a key at the end of what is kept would be a key to guess."""
    log = tmp_path / "calls.jsonl"
    made = make(tmp_path, env={"OPENAI_API_KEY": SECRET, "MARVIN_SUBAGENT_LOG": str(log)})
    broken = '{"name": "' + "x" * 180 + SECRET
    called(made, ("mark", broken), ("mark", json.dumps({"name": "y" * 190 + SECRET})), (SECRET, "{}"))
    assert SECRET[:8] not in repr([(line["args"], line["tool"]) for line in lines_of(log)])


def test_what_looks_like_a_key_of_somebody_is_not_written_either(tmp_path: Path) -> None:
    """The log stays on the disk, as a session file does."""
    log = tmp_path / "calls.jsonl"
    made = make(tmp_path, env={"MARVIN_SUBAGENT_LOG": str(log)})
    called(made, ("look", json.dumps({"name": OF_SOMEBODY})), (OF_SOMEBODY, "{}"))
    assert "ghp_" not in log.read_text()
    assert lines_of(log)[0]["args"] == "name=[redacted]"
    assert lines_of(log)[0]["result"] == "[redacted] done"
    assert sum("looks like a GitHub token" in notice.text for notice in made.seen(Notice)) == 1


def test_nobody_else_can_read_the_log(tmp_path: Path) -> None:
    log = tmp_path / "not" / "there" / "calls.jsonl"
    before = os.umask(0)
    try:
        called(make(tmp_path, env={"MARVIN_SUBAGENT_LOG": str(log)}), ("mark", '{"name": "a"}'))
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in (log, log.parent, log.parent.parent)] == [0o600, 0o700, 0o700]


def test_the_folder_of_the_log_is_made(tmp_path: Path) -> None:
    log = tmp_path / "not" / "there" / "calls.jsonl"
    made = make(tmp_path, env={"MARVIN_SUBAGENT_LOG": str(log)})
    called(made, ("mark", '{"name": "a"}'))
    assert len(lines_of(log)) == 1


@pytest.mark.parametrize("kind", ["folder", "below a file", "pipe"])
def test_a_log_that_cannot_be_written_is_told_once_and_stops_nothing(tmp_path: Path, kind: str) -> None:
    log = tmp_path / "calls.jsonl"
    if kind == "folder":
        log.mkdir()
    elif kind == "pipe":
        os.mkfifo(log)
        filled = os.open(log, os.O_RDWR | os.O_NONBLOCK)
        with suppress(BlockingIOError):
            while os.write(filled, b"x" * 4096):
                pass
    else:
        log.write_text("a file")
        log = log / "calls.jsonl"
    made = make(tmp_path, env={"MARVIN_SUBAGENT_LOG": str(log)})
    called(made, *[("mark", '{"name": "a"}')] * 3)
    told = [notice.text for notice in made.seen(Notice) if "MARVIN_SUBAGENT_LOG" in notice.text]
    assert len(told) == 1
    assert made.log == ["+a", "-a"] * 3


def test_a_line_after_one_that_was_cut_off_begins_anew(tmp_path: Path) -> None:
    log = tmp_path / "calls.jsonl"
    log.write_text('{"ts": "2026-01-01T00:00:00Z", "to')
    CallLog(log, pytest.fail).add(0.0, "look", "a=1", "done", 0.5)
    assert json.loads(log.read_text().splitlines()[1])["tool"] == "look"


def _add_many(path: Path, name: str) -> None:
    log = CallLog(path, lambda text: os._exit(1))
    for number in range(200):
        log.add(0.0, name, f"n={number}", "r" * 400, 0.0)


def test_agents_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    processes = [multiprocessing.Process(target=_add_many, args=(path, f"p{n}")) for n in range(3)]
    threads = [threading.Thread(target=_add_many, args=(path, f"t{n}")) for n in range(3)]
    workers: list[multiprocessing.Process | threading.Thread] = [*processes, *threads]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(50)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    found = [json.loads(line) for line in path.read_text().splitlines() if line]
    for name in ("p0", "p1", "p2", "t0", "t1", "t2"):
        assert [entry["args"] for entry in found if entry["tool"] == name] == [f"n={n}" for n in range(200)]
