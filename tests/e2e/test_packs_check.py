"""`marvin packs check`: what is measured of packs that are good, bad, and worse."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.installing import Place

pytestmark = pytest.mark.slow

WAITS = "timeouts: {pack_call: 3.0, pack_beat: 1.0}\n"

MISCHIEF = '''
import asyncio
import os
import socket
import subprocess
import time
from pathlib import Path
from typing import Annotated

from marvin_core import ToolContext, ToolError, hookimpl, tool


@tool(access=["read"])
async def bad_surprise(word: str) -> str:
    """Fail in a way that nobody expects."""
    return {"text": "found"}[word]


@tool(access=["read"])
async def bad_advice(word: Annotated[str, "A word"]) -> str:
    """Fail without a word of help."""
    raise ToolError("no")


@tool(access=["read"])
async def bad_writer(context: ToolContext) -> str:
    """Write, and not say so."""
    context.paths.replace("note.txt", b"x")
    return "done"


@tool(access=["write"])
async def bad_escape() -> str:
    """Write where it must not."""
    Path(OUTSIDE).write_text("x")
    return "done"


@tool(access=["read"])
async def bad_net(context: ToolContext) -> str:
    """Ask a service, and not say so."""
    return (await context.http.get("https://example.com/")).text or "nothing"


@tool(access=["net"])
async def bad_socket() -> str:
    """Ask a service around the client."""
    socket.create_connection(("127.0.0.1", 9), 1)
    return "done"


@tool(access=["read"])
async def bad_program() -> str:
    """Start a program, and not say so."""
    subprocess.run(["touch", OUTSIDE])
    return "done"


@tool(access=["read"])
async def bad_blocking(slow: bool = False) -> str:
    """Hold up everything."""
    if slow:
        time.sleep(2.5)
    return "done"


@tool(access=["read"])
async def bad_ending(slow: bool = False) -> str:
    """Never end."""
    while slow:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            continue
    return "done"


@hookimpl
def marvin_register_tools():
    return [tool for name, tool in sorted(globals().items()) if name.startswith("bad_")]
'''

GOOD = '''
from typing import Annotated

from marvin_core import ToolContext, ToolError, hookimpl, tool


@tool(access=["read", "net"])
async def good_page(url: Annotated[str, "The address"], context: ToolContext) -> str:
    """Read a page."""
    if not url.startswith("https://"):
        raise ToolError(f"{url!r} is not the address of a page. Begin it with https://.")
    response = await context.http.get(url)
    if response.status_code != 200:
        raise ToolError(f"The service answered with status {response.status_code}. Try again later.")
    return response.text or "The page is empty."


@hookimpl
def marvin_register_tools():
    return [good_page]
'''


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    (made.home / "marvin").mkdir()
    (made.home / "marvin" / "config.yaml").write_text(WAITS)
    return made


def checked(place: Place, pack: str, *flags: str) -> tuple[str, dict[str, list[str]]]:
    """The grade of a pack, and the problems by criterion."""
    ended = place.marvin("packs", "check", pack, "--json", *flags)
    (report,) = json.loads(ended.out)
    findings: list[dict[str, Any]] = report["findings"]
    return report["grade"], {each["criterion"]: each["problems"] for each in findings}


KEEPER = '''
from marvin_core import JsonFile, PackSettings, RateLimit, Settings, ToolContext, fetch, hookimpl, tool


@tool(access=["net"])
async def keep_turns(context: ToolContext) -> str:
    """Ask a service, in turns, and log it."""
    page = await fetch(context.http, "https://example.com", turns=RateLimit(context.folders.cache, 0.001))
    (context.folders.state / "log").write_text(page.url)
    return "done"


@tool(access=["read"])
async def keep_reading(context: ToolContext) -> str:
    """Read what is stored."""
    kept = await JsonFile(context.folders.data / "kept.json", dict).read()
    return f"{len(kept)} {context.folders.profile.name}"


@tool(access=["read"])
async def keep_data(context: ToolContext) -> str:
    """Store data, and not say so."""
    (context.folders.data / "kept.txt").write_text("x")
    return "done"


@tool(access=["read"])
async def keep_profile(context: ToolContext) -> str:
    """Store data of the person, and not say so."""
    (context.folders.profile / "kept.txt").write_text("x")
    return "done"


@tool(access=["net"], secrets=["KEEP_KEY"])
async def keep_secret(context: ToolContext) -> str:
    """Ask for a secret and settings, which Marvin reads by itself."""
    return f"{context.secret('KEEP_KEY', None)} {context.settings(Kept)}"


class Kept(Settings):
    """What is kept."""

    name: str = "kept"
    """Its name."""


@hookimpl
def marvin_register_settings():
    return PackSettings(model="marvin_keep:Kept", secrets={"KEEP_TOKEN": "the token"})


@hookimpl
def marvin_register_tools():
    return [keep_turns, keep_reading, keep_data, keep_profile, keep_secret]
'''


def test_who_only_reads_may_keep_things_in_the_cache_and_the_state_of_the_pack(place: Place) -> None:
    place.install("marvin-keep", KEEPER, pack="keep")
    _, problems = checked(place, "keep")
    assert [line.partition(":")[0] for line in problems["access"]] == [
        "keep_data does not declare write",
        "keep_profile does not declare write",
    ]


def test_every_kind_of_mischief_is_seen_and_none_is_done(place: Place, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    place.install("marvin-mischief", MISCHIEF.replace("OUTSIDE", repr(str(outside))), pack="mischief")
    grade, problems = checked(place, "mischief")
    assert grade == "bronze"
    assert any("bad_surprise" in line and "KeyError" in line for line in problems["no surprises"])
    assert not any("bad_advice" in line for line in problems["no surprises"])
    assert all("bad_advice" in line for line in problems["advice"])
    assert problems["advice"]
    access = {line.split()[0]: line for line in problems["access"]}
    assert set(access) == {"bad_writer", "bad_escape", "bad_net", "bad_socket", "bad_program"}
    assert "does not declare write" in access["bad_writer"]
    assert str(outside) in access["bad_escape"]
    assert "does not declare net" in access["bad_net"]
    assert "without context.http" in access["bad_socket"]
    assert "does not declare exec: touch" in access["bad_program"]
    assert not outside.exists()
    late = problems["in time"]
    assert {line.split()[0] for line in late} == {"bad_blocking", "bad_ending"}
    assert any("blocks the whole program for" in line for line in late)
    assert any("does not end when it is cancelled" in line for line in late)
    assert any("word" in line for line in problems["described"])
    assert any("py.typed" in line for line in problems["typed"])


def test_a_good_pack_lacks_only_what_it_has_not_got(place: Place) -> None:
    place.install("marvin-good", GOOD, pack="good")
    grade, problems = checked(place, "marvin-good")
    assert grade == "bronze"
    failed = {criterion for criterion, found in problems.items() if found}
    assert failed == {"typed", "phrases", "docs"}
    ended = place.marvin("packs", "check", "good")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("marvin-good 1.0: bronze (")
    assert "-> Add entries to phrases.toml" in ended.out
    assert place.marvin("packs", "check", "good", "--grade", "silver").code == 1


def test_a_registration_that_does_more_than_register_is_seen(place: Place, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    place.install(
        "marvin-eager",
        f"""
        import socket, subprocess
        import ruamel.yaml.comments, humanize
        from marvin_core import hookimpl
        from marvin_core.api.errors import UsageError

        def quietly(work, *args):
            try:
                work(*args)
            except OSError:
                pass

        quietly(open, {str(outside)!r}, "w")
        quietly(socket.create_connection, ("127.0.0.1", 9), 1)
        quietly(subprocess.run, ["touch", {str(outside)!r}])

        @hookimpl
        def marvin_register_commands():
            raise ValueError("no commands today")
        """,
        pack="eager",
    )
    shutil.rmtree(place.home / "marvin" / "cache", ignore_errors=True)
    grade, problems = checked(place, "eager")
    outside.unlink(missing_ok=True)  # the listing of the packs, before the check, imports it unwatched
    assert grade == "no grade"
    assert any("no commands today" in line for line in problems["loads"])
    kinds = {line.partition(":")[0] for line in problems["quiet start"]}
    assert kinds == {"write", "net", "exec"}
    # Older versions of ruamel bring modules of Cython besides.
    assert {"marvin_eager imports humanize", "marvin_eager imports ruamel"} <= set(problems["light start"])
    assert any("marvin_core.api.errors.UsageError" in line for line in problems["public names"])


def test_a_tool_that_ends_the_process_is_named(place: Place) -> None:
    place.install(
        "marvin-fatal",
        '''
        import os
        from marvin_core import hookimpl, tool

        @tool(access=["read"])
        async def fatal() -> str:
            """End everything."""
            os._exit(7)

        @hookimpl
        def marvin_register_tools():
            return [fatal]
        ''',
        pack="fatal",
    )
    ended = place.marvin("packs", "check", "fatal")
    assert ended.code == 1
    assert "marvin-fatal 1.0: no grade" in ended.out
    assert "fatal ended the process with status 7" in ended.out


def commands() -> list[str]:
    """The command lines of all processes."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="/proc lists the processes")
