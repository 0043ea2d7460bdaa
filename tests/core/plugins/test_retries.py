"""What could not be loaded is tried again: when a variable is another one, after a while, and when it is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.installing import Place, index_data, put_index_data, tool_pack

pytestmark = pytest.mark.slow

NEEDS = "import os\nKEY = os.environ['ACME_KEY']\n"
AT_ONCE = "timeouts: {pack_retry: 0}\n"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    (place.home / "marvin").mkdir()
    return place


def configure(place: Place, yaml: str) -> None:
    (place.home / "marvin" / "config.yaml").write_text(yaml)


def needing(source: str, first: str) -> str:
    """A pack whose first lines may fail."""
    return first + "\n".join(line.removeprefix("    ") for line in source.splitlines()) + "\n"


def test_a_pack_that_misses_a_variable_is_tried_again_once_it_is_set(place: Place) -> None:
    place.install("needs-key", needing(tool_pack("wave"), NEEDS))
    missing = place.marvin("tools", "call", "wave")
    assert missing.code == 1
    assert "pack needs_key of needs-key was left out: KeyError: 'ACME_KEY'" in missing.err
    there = place.marvin("tools", "call", "wave", ACME_KEY="x")
    assert (there.code, there.out, there.err) == (0, "wave\n", "")


@pytest.mark.parametrize("read", ["os.getenv('ACME_KEY') or 1 / 0", "os.environ.get('ACME_KEY') or os._exit(1)"])
def test_whatever_way_it_read_it_and_however_it_failed(place: Place, read: str) -> None:
    place.install("needs-key", needing(tool_pack("wave"), f"import os\n{read}\n"))
    assert place.marvin("tools", "call", "wave").code == 1
    assert place.marvin("tools", "call", "wave", ACME_KEY="x").out == "wave\n"


def test_no_value_of_a_variable_is_written_down(place: Place) -> None:
    place.install("needs-key", needing(tool_pack("wave"), NEEDS + "1 / 0\n"))
    place.marvin("packs", "list", ACME_KEY="s3cr3t-value")
    kept = "".join(path.read_text() for path in (place.home / "marvin" / "cache").rglob("*.json"))
    assert "ACME_KEY" in kept
    assert "s3cr3t" not in kept


def test_a_pack_is_tried_again_when_time_has_passed(place: Place, tmp_path: Path) -> None:
    """A service that was down, say: here a file that is not there, of which Marvin knows nothing."""
    service = tmp_path / "service"
    place.install("needs-service", needing(tool_pack("wave"), f"open({str(service)!r}).close()\n"))
    assert place.marvin("tools", "call", "wave").code == 1
    service.touch()
    assert place.marvin("tools", "call", "wave").code == 1, "not at each start: that would cost too much"
    (index,) = place.indexes
    kept = index_data(index)
    kept["failures"]["at"] -= kept["failures"]["wait"] + 1
    put_index_data(index, kept)
    assert place.marvin("tools", "call", "wave").out == "wave\n"


def test_each_further_try_waits_longer_up_to_a_limit(place: Place) -> None:
    configure(place, "timeouts: {pack_retry: 100, pack_retry_most: 350}\n")
    place.install("broken", "1 / 0\n")
    waits = []
    for _ in range(3):
        place.marvin("packs", "list")
        (index,) = place.indexes
        kept = index_data(index)
        waits.append(kept["failures"]["wait"])
        kept["failures"]["at"] -= kept["failures"]["wait"] + 1
        put_index_data(index, kept)
    assert waits[0] >= 100
    assert waits[1] >= 200
    assert waits[2] == 350


def test_a_clock_that_was_set_back_keeps_no_failure(place: Place) -> None:
    place.install("broken", "1 / 0\n")
    place.marvin("packs", "list")
    (index,) = place.indexes
    kept = index_data(index)
    kept["failures"]["at"] += 1_000_000
    put_index_data(index, kept)
    place.marvin("packs", "list")
    assert index_data(index)["failures"]["at"] < kept["failures"]["at"]


def test_refresh_tries_at_once(place: Place, tmp_path: Path) -> None:
    service = tmp_path / "service"
    place.install("needs-service", needing(tool_pack("wave"), f"open({str(service)!r}).close()\n"))
    assert place.marvin("packs", "list").code == 1
    service.touch()
    listed = place.marvin("packs", "refresh")
    assert (listed.code, listed.err) == (0, "")
    assert "needs_service  needs-service 1.0, 1 tool\n" in listed.out


def test_what_is_not_chosen_or_switched_off_is_not_imported(place: Place, tmp_path: Path) -> None:
    log = tmp_path / "imported"
    place.install("noisy", f"open({str(log)!r}, 'a').close()\nimport os\nos._exit(1)\n")
    place.install("zz-good", tool_pack("wave"))
    assert place.marvin("tools", "call", "wave", MARVIN_PACKS="zz-good").err == ""
    assert place.marvin("config", "set", "packs.off", "[noisy]").code == 0
    off = place.marvin("tools", "call", "wave")
    assert (off.out, off.err) == ("wave\n", "")
    listed = place.marvin("packs", "list")
    assert listed.code == 0
    assert "noisy  noisy 1.0, disabled (packs.off in config.yaml)\n" in listed.out
    assert not log.exists()


GUARD = """
from marvin_core import Deny, Hook, hookimpl

