"""How long tools block the event loop, during which nothing else runs, not even Ctrl+C."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import web_calls, web_services
from benchmarks.calendars import calendar_of
from benchmarks.lab import BenchmarkError, Lab
from benchmarks.table import Row
from marvin_core.testing import HttpReplay, Outcome, ToolRunner
from marvin_core.testing.environment import own_home, own_working_dir, start_repository
from marvin_core.testing.tool_runner import installed_tools

GOALS = {"ordinary": 50.0, "hostile": 250.0}
"""Milliseconds."""
_BEAT = 0.001
_LIMITS = {"tool": 5.0, "http": 5.0}
"""Timeouts of tools in seconds, which work only where the loop is not blocked."""
_FEED = "https://feeds.example/{}"


class Case(NamedTuple):
    """One call: of a tool, with these arguments, or with a text in their place."""

    tool: str
    arguments: Mapping[str, Any] | str


class Stall(NamedTuple):
    """The longest time that the loop was blocked in a call, in milliseconds."""

    case: Case
    kind: str
    milliseconds: float


class Watched(ToolRunner):
    """Calls tools while it measures the delays of the event loop."""

    def longest(self, case: Case) -> float:
        """The longest time, in milliseconds, that the loop was blocked in a call."""
        arguments = case.arguments if isinstance(case.arguments, str) else json.dumps(case.arguments)
        return self._loop.run(self._watched(case.tool, arguments))[0]

    async def _watched(self, tool: str, arguments: str) -> tuple[float, Outcome]:
        gaps = [0.0]
        beating = asyncio.ensure_future(_beat(gaps))
        await asyncio.sleep(_BEAT)  # it beats before the call begins
        try:
            outcome = await self._call(tool, arguments)
            await asyncio.sleep(_BEAT)  # and once after its end
        finally:
            beating.cancel()
        return max(gaps) * 1_000, outcome


async def _beat(gaps: list[float]) -> None:
    """Note by how much each round of the loop comes late, beside what the machine gave to other programs meanwhile.

    To read that time is to let go of the interpreter, which another thread may then hold: that is a delay of its own.
    """
    with _run_queue() as queued:
        waited = queued()
        while True:
            begun = time.perf_counter()
            await asyncio.sleep(_BEAT)
            woken, before, waited = time.perf_counter(), waited, queued()
            gaps += [woken - begun - _BEAT - (waited - before), time.perf_counter() - woken]


@contextmanager
def _run_queue() -> Iterator[Callable[[], float]]:
    """Returns seconds that this thread could have run in and had no core for; always 0 where no system tells."""
    try:
        file = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
    except OSError:
        yield lambda: 0.0
        return
    try:
        yield lambda: int(os.pread(file, 100, 0).split()[1]) / 1e9
    finally:
        os.close(file)


def rows(lab: Lab, limit: float | None = None) -> Iterator[Row]:
    """The longest stall of each kind, and every tool that misses its goal.

    Raises:
        BenchmarkError: where an installed tool has no calls here.
    """
    folder = lab.folder / "stalls"
    found = list(stalls(folder))
    # A call makes a thousand folders in one another, too many for `shutil.rmtree` of Python 3.11 and 3.12.
    subprocess.run(["rm", "-r", "--", folder], check=True)
    missing = {spec.name for spec in installed_tools()} - {stall.case.tool for stall in found}
    if missing:
        raise BenchmarkError(f"no calls are given for {', '.join(sorted(missing))}")
    for kind, goal in GOALS.items():
        ranked = sorted((stall for stall in found if stall.kind == kind), key=lambda each: -each.milliseconds)
        worst = ranked[0]
        how = f"{worst.case.tool}, the worst of {len(ranked)} calls of {len({each.case.tool for each in ranked})} tools"
        yield Row(f"longest stall, {kind} input", worst.milliseconds, goal, "ms", how)
        for stall in ranked:
            if stall.milliseconds > (limit or goal):
                yield Row(f"  stall of {stall.case.tool}", stall.milliseconds, goal, "ms", _shown(stall.case))


def stalls(folder: Path) -> Iterator[Stall]:
    """Every call, in a project made for it."""
    folder.mkdir()
    with own_home(folder / "home") as home, own_working_dir(folder / "work") as work, HttpReplay() as replay:
        _project(work)
        _github(work, home)
        _feeds(replay)
        web_calls.serve(replay)
        web_services.serve(replay)
        options: Any = {"timeouts": _LIMITS, "mode": "coding", "answers": ["yes"] * 200}
        with Watched(home, work, replay.transport, **options) as runner:
            installed_tools()  # finding them is no tool's doing
            runner.call("get_working_dir")
            gc.collect()
            gc.freeze()  # as every interface does after its start
            for kind, cases in (("ordinary", ORDINARY), ("hostile", [*HOSTILE, *_broken()])):
                if kind == "hostile":
                    _hostile_project(work, home)
                for case in cases:
                    yield Stall(case, kind, runner.longest(case))


def _shown(case: Case) -> str:
    text = case.arguments if isinstance(case.arguments, str) else json.dumps(case.arguments)
    return f"{text[:60]}{'…' if len(text) > 60 else ''}"


# --- where the tools work -------------------------------------------------------------------------------------------


def _project(work: Path) -> None:
    """300 files of code, with a history."""
    start_repository(work)
    for number in range(300):
        path = work / f"src/part{number // 20}/module_{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"def work_{line}(value):\n    return value + {line}\n\n" for line in range(40)))
    (work / "notes.csv").write_text("".join(f"{row},{row * 7 % 1000},{row * 13 % 1000}\n" for row in range(2_000)))
    for command in (["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "Begin"]):
        subprocess.run(["git", *command], cwd=work, check=True, capture_output=True)
    (work / "src/part0/module_1.py").write_text("changed = True\n")


def _github(work: Path, home: Path) -> None:
    """A clone of the project, and an API that nobody answers for."""
    clone = home / "github-clones/acme/code"
    subprocess.run(["git", "clone", "--quiet", "--depth=1", f"file://{work}", clone], check=True, capture_output=True)
    settings = home / ".config/gh"
    settings.mkdir(parents=True)
    (settings / "config.yml").write_text(f"http_unix_socket: {home / 'nobody.sock'}\n")
    (settings / "hosts.yml").write_text("github.com:\n    user: a\n    oauth_token: gho_0123456789\n")


def _hostile_project(work: Path, home: Path) -> None:
    """What is long, deep or many, and what makes patterns go astray."""
    (work / "long.txt").write_text("a" * 3_000_000)
    (work / "astray.txt").write_text(f"{'a' * 5_000}!\n" * 50)
    rows = (",".join(str(row * n % 997) for n in range(20)) for row in range(2_000))
    (work / "table.csv").write_text("".join(f"{row}\n" for row in rows))
    (work / "binary.bin").write_bytes(os.urandom(2_000_000))
    deep = work / Path(*["d"] * 60)
    deep.mkdir(parents=True)
    (deep / "x").write_text("x")
    many = work / "many"
    many.mkdir()
    for number in range(8_000):
        (many / f"{number}.txt").touch()
    (work / ".gitignore").write_text("".join(f"**/*{number}*/**/y\n" for number in range(500)))
    logs = work / ".marvin" / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    message = {"role": "user", "content": [{"type": "text", "text": "word " * 2_000}]}
    for number in range(20):
        (logs / f"context-backup-2026010{number % 10}-00000{number}.jsonl").write_text(f"{json.dumps(message)}\n" * 100)
    profile = home / ".config" / "marvin" / "profiles" / "main"
    profile.mkdir(parents=True, exist_ok=True)
    (profile / "preferences.yaml").write_text("".join(f"key_{number}: [a, b]  # why\n" for number in range(2_000)))
    (profile / "calendar.ics").write_text(calendar_of(10_000, "\n"))
    bookmarks = [{"url": f"https://example.org/{n}", "title": "word " * 20, "tags": ["a"]} for n in range(5_000)]
    (profile.parents[1] / "bookmarks.json").write_text(json.dumps(bookmarks))
    places = [{"label": f"place {number}", "address": "x" * 200} for number in range(5_000)]
    (profile / "saved_places.json").write_text(json.dumps(places))
    for number in range(2_000):
        (profile.parent / f"p{number}").mkdir()


def _feeds(replay: HttpReplay) -> None:
    """A feed as there are many, and what others could send."""
    item = "<item><title>{}</title><link>https://a.example/{}</link><description>{}</description></item>"
    head, end = '<?xml version="1.0"?><rss version="2.0"><channel><title>News</title>', "</channel></rss>"
    plain = "".join(item.format(f"Entry {n}", n, "Some words. " * 30) for n in range(30))
    astray = item.format("<![CDATA[" + "<a " * 2_000 + "]]>", 1, "<![CDATA[" + "<!--" * 2_000 + "]]>")
    many = "".join(item.format(n, n, "x") for n in range(5_000))
    for name, body in (("plain", plain), ("astray", astray), ("many", many)):
        replay.on("GET", _FEED.format(name), body=(head + body + end).encode(), headers={"content-type": "text/xml"})
    replay.on("GET", _FEED.format("file.zip"), body=b"x" * 2_000_000, headers={"content-type": "application/zip"})
    hostile = {"content-disposition": f'attachment; filename="{"a. " * 3_000}"', "content-type": "x/y"}
    replay.on("GET", _FEED.format("name"), body=b"x", headers=hostile)


# --- the calls ------------------------------------------------------------------------------------------------------

_SOURCE = "src/part0/module_0.py"
ORDINARY: Sequence[Case] = [
    Case("get_usage", {"include_lifetime": True}),
    Case("read_skill", {"name": "pdf"}),
    Case("tool_search", {"query": "what files are there"}),
    Case("compact_history", {}),
    Case("search_history_backups", {"query": "word"}),
    Case("end_elaborate", {}),
    Case("end_play_mode", {}),
    Case("exit_app", {}),
    Case("ask_user", {"question": "Go on?", "choices": ["yes", "no"]}),
    Case("plan", {"steps": ["Read the code", "Write a test", "Fix it"], "done": 1}),
    Case("get_working_dir", {}),
    Case("launch_agent", {"ticket_id": "x-1", "prompt": "Fix it."}),
    Case("review_codebase", {"working_dir": "missing"}),  # a review of the project would go on after the call
    Case("review_status", {}),
    Case("launch_research_agent", {"query": "What is here?"}),
    Case("tree", {}),
    Case("glob", {"pattern": "**/*.py"}),
    Case("code_grep", {"pattern": r"def work_\d+"}),
    Case("read_file", {"path": _SOURCE, "start_line": 1, "end_line": 100}),
    Case("create_file", {"path": "new.py", "content": "x = 1\n" * 200}),
    Case("append_file", {"path": "new.py", "content": "y = 2\n" * 200}),
    Case("write_file", {"path": "new.py", "content": "z = 3\n" * 400}),
    Case("apply_patch", {"path": _SOURCE, "old_str": "value + 7\n", "new_str": "value + 8\n"}),
    Case("apply_patch", {"path": _SOURCE, "old_str": "def work_9(valeu):\n", "new_str": "x"}),
    Case("git_status", {}),
    Case("git_branch", {}),
    Case("git_show", {}),
    Case("git_blame", {"path": _SOURCE}),
    Case("git_diff", {}),
    Case("git_log", {}),
    Case("git_commit", {"message": "Change a module"}),
    Case("git_checkout", {"target": "work", "create_branch": True}),
    Case("run_command", {"command": "echo hello; seq 1 2000"}),
    Case("install_packages", {"packages": ["marvin-core"]}),
    Case("jobs", {}),
    Case("github_search", {"query": "flask"}),
    Case("github_clone", {"repo": "acme/code"}),
    Case("github_clone", {"repo": "acme/other"}),
    Case("github_read_file", {"repo": "acme/code", "path": _SOURCE, "start": 1, "end": 100}),
    Case("github_grep", {"repo": "acme/code", "pattern": r"def work_\d+"}),
    Case("tk", {"args": "create 'A ticket' -d 'What and why'"}),
    Case("tk", {"args": "ls"}),
    Case("convert_units", {"value": 5, "from_unit": "miles", "to_unit": "km"}),
    Case("system_info", {}),
    Case("switch_profile", {"profile_name": "work"}),
    Case("switch_profile", {"profile_name": "main"}),
    Case("update_preferences", {"key": "dietary", "value": "vegan"}),
    Case("timer_start", {"name": "tea", "duration_seconds": 300}),
    Case("timer_check", {}),
    Case("timer_stop", {"name": "tea"}),
    Case("write_note", {"path": "list", "content": "milk\nbread\n"}),
    Case("read_note", {"path": "list"}),
    Case("notes_mkdir", {"path": "ideas"}),
    Case("notes_ls", {}),
    Case("search_notes", {"query": "milk"}),
    Case("file_read_lines", {"path": "list", "start": 1, "end": 2}),
    Case("file_apply_patch", {"path": "list", "patch": "REPLACE 1\nbutter"}),
    # In the past, so that no scheduler is asked.
    Case("calendar_add_event", {"title": "Tea", "start": "2020-03-04 10:00"}),
    Case("calendar_view", {"month": 3, "year": 2020}),
    Case("calendar_list_upcoming", {}),
    Case("calendar_delete_event", {"title": "tea"}),
    Case("bookmark_save", {"url": "https://example.org/", "title": "Example", "tags": "a, b"}),
    Case("bookmark_list", {}),
    Case("bookmark_search", {"query": "example"}),
    Case("save_place", {"label": "home", "address": "1 Elm Street"}),
    Case("list_places", {}),
    Case("remove_place", {"label": "home"}),
    Case("set_alarm", {"time": "in a while", "message": "Tea"}),
    Case("list_alarms", {}),
    Case("cancel_alarm", {"label": "tea"}),
    Case("generate_ntfy_topic", {"label": "Phone"}),
    Case("ntfy_subscribe", {"topic": "doorbell"}),
    Case("ntfy_publish", {"topic": "doorbell", "message": "Ring"}),
    Case("ntfy_list", {}),
    Case("ntfy_unsubscribe", {"topic": "doorbell"}),
    Case("create_ticket", {"title": "Buy milk", "description": "Two litres", "tags": "home"}),
    Case("ticket_list", {}),
    *(Case(f"ticket_{what}", {"ticket_id": "t"}) for what in ("show", "start", "dep_tree", "close")),
    Case("ticket_add_note", {"ticket_id": "t", "note": "No lactose"}),
    Case("ticket_add_dep", {"ticket_id": "t", "depends_on": "u"}),
    *(Case(f"blender_{what}", {}) for what in ("get_scene", "screenshot")),
    *(Case(f"blender_{what}_object", {"object_name": "Cube"}) for what in ("get", "modify", "delete")),
    Case("blender_create_object", {"object_type": "cube"}),
    Case("blender_set_material", {"object_name": "Cube"}),
    Case("blender_execute_code", {"code": "print(1)"}),
    Case("read_rss", {"url": _FEED.format("plain")}),
    Case("download_file", {"url": _FEED.format("file.zip")}),
    *(Case(tool, arguments) for tool, arguments in web_calls.ORDINARY),
    *(Case(*call) for call in web_services.ORDINARY),
    Case("set_working_dir", {"path": "src"}),
    Case("set_working_dir", {"path": ".."}),
]
HOSTILE: Sequence[Case] = [
    Case("search_history_backups", {"query": "word nothing"}),
    Case("search_history_backups", {"query": "w" * 100_000}),
    Case("ask_user", {"question": "q" * 1_000_000, "choices": ["c" * 100_000] * 10}),
    Case("plan", {"steps": [" - [x] " + "s " * 500_000, *["step"] * 49]}),
    Case("plan", {"todos": [{"content": "step", "status": "pending"}] * 20_000}),
    Case("launch_agent", {"ticket_id": "x-1", "prompt": "word " * 400_000, "model": "--help"}),
    Case("review_codebase", {"working_dir": "d/" * 60, "ref_dir": "../" * 100_000, "focus": "*a" * 60}),
    Case("review_status", {"job_id": "r" * 1_000_000}),
    Case("tree", {"max_depth": 100}),
    Case("glob", {"pattern": "**/*"}),
    Case("glob", {"pattern": "**/" * 12 + "y"}),
    Case("glob", {"pattern": "**/d*/" * 12 + "y"}),
    Case("glob", {"pattern": "*a" * 60}),
    Case("glob", {"pattern": "{a,b}" * 12}),
    Case("code_grep", {"pattern": "(a+)+$"}),
    Case("code_grep", {"pattern": "a.*b" * 12, "path": "astray.txt"}),
    Case("code_grep", {"pattern": "a", "path": "long.txt"}),
    Case("read_file", {"path": "long.txt"}),
    Case("read_file", {"path": "binary.bin"}),
    Case("read_file", {"path": "table.csv", "start_line": 1, "end_line": 2_000}),
    Case("create_file", {"path": "large.txt", "content": "line\n" * 400_000}),
    Case("append_file", {"path": "large.txt", "content": "line\n" * 400_000}),
    Case("write_file", {"path": "large.txt", "content": "other\n" * 400_000}),
    Case("apply_patch", {"path": "table.csv", "old_str": ",".join(map(str, range(20))) + "\n", "new_str": "x"}),
    Case("apply_patch", {"path": "astray.txt", "old_str": "a" * 4_999 + "b", "new_str": "x"}),
    Case("git_status", {}),
    Case("git_diff", {}),
    Case("git_log", {"max_count": 100, "path": "d/" * 60 + "x"}),
    Case("git_commit", {"message": "m" * 100_000}),
    Case("run_command", {"command": "yes hello | head -c 30000000"}),
    Case("run_command", {"command": "head -c 3000000 binary.bin; cat binary.bin"}),
    Case("run_command", {"command": "(" * 3_000}),
    Case("run_command", {"command": "eval " * 1_000}),
    Case("run_command", {"command": "$(" * 1_000}),
    Case("jobs", {"action": "x" * 100_000}),
    Case("github_search", {"query": "q" * 100_000}),
    Case("github_clone", {"repo": "a." * 50_000}),
    Case("github_read_file", {"repo": "acme/code", "path": "d/" * 2_000}),
    Case("github_grep", {"repo": "acme/code", "pattern": "(a+)+$", "glob_filter": "{a,b}" * 12}),
    Case("tk", {"args": "create '" + "x" * 90_000 + "'"}),
    Case("tk", {"args": "'" * 99_999}),
    Case("convert_units", {"value": 1e308, "from_unit": "m" * 60, "to_unit": "km"}),
    Case("convert_units", {"value": 1, "from_unit": "9**9**9", "to_unit": "km"}),
    Case("convert_units", {"value": 1, "from_unit": "mi" * 29, "to_unit": "/" * 60}),
    Case("switch_profile", {"profile_name": "p" * 64}),
    Case("switch_profile", {"profile_name": "main"}),
    Case("update_preferences", {"key": "key_7", "value": "c" * 10_000}),
    Case("timer_start", {"name": "t" * 100_000}),
    Case("timer_check", {"name": "t" * 100_000}),
    Case("timer_stop", {"name": "t" * 100_000}),
    Case("write_note", {"path": "large", "content": "line\n" * 400_000}),
    Case("read_note", {"path": "large"}),
    Case("file_read_lines", {"path": "large", "start": 300_000}),
    Case("file_apply_patch", {"path": "large", "patch": "DELETE 5\n" + "INSERT 7\nx\n" * 2_000}),
    Case("notes_mkdir", {"path": "d/" * 1_000}),
    Case("notes_ls", {"path": "d/" * 1_000}),
    Case("search_notes", {"query": "line " * 20_000}),
    Case("calendar_view", {"month": 3, "year": 2026}),
    Case("calendar_list_upcoming", {"days": 366}),
    Case("calendar_add_event", {"title": "t" * 100_000, "start": "2020-03-04 10:00", "description": "d" * 20_000}),
    Case("calendar_delete_event", {"title": "no such event"}),
    Case("bookmark_search", {"query": "word " * 10_000}),
    Case("bookmark_list", {"tag": "t" * 100_000}),
    Case("bookmark_save", {"url": "https://example.org/" + "x" * 60_000, "tags": "t," * 5_000}),
    Case("save_place", {"label": "l" * 100_000, "address": "x"}),
    Case("remove_place", {"label": "l" * 100_000}),
    Case("list_places", {}),
    Case("set_alarm", {"time": "t" * 100_000, "message": "m"}),
    Case("set_alarm", {"time": "1 " * 50, "message": "m"}),
    Case("cancel_alarm", {"label": "t" * 100_000}),
    Case("ntfy_subscribe", {"topic": "t" * 100_000}),
    Case("create_ticket", {"title": "t" * 100_000, "tags": "," * 100_000}),
    Case("ticket_show", {"ticket_id": "t" * 100_000}),
    Case("blender_execute_code", {"code": "c" * 100_000}),
    Case("read_rss", {"url": _FEED.format("astray")}),
    Case("read_rss", {"url": _FEED.format("many"), "max_items": 50}),
    Case("download_file", {"url": _FEED.format("name")}),
    *(Case(tool, arguments) for tool, arguments in web_calls.HOSTILE),
    *(Case(*call) for call in web_services.HOSTILE),
    Case("set_working_dir", {"path": "d/" * 60}),
    Case("set_working_dir", {"path": "../" * 60}),
    Case("get_usage", {"include_lifetime": True}),
]


def _broken() -> Iterator[Case]:
    """Arguments that have to be repaired, or cannot be, for one tool: all tools get theirs in the same way."""
    for text in (
        "[" * 200_000,
        '{"path": "' + "a" * 1_000_000,
        '{"a":' * 50_000,
        "{" + '"k": 1,,' * 50_000 + "}",
        json.dumps(json.dumps({"path": "\\" * 500_000})),
        "```json\n" * 20_000,
        '{"path": ' + "'" * 300_000 + "}",
    ):
        yield Case("read_file", text)
