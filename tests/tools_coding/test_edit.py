"""The writing tools: exactly what was given is written, and nothing else is touched."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from marvin_core import CallOrigin, KnownFiles, Tool, ToolError, unified_diff
from marvin_core.tools.schema import describe, validator
from marvin_tools_coding.files.edit import append_file, apply_patch, create_file, write_file
from marvin_tools_coding.files.read import read_file
from tests.tools_coding.support import Project, files_below

CODE = "def one():\n    return 1\n\n\ndef two():\n    return 2\n"


class TestCreate:
    def test_a_file_and_its_folders_are_made_as_given(self, project: Project) -> None:
        content = "a\r\nb\n\n  ü"
        said = project.call(create_file, path="src/deep/a.txt", content=content)
        assert said == "Created src/deep/a.txt: 4 lines, 10 bytes."
        assert files_below(project.root) == {"src/deep/a.txt": content.encode()}

    def test_an_existing_file_is_left_alone_with_advice(self, project: Project) -> None:
        """I10: the error names the tools that change what exists."""
        project.write("a.txt", "old")
        text = project.error(create_file, path="a.txt", content="new")
        assert text.startswith("'a.txt' exists already, and nothing was changed. ")
        assert "Change it with apply_patch, or overwrite it with write_file." in text
        assert files_below(project.root) == {"a.txt": b"old"}

    def test_characters_that_cannot_be_stored_are_named(self, project: Project) -> None:
        text = project.error(create_file, path="a.txt", content="a\ud800b")
        assert r"'\ud800' cannot be written" in text
        assert files_below(project.root) == {}


class TestAppend:
    @pytest.fixture
    def project(self, project: Project) -> Project:
        """A project whose file a.txt was read."""
        project.write("a.txt", "a\n")
        project.result(read_file, path="a.txt")
        return project

    def test_what_is_given_is_added_exactly(self, project: Project) -> None:
        result = project.result(append_file, path="a.txt", content="b\nc\n")
        assert result.content == "Appended 2 lines, 4 bytes to a.txt; it has 6 bytes now."
        assert result.details == {"diff": "--- a/a.txt\n+++ b/a.txt\n@@ -1,1 +1,3 @@\n a\n+b\n+c\n"}
        assert files_below(project.root) == {"a.txt": b"a\nb\nc\n"}

    def test_what_may_surprise_is_told(self, project: Project) -> None:
        project.write("b.txt", "a\r\nb")
        project.result(read_file, path="b.txt")
        said = project.call(append_file, path="b.txt", content="c\n")
        assert "did not end with a newline" in said
        assert "CRLF" in said
        assert files_below(project.root)["b.txt"] == b"a\r\nbc\n"

    def test_the_encoding_of_the_file_is_kept(self, project: Project) -> None:
        for encoding, head in (("utf-16", "a\n"), ("latin-1", "café\nnaïve\n"), ("cp1252", "café “x” crème\n")):
            project.write("other.txt", head.encode(encoding))
            project.result(read_file, path="other.txt")
            project.call(append_file, path="other.txt", content="ü\n")
            assert (project.root / "other.txt").read_bytes().decode(encoding) == f"{head}ü\n"

    def test_a_missing_file_is_told_with_the_tool_that_makes_one(self, project: Project) -> None:
        text = project.error(append_file, path="b.txt", content="x")
        assert "File not found: 'b.txt'" in text
        assert "create_file" in text
        assert files_below(project.root) == {"a.txt": b"a\n"}

    def test_nothing_is_not_appended(self, project: Project) -> None:
        assert "content is empty" in project.error(append_file, path="a.txt", content="")

    def test_binary_files_are_refused(self, project: Project) -> None:
        project.write("a.bin", b"\0\1\2")
        KnownFiles(project.state).note(str(project.root / "a.bin"), os.stat(project.root / "a.bin"))
        assert "binary" in project.error(append_file, path="a.bin", content="x")
        assert files_below(project.root)["a.bin"] == b"\0\1\2"

    def test_a_file_of_several_names_is_written_anew(self, project: Project) -> None:
        os.link(project.root / "a.txt", project.root.parent / "outside.txt")
        project.call(append_file, path="a.txt", content="b\n")
        assert files_below(project.root) == {"a.txt": b"a\nb\n"}
        assert (project.root.parent / "outside.txt").read_bytes() == b"a\n"


class TestWrite:
    def test_a_new_file_is_shown_as_added(self, project: Project) -> None:
        for tool in (write_file, create_file):
            result = project.result(tool, path=f"{tool.name}.txt", content="a\n")
            assert result.content == f"Created {tool.name}.txt: 1 line, 2 bytes."
            name = f"{tool.name}.txt"
            assert result.details == {"diff": f"--- a/{name}\n+++ b/{name}\n@@ -0,0 +1,1 @@\n+a\n"}

    def test_an_existing_file_is_replaced_and_shown_as_a_diff(self, project: Project) -> None:
        project.write("a.txt", "a\nb\nc\n").chmod(0o640)
        project.result(read_file, path="a.txt")
        result = project.result(write_file, path="a.txt", content="a\nB\nc\n")
        assert result.content == "Replaced a.txt, which had 6 bytes: 3 lines, 6 bytes."
        assert result.details is not None
        assert result.details["diff"] == "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"
        assert files_below(project.root) == {"a.txt": b"a\nB\nc\n"}
        assert (project.root / "a.txt").stat().st_mode & 0o777 == 0o640

    def test_the_encoding_of_the_file_is_kept(self, project: Project) -> None:
        mark = b"\xef\xbb\xbf"
        project.write("a.txt", mark + "ä\n".encode())
        project.result(read_file, path="a.txt")
        project.call(write_file, path="a.txt", content="ö\n")
        assert files_below(project.root) == {"a.txt": mark + "ö\n".encode()}

    @pytest.mark.parametrize(
        ("old", "new", "told"),
        [(b"a\r\nb\r\n", "a\nc\n", True), (b"a\r\nb\r\n", "a\r\nc\r\n", False), (b"a\r\nb\n", "a\n", False)],
    )
    def test_other_line_ends_are_told(self, project: Project, old: bytes, new: str, told: bool) -> None:
        (project.root / "a.txt").write_bytes(old)
        project.result(read_file, path="a.txt")
        said = project.call(write_file, path="a.txt", content=new)
        assert ("Its lines ended in CRLF, and end in LF now." in said) == told
        assert files_below(project.root) == {"a.txt": new.encode()}

    def test_protected_places_are_refused(self, repository: Project) -> None:
        """I4: git's own files are not written by tools."""
        assert "'.git/HEAD.new' is refused" in repository.error(write_file, path=".git/HEAD.new", content="x")
        repository.result(read_file, path=".git/config")
        assert "'.git/config' is refused" in repository.error(write_file, path=".git/config", content="x")


