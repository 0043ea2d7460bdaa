"""Notes are kept in one folder, found again, changed by lines, and put back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import unicodedata
from pathlib import Path
from typing import Literal

import pytest

from marvin_core.testing import ToolRunner

LIST = "# Shopping\nmilk\nbread\neggs\n"


def note(tools: ToolRunner, name: str = "list.md") -> Path:
    return tools.home / "Notes" / name


def kept(tools: ToolRunner, text: str = LIST, name: str = "list.md") -> Path:
    """A note that the user wrote."""
    path = note(tools, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_note_is_written_added_to_and_read(marvin_tools: ToolRunner) -> None:
    said = marvin_tools.call("write_note", path="ideas/garden", content="Plant a tree.")
    assert said.text == "Wrote the new note ~/Notes/ideas/garden.md (14 bytes)."
    marvin_tools.call("write_note", path="ideas/garden.md", content="Water it.\n", append=True)
    assert note(marvin_tools, "ideas/garden.md").read_text() == "Plant a tree.\nWater it.\n"
    assert marvin_tools.call("read_note", path="ideas/garden").text == "Plant a tree.\nWater it."
    assert marvin_tools.call("read_note", path="~/Notes/ideas/garden.md").text == "Plant a tree.\nWater it."
    assert list(marvin_tools.working_dir.iterdir()) == []


@pytest.fixture
def model(marvin_tools: ToolRunner) -> ToolRunner:
    """A session in which a model makes the calls."""
    return marvin_tools.session(origin="model")


def test_what_is_added_begins_on_a_line_of_its_own(marvin_tools: ToolRunner) -> None:
    path = kept(marvin_tools, "no newline")
    marvin_tools.call("write_note", path="list", content="more", append=True)
    assert path.read_text() == "no newline\nmore\n"


def test_a_note_of_the_user_is_replaced_only_once_it_was_read(model: ToolRunner) -> None:
    path = kept(model)
    refused = model.call("write_note", path="list", content="all new")
    assert refused.is_error
    assert "append=true" in refused.text
    assert path.read_text() == LIST
    model.call("read_note", path="list")
    assert not model.call("write_note", path="list", content="all new").is_error
    path.write_text("the user again")
    assert "was changed after you read it" in model.call("write_note", path="list", content="all new").text


def test_adding_to_a_note_does_not_count_as_reading_it(model: ToolRunner) -> None:
    path = kept(model)
    assert not model.call("write_note", path="list", content="more", append=True).is_error
    assert "has not been read yet" in model.call("write_note", path="list", content="all new").text
    assert path.read_text() == f"{LIST}more\n"
    model.call("read_note", path="list")
    model.call("write_note", path="list", content="and more", append=True)
    assert not model.call("write_note", path="list", content="all new").is_error


def test_a_person_need_not_read_what_they_replace(marvin_tools: ToolRunner) -> None:
    path = kept(marvin_tools)
    marvin_tools.call("write_note", path="list", content="all new")
    assert path.read_text() == "all new\n"


def test_each_change_is_taken_back_after_a_restart_too(marvin_tools: ToolRunner) -> None:
    path = kept(marvin_tools)
    marvin_tools.call("write_note", path="list", content="butter", append=True)
    marvin_tools.call("file_read_lines", path="list")
    marvin_tools.call("file_apply_patch", path="list", patch="DELETE 2")
    marvin_tools.call("notes_mkdir", path="a/b")
    marvin_tools.call("write_note", path="new", content="x")
    later = marvin_tools.session()
    later.take_back(2)
    assert not note(marvin_tools, "new.md").exists()
    assert not note(marvin_tools, "a/b").exists()
    later.take_back(1)
    assert path.read_text() == f"{LIST}butter\n"
    later.take_back(1)
    assert path.read_text() == LIST


def test_in_coding_mode_notes_stay_in_the_project(marvin_tools: ToolRunner) -> None:
    """I19: and those of the user are not seen there."""
    kept(marvin_tools, "SECRET PLAN\n")
    tools = marvin_tools.session(mode="coding")
    said = tools.call("write_note", path="findings", content="The cache is stale.")
    assert ".marvin/notes/findings.md" in said.text
    assert (tools.working_dir / ".marvin/notes/findings.md").read_text() == "The cache is stale.\n"
    assert tools.call("read_note", path=".marvin/notes/findings").text == "The cache is stale."
    assert "findings.md" in tools.call("notes_ls").text
    assert "list.md" not in tools.call("notes_ls").text
    assert "findings.md:1: The cache is stale." in tools.call("search_notes", query="CACHE is").text
    assert "No note" in tools.call("search_notes", query="secret plan").text
    assert "[By name: findings.md]" in tools.call("search_notes", query="FINDINGS").text
    assert tools.call("read_note", path=str(note(marvin_tools))).is_error


def test_a_link_that_a_repository_brings_leads_nowhere(marvin_tools: ToolRunner) -> None:
    """I4: the folder of the notes, or a note, may be a link to anything."""
    outside = marvin_tools.home / "outside"
    outside.mkdir()
    (outside / "keys.md").write_text("key")
    (marvin_tools.working_dir / ".marvin").mkdir()
    (marvin_tools.working_dir / ".marvin/notes").symlink_to(outside)
    tools = marvin_tools.session(mode="coding")
    assert tools.call("write_note", path="x", content="x").is_error
    assert tools.call("read_note", path="keys").is_error
    assert tools.call("notes_ls").is_error
    assert "key" not in tools.call("search_notes", query="key").text.partition("'key'")[2]
    assert [path.name for path in outside.iterdir()] == ["keys.md"]


@pytest.mark.parametrize("path", ["../x", "/etc/hostname", "a/../../x", "~/x", "~root/x", "", " ", "ideas/", "."])
@pytest.mark.parametrize("tool", ["read_note", "write_note", "file_read_lines", "file_apply_patch"])
def test_paths_that_name_no_note_are_refused(marvin_tools: ToolRunner, tool: str, path: str) -> None:
    kept(marvin_tools)
    arguments = {"write_note": {"content": "x"}, "file_apply_patch": {"patch": "DELETE 1"}}.get(tool, {})
    said = marvin_tools.call(tool, path=path, **arguments)
    assert said.is_error
    assert "Give" in said.text
    assert not (marvin_tools.home / "x.md").exists()


def test_links_in_the_notes_lead_only_to_notes(marvin_tools: ToolRunner) -> None:
    (marvin_tools.home / "private.md").write_text("private")
    kept(marvin_tools)
    note(marvin_tools, "link.md").symlink_to(marvin_tools.home / "private.md")
    for tool, arguments in (
        ("read_note", {}),
        ("file_read_lines", {}),
        ("write_note", {"content": "x"}),
        ("file_apply_patch", {"patch": "DELETE 1"}),
    ):
        said = marvin_tools.call(tool, path="link", **arguments)
        assert said.is_error
        assert "private\n" not in said.text
    assert "private" not in marvin_tools.call("search_notes", query="riva").text
    assert (marvin_tools.home / "private.md").read_text() == "private"


def test_before_the_first_note_it_is_said_that_there_are_none(marvin_tools: ToolRunner) -> None:
    for tool, arguments in (
        ("read_note", {"path": "x"}),
        ("notes_ls", {}),
        ("search_notes", {"query": "x"}),
        ("file_read_lines", {"path": "x"}),
    ):
        assert "There are no notes yet" in marvin_tools.call(tool, **arguments).text
    assert not (marvin_tools.home / "Notes").exists()


def test_notes_are_listed_with_their_folders_first(marvin_tools: ToolRunner) -> None:
    kept(marvin_tools)
    kept(marvin_tools, name="work/plan.md")
    kept(marvin_tools, name=".hidden.md")
    os.utime(note(marvin_tools), (1_700_000_000, 1_700_000_000))
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(1_700_000_000))
    assert marvin_tools.call("notes_ls").text == f"work/\nlist.md ({len(LIST)} bytes, {when})"
    assert "plan.md" in marvin_tools.call("notes_ls", path="work").text
    assert "File not found" in marvin_tools.call("notes_ls", path="wrok").text


def test_a_name_steers_no_terminal(marvin_tools: ToolRunner) -> None:
    kept(marvin_tools, name="\x1b[2Jclear\nme.md")
    text = marvin_tools.call("notes_ls").text
    assert "\x1b" not in text
    assert len(text.splitlines()) == 1


def test_a_search_finds_phrases_words_and_names(marvin_tools: ToolRunner) -> None:
    kept(marvin_tools, "the Tomato plants\nneed much\nwater\n", "garden.md")
    kept(marvin_tools, "tomato soup\n", "recipes/soup.md")
    assert "garden.md:1: the Tomato plants" in marvin_tools.call("search_notes", query="tomato  PLANTS").text
    both = marvin_tools.call("search_notes", query="tomato").text
    assert "garden.md:1" in both
    assert "recipes/soup.md:1" in both
    apart = marvin_tools.call("search_notes", query="water tomato").text
    assert "Notes with all of the words" in apart
    assert "soup" not in apart
    assert "[By name: recipes/soup.md]" in marvin_tools.call("search_notes", query="Soup.md").text
    kept(marvin_tools, "x\n", "Ideen/[Entwurf]* Übung.md")
    assert "[By name: Ideen/[Entwurf]* Übung.md]" in marvin_tools.call("search_notes", query="[entwurf]* übung").text
    assert "[By name: Ideen/[Entwurf]* Übung.md]" in marvin_tools.call("search_notes", query="ideen ENTWURF").text
    assert "No note in ~/Notes has 'zebra (*'" in marvin_tools.call("search_notes", query="zebra (*").text
    one = marvin_tools.call("search_notes", query="t", max_results=1).text
    assert "There are more lines" in one


@pytest.mark.slow
def test_a_search_needs_no_ripgrep_and_works_in_the_sandbox(marvin_tools: ToolRunner, tmp_path: Path) -> None:
    kept(marvin_tools)
    empty = tmp_path / "empty"
    empty.mkdir()
    found = "list.md:2: milk"
    with ToolRunner(marvin_tools.home, marvin_tools.working_dir, sandbox="required") as tools:
        assert found in tools.call("search_notes", query="milk").text
    assert found in marvin_tools.session(env={"PATH": str(empty)}).call("search_notes", query="milk").text


def test_notes_are_searched_whatever_git_ignores_around_them(marvin_tools: ToolRunner) -> None:
    """Many a home folder is a repository that ignores all but a few files."""
    kept(marvin_tools)
    subprocess.run(["git", "init", "-q", str(marvin_tools.home)], check=True)
    (marvin_tools.home / ".gitignore").write_text("*\n")
    assert "list.md:2: milk" in marvin_tools.call("search_notes", query="milk").text
    (marvin_tools.working_dir / ".gitignore").write_text(".marvin/\n")
    subprocess.run(["git", "init", "-q", str(marvin_tools.working_dir)], check=True)
    tools = marvin_tools.session(mode="coding")
    tools.call("write_note", path="x", content="milk")
    assert "x.md:1: milk" in tools.call("search_notes", query="milk").text


def test_lines_are_read_with_numbers(marvin_tools: ToolRunner) -> None:
    kept(marvin_tools)
    assert marvin_tools.call("file_read_lines", path="list", start=2, end=3).text == "2\tmilk\n3\tbread"
    assert marvin_tools.call("file_read_lines", path="list", start=3).text == "3\tbread\n4\teggs"
    assert "has 4 lines" in marvin_tools.call("file_read_lines", path="list", start=9).text
    assert "Swap them" in marvin_tools.call("file_read_lines", path="list", start=3, end=2).text


def test_a_large_note_is_read_in_parts(marvin_tools: ToolRunner) -> None:
    kept(marvin_tools, "".join(f"line {number} {'x' * 60}\n" for number in range(1, 2001)))
    text = marvin_tools.call("read_note", path="list").text
    assert len(text) < 60_000
    last = text.splitlines()[-1]
    assert "of 2,000. Continue with file_read_lines(path='list', start=" in last
    start = int(last.partition("start=")[2].partition(")")[0])
    assert marvin_tools.call("file_read_lines", path="list", start=start).text.startswith(f"{start}\tline {start} ")


@pytest.mark.parametrize(
    ("patch", "after"),
    [
        ("REPLACE 2\nbutter\ncheese", "# Shopping\nbutter\ncheese\nbread\neggs\n"),
        ("REPLACE 2-3\nbutter", "# Shopping\nbutter\neggs\n"),
        ("replace lines 2 to 3:\nbutter\n", "# Shopping\nbutter\neggs\n"),
        ("INSERT 0\nfirst", "first\n# Shopping\nmilk\nbread\neggs\n"),
        ("INSERT 4\nlast", "# Shopping\nmilk\nbread\neggs\nlast\n"),
        ("INSERT AFTER END\nlast", "# Shopping\nmilk\nbread\neggs\nlast\n"),
        ("INSERT BEFORE 1\nfirst", "first\n# Shopping\nmilk\nbread\neggs\n"),
        ("DELETE 2", "# Shopping\nbread\neggs\n"),
        ("DELETE 3-END", "# Shopping\nmilk\n"),
        ("DELETE 4\nINSERT 1\na\n\nb\nREPLACE 2\nMILK", "# Shopping\na\n\nb\nMILK\nbread\n"),
        ("--- a/x\n+++ b/x\n@@ -2,2 +2,2 @@\n milk\n-bread\n+rolls\n", "# Shopping\nmilk\nrolls\neggs\n"),
    ],
)
def test_a_note_is_changed_by_lines_or_by_a_diff(marvin_tools: ToolRunner, patch: str, after: str) -> None:
    path = kept(marvin_tools)
    marvin_tools.call("read_note", path="list")
    tried = marvin_tools.call("file_apply_patch", path="list", patch=patch, dry_run=True)
    assert "Nothing was written" in tried.text
    assert "@@" in tried.text
    assert path.read_text() == LIST
    done = marvin_tools.call("file_apply_patch", path="list", patch=patch)
    assert not done.is_error, done.text
    assert path.read_text() == after
    assert done.details is not None
    assert done.details["diff"] in tried.text


def test_lines_that_are_the_same_are_told_apart_by_their_numbers(marvin_tools: ToolRunner) -> None:
    path = kept(marvin_tools, "x\nx\nx\n\n\n\nx\n")
    marvin_tools.call("read_note", path="list")
    marvin_tools.call("file_apply_patch", path="list", patch="REPLACE 2\ny\nDELETE 5\nINSERT 6\nz")
    assert path.read_text() == "x\ny\nx\n\n\nz\nx\n"


def test_line_ends_and_a_missing_last_one_stay(marvin_tools: ToolRunner) -> None:
    path = kept(marvin_tools)
    path.write_bytes("Überschrift\r\neins\r\nzwei".encode("cp1252"))
    marvin_tools.call("read_note", path="list")
    said = marvin_tools.call("file_apply_patch", path="list", patch="REPLACE 2\nfünf")
    assert not said.is_error, said.text
    assert path.read_bytes() == "Überschrift\r\nfünf\r\nzwei".encode("cp1252")


def test_a_long_line_is_replaced_as_a_whole(marvin_tools: ToolRunner) -> None:
    path = kept(marvin_tools, f"{'word ' * 5_000}\nend\n")
    marvin_tools.call("read_note", path="list")
    marvin_tools.call("file_apply_patch", path="list", patch="REPLACE 1\nshort")
    assert path.read_text() == "short\nend\n"


def test_line_numbers_count_in_what_was_read(model: ToolRunner) -> None:
    path = kept(model)
    unread = model.call("file_apply_patch", path="list", patch="DELETE 2")
    assert "file_read_lines first" in unread.text
    model.call("read_note", path="list")
    path.write_text(f"new\n{LIST}")
    changed = model.call("file_apply_patch", path="list", patch="DELETE 2")
    assert "was changed after you read it" in changed.text
    assert path.read_text() == f"new\n{LIST}"


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ("DELETE 5", "has 4 lines"),
        ("REPLACE 0\nx", "has 4 lines"),
        ("REPLACE 3-2\nx", "has 4 lines"),
        ("INSERT 5\nx", "has 4 lines"),
        ("REPLACE 1", "no text below"),
        ("INSERT 1", "no text below"),
        ("INSERT 1-2\nx", "after one"),
        ("DELETE 1\ntext", "has text below"),
        ("DELETE 1-2\nREPLACE 2\nx", "Two commands change line 2"),
        ("please delete the milk", "line commands"),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-mlk\n+m\n", "does not occur"),
        ("--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-# Shopping\n", "write_note"),
        ("--- a/x\n+++ b/x\n@@ -2 +2 @@\n-milk\n+m\n--- a/y\n+++ b/y\n@@ -3 +3 @@\n-bread\n+b\n", "changes 2 files"),
    ],
)
def test_a_patch_that_cannot_be_made_says_why(marvin_tools: ToolRunner, patch: str, words: str) -> None:
    """I10: and changes nothing."""
    path = kept(marvin_tools)
    marvin_tools.call("read_note", path="list")
    said = marvin_tools.call("file_apply_patch", path="list", patch=patch)
    assert said.is_error
    assert words in said.text
    assert path.read_text() == LIST


def test_what_is_no_text_is_not_shown(marvin_tools: ToolRunner) -> None:
    kept(marvin_tools, name="scan.pdf").write_bytes(b"%PDF-1.7\n\0\1\2")
    said = marvin_tools.call("read_note", path="scan.pdf")
    assert said.is_error
    assert "PDF" in said.text


def test_a_read_only_agent_reads_notes_and_writes_none(marvin_tools: ToolRunner) -> None:
    (marvin_tools.working_dir / ".marvin/notes").mkdir(parents=True)
    (marvin_tools.working_dir / ".marvin/notes/a.md").write_text("found\n")
    tools = marvin_tools.session(read_only=True, mode="coding", interactive=False)
    assert tools.call("read_note", path="a").text == "found"
    assert tools.call("write_note", path="b", content="x").is_error
    assert tools.call("notes_mkdir", path="b").is_error


NFC, NFD = "Café Über", unicodedata.normalize("NFD", "Café Über")


@pytest.mark.parametrize(
    ("there", "asked"), [("Garden.md", "garden"), ("garden.md", "GARDEN.MD"), (NFD, NFC), (NFC, NFD)]
)
def test_a_name_in_another_spelling_is_the_same_note(marvin_tools: ToolRunner, there: str, asked: str) -> None:
    """Letters of another case, and accents apart from their letters as a Mac writes them."""
    path = kept(marvin_tools, name=f"Ideas/{there}".removesuffix(".md") + ".md")
    for tool, arguments in (
        ("read_note", {}),
        ("file_read_lines", {}),
        ("write_note", {"content": "more", "append": True}),
        ("file_apply_patch", {"patch": "DELETE 1"}),
    ):
        said = marvin_tools.call(tool, path=f"ideas/{asked}", **arguments)
        assert not said.is_error, said.text
    assert path.read_text() == "milk\nbread\neggs\nmore\n"
    marvin_tools.call("write_note", path="IDEAS/new", content="x")
    assert "already exists" in marvin_tools.call("notes_mkdir", path="ideas").text
    assert path.name in marvin_tools.call("notes_ls", path="iDeas").text
    assert sorted(entry.name for entry in path.parent.iterdir()) == sorted([path.name, "new.md"])


def test_of_two_spellings_the_exact_one_counts(marvin_tools: ToolRunner) -> None:
    for name in ("Garden.md", "garden.md", "GARDEN.md"):
        kept(marvin_tools, f"{name}\n", name)
    assert marvin_tools.call("read_note", path="Garden").text == "Garden.md"
    assert marvin_tools.call("read_note", path="garden.md").text == "garden.md"
    assert marvin_tools.call("read_note", path="gArden").is_error


def test_a_folder_and_a_note_of_one_name_are_two_things(marvin_tools: ToolRunner) -> None:
    (marvin_tools.home / "Notes/plans").mkdir(parents=True)
    assert "plans.md" in marvin_tools.call("write_note", path="plans", content="x").text
    path = kept(marvin_tools, name="garden.md")
    assert "Created the folder" in marvin_tools.call("notes_mkdir", path="garden").text
    marvin_tools.call("write_note", path="garden", content="more", append=True)
    marvin_tools.call("write_note", path="garden/roses", content="red")
    assert path.read_text() == f"{LIST}more\n"
    assert marvin_tools.call("read_note", path="garden/roses").text == "red"
    assert "roses.md" in marvin_tools.call("notes_ls", path="garden").text


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("path", ["/usr/bin", ""])
def test_a_search_finds_each_form_of_an_accent_with_ripgrep_and_without(
    marvin_tools: ToolRunner, tmp_path: Path, form: Literal["NFC", "NFD"], path: str
) -> None:
    kept(marvin_tools, f"the {NFC} and the Straße\n", "one.md")
    kept(marvin_tools, f"the {NFD}\n", f"{NFD}.md")
    tools = marvin_tools.session(env={"PATH": path or str(tmp_path)})
    found = tools.call("search_notes", query=unicodedata.normalize(form, "CAFÉ über")).text
    assert f"one.md:1: the {NFC}" in found
    assert f"{NFD}.md:1: the" in found
    assert f"[By name: {NFD}.md]" in found
    assert "Notes with all of the words" in tools.call("search_notes", query="straße the").text
    assert "one.md:1" in tools.call("search_notes", query="straße the").text


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("meeting with dr.smith today", "meeting with dr.smith today.md"),
        ("e.g. garden", "e.g. garden.md"),
        ("v1.2", "v1.2.md"),
        ("todo.txt", "todo.txt"),
        (".plan", ".plan.md"),
        ("\U0001f468\u200d\U0001f467 trip", "\U0001f468\u200d\U0001f467 trip.md"),
    ],
)
def test_a_note_is_markdown_where_its_name_has_no_ending(marvin_tools: ToolRunner, name: str, file: str) -> None:
    marvin_tools.call("write_note", path=name, content="x")
    assert [path.name for path in (marvin_tools.home / "Notes").iterdir()] == [file]


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[2Jb", "C:\\Users\\me\\note.md", "ideas\\garden", "x" * 300, "a\0b"])
def test_names_that_make_no_note_are_refused(marvin_tools: ToolRunner, name: str) -> None:
    """I10"""
    kept(marvin_tools)
    said = marvin_tools.call("write_note", path=name, content="x")
    assert said.is_error
    assert len(said.text) < 1_500
    assert [path.name for path in (marvin_tools.home / "Notes").iterdir()] == ["list.md"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"one\r\ntwo\r\n", b"one\r\ntwo\r\nmore\r\nlast\r\n"),
        (b"one\r\ntwo", b"one\r\ntwo\r\nmore\r\nlast\r\n"),
        (b"one\r\ntwo\n", b"one\r\ntwo\nmore\nlast\n"),
        (b"\xef\xbb\xbfone\n", b"\xef\xbb\xbfone\nmore\nlast\n"),
        ("\ufeffone\n".encode("utf-16-le"), "\ufeffone\nmore\nlast\n".encode("utf-16-le")),
        ("\ufeffone\r\ntwo".encode("utf-16-be"), "\ufeffone\r\ntwo\r\nmore\r\nlast\r\n".encode("utf-16-be")),
        (b"", b"more\nlast\n"),
    ],
)
def test_what_is_added_has_the_line_ends_and_the_encoding_of_the_note(
    marvin_tools: ToolRunner, before: bytes, after: bytes
) -> None:
    path = kept(marvin_tools)
    path.write_bytes(before)
    said = marvin_tools.call("write_note", path="list", content="more\nlast", append=True)
    assert not said.is_error, said.text
    assert path.read_bytes() == after


def test_a_line_of_the_text_is_no_command_where_those_are_in_capitals(marvin_tools: ToolRunner) -> None:
    path = kept(marvin_tools)
    marvin_tools.call("read_note", path="list")
    marvin_tools.call("file_apply_patch", path="list", patch="REPLACE 2\ninsert 2\nDelete 3\nDELETE 3")
    assert path.read_text() == "# Shopping\ninsert 2\nDelete 3\neggs\n"


WRITER = """
import sys
from pathlib import Path
from marvin_core.testing import ToolRunner