def test_programs_are_started_only_where_that_is_allowed(place: Place) -> None:
    mark = f"3{os.getpid()}.5"
    place.install(
        "marvin-starter",
        f'''
        import subprocess
        from marvin_core import ToolContext, hookimpl, tool

        @tool(access=["read", "exec"])
        async def leave_behind() -> str:
            """Start a program and forget it."""
            subprocess.Popen(["sleep", "{mark}"], start_new_session=True)
            return "It runs."

        @tool(access=["read"])
        async def look_up(context: ToolContext) -> str:
            """Have a program of its own do the work."""
            return (await context.processes.run(["echo", "found"])).output.decode()

        @hookimpl
        def marvin_register_tools():
            return [leave_behind, look_up]
        ''',
        pack="starter",
    )
    ended = place.marvin("packs", "check", "starter")
    assert "leave_behind, look_up tried to start programs; --programs allows that" in ended.out
    assert "does not declare" not in ended.out
    _, problems = checked(place, "starter", "--programs")
    assert problems["in time"] == ["leave_behind leaves processes behind when its calls have ended"]
    assert problems["access"] == []
    assert not [command for command in commands() if mark in command]


def test_packs_that_cannot_be_imported_are_graded_all_the_same(place: Place) -> None:
    place.install("marvin-torn", "def torn(:\n", pack="torn")
    place.install("marvin-lacking", "import no_such_module\n", pack="lacking")
    place.install("marvin-leaving", "raise SystemExit(3)\n", pack="leaving")
    place.install("marvin-gone", "", pack="gone").unlink()
    ended = place.marvin("packs", "check", "--json", MARVIN_PACKS="torn,lacking,leaving,gone")
    assert ended.code == 1
    reports = {report["pack"]: report for report in json.loads(ended.out)}
    for pack, why in {
        "torn": "SyntaxError",
        "lacking": "no_such_module",
        "leaving": "SystemExit",
        "gone": "cannot be found",
    }.items():
        assert reports[pack]["grade"] == "no grade"
        loads = [each["problems"] for each in reports[pack]["findings"] if each["criterion"] == "loads"]
        assert any(why in problem for problems in loads for problem in problems), loads


def test_a_name_that_is_not_there_is_an_error_that_names_the_nearest(place: Place) -> None:
    place.install("marvin-good", GOOD, pack="good")
    ended = place.marvin("packs", "check", "core")
    assert ended.code == 2
    assert "core gets no grade: only packs that are distributed to others" in ended.err
    ended = place.marvin("packs", "check", "goof")
    assert ended.code == 2
    assert "good" in ended.err
    ended = place.marvin("packs", "check", "good", "--grade", "platinum")
    assert ended.code == 2
    assert "gold" in ended.err