class TestKnownFiles:
    """What a session has not seen it does not overwrite."""

    @pytest.mark.parametrize("tool", [write_file, append_file])
    def test_a_file_that_was_not_read_stays(self, project: Project, tool: Tool) -> None:
        project.write("a.txt", "work of the user\n")
        text = project.error(tool, path="a.txt", content="x")
        assert "nothing was changed. Read it first." in text
        assert files_below(project.root) == {"a.txt": b"work of the user\n"}
        project.result(read_file, path="./a.txt")
        project.call(tool, path=str(project.root / "a.txt"), content="x")

    @pytest.mark.parametrize("tool", [write_file, append_file])
    def test_a_file_that_was_changed_since_stays(self, project: Project, tool: Tool) -> None:
        project.write("a.txt", "old\n")
        project.result(read_file, path="a.txt")
        project.write("a.txt", "work of the user\n")
        assert "nothing was changed. Read it again" in project.error(tool, path="a.txt", content="x")
        assert files_below(project.root) == {"a.txt": b"work of the user\n"}

    @pytest.mark.parametrize("tool", [write_file, append_file])
    @pytest.mark.parametrize("origin", ["person", "typed"])
    def test_a_person_need_not_read_a_file_first(self, project: Project, tool: Tool, origin: CallOrigin) -> None:
        project.write("a.txt", "old\n")
        project.origin = origin
        project.call(tool, path="a.txt", content="new\n")
        assert files_below(project.root)["a.txt"].endswith(b"new\n")

    def test_what_was_written_here_counts_as_read(self, project: Project) -> None:
        project.call(create_file, path="a.txt", content="1\n")
        project.call(append_file, path="a.txt", content="2\n")
        project.call(apply_patch, path="a.txt", old_str="1", new_str="one")
        project.call(write_file, path="a.txt", content="3\n")
        project.call(apply_patch, patch="*** Begin Patch\n*** Update File: a.txt\n*** Move to: b.txt\n*** End Patch")
        project.call(write_file, path="b.txt", content="4\n")
        assert files_below(project.root) == {"b.txt": b"4\n"}

    def test_the_same_content_written_by_another_is_known(self, project: Project) -> None:
        file = project.write("a.txt", "old\n")
        project.result(read_file, path="a.txt")
        file.unlink()
        project.write("a.txt", "old\n")
        project.call(write_file, path="a.txt", content="new\n")

    def test_an_empty_file_has_nothing_to_lose(self, project: Project) -> None:
        project.write("a.txt")
        project.call(append_file, path="a.txt", content="x\n")
        project.write("b.txt")
        project.call(write_file, path="b.txt", content="x\n")

    def test_an_exact_edit_of_a_changed_file_is_made_and_told(self, project: Project) -> None:
        project.write("a.txt", "one\ntwo\n")
        project.result(read_file, path="a.txt")
        project.write("a.txt", "one\ntwo\n  three\n")
        assert "was changed by another program" in project.call(apply_patch, path="a.txt", old_str="two", new_str="2")
        project.write("a.txt", "one\n2\n  three\n  four\n")
        text = project.error(apply_patch, path="a.txt", old_str="three\nfour\n", new_str="3\n4\n")
        assert "nothing was changed. Read it again" in text
        assert files_below(project.root) == {"a.txt": b"one\n2\n  three\n  four\n"}

    def test_a_file_of_which_a_part_was_read_is_not_replaced(self, project: Project) -> None:
        lines = [f"line {number} of the file\n" for number in range(1, 901)]
        project.write("a.txt", "".join(lines))
        assert "The first 418 of 900 lines" in project.call(read_file, path="a.txt")
        text = project.error(write_file, path="a.txt", content="x")
        assert text == (
            "Not all of 'a.txt' has been read; nothing was changed. Not read: lines 419 to 900. Read that too, or "
            "change only a part of the file with a patch."
        )
        project.call(read_file, path="a.txt", start_line=500, end_line=599)
        project.call(read_file, path="a.txt", start_line=601)
        text = project.error(write_file, path="a.txt", content="x")
        assert "Not read: lines 419 to 499, line 600." in text
        assert "you have not read all of it" in project.error(apply_patch, path="a.txt", old_str="", new_str="x")
        assert files_below(project.root) == {"a.txt": "".join(lines).encode()}
        project.call(read_file, path="a.txt", start_line=419, end_line=600)
        project.call(write_file, path="a.txt", content="x")

    def test_ranges_of_an_older_state_do_not_count(self, project: Project) -> None:
        project.write("a.txt", "1\n2\n3\n")
        project.call(read_file, path="a.txt", start_line=1, end_line=2)
        project.write("a.txt", "one\ntwo\nthree\n")
        project.call(read_file, path="a.txt", start_line=3, end_line=3)
        assert "Not read: lines 1 to 2." in project.error(write_file, path="a.txt", content="x")

    def test_a_long_line_counts_as_read_with_its_rest(self, project: Project) -> None:
        project.write("a.txt", "a\n" + "x" * 15_000 + "\nb\n")
        project.call(read_file, path="a.txt", start_line=1)
        text = project.error(write_file, path="a.txt", content="x")
        assert "Not read: line 2. Line 2 is long, and only its beginning was read." in text
        for column in (12_241, 2_001):  # the first one leaves a gap
            project.call(read_file, path="a.txt", start_line=2, column=column)
            assert "Not read: line 2." in project.error(write_file, path="a.txt", content="x")
        project.call(read_file, path="a.txt", start_line=2, column=12_241)
        project.call(write_file, path="a.txt", content="x")

    @pytest.mark.parametrize(
        ("edit", "unread"),
        [
            ({"old_str": "line 5\n", "new_str": "five\nfive and a half\n"}, "lines 12 to 31"),
            ({"old_str": "line 25\n", "new_str": ""}, "lines 11 to 29"),
            ({"old_str": "line 9\n", "new_str": "9\nnine\n"}, "lines 12 to 31"),
            ({"old_str": "line 10\nline 11\n", "new_str": "10 and 11\n"}, "lines 10 to 29"),
        ],
    )
    def test_an_edit_keeps_what_is_known_of_the_other_lines(
        self, project: Project, edit: dict[str, str], unread: str
    ) -> None:
        project.write("a.txt", "".join(f"line {number}\n" for number in range(1, 31)))
        project.call(read_file, path="a.txt", start_line=1, end_line=10)
        project.call(apply_patch, path="a.txt", **edit)
        assert f"Not read: {unread}. Read that" in project.error(write_file, path="a.txt", content="x")
        first, last = unread.removeprefix("lines ").split(" to ")
        project.call(read_file, path="a.txt", start_line=int(first), end_line=int(last))
        project.call(write_file, path="a.txt", content="x")

    def test_text_can_be_appended_to_a_file_of_which_a_part_was_read(self, project: Project) -> None:
        project.write("a.txt", "1\n2\n3\n4\n")
        project.call(read_file, path="a.txt", start_line=2, end_line=3)
        project.call(append_file, path="a.txt", content="5\n6\n")
        assert "Not read: line 1, line 4." in project.error(write_file, path="a.txt", content="x")

    def test_a_resumed_session_knows_what_it_read(self, project: Project) -> None:
        project.write("a.txt", "x" * 3_000 + "\n2\n3\n")
        project.call(read_file, path="a.txt", start_line=1, end_line=2)
        project.state = json.loads(json.dumps(project.state, default=str))  # as the session is saved
        assert "Not read: line 1, line 3." in project.error(write_file, path="a.txt", content="x")
        project.call(read_file, path="a.txt", start_line=3)
        project.call(read_file, path="a.txt", start_line=1, column=2_001)
        project.call(write_file, path="a.txt", content="x")

    def test_a_line_can_be_read_by_its_columns_alone(self, project: Project) -> None:
        project.write("a.txt", "x" * 15_000)
        project.call(read_file, path="a.txt", start_line=1, column=1)
        assert "Not read: line 1." in project.error(write_file, path="a.txt", content="x")
        project.call(read_file, path="a.txt", start_line=1, column=10_241)
        project.call(write_file, path="a.txt", content="x")

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("a.txt", "x" * 3_000 + " one two"),
            ("a.ipynb", json.dumps({"cells": [{"cell_type": "raw", "source": [text]} for text in ("one two", "3")]})),
        ],
    )
    def test_an_own_edit_is_not_told_as_that_of_another(self, project: Project, name: str, content: str) -> None:
        project.write(name, content)
        project.call(read_file, path=name, start_line=1, end_line=1)
        project.call(apply_patch, path=name, old_str="one", new_str="1")
        assert "another program" not in project.call(apply_patch, path=name, old_str="two", new_str="2")
        project.call(append_file, path=name, content="\n")
        assert "Not read: " in project.error(write_file, path=name, content="x")

    def test_cells_of_a_notebook_count_as_its_lines(self, project: Project) -> None:
        cells = [{"cell_type": "markdown", "source": [f"cell {number}"]} for number in range(1, 5)]
        project.write("a.ipynb", json.dumps({"cells": cells, "metadata": {}}))
        project.call(read_file, path="a.ipynb", start_line=1, end_line=2)
        assert "Not read: lines 3 to 4." in project.error(write_file, path="a.ipynb", content="{}")
        project.call(read_file, path="a.ipynb", start_line=3)
        project.call(write_file, path="a.ipynb", content="{}")

    @pytest.mark.parametrize("was_read", [True, False])
    def test_an_edit_of_a_part_does_not_make_the_rest_known(self, project: Project, *, was_read: bool) -> None:
        project.write("a.txt", "one\ntwo\n")
        if was_read:
            project.result(read_file, path="a.txt")
        project.write("a.txt", "one\nwork of the user\n")
        project.call(apply_patch, path="a.txt", old_str="one", new_str="1")
        for tool in (write_file, append_file):
            text = project.error(tool, path="a.txt", content="1\ntwo\n")
            assert "Read it again" in text if was_read else "Read it first" in text
        moved = "*** Begin Patch\n*** Update File: a.txt\n*** Move to: b.txt\n*** End Patch"
        project.call(apply_patch, patch=moved)
        assert "Read it" in project.error(write_file, path="b.txt", content="1\ntwo\n")
        assert files_below(project.root) == {"b.txt": b"1\nwork of the user\n"}

    def test_a_file_that_was_changed_since_is_not_deleted(self, project: Project) -> None:
        project.write("a.txt", "one\n")
        project.result(read_file, path="a.txt")
        project.write("a.txt", "work of the user\n")
        deleted = "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch"
        assert "nothing was changed. Read it again" in project.error(apply_patch, patch=deleted)
        assert files_below(project.root) == {"a.txt": b"work of the user\n"}
        project.result(read_file, path="a.txt")
        assert project.call(apply_patch, patch=deleted) == "Deleted a.txt."

    @pytest.mark.parametrize("header", ["*** Delete File: l.txt", "*** Update File: l.txt\n*** Move to: m.txt"])
    def test_of_a_link_the_link_is_deleted_or_moved(self, project: Project, header: str) -> None:
        project.write("d/a.txt", "one\n")
        (project.root / "l.txt").symlink_to("d/a.txt")
        project.call(apply_patch, patch=f"*** Begin Patch\n{header}\n*** End Patch")
        assert not (project.root / "l.txt").is_symlink()
        moved = {"m.txt": b"one\n"} if "Move" in header else {}
        assert files_below(project.root) == {"d/a.txt": b"one\n", **moved}


