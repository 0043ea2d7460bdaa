"""Profiles: their folders, what they hold, and that nothing a person wrote is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from marvin_core.api.errors import MarvinError, UsageError
from marvin_core.api.events import Notice
from marvin_core.api.timeouts import Timeouts
from marvin_core.profiles.store import Profiles
from marvin_core.ui.plain.line_history import LineHistory
from tests.support.engine import make, run, says


class Told(list[str]):
    """What a person was told."""


def profiles(tmp_path: Path, told: list[str] | None = None) -> Profiles:
    return Profiles(tmp_path, Timeouts(), (told if told is not None else []).append)


def test_without_anything_on_disk_main_is_active_and_nothing_is_made(tmp_path: Path) -> None:
    found = profiles(tmp_path)
    assert (found.active, found.names()) == ("main", ["main"])
    assert found.preferences("main") == {}
    assert found.saved_places("main") == []
    assert list(tmp_path.iterdir()) == []


def test_a_switch_is_remembered_and_makes_the_profile(tmp_path: Path) -> None:
    folder = profiles(tmp_path).switch("work")
    assert folder == tmp_path / "profiles" / "work"
    assert (tmp_path / "last_profile").read_text() == "work\n"
    again = profiles(tmp_path)
    assert (again.active, again.names()) == ("work", ["main", "work"])
    assert "# dietary:" in (folder / "preferences.yaml").read_text()


@pytest.mark.parametrize("name", ["", "..", ".hidden", "a/b", "a\0b", "-x", "x" * 65, "a b", "end.", "a\n"])
def test_a_name_that_could_lead_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    """I4: a profile's name never leaves the folder of profiles."""
    for use in (profiles(tmp_path).folder, profiles(tmp_path).create, profiles(tmp_path).switch):
        with pytest.raises(UsageError, match="letters, digits"):
            use(name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a", "Zoë", "work-2", "me.home", "日本"])
def test_usual_names_are_taken(tmp_path: Path, name: str) -> None:
    profiles(tmp_path).create(name)
    assert name in profiles(tmp_path).names()


def test_a_profile_is_not_made_twice(tmp_path: Path) -> None:
    profiles(tmp_path).create("work")
    with pytest.raises(UsageError, match="already"):
        profiles(tmp_path).create("work")


@pytest.mark.parametrize("content", [b"../..\n", b"\xff\xfe", b"", b"a b"])
def test_a_damaged_choice_means_main_and_is_told_once(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "last_profile").write_bytes(content)
    told = Told()
    found = profiles(tmp_path, told)
    assert (found.active, found.active) == ("main", "main")
    assert len(told) == 1
    assert (tmp_path / "last_profile").read_bytes() == content


def test_comments_of_preferences_are_kept(tmp_path: Path) -> None:
    found = profiles(tmp_path)
    path = found.preferences_file("main")
    path.write_text("# mine\ndietary: [vegan]  # since 2020\n\n# where\nbudget: low\n")
    found.change_preference("main", "budget", lambda _: "high")
    found.change_preference("main", "has_car", lambda _: True)
    assert path.read_text() == "# mine\ndietary: [vegan]  # since 2020\n\n# where\nbudget: high\nhas_car: true\n"
    found.change_preference("main", "dietary", lambda _: None)
    assert found.preferences("main") == {"budget": "high", "has_car": True}


def test_the_first_preference_keeps_the_examples(tmp_path: Path) -> None:
    found = profiles(tmp_path)
    found.change_preference("main", "dietary", lambda _: ["vegan"])
    text = found.preferences_file("main").read_text()
    assert "# budget: moderate" in text
    assert found.preferences("main") == {"dietary": ["vegan"]}


SETTER = """
import sys
from pathlib import Path
from marvin_core.profiles.store import Profiles
from marvin_core.ui.plain.line_history import LineHistory
from marvin_core.api.timeouts import Timeouts
profiles = Profiles(Path(sys.argv[1]), Timeouts(lock=60))
profiles.change_preference("main", f"key{sys.argv[2]}", lambda _: int(sys.argv[2]))
"""


@pytest.mark.slow
def test_eight_processes_at_once_lose_no_preference(tmp_path: Path) -> None:
    setters = [subprocess.Popen([sys.executable, "-P", "-c", SETTER, str(tmp_path), str(n)]) for n in range(8)]
    assert [setter.wait(60) for setter in setters] == [0] * 8
    assert profiles(tmp_path).preferences("main") == {f"key{n}": n for n in range(8)}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("preferences.yaml", b"a: [1\n"),
        ("preferences.yaml", b"- just\n- a list\n"),
        ("preferences.yaml", b"a: \xff\n"),
        ("preferences.yaml", b"".join(b"k%d: 1\n" % number for number in range(110_000))),
        ("saved_places.json", b"[{"),
        ("saved_places.json", b"{}"),
    ],
    ids=["yaml", "list", "no text", "too long", "json", "object"],
)
def test_a_damaged_file_is_moved_aside_and_told_once(tmp_path: Path, name: str, content: bytes) -> None:
    folder = tmp_path / "profiles" / "main"
    folder.mkdir(parents=True)
    (folder / name).write_bytes(content)
    told = Told()
    found = profiles(tmp_path, told)
    for _ in range(2):
        assert not found.preferences("main")
        assert not found.saved_places("main")
    (kept,) = folder.glob("*.damaged-*")
    assert kept.read_bytes() == content
    assert len(told) == 1
    assert kept.name in told[0]