with ToolRunner(Path(sys.argv[1]), Path(sys.argv[2])) as tools:
    for number in range(int(sys.argv[4])):
        outcome = tools.call("write_note", path="log", content=f"{sys.argv[3]}-{number}", append=True)
        assert not outcome.is_error, outcome.text
    print("done", flush=True)
"""


def writer(tools: ToolRunner, name: str, count: int) -> subprocess.Popen[bytes]:
    places = [str(tools.home), str(tools.working_dir)]
    return subprocess.Popen([sys.executable, "-P", "-c", WRITER, *places, name, str(count)])


@pytest.mark.slow
def test_writers_side_by_side_lose_nothing(marvin_tools: ToolRunner) -> None:
    marvin_tools.call("write_note", path="log", content="begin")
    children = [writer(marvin_tools, f"w{number}", 12) for number in range(8)]
    assert [child.wait(200) for child in children] == [0] * 8
    lines = note(marvin_tools, "log.md").read_text().splitlines()
    assert sorted(lines[1:]) == sorted(f"w{one}-{other}" for one in range(8) for other in range(12))


@pytest.mark.slow
def test_a_killed_writer_leaves_whole_lines(marvin_tools: ToolRunner) -> None:
    marvin_tools.call("write_note", path="log", content="begin")
    path = note(marvin_tools, "log.md")
    for count in (1, 3, 6):
        child = writer(marvin_tools, "k", 10_000)
        while len(path.read_text().splitlines()) <= count and child.poll() is None:
            time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
        child.wait(30)
        assert path.read_text().endswith("\n")
        assert all(line == "begin" or line.startswith("k-") for line in path.read_text().splitlines())
        path.write_text("begin\n")
