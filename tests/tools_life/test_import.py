"""What an older Marvin kept is taken over: nothing is lost, nothing is taken twice, and a copy is kept."""

from __future__ import annotations

import json
import os
import re
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import marvin_tools_life.plugin as life
from marvin_core.testing import CliOutcome, PackRunner
from marvin_tools_life.importing.forms import BOOKMARKS, PLACES, SUBSCRIPTIONS, FormError, merged_entries, merged_tokens
from marvin_tools_life.importing.history import merged_history
from marvin_tools_life.importing.older_tickets import older_tickets
from tests.support.examples import examples

WHEN = time.mktime((2024, 5, 6, 7, 8, 9, 0, 0, -1))
TICKETS = {
    "1.json": {
        "id": "1",
        "title": "Party",
        "ticket_type": "epic",
        "priority": "1",
        "status": "open",
        "created_at": "2024-01-02T03:04:05.678Z",
    },
    "2.json": {
        "id": "2",
        "title": "Buy\nmilk",
        "description": "Two litres\r\n---\n# no heading",
        "status": "in-progress",
        "tags": ["home", "Food, drinks"],
        "parent": "1",
        "deps": ["3", "a/b"],
        "notes": [{"text": "not today, but tomorrow", "time": 1_704_164_645_000}, "plain note"],
    },
    "3.json": {"id": 3, "title": "Earn money", "status": "done", "priority": 9, "tags": "work, work"},
    "odd.json": {"id": "a/b", "title": "\x1b[2JAsk", "notes": "one, two"},
}


def older_folder(folder: Path) -> Path:
    """A folder as the older Marvin left it."""
    profile = folder / "profiles" / "main"
    profile.mkdir(parents=True)
    (folder / "tickets").mkdir()
    for name, ticket in TICKETS.items():
        (folder / "tickets" / name).write_text(json.dumps(ticket))
    put(folder / "bookmarks.json", [
        {"url": "https://example.org/a", "title": "A", "tags": "Food, #home", "created_at": "2024-01-02T03:04:05Z"},
        {"url": "https://example.org/b", "title": "B", "tags": ["x"], "colour": "red"},
    ])  # fmt: skip
    put(profile / "saved_places.json", [
        {"label": "home", "name": "", "address": "Main St 5", "lat": 52.5, "lng": 13.4, "notes": "ring twice"},
        {"label": "work", "name": "Office", "address": "", "lat": "52,5", "lng": 200},
    ])  # fmt: skip
    put(profile / "ntfy_subscriptions.json", [{"topic": "my-topic", "lastMessageId": "abc"}, {"topic": "no topic!"}])
    put(profile / "tokens.json", {"spotify": {"accessToken": "a", "refreshToken": "r", "expiresAt": 1_704_164_645_000}})
    (profile / "history").write_text("find ramen\nüber +1\n# heading\n")
    os.utime(profile / "history", (WHEN, WHEN))
    os.utime(profile / "ntfy_subscriptions.json", (WHEN, WHEN))
    return folder


def put(path: Path, data: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data))


@pytest.fixture
def older(marvin_pack: PackRunner) -> Path:
    """The folder that is used in place where it exists."""
    return older_folder(marvin_pack.home / ".config/local-finder")


@pytest.fixture
def elsewhere(marvin_pack: PackRunner) -> Path:
    """A folder that is not used."""
    return older_folder(marvin_pack.home / "backup/older")


def run(pack: PackRunner, *words: str) -> CliOutcome:
    return pack.cli(life, "import", *words)


def here(pack: PackRunner) -> Path:
    return pack.home / ".config/marvin"