def test_setting_a_preference_never_overwrites_a_damaged_file(tmp_path: Path) -> None:
    found = profiles(tmp_path)
    path = found.preferences_file("main")
    path.write_text("a: [1\n")
    with pytest.raises(MarvinError, match="nothing was changed"):
        found.change_preference("main", "budget", lambda _: "low")
    found.change_preference("main", "budget", lambda _: "low")
    (kept,) = path.parent.glob("*.damaged-*")
    assert kept.read_text() == "a: [1\n"
    assert found.preferences("main") == {"budget": "low"}


def test_saved_places_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "profiles" / "main"
    folder.mkdir(parents=True)
    (folder / "saved_places.json").write_text(json.dumps([{"label": "home", "lat": 1.5}, "odd"]))
    assert profiles(tmp_path).saved_places("main") == [{"label": "home", "lat": 1.5}]


def test_tokens_that_others_could_read_are_closed(tmp_path: Path) -> None:
    """I24: a token that another user can read is no secret."""
    folder = tmp_path / "home" / "marvin" / "profiles" / "main"
    folder.mkdir(parents=True)
    (folder / "tokens.json").write_text("{}")
    (folder / "tokens.json").chmod(0o644)
    run(make(tmp_path, says("Hi."), argv=()).session.close())
    assert (folder / "tokens.json").stat().st_mode & 0o777 == 0o600


def test_a_session_works_in_the_active_profile_and_may_switch(tmp_path: Path) -> None:
    home = tmp_path / "home" / "marvin"
    profiles(home).switch("work")
    made = make(tmp_path, says("One."), says("Two."), argv=())

    async def go() -> None:
        await made.session.submit("at work")
        made.parts.profile.switch("play")
        await made.session.submit("at play")
        await made.session.close()

    run(go())
    assert made.parts.profile.folder == home / "profiles" / "play"
    assert made.provider is not None
    for name, request in zip(("work", "play"), made.provider.requests, strict=True):
        assert f"Active profile: {name}" in request.system
    said = [message.text for message in made.provider.requests[1].messages]
    assert said == ["at work", "One.", "at play"], "the chat goes on"
    for name in ("work", "play"):
        data = json.loads((home / "profiles" / name / "chat_log.json").read_text())
        assert data[0]["text"] == f"at {name}"
    assert (home / "last_profile").read_text() == "play\n"


HOLDER = """
import sys
from pathlib import Path
from marvin_core.util.state_files import locked
with locked(Path(sys.argv[1]), 50, 0.01):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.parametrize("name", ["preferences.yaml", "saved_places.json", "chat_log.json"])
def test_a_prompt_waits_for_nobody_who_holds_a_damaged_file(tmp_path: Path, name: str) -> None:
    made = make(tmp_path, says("Fine."), timeouts=Timeouts(lock=60.0))
    folder = made.config.config_folder / "profiles" / "main"
    folder.mkdir(parents=True)
    (folder / name).write_text("a: [")
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder / name)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"

        async def go() -> None:
            assert (await made.session.submit("go")).text == "Fine."
            await made.session.close()

        run(go(), limit=40.0)
        process.kill()
    assert (folder / name).read_text() == "a: ["
    assert any(
        "is locked by another process. Try again when that process has finished" in event.text
        for event in made.seen(Notice)
    )


def test_the_folder_of_a_profile_is_for_this_user_alone_whoever_makes_it(tmp_path: Path) -> None:
    """The lines that were typed make it, too."""
    home = tmp_path / "home"
    LineHistory(lambda: home / "profiles" / "main" / "history").store_string("a line")
    profiles(tmp_path / "other").create("work")
    for folder in (home, home / "profiles", home / "profiles" / "main", tmp_path / "other" / "profiles" / "work"):
        assert folder.stat().st_mode & 0o777 == 0o700