class TestPatch:
    def test_the_one_match_is_replaced(self, project: Project) -> None:
        project.write("a.py", CODE)
        result = project.result(apply_patch, path="a.py", old_str="    return 1\n", new_str="    x = 1\n    return x\n")
        assert result.content == "Changed a.py at line 2: 1 line replaced by 2. The file has 7 lines now."
        assert (project.root / "a.py").read_text() == CODE.replace("    return 1\n", "    x = 1\n    return x\n")
        assert result.details is not None
        assert "-    return 1\n+    x = 1\n+    return x\n" in result.details["diff"]

    def test_an_empty_replacement_deletes(self, project: Project) -> None:
        project.write("a.py", CODE)
        project.result(apply_patch, path="a.py", old_str="    return 1\n", new_str="")
        assert (project.root / "a.py").read_text() == CODE.replace("    return 1\n", "")

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ({"old_str": "a", "new_str": "b"}, "path is missing"),
            ({"path": "a.py", "new_str": "b"}, "old_str is missing"),
            ({"path": "a.py", "edits": [{"old_str": "return 1"}]}, "Edit 1: new_str is missing"),
            ({"path": "a.py", "edits": ["return 1"]}, "Edit 1 is not an object"),
            ({"path": "a.py", "old_str": "return 1"}, "new_str is missing; nothing was changed"),
            ({"path": "a.py", "old_str": "return 1", "new_str": "return 1"}, "are the same"),
            ({"path": "b.py", "old_str": "a", "new_str": "b"}, "File not found: 'b.py'. Did you mean 'a.py'?"),
        ],
    )
    def test_what_is_missing_is_named(self, project: Project, arguments: dict[str, str], words: str) -> None:
        """I10: each error says what to give."""
        project.write("a.py", CODE)
        assert words in project.error(apply_patch, **arguments)
        assert files_below(project.root) == {"a.py": CODE.encode()}

    def test_several_matches_are_counted_with_their_lines(self, project: Project) -> None:
        project.write("a.py", CODE)
        text = project.error(apply_patch, path="a.py", old_str="    return ", new_str="    yield ")
        assert "occurs 2 times in 'a.py', at line 2, 6" in text
        assert (project.root / "a.py").read_text() == CODE

    def test_overlapping_matches_are_ambiguous_too(self, project: Project) -> None:
        project.write("a.txt", "aaa")
        assert "occurs 2 times" in project.error(apply_patch, path="a.txt", old_str="aa", new_str="b")

    def test_a_great_many_matches_are_told_quickly(self, project: Project) -> None:
        project.write("a.txt", "x\n" * 500_000)
        text = project.error(apply_patch, path="a.txt", old_str="x", new_str="y")
        assert "occurs 500000 times" in text
        assert len(text) < 500

    @pytest.mark.parametrize("typo", [("table", "tabel"), ("value", "valve"), ("of the", "off th")])
    def test_a_rare_word_leads_to_the_line_among_very_many_like_it(
        self, project: Project, typo: tuple[str, str]
    ) -> None:
        """I10: what is only in one line tells more than what is in all lines."""
        lines = [f"value number {i} of the table is {i * 7919 % 10007}" for i in range(100_000)]
        project.write("a.txt", "\n".join(lines))
        text = project.error(apply_patch, path="a.txt", old_str=lines[77_777].replace(*typo), new_str="x")
        assert f"The nearest lines:\n77778\t{lines[77_777]}\n" in text

    @pytest.mark.parametrize(
        ("old", "words"),
        [
            ("  return 1\n", "The nearest lines:\n2\t    return 1"),
            ("def two():\n    return 3\n", "The nearest lines:\n5\tdef two():\n6\t    return 2"),
            ("1\tdef one():\n2\t    return 1\n", "without line numbers"),
            ("something else entirely", "The file contains nothing similar"),
        ],
    )
    def test_what_does_not_match_is_answered_with_what_comes_near(self, project: Project, old: str, words: str) -> None:
        """I10: the lines that were probably meant are shown with their numbers."""
        project.write("a.py", CODE)
        if old.startswith("  return"):
            old = "   return 11\n"
        text = project.error(apply_patch, path="a.py", old_str=old, new_str="x")
        assert "does not occur in 'a.py'; nothing was changed" in text
        assert words in text
        assert (project.root / "a.py").read_text() == CODE

    def test_a_change_that_was_made_before_is_recognised(self, project: Project) -> None:
        project.write("a.py", CODE)
        text = project.error(
            apply_patch, path="a.py", old_str="return 0  # never there", new_str="def two():\n    return 2"
        )
        assert "already there, at line 5" in text