class Guard(Hook):
    async def before_tool(self, context, spec, arguments):
        return Deny(reason="the guard says no")

@hookimpl
def marvin_register_hooks():
    return [Guard()]
"""


CONDITIONAL = """
import os
from acme_reading import is_wanted
from marvin_core import hookimpl, tool

if os.environ.get("ACME_A") or b"ACME_B" in os.environb or is_wanted():
    from acme_guard import marvin_register_hooks

@hookimpl
def marvin_register_tools():
    return []
"""


def test_a_hook_that_a_pack_has_only_where_a_variable_is_set_is_never_missed(place: Place) -> None:
    place.install("zz-good", tool_pack("wave"))
    reading = "import os\ndef is_wanted():\n    return os.path.expandvars('$ACME_C') == '1'\n"
    modules = {"acme_guard": GUARD, "acme_reading": reading}
    place.install("the-guard", CONDITIONAL, modules=modules)
    for name in ("ACME_A", "ACME_B", "ACME_C"):
        assert place.marvin("tools", "call", "wave").out == "wave\n"
        assert "the guard says no" in place.marvin("tools", "call", "wave", **{name: "1"}).out


def test_what_libraries_read_while_they_are_imported_makes_no_index_anew(place: Place) -> None:
    """Many look at the terminal then, which is another one in each window."""
    place.install("acme", "import acme_library\n" + GUARD, modules={"acme_library": "import os\nos.getenv('TERM')\n"})
    made = []
    for terminal in ("xterm", "vt100"):
        place.marvin("packs", "list", TERM=terminal)
        made += [index.stat().st_mtime_ns for index in place.indexes]
    assert made[0] == made[1]


def test_a_guard_that_is_broken_by_an_upgrade_holds_calls_until_it_is_switched_off(place: Place) -> None:
    """Nothing in its source says that it is one; that it was one is remembered."""
    place.install("zz-good", tool_pack("wave"))
    source = place.install("the-guard", GUARD)
    assert "the guard says no" in place.marvin("tools", "call", "wave").out
    source.write_text("import not_here_any_more\n")
    (place.packages / "the_guard-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: the-guard\nVersion: 1.1\n"
    )
    for _ in range(2):
        held = place.marvin("tools", "call", "wave")
        assert held.code == 1
        assert (
            "wave was not run: the pack the_guard, which may contain hooks that guard calls, could not be loaded."
            in held.out
        )
        assert "No module named 'not_here_any_more'" in held.err
        assert "config set packs.off '[the_guard]'" in held.err
    place.marvin("packs", "refresh")
    assert place.marvin("tools", "call", "wave").code == 1, "refreshing forgets the failure, and not the guard"
    assert place.marvin("config", "set", "packs.off", "[the_guard]").code == 0
    assert place.marvin("tools", "call", "wave").out == "wave\n"


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("METADATA", b""),
        ("METADATA", None),
        ("entry_points.txt", b"[marvin]\nthe_gu\xffard = the_guard\n"),
        ("entry_points.txt", b"[marvin]\nthe_guard = \n"),
    ],
)
def test_a_guard_whose_installation_was_left_halfway_holds_calls(
    place: Place, file: str, content: bytes | None
) -> None:
    place.install("zz-good", tool_pack("wave"))
    place.install("the-guard", GUARD)
    assert "the guard says no" in place.marvin("tools", "call", "wave").out
    damaged = place.packages / "the_guard-1.0.dist-info" / file
    damaged.unlink()
    if content is not None:
        damaged.write_bytes(content)
    place.marvin("packs", "refresh")
    held = place.marvin("tools", "call", "wave")
    assert held.code == 1
    assert (
        "wave was not run: the pack the_guard, which may contain hooks that guard calls, could not be loaded."
        in held.out
    )
    assert "the installation of the-guard is damaged; reinstall it." in held.err
    assert place.marvin("config", "set", "packs.off", "[the_guard]").code == 0
    assert place.marvin("tools", "call", "wave").out == "wave\n"


@pytest.mark.parametrize(
    "source",
    [
        "class Guard:\n    async def before_tool(self, context, spec, arguments): ...\n",
        "from marvin_core import Hook\ndef made():\n    return Hook()\n",
        "",
    ],
)
def test_a_file_for_hooks_that_defines_none_holds_calls(place: Place, source: str) -> None:
    place.install("zz-good", tool_pack("wave"))
    folder = place.home / "marvin" / "hooks"
    folder.mkdir()
    (folder / "guard.py").write_text(source)
    held = place.marvin("tools", "call", "wave")
    assert held.code == 1
    assert (
        "hooks/guard.py was left out: PluginError: it defines no subclass of Hook, so it has no effect. Define"
        in held.err
    )
    (folder / "guard.py").rename(folder / "_parts.py")
    called = place.marvin("tools", "call", "wave")
    assert (called.code, called.out, called.err) == (0, "wave\n", "")


def test_switching_a_broken_guard_off_as_told_leaves_another_of_its_name(place: Place) -> None:
    place.install("zz-good", tool_pack("wave"))
    place.install("acme-one", GUARD, pack="guard")
    place.install("acme-two", "import nothing_has_this_name\n" + GUARD, pack="guard")
    assert "config set packs.off '[acme-two]'" in place.marvin("tools", "call", "wave").err
    assert place.marvin("config", "set", "packs.off", "[acme-two]").code == 0
    guarded = place.marvin("tools", "call", "wave")
    assert "the guard says no" in guarded.out
    assert guarded.err == ""


def test_a_guard_that_is_removed_holds_nothing(place: Place) -> None:
    place.install("zz-good", tool_pack("wave"))
    place.install("the-guard", "import nothing_has_this_name\n" + GUARD)
    assert place.marvin("tools", "call", "wave").code == 1
    for file in (place.packages / "the_guard-1.0.dist-info").iterdir():
        file.unlink()
    (place.packages / "the_guard-1.0.dist-info").rmdir()
    assert place.marvin("tools", "call", "wave").out == "wave\n"


def test_a_pack_without_a_file_holds_calls_unless_it_was_seen_without_hooks(place: Place) -> None:
    place.install("zz-good", tool_pack("wave"))
    source = place.install("harmless", tool_pack("bow"))
    assert place.marvin("tools", "call", "wave").out == "wave\n"
    source.unlink()
    assert place.marvin("tools", "call", "wave").out == "wave\n"
    (kept,) = (place.home / "marvin" / "cache").glob("packs-*.json")
    kept.unlink()
    place.marvin("packs", "refresh")
    assert place.marvin("tools", "call", "wave").code == 1


def test_a_slow_guard_is_named_with_what_it_takes_of_a_start(place: Place) -> None:
    place.install("slow-guard", "import time\ntime.sleep(0.6)\n" + GUARD)
    listed = place.marvin("packs", "list")
    assert listed.code == 0
    assert "slow_guard  slow-guard 1.0, 1 hook\n  note: takes " in listed.out


def test_of_two_distributions_with_one_module_neither_is_used_and_calls_are_held(place: Place) -> None:
    """The file is that of the one that was installed last; what the other one guarded nobody knows."""
    place.install("good", tool_pack("wave"))
    place.install("guarding", tool_pack("look"))
    place.install(
        "newcomer", "", modules={"guarding": tool_pack("look")}, entry_points="[marvin]\nnewcomer = guarding\n"
    )
    held = place.marvin("tools", "call", "wave")
    assert held.code == 1
    for name in ("guarding", "newcomer"):
        assert f"pack {name} of {name} was left out: guarding and newcomer both contain the module guarding" in held.err
    assert "may contain hooks that guard calls, could not be loaded" in held.out
    assert "wave was not run" in held.out
    listed = place.marvin("packs", "list")
    assert listed.out.count("left out; it may contain a hook that guards calls, so calls are blocked") == 2


@pytest.mark.parametrize("points", ["[marvin]\nnew_guard = \n", "[marvin]\nnew_guard\n"])
def test_a_pack_that_was_never_seen_and_whose_entry_points_cannot_be_read_holds_calls(
    place: Place, points: str
) -> None:
    place.install("zz-good", tool_pack("wave"))
    place.install("new-guard", GUARD, entry_points=points)
    held = place.marvin("tools", "call", "wave")
    assert held.code == 1
    assert "pack new-guard of new-guard was left out: its contents cannot be read: " in held.err
    assert "config set packs.off '[new-guard]'" in held.err
    assert place.marvin("config", "set", "packs.off", "[new-guard]").code == 0
    called = place.marvin("tools", "call", "wave")
    assert (called.code, called.out, called.err) == (0, "wave\n", "")


def test_a_damaged_pack_that_was_seen_without_hooks_holds_nothing_and_is_named(place: Place) -> None:
    place.install("zz-good", tool_pack("wave"))
    place.install("acme", tool_pack("bow"))
    assert place.marvin("tools", "call", "wave").err == ""
    place.install("acme", tool_pack("bow"), entry_points="[marvin]\nacme = \n")
    place.marvin("packs", "refresh")
    called = place.marvin("tools", "call", "wave")
    assert (called.code, called.out) == (0, "wave\n")
    assert "pack acme of acme was left out: its contents cannot be read" in called.err


def test_what_is_damaged_and_says_nothing_of_marvin_is_passed_over(place: Place) -> None:
    place.install("zz-good", tool_pack("wave"))
    place.install("stranger", "", entry_points="[console_scripts]\nstranger = \n")
    called = place.marvin("tools", "call", "wave")
    assert (called.code, called.err) == (0, "")


def test_a_file_whose_name_ends_in_capitals_is_named_and_holds_calls(place: Place) -> None:
    place.install("zz-good", tool_pack("wave"))
    folder = place.home / "marvin" / "hooks"
    folder.mkdir()
    (folder / "guard.PY").write_text(GUARD)
    held = place.marvin("tools", "call", "wave")
    assert held.code == 1
    assert "hooks/guard.PY was left out: PluginError: the name of its file does not end in .py" in held.err
    (folder / "guard.PY").rename(folder / "guard.py")
    assert "the guard says no" in place.marvin("tools", "call", "wave").out


@pytest.mark.parametrize("kind", ["tools", "hooks"])
def test_a_hook_that_is_only_there_as_an_object_guards(place: Place, kind: str) -> None:
    place.install("zz-good", tool_pack("wave"))
    place.install("acme-library", "", modules={"acme_guards": GUARD}, entry_points="[other]\n")
    folder = place.home / "marvin" / kind
    folder.mkdir()
    (folder / "mine.py").write_text("from acme_guards import Guard\nguard = Guard()\n")
    assert "the guard says no" in place.marvin("tools", "call", "wave").out


def test_a_hook_object_of_an_own_class_is_the_only_one_of_it(place: Place) -> None:
    folder = place.home / "marvin" / "hooks"
    folder.mkdir()
    (folder / "mine.py").write_text(
        "from marvin_core import Hook\nclass Mine(Hook):\n    def __init__(self, word):\n        self.word = word\n"
        "mine = also = Mine('x')\nother = Mine('y')\n"
    )
    assert "hooks/mine.py  your configuration, 2 hooks\n" in place.marvin("packs", "list").out
