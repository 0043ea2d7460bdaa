"""Packs that hang or print are skipped alone and named with where they were; the user's own files are packs too."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.support_e2e import alive, wait_until
from tests.support.installing import MARVIN, Place, tool_pack

pytestmark = pytest.mark.slow

HANGS = """
from marvin_core import hookimpl

def wait_for_ever():
    import threading
    threading.Event().wait()

wait_for_ever()
"""
PRINTS = """
import os
from marvin_core import hookimpl

print("hello from the pack")
"""
PRINTS_BELOW_PYTHON = """
import os
os.write(1, b"hello from a library")
"""
QUICK = "timeouts:\n  pack: 3\n"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    folder = place.home / "marvin"
    folder.mkdir()
    (folder / "config.yaml").write_text(QUICK)
    place.install("pack-zz-good", tool_pack("good_tool"))
    return place


def test_a_pack_that_hangs_is_skipped_with_where_it_hung(place: Place) -> None:
    place.install("pack-hangs", HANGS)
    packs = place.marvin("packs", "list")
    assert packs.code == 1
    assert "did not finish loading within 3 s" in packs.out
    assert "in wait_for_ever" in packs.out
    assert "good_tool" in place.tools()


@pytest.mark.parametrize("source", [PRINTS, PRINTS_BELOW_PYTHON])
def test_a_pack_that_prints_while_it_is_loaded_is_skipped_and_nothing_reaches_standard_output(
    place: Place, source: str
) -> None:
    place.install("pack-prints", source + tool_pack("printing_tool").replace("\n    ", "\n"))
    packs = place.marvin("packs", "list")
    assert packs.code == 1
    assert "printed to standard output while it was loaded: 'hello from" in packs.out
    assert packs.out.startswith("core")
    if source == PRINTS:
        assert 'print("hello from the pack")' in packs.out  # the traceback leads to the line
    assert set(place.tools()) >= {"good_tool"}
    assert "printing_tool" not in place.tools()


def test_a_hook_pack_that_prints_only_at_a_later_start_is_skipped_then(place: Place) -> None:
    place.install(
        "pack-late",
        """
        import os
        from marvin_core import Hook, hookimpl

        @hookimpl
        def marvin_register_hooks():
            if os.environ.get("CHATTY"):
                print("late words")
            return [Hook()]
        """,
    )
    assert place.marvin("packs", "list").code == 0
    ended = place.marvin("tools", "call", "good_tool", CHATTY="1")
    assert ended.code == 1
    assert (
        "good_tool was not run: the pack pack_late, which may contain hooks that guard calls, could not be loaded"
        in ended.out
    )
    assert "pack pack_late of pack-late was left out: Printed: printed to standard output" in ended.err


def write(place: Place, name: str, text: str) -> Path:
    path = place.home / "marvin" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_tools_of_the_configuration_folder_are_offered_and_noticed_when_they_change(place: Place) -> None:
    assert "my_tool" not in place.tools()
    source = 'from marvin_core import tool\n\n@tool(access=["read"])\nasync def my_tool() -> str:\n    """Mine."""\n'
    path = write(place, "tools/mine.py", source + '    return "first"\n')
    assert place.tools()["my_tool"]["distribution"] == "your configuration"
    assert place.marvin("tools", "call", "my_tool").out == "first\n"
    path.write_text(source + '    return "second"\n')
    assert place.marvin("tools", "call", "my_tool").out == "second\n"
    path.unlink()
    assert "my_tool" not in place.tools()


def test_a_broken_file_of_the_user_is_named_and_stops_nothing(place: Place) -> None:
    write(place, "tools/broken.py", "def oops(:\n")
    packs = place.marvin("packs", "list")
    assert packs.code == 1
    assert "tools/broken.py" in packs.out
    assert "SyntaxError" in packs.out
    assert "good_tool" in place.tools()


def test_hooks_of_the_configuration_folder_decide(place: Place) -> None:
    write(
        place,
        "hooks/careful.py",
        "from marvin_core import Deny, Hook\n\n"
        "class Careful(Hook):\n"
        "    async def before_tool(self, context, spec, arguments):\n"
        '        return Deny(reason="not on my watch") if spec.name == "good_tool" else None\n',
    )
    ended = place.marvin("tools", "call", "good_tool")
    assert ended.code == 1
    assert "not on my watch" in ended.out


def test_commands_of_the_configuration_folder_are_listed_in_the_chat(place: Place) -> None:
    write(place, "commands/review.md", "---\ndescription: Look at a file\n---\nReview $ARGUMENTS.\n")
    ended = place.run(
        [*_marvin(), "--plain"],
        stdin=b"/help\n/exit\n",
    )
    assert ended.code == 0, ended.err
    assert "/review [TEXT] Look at a file" in " ".join(ended.out.split())


def _marvin() -> list[str]:
    from tests.support.installing import MARVIN

    return list(MARVIN)


def test_a_misspelled_hook_is_named_with_the_nearest_one(place: Place) -> None:
    place.install(
        "pack-typo", "from marvin_core import hookimpl\n\n@hookimpl\ndef marvin_register_tool():\n    return []\n"
    )
    packs = place.marvin("packs", "list")
    assert packs.code == 1
    assert "Unknown hook 'marvin_register_tool'. Did you mean 'marvin_register_tools'" in packs.out


def test_a_sub_command_of_the_core_cannot_be_taken(place: Place) -> None:
    place.install(
        "pack-takes",
        """
        from marvin_core import hookimpl

        @hookimpl
        def marvin_extend_cli(app):
            @app.command()
            def tools():
                print("mine now")
        """,
    )
    packs = place.marvin("packs", "list")
    assert "sub-command tools of pack-takes was refused: marvin-core already provides one with that name" in packs.out
    assert "mine now" not in place.marvin("tools", "list").out


STARTS = """
import os, subprocess, sys, threading, time
from pathlib import Path

children = [
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=apart)
    for apart in (False, True)
]
Path(__file__).with_suffix(".pids").write_text(" ".join(map(str, [*(child.pid for child in children), os.getpid()])))
"""
WAITS = "threading.Event().wait()\n"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives orphans to another process than the first one")
@pytest.mark.parametrize(
    "then", [WAITS, f"os.kill(os.getppid(), 9)\n{WAITS}", f"os.killpg(0, 9)\n{WAITS}", "os._exit(0)\n", ""]
)
def test_what_a_pack_started_ends_with_marvin_also_where_that_is_killed(place: Place, then: str) -> None:
    (place.home / "marvin" / "config.yaml").write_text("timeouts:\n  pack: 300\n")
    source = place.install("pack-starts", STARTS + then)
    pids = source.with_suffix(".pids")
    environment = place.environment()
    with subprocess.Popen([*MARVIN, "packs", "list"], env=environment, cwd=place.home, stdout=subprocess.PIPE) as run:
        wait_until(lambda: pids.exists() and len(pids.read_text().split()) == 3, "the pack to start a program")
        if then.endswith(WAITS):
            run.kill()
        else:
            run.communicate()
    started = [int(pid) for pid in pids.read_text().split()]
    wait_until(lambda: not any(map(alive, started)), "what was started to end")