class TestLineEndsAndEncodings:
    @pytest.mark.parametrize(
        ("before", "old", "new", "after"),
        [
            ("a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n", "x\r\ny\r\nz\r\nc\r\n"),
            ("a\r\nb\r\n", "b", "x\ny", "a\r\nx\r\ny\r\n"),
            ("a\r\nb\r\n", "a\r\nb", "x\r\ny", "x\r\ny\r\n"),
            ("a\nb\n", "a\nb", "x\ny", "x\ny\n"),
            ("a\r\nb\nc\n", "b\nc", "x\ny", "a\r\nx\ny\n"),
            ("a\r\nb\nc\n", "a\nb", "x\ny", "x\r\ny\nc\n"),
            ("a\r\nb\nc\n", "c", "x\ny", "a\r\nb\nx\ny\n"),
        ],
    )
    def test_line_ends_stay_what_they_are(self, project: Project, before: str, old: str, new: str, after: str) -> None:
        project.write("a.txt", before)
        project.call(apply_patch, path="a.txt", old_str=old, new_str=new)
        assert (project.root / "a.txt").read_bytes().decode() == after

    def test_one_text_with_both_line_ends_is_ambiguous(self, project: Project) -> None:
        project.write("a.txt", "a\r\nb\r\na\nb\n")
        assert "occurs 2 times" in project.error(apply_patch, path="a.txt", old_str="a\nb", new_str="x")

    @pytest.mark.parametrize(
        ("before", "old", "new", "after"),
        [
            (b"\xef\xbb\xbfa\xc3\xbc\n", "aü", "bü", b"\xef\xbb\xbfb\xc3\xbc\n"),
            ("aü\n".encode("utf-16"), "aü", "b€", "b€\n".encode("utf-16")),
            (b"a\xfc\n", "aü", "bü", b"b\xfc\n"),
            (b"caf\xe9\nname\n", "name", "naïve", b"caf\xe9\nna\xefve\n"),
            (
                "# coding: koi8-r\nx = 'да'\n".encode("koi8-r"),
                "'да'",
                "'нет'",
                "# coding: koi8-r\nx = 'нет'\n".encode("koi8-r"),
            ),
        ],
    )
    def test_the_encoding_and_every_other_byte_are_kept(
        self, project: Project, before: bytes, old: str, new: str, after: bytes
    ) -> None:
        project.write("a.txt", before)
        project.call(apply_patch, path="a.txt", old_str=old, new_str=new)
        assert (project.root / "a.txt").read_bytes() == after

    @pytest.mark.parametrize(
        ("encoding", "text"),
        [
            ("latin-1", "café\nnaïve\n"),
            ("latin-1", "Le garçon a mangé\nune crème brûlée à la fenêtre, où il était très heureux.\n"),
            ("cp1250", "Zażółć gęślą jaźń, proszę państwa,\nto jest zwykły tekst po polsku.\n"),
            ("cp1251", "Это обычный русский текст о том, как хранить письма.\nИ ещё одна строка.\n"),
            ("koi8-r", "# coding: koi8-r\nx = 'да'\n"),
            ("utf-16", "aü\nb\n"),
            ("utf-8-sig", "aü\nb\n"),
        ],
    )
    def test_what_reading_shows_is_what_an_edit_finds(self, project: Project, encoding: str, text: str) -> None:
        project.write("a.txt", text.encode(encoding))
        shown = project.call(read_file, path="a.txt").splitlines()[1].partition("\t")[2]
        project.call(apply_patch, path="a.txt", old_str=shown, new_str="x")
        assert (project.root / "a.txt").read_bytes() == text.replace(text.splitlines()[1], "x").encode(encoding)

    def test_what_the_encoding_cannot_hold_is_refused(self, project: Project) -> None:
        project.write("a.txt", b"a\xfc\n")
        text = project.error(apply_patch, path="a.txt", old_str="aü", new_str="日")
        assert "cannot be written to 'a.txt' in its encoding, cp1252" in text
        assert (project.root / "a.txt").read_bytes() == b"a\xfc\n"

    @pytest.mark.parametrize("data", [b"\xfd a\xc3\xbc \x80\n", "Привет\n".encode("koi8-r"), bytes(range(1, 256))])
    def test_what_may_be_in_several_encodings_is_only_read(self, project: Project, data: bytes) -> None:
        project.write("a.txt", data)
        assert "with certainty" in project.error(apply_patch, path="a.txt", old_str="a", new_str="b")
        assert (project.root / "a.txt").read_bytes() == data


