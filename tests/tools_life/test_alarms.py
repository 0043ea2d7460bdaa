"""Alarms: what is set is what the scheduler of the system has, and it is told when its time has come."""

from __future__ import annotations

import json
import os
import plistlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from marvin_core.testing import ToolRunner
from marvin_tools_life.scheduling.job import Job, JobFile, PushTarget
from marvin_tools_life.scheduling.jobs import told_by
from marvin_tools_life.scheduling.schedulers import agent, daemon_runs, units
from marvin_tools_life.scheduling.showing import missing_ways, notice_of

from .desktop import Desktop, desktop, need, running, until

PROGRAM = "marvin_tools_life.scheduling.program"
TEXT = "Tea & <b>cake</b> \"$HOME\" `id` 100 % 'now'; é\nsecond line"


def jobs_folder(tools: ToolRunner) -> Path:
    return tools.home / ".local/share/marvin/packs/life/jobs"


def job(due: float, **fields: Any) -> dict[str, Any]:
    return {"due": due, "title": "Tea", "text": TEXT, "kind": "alarm", "label": "tea", "group": "", **fields}


def put(folder: Path, **jobs: dict[str, Any]) -> None:
    """Have jobs in the file, as set_alarm writes them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "jobs.json").write_text(json.dumps(jobs))


def fire(folder: Path, name: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """What a scheduler does: start the program with next to nothing in its environment."""
    argv = [sys.executable, "-P", "-m", PROGRAM, "fire", str(folder), name]
    given = {"HOME": str(folder), "PATH": "/usr/bin:/bin", **environment}
    return subprocess.run(argv, env=given, capture_output=True, timeout=120, cwd="/")


def log(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "fired.log").read_text().splitlines()]


# --- without a scheduler and a desktop -------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "jobs"


def test_a_machine_without_a_scheduler_gets_a_clear_answer(marvin_tools: ToolRunner, tmp_path: Path) -> None:
    """I10: what is missing, and how it is had."""
    (tmp_path / "bin").mkdir()
    tools = marvin_tools.session(env={"PATH": str(tmp_path / "bin")})
    refused = tools.call("set_alarm", time="30m", message="Tea")
    assert refused.is_error
    for part in ("nothing was set", "systemd is not installed", "install the package cron", "Tell the user"):
        assert part in refused.text
    assert tools.call("list_alarms").text == "No alarm is set. Use set_alarm to set one."


def test_a_scheduler_that_was_chosen_and_is_missing_is_named(marvin_tools: ToolRunner, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    tools = marvin_tools.session(env={"PATH": str(tmp_path / "bin")}, settings={"life": {"scheduler": "at"}})
    refused = tools.call("set_alarm", time="30m", message="Tea")
    assert "install the package at" in refused.text
    assert "systemd" not in refused.text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"time": "yesterday", "message": "x"}, "is in the past"),
        ({"time": "30m", "message": " "}, "Give one of 1 to"),
        ({"time": "30m", "message": "x" * 3_000}, "Give one of 1 to"),
        ({"time": "30m", "message": "x", "label": "x" * 61}, "Use 60 at most"),
    ],
)
def test_wrong_arguments_are_explained(marvin_tools: ToolRunner, arguments: dict[str, str], says: str) -> None:
    refused = marvin_tools.call("set_alarm", **arguments)
    assert refused.is_error
    assert says in refused.text


def test_an_unknown_alarm_is_told_with_those_that_are_set(marvin_tools: ToolRunner) -> None:
    assert "no alarm is set" in marvin_tools.call("cancel_alarm", label="tea").text
    put(jobs_folder(marvin_tools), aaaaaaaaaaaa=job(time.time() + 3_600, scheduler="cron", label="Green tea"))
    assert "Did you mean 'Green tea'" in marvin_tools.call("cancel_alarm", label="gren tea").text


def test_alarms_that_the_scheduler_lost_or_missed_are_told(marvin_tools: ToolRunner) -> None:
    now = time.time()
    put(
        jobs_folder(marvin_tools),
        aaaaaaaaaaaa=job(now + 3_600, scheduler="none", label="lost"),
        bbbbbbbbbbbb=job(now - 3_600, scheduler="none", label="missed"),
        cccccccccccc=job(now + 10, scheduler="none", label="event", kind="reminder"),
    )
    lines = marvin_tools.call("list_alarms").text.splitlines()
    assert lines[0].startswith("missed: ")
    assert "missed: the machine was off" in lines[0]
    assert "lost: none no longer has it" in lines[1]
    assert not [line for line in lines if line.startswith("event")]


def test_what_is_long_over_goes_and_what_goes_off_now_stays(marvin_tools: ToolRunner) -> None:
    now, day = time.time(), 86_400
    put(
        jobs_folder(marvin_tools),
        aaaaaaaaaaaa=job(now - 31 * day, scheduler="none", label="forgotten"),
        bbbbbbbbbbbb=job(now - 2 * day, scheduler="none", label="event", kind="reminder"),
        cccccccccccc=job(now - 2 * day, scheduler="none", label="missed"),
        dddddddddddd=job(now - 1_000, scheduler="none", label="broken off", began=now - 900),
        eeeeeeeeeeee=job(now - 10, scheduler="none", label="ringing", began=now - 5),
        ffffffffffff=job(now - 3_600, scheduler="none", label="talk", kind="reminder"),
    )
    lines = marvin_tools.call("list_alarms").text.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["missed", "ringing"]
    kept = json.loads((jobs_folder(marvin_tools) / "jobs.json").read_text())
    assert sorted(one["label"] for one in kept.values()) == ["missed", "ringing", "talk"]


@pytest.mark.parametrize(("days", "kind"), [(365, "alarm"), (2, "reminder")])
def test_what_comes_much_too_late_shows_nothing(folder: Path, days: int, kind: str) -> None:
    """An entry of cron has no year; and who was away needs no reminder of last week."""
    put(folder, aaaaaaaaaaaa=job(time.time() - days * 86_400, kind=kind))
    assert fire(folder, "aaaaaaaaaaaa").returncode == 0
    assert not (folder / "fired.log").exists()
    assert json.loads((folder / "jobs.json").read_text()) == {}


@pytest.mark.parametrize(
    ("missing", "topic", "says"),
    [
        ({}, "", "a desktop notification and a sound; no push, since no topic of ntfy is set for alarms"),
        ({}, "calls", "a desktop notification, a sound and a push to calls"),
        (
            {"desktop": "there is no display"},
            "calls",
            "a sound and a push to calls; no desktop notification, since there is no",
        ),
        (
            {"desktop": "D", "sound": "S"},
            "calls",
            "a push to calls; no desktop notification, since D; no sound, since S",
        ),
        (
            {"desktop": "D", "sound": "S"},
            "",
            "this machine cannot show it: no desktop notification, since D; no sound, since S; no",
        ),
    ],
)
def test_it_is_said_how_an_alarm_will_be_told(missing: dict[str, str], topic: str, says: str) -> None:
    push = PushTarget(topic=topic, server="https://push.example") if topic else None
    assert told_by(Job(due=1.0, title="t", text="x", missing=missing, push=push)).startswith(says)


def test_a_machine_without_a_display_is_known(tmp_path: Path) -> None:
    """I10: an alarm that nobody would see is not promised."""
    nothing = missing_ways({}, {"PATH": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)})
    assert "install the package libnotify-bin" in nothing["desktop"]
    assert "no sound player" in nothing["sound"]
    for name in ("notify-send", "aplay"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    headless = missing_ways({}, {"PATH": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)})
    assert headless == {"desktop": "there is no display"}
    (tmp_path / "bus").touch()
    assert missing_ways({"DISPLAY": ":0"}, {"PATH": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}) == {}


def test_the_file_of_launchd_says_when_and_what() -> None:
    command = ["/usr/bin/python", "a b", "<&>\"'", "é"]
    due = datetime(2031, 3, 5, 7, 8, 20, tzinfo=ZoneInfo("Asia/Tokyo")).timestamp()
    read = plistlib.loads(agent("marvin-job-x", due, command, ZoneInfo("Asia/Tokyo")))
    assert read == {
        "Label": "marvin-job-x",
        "ProgramArguments": command,
        "StartCalendarInterval": {"Month": 3, "Day": 5, "Hour": 7, "Minute": 9},
    }


@pytest.mark.parametrize("content", ["{", "[]", '{"a": 3}', '{"a": {"due": "x"}}', "[" * 5_000])
def test_a_damaged_file_is_named(marvin_tools: ToolRunner, content: str) -> None:
    folder = jobs_folder(marvin_tools)
    folder.mkdir(parents=True)
    (folder / "jobs.json").write_text(content)
    outcome = marvin_tools.call("list_alarms")
    assert outcome.is_error
    assert "jobs.json is damaged" in outcome.text
    assert (folder / "jobs.json").read_text() == content


def test_what_cannot_be_shown_is_logged_and_the_job_goes(folder: Path) -> None:
    put(folder, aaaaaaaaaaaa=job(time.time() - 1), bbbbbbbbbbbb=job(time.time() + 9e6, label="later"))
    assert fire(folder, "aaaaaaaaaaaa", PATH="/nonexistent").returncode == 0
    (line,) = log(folder)
    assert "notify-send" in line["failures"]["desktop"]
    assert "no sound player" in line["failures"]["sound"]
    assert [*json.loads((folder / "jobs.json").read_text())] == ["bbbbbbbbbbbb"]


@pytest.mark.parametrize("due", [3 * 3_600, 366 * 86_400])
def test_the_same_day_of_an_earlier_year_is_not_its_time(folder: Path, due: float) -> None:
    put(folder, aaaaaaaaaaaa=job(time.time() + due))
    assert fire(folder, "aaaaaaaaaaaa").returncode == 0
    assert not (folder / "fired.log").exists()
    assert [*json.loads((folder / "jobs.json").read_text())] == ["aaaaaaaaaaaa"]


def test_a_job_that_is_started_too_early_waits(folder: Path) -> None:
    due = time.time() + 1.5
    put(folder, aaaaaaaaaaaa=job(due))
    fire(folder, "aaaaaaaaaaaa", PATH="/nonexistent")
    assert log(folder)[0]["time"] >= due


def test_a_job_that_another_process_has_in_hand_is_left_alone(folder: Path) -> None:
    put(folder, aaaaaaaaaaaa=job(time.time() - 1, began=time.time() - 5))
    assert fire(folder, "aaaaaaaaaaaa").returncode == 0
    assert not (folder / "fired.log").exists()


def test_the_log_does_not_grow_for_ever(folder: Path) -> None:
    put(folder, aaaaaaaaaaaa=job(time.time() - 1))
    (folder / "fired.log").write_text('{"time": 1}\n' * 500)
    fire(folder, "aaaaaaaaaaaa", PATH="/nonexistent")
    lines = log(folder)
    assert len(lines) == 100
    assert "failures" in lines[-1]


def test_a_push_says_when_it_was_due(folder: Path) -> None:
    push = {"topic": "calls", "server": "https://push.example", "token": "tk_1"}
    put(folder, aaaaaaaaaaaa=job(time.time() - 600, push=push))
    notice, server = notice_of(JobFile(folder).jobs()["aaaaaaaaaaaa"])
    assert (notice.topic, notice.title, notice.priority) == ("calls", "Tea", "high")
    assert notice.text.startswith(TEXT)
    assert "(It was due at " in notice.text
    assert server.token == "tk_1"


@pytest.mark.slow
def test_a_push_that_fails_holds_up_nothing_else(folder: Path) -> None:
    push = {"topic": "calls", "server": "http://127.0.0.1:1", "token": ""}
    put(folder, aaaaaaaaaaaa=job(time.time() - 1, push=push))
    fire(folder, "aaaaaaaaaaaa", PATH="/nonexistent")
    failures = log(folder)[0]["failures"]
    assert "cannot be reached" in failures["push"]
    assert "notify-send" in failures["desktop"]


WRITER = """
import sys
from pathlib import Path
from marvin_tools_life.scheduling.job import Job, JobFile

