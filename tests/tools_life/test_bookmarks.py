"""Bookmarks are saved once each, found again, shared by all profiles and put back."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from marvin_core.api.errors import MarvinError
from marvin_core.testing import ToolRunner


def file(tools: ToolRunner) -> Path:
    return tools.home / ".config/marvin/bookmarks.json"


def saved(tools: ToolRunner) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(file(tools).read_text())
    return found


def test_a_bookmark_is_saved_and_found_in_every_profile(marvin_tools: ToolRunner) -> None:
    said = marvin_tools.call(
        "bookmark_save", url="example.org/bread", title=" Sour  dough ", tags="#Baking, bread", notes="For Sunday"
    )
    assert said.text == "Saved: Sour dough: https://example.org/bread #baking #bread\nFor Sunday"
    marvin_tools.call("switch_profile", profile_name="work")
    for query in ("sour", "BAKING sunday", "example.org", "#bread"):
        assert "Sour dough" in marvin_tools.call("bookmark_search", query=query).text
    assert "None of the 1 bookmarks has 'cake'" in marvin_tools.call("bookmark_search", query="cake").text


def test_an_address_is_saved_once(marvin_tools: ToolRunner) -> None:
    marvin_tools.call("bookmark_save", url="https://example.org/", title="One", tags="a", notes="why")
    said = marvin_tools.call("bookmark_save", url="https://example.org/", title="Two", tags="b,A")
    assert said.text == "Changed: Two: https://example.org/ #a #b\nwhy"
    assert len(saved(marvin_tools)) == 1
    again = marvin_tools.call("bookmark_save", url="https://example.org/", tags="a")
    assert again.text.startswith("Already saved; nothing was changed")
    assert again.undo is None


def test_bookmarks_are_listed_newest_first_and_by_tag(marvin_tools: ToolRunner) -> None:
    assert "There are no bookmarks yet" in marvin_tools.call("bookmark_list").text
    for number in range(5):
        marvin_tools.call("bookmark_save", url=f"https://example.org/{number}", tags="even" if number % 2 == 0 else "")
    lines = marvin_tools.call("bookmark_list", limit=2).text.splitlines()
    assert lines[:2] == ["1. https://example.org/4 #even", "2. https://example.org/3"]
    assert "2 of 5 are shown" in lines[2]
    assert [line[-7:-6] for line in marvin_tools.call("bookmark_list", tag="#Even").text.splitlines()] == list("420")
    assert "Available: even." in marvin_tools.call("bookmark_list", tag="odd").text


def test_titles_and_tags_come_before_what_only_mentions_a_word(marvin_tools: ToolRunner) -> None:
    marvin_tools.call("bookmark_save", url="https://a.example/", title="Tea")
    marvin_tools.call("bookmark_save", url="https://b.example/", title="Coffee", notes="not tea")
    assert marvin_tools.call("bookmark_search", query="tea").text.startswith("1. Tea: https://a.example/")


def test_a_file_of_the_older_program_keeps_what_it_holds(marvin_tools: ToolRunner) -> None:
    file(marvin_tools).parent.mkdir(parents=True)
    old = {"url": "https://old.example/", "tags": "Old, news", "created_at": "2024-01-02"}
    file(marvin_tools).write_text(json.dumps([old]))
    assert "#old #news" in marvin_tools.call("bookmark_list", tag="news").text
    marvin_tools.call("bookmark_save", url="https://old.example/", title="New")
    assert saved(marvin_tools) == [{**old, "title": "New", "notes": "", "tags": ["old", "news"]}]


def test_saving_and_changing_are_taken_back_after_a_restart_too(marvin_tools: ToolRunner) -> None:
    marvin_tools.call("bookmark_save", url="https://example.org/", title="One")
    before = saved(marvin_tools)
    marvin_tools.call("bookmark_save", url="https://example.org/", title="Two")
    marvin_tools.call("bookmark_save", url="https://other.example/")
    later = marvin_tools.session()
    later.take_back(2)
    assert saved(marvin_tools) == before
    later.take_back()
    assert saved(marvin_tools) == []


def test_what_somebody_changed_since_is_not_taken_back(marvin_tools: ToolRunner) -> None:
    marvin_tools.call("bookmark_save", url="https://example.org/", title="One")
    (bookmark,) = saved(marvin_tools)
    file(marvin_tools).write_text(json.dumps([{**bookmark, "title": "Mine"}]))
    with pytest.raises(MarvinError, match=r'was changed since then.*"One".*"Mine"'):
        marvin_tools.take_back()
    assert saved(marvin_tools)[0]["title"] == "Mine"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"url": "mailto:me@example.org"}, "address"),
        ({"url": ""}, "address"),
        ({"url": "javascript:alert(1)"}, "address"),
        ({"url": "data:text/html,<script>alert(1)</script>"}, "address"),
        ({"url": "JaVaScRiPt://%0aalert(1)"}, "address"),
        ({"url": "file:///etc/passwd"}, "address"),
        ({"url": "https://exa\x00mple.org/\x1b[31m"}, "address"),
        ({"url": "https://" + "x" * 1_000_000}, "Shorten it"),
        ({"url": "https://example.org/", "notes": "x" * 10_001}, "Shorten it"),
        ({"url": "https://example.org/", "taken_back": {"before": None, "after": None}}, "for /undo only"),
    ],
)
def test_what_cannot_be_saved_says_why(marvin_tools: ToolRunner, arguments: dict[str, object], words: str) -> None:
    """I10."""
    said = marvin_tools.call("bookmark_save", **arguments)
    assert said.is_error
    assert words in said.text
    assert not file(marvin_tools).exists()


def test_a_title_steers_no_terminal_and_starts_no_line(marvin_tools: ToolRunner) -> None:
    file(marvin_tools).parent.mkdir(parents=True)
    file(marvin_tools).write_text(
        json.dumps([{"url": "https://a/\x1b[2J\n2. x", "title": "a\n3. b", "tags": ["\x07"]}])
    )
    text = marvin_tools.call("bookmark_list").text
    assert not {"\x1b", "\x07"} & set(text)
    assert len(text.splitlines()) == 1


def test_an_address_is_kept_whole(marvin_tools: ToolRunner) -> None:
    """What is behind # is the page of many sites."""
    for url in ("https://example.org/app#/inbox?q=1", "http://127.0.0.1:8000/x", "https://b\u00fccher.example/\u00e9"):
        assert not marvin_tools.call("bookmark_save", url=url).is_error
    assert [one["url"] for one in saved(marvin_tools)][:2] == [
        "https://example.org/app#/inbox?q=1",
        "http://127.0.0.1:8000/x",
    ]


