"""Folders in a cassette: none of this machine, and each one back where it is replayed."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from marvin_core.recording.places import NAMES, Places
from marvin_core.recording.volatile import lasting
from tests.support.examples import examples

HERE = Places({"cwd": "/home/josé/my project", "home": "/home/josé", "temp": "/tmp"})
THERE = Places({"cwd": '/Users/ann/"p"', "home": "/Users/ann", "temp": "/var/tmp"})
_WORDS = st.sampled_from(
    [
        "/home/josé",
        "/home/josé/my project",
        "/tmp",
        "{cwd}",
        "{=home}",
        "{",
        "}",
        "=",
        "/",
        "a",
        " ",
        "é",
        "-I",
        "{temp",
    ]
)


def test_the_longest_folder_counts() -> None:
    assert HERE.hide("/home/josé/my project/a.py in /home/josé/b") == "{cwd}/a.py in {home}/b"


def test_a_folder_is_found_behind_a_flag_and_in_an_address() -> None:
    assert HERE.hide("-I/tmp/x file:///home/jos%C3%A9/a") == "-I{temp}/x file://{home}/a"


def test_a_folder_whose_name_only_begins_the_same_is_another_one() -> None:
    assert HERE.hide("/tmpfs /tmp-2 /tmp") == "/tmpfs /tmp-2 {temp}"


def test_json_stays_json_whatever_a_folder_is_called() -> None:
    arguments = json.dumps({"path": "/home/josé/my project/a.py"})
    assert json.loads(THERE.put_back(HERE.hide(arguments), in_json=True)) == {"path": '/Users/ann/"p"/a.py'}


def test_a_working_directory_that_came_later_is_hidden_too() -> None:
    assert Places({"cwd": "/a/b"}, [Path("/c/d")]).hide("/a/b/x /c/d/y") == "{cwd}/x {cwd}/y"


def test_the_root_folder_has_no_name() -> None:
    assert Places({"cwd": "/"}).hide("/usr/bin and /") == "/usr/bin and /"


@given(st.lists(_WORDS, max_size=12).map("".join))
@examples(300)
def test_every_text_comes_back_and_hides_all_folders(text: str) -> None:
    hidden = HERE.hide(text)
    assert HERE.put_back(hidden) == text
    assert "/home/josé/my project/" not in hidden


@given(st.text(max_size=40), st.sampled_from(NAMES))
@examples(200)
def test_what_looks_like_a_placeholder_stays_what_it_was(text: str, name: str) -> None:
    written = f"{text}{{{name}}}{{={name}}}"
    assert THERE.put_back(HERE.hide(written)) == HERE.put_back(HERE.hide(written)) == written


def test_a_link_to_a_folder_is_that_folder(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    places = Places({"cwd": tmp_path / "link"})
    assert places.hide(f"{tmp_path}/real/a {tmp_path}/link/b") == "{cwd}/a {cwd}/b"


def test_what_differs_from_run_to_run_means_nothing() -> None:
    one = "2026-11-23T19:46:37.68Z Mon Nov 23 19:46:37 UTC 2026, Monday, 23 November 2026: 0.4 s, pid 12, 3f2a9bc"
    other = "2027-01-02T00:00:00Z Tue Jan 2 01:02:03 CET 2027, Saturday, 2 January 2027: 12 s, pid 4711, 0a1b2c3d4"
    assert lasting(one) == lasting(other)
    assert lasting("127.0.0.1:80 localhost:1") == lasting("127.0.0.1:8080 localhost:2")
    assert lasting("context-20261123-194637-680.jsonl") == lasting("context-20261124-080000-001.jsonl")


def test_what_a_program_says_stays() -> None:
    for text in ("app.py:12:30: error", "3 passed, 1 failed", "1234567 rows", "deadbeef or facade", "line 7: x = 5"):
        assert lasting(text) == text