file = JobFile(Path(sys.argv[1]))
print("begun", flush=True)
while True:
    for number in range(50):
        with file.held():
            file.put(Job(due=1.0, title="t" * 500, text="x" * 2000, id=f"{number:012x}"))
"""


@pytest.mark.slow
def test_a_writer_that_is_killed_leaves_the_old_jobs_or_the_new(folder: Path) -> None:
    for number in range(6):
        argv = [sys.executable, "-P", "-c", WRITER, str(folder)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            until((folder / "jobs.json").exists)
            time.sleep(0.02 * number)
            writer.kill()
        assert all(len(one.text) == 2_000 for one in JobFile(folder).jobs().values())
    with JobFile(folder).held():  # no lock outlives its process
        JobFile(folder).put(Job(due=1.0, title="t", text="new", id="a" * 12))
    assert JobFile(folder).jobs()["a" * 12].text == "new"


# --- with the real programs ------------------------------------------------------------------------------------------


@pytest.fixture
def screen(tmp_path: Path) -> Iterator[Desktop]:
    with desktop(tmp_path) as found:
        yield found


@pytest.mark.real
@pytest.mark.xdist_group("desktop")
def test_a_notice_is_on_the_screen_with_its_text(folder: Path, screen: Desktop) -> None:
    put(folder, aaaaaaaaaaaa=job(time.time() - 1, environment=dict(screen.environment)))
    fire(folder, "aaaaaaaaaaaa")
    assert "desktop" not in log(folder)[0]["failures"]
    ((title, text),) = screen.shown()
    assert title == "Tea"
    assert text.replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">") == TEXT


@pytest.fixture
def daemons() -> Iterator[Callable[[str], None]]:
    """Starts a daemon where it does not run yet, and ends what it started."""
    with ExitStack() as stack:

        def start(name: str) -> None:
            need(name)
            if not runs(name):
                stack.enter_context(running([name, "-f"]))
                until(lambda: runs(name))
                # What changes in the second in which cron reads it looks unchanged to it, and stays unread.
                begun = time.monotonic()
                until(lambda: time.monotonic() > begun + 2)

        yield start


def runs(name: str) -> bool:
    """Whether a program runs, and is not one that has ended and that nobody asked after."""
    return any(
        f"({name}) " in text and f"({name}) Z" not in text for text in map(_text, Path("/proc").glob("[0-9]*/stat"))
    )


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def test_a_daemon_that_has_ended_runs_no_more(tmp_path: Path) -> None:
    """In a container nobody may ask after it."""
    name = "marvin-testd"
    program = tmp_path / name
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([str(program), "60"]) as process:
        until(lambda: daemon_runs(name, places=()))
        process.kill()
        until(lambda: f"({name}) Z" in _text(Path(f"/proc/{process.pid}/stat")))
        assert not daemon_runs(name, places=())


def crontab() -> bytes:
    return subprocess.run(["crontab", "-l"], capture_output=True).stdout


@pytest.fixture
def own_lines() -> Iterator[bytes]:
    """A crontab with lines of the user's own; what was there before comes back."""
    before = crontab()
    own = b"# mine\nCRON_TZ=Asia/Tokyo\nPATH=/nowhere\n0 5 1 1 * echo a\x0bb % c"
    subprocess.run(["crontab", "-"], input=own + b"\n" + before, check=True)
    yield own
    subprocess.run(["crontab", "-"] if before else ["crontab", "-r"], input=before)