def files(folder: Path) -> dict[str, bytes]:
    """What is in a folder, without locks."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_the_folder_in_use_is_taken_over_and_the_tools_read_it(marvin_pack: PackRunner, older: Path) -> None:
    before = files(older)
    said = run(marvin_pack)
    assert said.code == 1, "one topic is none"
    assert "no topic!" in said.err
    assert "tickets                  4 imported" in said.out
    assert "main: typed lines        3 imported" in said.out
    call = marvin_pack.call
    listed = call("ticket_list").text.splitlines()
    assert listed[0] == "1 [open, P1] Party"
    assert "2 [in_progress, P2] Buy milk (home, food, drinks) waits for 3, old-" in listed[1]
    assert listed[3] == "3 [closed, P4] Earn money (work)"
    shown = call("ticket_show", ticket_id="2").text
    for part in ("Two litres\n---\n# no heading", "**2024-01-02T03:04:05Z**\n\nnot today, but tomorrow", "plain note"):
        assert part in shown
    assert "\x1b" not in (older / "tickets").joinpath(listed[2].split()[0] + ".md").read_text()
    assert "A: https://example.org/a #food #home" in call("bookmark_list").text
    assert "home: Main St 5, (52.5, 13.4), ring twice" in call("list_places").text
    assert "work: Office" in call("list_places").text
    assert json.loads((older / "bookmarks.json").read_text())[1]["colour"] == "red"
    (entry,) = json.loads((older / "profiles/main/ntfy_subscriptions.json").read_text())
    assert (entry["topic"], entry["since"]) == ("my-topic", WHEN)
    tokens = older / "profiles/main/tokens.json"
    assert json.loads(tokens.read_text())["spotify"] == {
        "access_token": "a", "refresh_token": "r", "expires_at": 1_704_164_645,
    }  # fmt: skip
    (copies,) = (older / "imported").iterdir()
    kept = files(copies / "older")
    assert kept == {name: before[name] for name in kept}
    assert kept.keys() == before.keys()
    assert not list((older / "tickets").glob("*.json"))
    assert {stat.S_IMODE(path.stat().st_mode) for path in copies.rglob("*") if path.is_file()} == {0o600}
    assert stat.S_IMODE(copies.stat().st_mode) == 0o700


def test_what_was_taken_over_is_not_taken_again(marvin_pack: PackRunner, older: Path) -> None:
    run(marvin_pack)
    before = files(older)
    again = run(marvin_pack)
    assert again.code == 0, again.err
    assert re.search(r"\d imported", again.out) is None
    assert files(older) == before


def test_a_folder_from_elsewhere_is_added_and_stays_as_it_is(marvin_pack: PackRunner, elsewhere: Path) -> None:
    profile = elsewhere / "profiles/main"
    (profile / "prefs.yaml").write_text("diet: vegan\n")
    put(profile / "chat_log.json", [{"role": "you", "text": "hello", "time": "2024-01-01T00:00:00Z"}])
    put(here(marvin_pack) / "bookmarks.json", [{"url": "https://example.org/b", "title": "mine", "saved": 5}])
    own = "\n# 2026-01-01 10:00:00\n+find ramen\n"
    (here(marvin_pack) / "profiles/main").mkdir(parents=True)
    (here(marvin_pack) / "profiles/main/history").write_text(own)
    before = files(elsewhere)
    said = run(marvin_pack, str(elsewhere))
    assert files(elsewhere) == before
    assert "1 imported, 1 already here" in said.out
    titles = [entry["title"] for entry in json.loads((here(marvin_pack) / "bookmarks.json").read_text())]
    assert titles == ["mine", "A"]
    history = (here(marvin_pack) / "profiles/main/history").read_text()
    head = "\n# 2024-05-06 07:08:09\n"
    assert history == f"{head}+über +1\n{head}+# heading\n{own}"
    assert (here(marvin_pack) / "profiles/main/preferences.yaml").read_text() == "diet: vegan\n"
    assert "hello" in (here(marvin_pack) / "profiles/main/chat_log.json").read_text()
    (copies,) = (here(marvin_pack) / "imported").iterdir()
    assert files(copies / "before")["profiles/main/history"] == own.encode()
    assert stat.S_IMODE((here(marvin_pack) / "profiles/main/tokens.json").stat().st_mode) == 0o600
    after = files(here(marvin_pack))
    again = run(marvin_pack, str(elsewhere))
    assert re.search(r"\d imported", again.out) is None
    assert {name: data for name, data in files(here(marvin_pack)).items() if name in after} == after


def test_a_dry_run_says_the_same_and_changes_nothing(marvin_pack: PackRunner, elsewhere: Path) -> None:
    marvin_pack.call("list_places")  # what is made at any start is there
    before = files(here(marvin_pack))
    tried = run(marvin_pack, "--dry-run", str(elsewhere))
    assert files(here(marvin_pack)) == before
    done = run(marvin_pack, str(elsewhere))
    assert tried.out.replace("to import", "imported") == done.out.partition("Copies of the earlier files")[0]
    assert tried.err == done.err


@pytest.mark.parametrize("content", ["{", "3", '"x"', "[" * 5_000, "\xff\xfe", ""])
def test_a_damaged_file_is_named_and_takes_no_other_with_it(
    marvin_pack: PackRunner, elsewhere: Path, content: str
) -> None:
    (elsewhere / "bookmarks.json").write_bytes(content.encode("latin-1"))
    (elsewhere / "tickets/2.json").write_bytes(content.encode("latin-1"))
    said = run(marvin_pack, str(elsewhere))
    assert said.code == 1
    assert "bookmarks.json: it " in said.err
    assert "tickets/2.json: it " in said.err
    assert "3 imported" in said.out
    assert not (here(marvin_pack) / "bookmarks.json").exists()
    assert "home" in marvin_pack.call("list_places").text


def test_a_damaged_file_here_is_left_as_it_is(marvin_pack: PackRunner, elsewhere: Path) -> None:
    path = here(marvin_pack) / "bookmarks.json"
    path.parent.mkdir(parents=True)
    path.write_text("[{")
    said = run(marvin_pack, str(elsewhere))
    assert said.code == 1
    assert "the current file is damaged" in said.err
    assert path.read_text() == "[{"


def test_what_is_no_file_holds_nothing_up(marvin_pack: PackRunner, elsewhere: Path) -> None:
    (elsewhere / "bookmarks.json").unlink()
    os.mkfifo(elsewhere / "bookmarks.json")
    (elsewhere / "tickets/2.json").unlink()
    (elsewhere / "tickets/2.json").mkdir()
    said = run(marvin_pack, str(elsewhere))
    assert said.code == 1
    assert "bookmarks.json: it is not a file" in said.err


def test_where_there_is_nothing_it_is_said_what_to_name(marvin_pack: PackRunner) -> None:
    """I10"""
    (marvin_pack.home / "empty").mkdir()
    for words in ([str(marvin_pack.home / "empty")], [], [str(marvin_pack.home / "none")]):
        said = run(marvin_pack, *words)
        assert said.code == 2
        assert "marvin import FOLDER" in said.err


def test_two_tickets_of_one_id_are_both_kept(marvin_pack: PackRunner, elsewhere: Path) -> None:
    put(elsewhere / "tickets/copy.json", {"id": "1", "title": "Another"})
    run(marvin_pack, str(elsewhere))
    listed = marvin_pack.call("ticket_list").text
    assert "1 [open, P1] Party" in listed
    assert "1-2 [open, P2] Another" in listed


def test_who_has_older_tickets_only_is_told_how_they_come_back(marvin_pack: PackRunner, older: Path) -> None:
    assert "`marvin import`" in marvin_pack.call("ticket_list").text


@pytest.mark.parametrize(
    "content",
    [
        {"tickets": [{"id": "7", "title": "Seven"}]},
        [{"id": "7", "title": "Seven"}],
        {"7": {"title": "Seven"}},
        {"id": 7, "name": "Seven", "status": None, "priority": None, "tags": None, "notes": None, "deps": None},
    ],
)
def test_tickets_of_one_file_are_found_in_each_form(content: Any) -> None:
    (ticket,) = older_tickets("7", json.dumps(content).encode(), WHEN)
    assert ticket.id == "7"
    assert "\n# Seven\n" in ticket.text({})


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("a\r\nb\r\n", ["a", "b"]),
        ("_HiStOrY_V2_\nfind\\040the\\040way\n", ["find the way"]),
        ("#1704164645\nbash\nzsh\n", ["bash", "zsh"]),
        ("\n# 2026-01-01 10:00:00\n+one\n+two\nplain\n", ["one\ntwo", "plain"]),
        ("+1 555 1234\n", ["+1 555 1234"]),
        ("# 2026-01-01 10:00:00\nplain\n", ["# 2026-01-01 10:00:00", "plain"]),
    ],
)
def test_typed_lines_of_each_form_are_entries(content: str, lines: list[str], tmp_path: Path) -> None:
    from marvin_core.ui.plain.line_history import LineHistory

    merged = merged_history(content.encode(), content.encode(), WHEN)
    path = tmp_path / "history"
    path.write_bytes(merged.content or content.encode())
    assert [*LineHistory(lambda: path).load_history_strings()][::-1] == lines


KEYS = "url title tags label topic lat lng id name notes status deps created since bookmarks access_token expiresAt x"
ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS.split()), inner, max_size=4),
    max_leaves=12,
)


@examples(150)
@given(ODD)
def test_any_json_is_taken_over_once_or_refused(data: Any) -> None:
    """What is taken over is of today's form: a second time changes nothing."""
    content = json.dumps(data).encode()
    for form in (BOOKMARKS, PLACES, SUBSCRIPTIONS):
        try:
            first = merged_entries(form, content, content, WHEN)
        except FormError:
            continue
        after = first.content or content
        second = merged_entries(form, after, after, WHEN + 1)
        assert (second.content, second.problems) == (None, [])
        assert merged_entries(form, after, content, WHEN).content is None
    try:
        tokens = merged_tokens(content, content).content or content
        assert merged_tokens(tokens, tokens).content is None
    except FormError:
        pass
    try:
        for ticket in older_tickets("x", content, WHEN):
            assert ticket.text({}).startswith("---\nid: ")
    except FormError:
        pass


@examples(150)
@given(st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=12), max_size=8))
def test_typed_lines_are_taken_over_once(lines: list[str]) -> None:
    content = "".join(f"{line}\n" for line in lines).encode()
    first = merged_history(content, content, WHEN)
    after = first.content or content
    assert merged_history(after, after, WHEN).content is None
    assert merged_history(after, content, WHEN).content is None