def test_words_and_tags_are_the_same_however_they_are_typed(marvin_tools: ToolRunner) -> None:
    marvin_tools.call("bookmark_save", url="https://example.org/", title="Caf\u00e9", tags="M\u00fcsli")
    for query in ("cafe\u0301", "MU\u0308SLI", "#mu\u0308sli"):
        assert "Caf\u00e9" in marvin_tools.call("bookmark_search", query=query).text
    assert "Caf\u00e9" in marvin_tools.call("bookmark_list", tag="Mu\u0308sli").text
    assert len(marvin_tools.call("bookmark_search", query="x" * 100_000).text) < 500
    assert len(marvin_tools.call("bookmark_list", tag="x" * 100_000).text) < 500


def test_a_damaged_file_is_moved_aside(marvin_tools: ToolRunner) -> None:
    file(marvin_tools).parent.mkdir(parents=True)
    file(marvin_tools).write_text('[{"title": "no address"}]')
    assert "is damaged" in marvin_tools.call("bookmark_list").text
    assert not marvin_tools.call("bookmark_save", url="https://example.org/").is_error


SAVER = """
import sys
from pathlib import Path
from marvin_core.testing import ToolRunner

with ToolRunner(Path(sys.argv[1]), Path(sys.argv[2])) as tools:
    for number in range(int(sys.argv[4])):
        url, label = f"https://{sys.argv[3]}.example/{number}", f"{sys.argv[3]}-{number}"
        assert not tools.call("bookmark_save", url=url).is_error
        assert not tools.call("save_place", label=label, address="x").is_error
        assert not tools.call("update_preferences", key="dietary", action="add", value=label).is_error
"""


def saver(tools: ToolRunner, name: str, count: int) -> subprocess.Popen[bytes]:
    places = [str(tools.home), str(tools.working_dir)]
    return subprocess.Popen([sys.executable, "-P", "-c", SAVER, *places, name, str(count)])


@pytest.mark.slow
def test_eight_processes_lose_no_bookmark_place_or_preference(marvin_tools: ToolRunner) -> None:
    children = [saver(marvin_tools, f"w{number}", 4) for number in range(8)]
    assert [child.wait(300) for child in children] == [0] * 8
    names = {f"w{one}-{other}" for one in range(8) for other in range(4)}
    assert len(saved(marvin_tools)) == 32
    folder = file(marvin_tools).parent / "profiles/main"
    assert {place["label"] for place in json.loads((folder / "saved_places.json").read_text())} == names
    dietary = marvin_tools.call("update_preferences", key="dietary", action="add", value="x").text
    assert all(name in dietary for name in names)


@pytest.mark.slow
def test_a_killed_process_leaves_the_old_file_or_the_new_one(marvin_tools: ToolRunner) -> None:
    marvin_tools.call("bookmark_save", url="https://example.org/")
    for count in (2, 4, 7):
        child = saver(marvin_tools, f"k{count}", 10_000)
        while len(saved(marvin_tools)) <= count and child.poll() is None:
            time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
        child.wait(30)
        assert not marvin_tools.call("bookmark_list").is_error
        assert not marvin_tools.call("list_places").is_error