@pytest.mark.real
@pytest.mark.xdist_group("desktop")
@pytest.mark.parametrize(("daemon", "scheduler"), [("cron", "cron"), ("atd", "at")])
@pytest.mark.timeout(240)
def test_an_alarm_goes_off_without_marvin_and_cleans_up(
    marvin_tools: ToolRunner,
    screen: Desktop,
    daemons: Callable[[str], None],
    own_lines: bytes,
    daemon: str,
    scheduler: str,
) -> None:
    """It is the scheduler that starts it: Marvin is gone by then."""
    daemons(daemon)
    tools = marvin_tools.session(
        env={**screen.environment, "HOME": str(marvin_tools.home)}, settings={"life": {"scheduler": scheduler}}
    )
    due = time.time() + 1
    told = tools.call("set_alarm", time="1s", message=TEXT, label="Tea")
    assert not told.is_error, told.text
    assert f"by {scheduler}: a desktop notification" in told.text
    assert "no push, since no topic" in told.text
    assert f"scheduled by {scheduler}" in tools.call("list_alarms").text
    marvin_tools.close()
    folder = jobs_folder(marvin_tools)
    until((folder / "fired.log").exists, limit=150)
    until(lambda: json.loads((folder / "jobs.json").read_text()) == {})
    (line,) = log(folder)
    assert "desktop" not in line["failures"]
    assert due <= line["time"] < due + 130
    assert screen.shown()[0][0] == "Tea"
    until(lambda: b"marvin job" not in crontab())
    assert crontab().startswith(own_lines)
    assert subprocess.run(["atq"], capture_output=True).stdout == b""