TEXTS = st.lists(st.sampled_from(["a", "b", "\n", "\r\n", " ", "ü"]), max_size=12).map("".join)
PATCHES = st.lists(
    st.sampled_from([*"ab \n\r-+@*<>=", "*** Update File: x\n", "<<<<<<< SEARCH\n", "=======\n", "--- a/x\n"])
).map("".join)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """One project for all examples of a property."""
    return Project(tmp_path_factory.mktemp("edit") / "project")


class TestProperties:
    @settings(deadline=None)
    @given(before=TEXTS, old=TEXTS, new=TEXTS)
    @example(before="a\r\n", old="a\n", new="b")
    def test_what_was_not_to_be_changed_stays(self, shared: Project, before: str, old: str, new: str) -> None:
        file = shared.write("a.txt", before)
        arguments: dict[str, Any] = {"path": "a.txt", "old_str": old, "new_str": new}
        try:
            shared.result(apply_patch, **arguments)
        except ToolError:
            assert file.read_bytes() == before.encode()
            return
        assert file.read_bytes() != before.encode() or old.replace("\r", "") == new.replace("\r", "")

    @settings(deadline=None)
    @given(st.lists(st.sampled_from(["a\n", "b\n", "c\n"]), max_size=30), st.data())
    def test_a_diff_is_one_that_git_applies(self, shared: Project, lines: list[str], data: st.DataObject) -> None:
        changed = list(lines)
        for _ in range(data.draw(st.integers(0, 3))):
            place = data.draw(st.integers(0, len(changed)))
            changed[place : place + data.draw(st.integers(0, 2))] = data.draw(
                st.lists(st.sampled_from(["a\n", "x\n"]), max_size=3)
            )
        old, new = "".join(lines), "".join(changed)[: data.draw(st.sampled_from([None, -1]))]
        diff = unified_diff("f.txt", old, new)
        if old == new:
            assert diff == ""
            return
        if not old or not new:
            return  # git wants another header there
        file = shared.write("f.txt", old)
        shared.write("change.diff", diff)
        shared.git("apply", "--unidiff-zero", "change.diff")
        assert file.read_text() == new

    def test_a_diff_of_large_files_takes_no_time_to_speak_of(self) -> None:
        old = "".join(f"{number % 7}\n" for number in range(40_000))
        assert unified_diff("f", old, f"{old}x\n").endswith("+x\n")
        other = "".join(f"{number % 5}\n" for number in range(40_000))
        assert unified_diff("f", old, other).startswith("--- a/f\n+++ b/f\n@@ -3,")


class TestForms:
    """The forms that models know from other programs, wherever they put them."""

    CODEX = (
        "*** Begin Patch\n*** Update File: src/a.py\n@@ def one():\n def one():\n-    return 1\n+    return 10\n"
        "*** Add File: b.md\n+# Title\n+text\n*** Delete File: old.txt\n*** End Patch"
    )
    UNIFIED = (
        "diff --git a/src/a.py b/src/a.py\nindex 1..2 100644\n--- a/src/a.py\n+++ b/src/a.py\n@@ -1,2 +1,2 @@\n"
        " def one():\n-    return 1\n+    return 10\n--- /dev/null\n+++ b/b.md\n@@ -0,0 +1,2 @@\n+# Title\n+text\n"
        "--- a/old.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n"
    )
    BLOCKS = (
        "src/a.py\n```python\n<<<<<<< SEARCH\ndef one():\n    return 1\n=======\ndef one():\n    return 10\n"
        ">>>>>>> REPLACE\n```\n"
    )

    @pytest.mark.parametrize("place", ["patch", "old_str", "path", "edits", "new_str"])
    @pytest.mark.parametrize("patch", [CODEX, UNIFIED, BLOCKS, f"*** Begin Patch\n{BLOCKS}*** End Patch"])
    def test_a_patch_is_understood_in_every_parameter(self, project: Project, patch: str, place: str) -> None:
        project.write("src/a.py", CODE)
        project.write("old.txt", "gone\n")
        said = project.call(apply_patch, **{place: patch})
        assert "Changed src/a.py at line 2: 1 line replaced by 1." in said or "at line 1: 2 lines" in said
        expected = {"src/a.py": CODE.replace("return 1\n", "return 10\n").encode(), "old.txt": b"gone\n"}
        if "b.md" in patch:
            del expected["old.txt"]
            expected["b.md"] = b"# Title\ntext\n"
            assert "Created b.md: 2 lines, 13 bytes." in said
            assert "Deleted old.txt." in said
        assert files_below(project.root) == expected

    @pytest.mark.parametrize(
        "arguments",
        [
            {"file_path": "a.py", "old_string": "return 1", "new_string": "return 3"},
            {"filePath": "a.py", "oldString": "return 1", "newString": "return 3"},
            {"path": "a.py", "oldText": "return 1", "newText": "return 3"},
            {"path": "a.py", "edits": [{"oldText": "return 1", "newText": "return 3"}]},
            {"file_path": "a.py", "edits": '[{"old_string": "return 1", "new_string": "return 3"}]'},
            {"file_path": "a.py", "old_string": "return 1", "new_string": "return 3", "description": "x"},
            {"path": "a.py", "diff": "<<<<<<< SEARCH\n    return 1\n=======\n    return 3\n>>>>>>> REPLACE"},
            {"path": "a.py", "diff": "------- SEARCH\n    return 1\n=======\n    return 3\n+++++++ REPLACE"},
            {"path": "a.py", "patch": "<<<<<<< ORIGINAL\n    return 1\n=======\n    return 3\n>>>>>>> UPDATED"},
            {"path": "a.py", "patch": "@@ -2 +2 @@\n-    return 1\n+    return 3\n"},
        ],
    )
    def test_the_names_of_other_programs_are_understood(self, project: Project, arguments: dict[str, Any]) -> None:
        project.write("a.py", CODE)
        values = validator(apply_patch)(arguments)
        del values["keep_earlier"]
        project.call(apply_patch, **values)
        assert (project.root / "a.py").read_text() == CODE.replace("return 1", "return 3")

    def test_no_schema_tells_of_them(self) -> None:
        parameters = describe(apply_patch).parameters["properties"]
        assert list(parameters) == ["path", "old_str", "new_str", "patch"]
        with pytest.raises(ToolError) as raised:
            validator(apply_patch)({"paht": "a.py"})
        assert "replace_all" not in str(raised.value)

    def test_every_place_is_replaced_where_that_is_asked_for(self, project: Project) -> None:
        project.write("a.txt", "x y x\r\nx\n")
        said = project.call(apply_patch, path="a.txt", old_str="x", new_str="z", replace_all=True)
        assert said.startswith("Changed a.txt in 3 places, at lines 1, 1, 2: ")
        assert files_below(project.root) == {"a.txt": b"z y z\r\nz\n"}
        text = project.error(apply_patch, path="a.txt", old_str="z", new_str="x", expected_replacements=2)
        assert "occurs 3 times instead of 2 in 'a.txt'" in text
        text = project.error(apply_patch, path="a.txt", old_str="z", new_str="x")
        assert text.endswith('To change all of them, pass "replace_all": true.')

    def test_what_is_no_patch_is_told_with_what_to_send(self, project: Project) -> None:
        assert "format of the patch is unknown" in project.error(apply_patch, patch="please change the file")

    @given(PATCHES)
    def test_any_text_gets_an_answer(self, shared: Project, patch: str) -> None:
        before = files_below(shared.root)
        if patch:
            assert project_error(shared, patch)
        assert files_below(shared.root) == before


def project_error(project: Project, patch: str) -> str:
    """What a patch of files that are not there is answered with."""
    return project.error(apply_patch, patch=patch)


def test_only_the_writable_files_can_be_written(tmp_path: Path) -> None:
    from marvin_core.guard.files.sandbox import SandboxPaths

    project = Project(tmp_path / "project")
    project.write("spec.md", "old\n")
    project.write("a.py", CODE)
    project.paths = SandboxPaths(project.root, writable=frozenset({"spec.md"}))
    project.call(apply_patch, path="spec.md", old_str="old", new_str="new")
    project.result(read_file, path="a.py")
    for tool, arguments in (
        (apply_patch, {"old_str": "return 1", "new_str": "x"}),
        (write_file, {"content": "x"}),
        (append_file, {"content": "x"}),
    ):
        assert "spec.md" in project.error(tool, path="a.py", **arguments)
    assert "spec.md" in project.error(create_file, path="new.py", content="x")
    assert files_below(project.root) == {"a.py": CODE.encode(), "spec.md": b"new\n"}