@pytest.mark.real
def test_systemd_reads_the_units_as_they_are_meant(tmp_path: Path) -> None:
    need("systemd-analyze")
    command = ["/bin/true", "a b", "%h $HOME \\ \"x\" 'y'", "é"]
    for kind, text in units(time.time() + 1e6, command).items():
        (tmp_path / f"marvin-job-x.{kind}").write_text(text)
    files = [str(tmp_path / f"marvin-job-x.{kind}") for kind in ("service", "timer")]
    argv = ["systemd-analyze", "verify", "--user", "--man=no", *files]
    told = subprocess.run(argv, env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}, capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    assert "marvin-job" not in told.stderr


@pytest.mark.real
@pytest.mark.xdist_group("desktop")
def test_cancelling_removes_the_entry_and_undo_puts_it_back(
    marvin_tools: ToolRunner, daemons: Callable[[str], None], own_lines: bytes
) -> None:
    daemons("cron")
    tools = marvin_tools.session(settings={"life": {"scheduler": "cron"}})
    missed = job(time.time() - 3_600, label="the\u0301 % 'x'", scheduler="cron")
    put(jobs_folder(marvin_tools), aaaaaaaaaaaa=missed)
    tools.call("set_alarm", time="2h", message="Tea", label="Thé % 'x'")
    assert "missed" not in tools.call("list_alarms").text
    again = tools.call("set_alarm", time="3h", message="x", label="THE\u0301 %  'X'")
    assert "An alarm \"Thé % 'x'\" already exists" in again.text
    assert crontab().count(b"# marvin job ") == 1
    due = tools.call("list_alarms").text
    assert "was cancelled" in tools.call("cancel_alarm", label="the\u0301 % 'x'").text
    assert crontab() == own_lines + b"\n"
    later = marvin_tools.session(settings={"life": {"scheduler": "cron"}})
    later.take_back()
    assert later.call("list_alarms").text == due
    assert crontab().count(b"# marvin job ") == 1
    later.take_back()
    assert crontab() == own_lines + b"\n"


SETTER = """
import sys
from pathlib import Path
from marvin_core.testing import ToolRunner

with ToolRunner(Path(sys.argv[1]), Path(sys.argv[2]), settings={"life": {"scheduler": "cron"}}) as tools:
    for number in range(3):
        outcome = tools.call("set_alarm", time="5h", message="x")
        assert not outcome.is_error, outcome.text
"""


@pytest.mark.real
@pytest.mark.xdist_group("desktop")
@pytest.mark.timeout(240)
def test_eight_processes_set_alarms_and_none_is_lost(
    marvin_tools: ToolRunner, daemons: Callable[[str], None], own_lines: bytes
) -> None:
    daemons("cron")
    places = [str(marvin_tools.home), str(marvin_tools.working_dir)]
    children = [subprocess.Popen([sys.executable, "-P", "-c", SETTER, *places]) for _ in range(8)]
    assert [child.wait(200) for child in children] == [0] * 8
    lines = marvin_tools.call("list_alarms").text.splitlines()
    assert len({line.partition(":")[0] for line in lines}) == 24
    assert all("scheduled by cron" in line for line in lines)
    assert crontab().count(b"# marvin job ") == 24
    assert crontab().endswith(own_lines + b"\n")
