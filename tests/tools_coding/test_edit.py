"""The writing tools: exactly what was given is written, and nothing else is touched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from marvin_core import ToolError, unified_diff
from marvin_tools_coding.files.edit import append_file, apply_patch, create_file, write_file
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
    def test_what_is_given_is_added_exactly(self, project: Project) -> None:
        project.write("a.txt", "a\n")
        said = project.call(append_file, path="a.txt", content="b\nc\n")
        assert said == "Appended 2 lines, 4 bytes to a.txt; it has 6 bytes now."
        assert files_below(project.root) == {"a.txt": b"a\nb\nc\n"}

    def test_what_may_surprise_is_told(self, project: Project) -> None:
        project.write("a.txt", "a\r\nb")
        said = project.call(append_file, path="a.txt", content="c\n")
        assert "did not end in a newline" in said
        assert "CRLF" in said
        assert files_below(project.root) == {"a.txt": b"a\r\nbc\n"}

    def test_the_encoding_of_the_file_is_kept(self, project: Project) -> None:
        project.write("wide.txt", "a\n".encode("utf-16"))
        project.call(append_file, path="wide.txt", content="ü\n")
        assert (project.root / "wide.txt").read_bytes().decode("utf-16") == "a\nü\n"

    def test_a_missing_file_is_told_with_the_tool_that_makes_one(self, project: Project) -> None:
        text = project.error(append_file, path="a.txt", content="x")
        assert "File not found: 'a.txt'" in text
        assert "create_file" in text
        assert files_below(project.root) == {}

    def test_nothing_is_not_appended(self, project: Project) -> None:
        project.write("a.txt", "a")
        assert "content is empty" in project.error(append_file, path="a.txt", content="")

    def test_binary_files_are_refused(self, project: Project) -> None:
        project.write("a.bin", b"\0\1\2")
        assert "binary" in project.error(append_file, path="a.bin", content="x")
        assert files_below(project.root) == {"a.bin": b"\0\1\2"}


class TestWrite:
    def test_a_new_file_is_shown_as_added(self, project: Project) -> None:
        result = project.result(write_file, path="a.txt", content="a\n")
        assert result.content == "Created a.txt: 1 lines, 2 bytes."
        assert result.details == {"diff": "--- a/a.txt\n+++ b/a.txt\n@@ -0,0 +1,1 @@\n+a\n"}

    def test_an_existing_file_is_replaced_and_shown_as_a_diff(self, project: Project) -> None:
        project.write("a.txt", "a\nb\nc\n").chmod(0o640)
        result = project.result(write_file, path="a.txt", content="a\nB\nc\n")
        assert result.content == "Replaced a.txt, which had 6 bytes: 3 lines, 6 bytes."
        assert result.details is not None
        assert result.details["diff"] == "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"
        assert files_below(project.root) == {"a.txt": b"a\nB\nc\n"}
        assert (project.root / "a.txt").stat().st_mode & 0o777 == 0o640

    def test_protected_places_are_refused(self, repository: Project) -> None:
        """I4: git's own files are not written by tools."""
        assert "do not write to '.git/config'" in repository.error(write_file, path=".git/config", content="x")


class TestPatch:
    def test_the_one_match_is_replaced(self, project: Project) -> None:
        project.write("a.py", CODE)
        result = project.result(apply_patch, path="a.py", old_str="    return 1\n", new_str="    x = 1\n    return x\n")
        assert result.content == "Changed a.py at line 2: 1 line(s) replaced by 2. The file has 7 lines now."
        assert (project.root / "a.py").read_text() == CODE.replace("    return 1\n", "    x = 1\n    return x\n")
        assert result.details is not None
        assert "-    return 1\n+    x = 1\n+    return x\n" in result.details["diff"]

    def test_an_empty_replacement_deletes_and_has_no_undo(self, project: Project) -> None:
        project.write("a.py", CODE)
        result = project.result(apply_patch, path="a.py", old_str="    return 1\n", new_str="")
        assert (project.root / "a.py").read_text() == CODE.replace("    return 1\n", "")
        assert result.undo is None

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ({"old_str": "a", "new_str": "b"}, "path is missing"),
            ({"path": "a.py", "new_str": "b"}, "old_str is missing"),
            ({"path": "a.py", "old_str": "", "new_str": "b"}, "old_str is empty"),
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

    @pytest.mark.parametrize(
        ("old", "words"),
        [
            ("  return 1\n", "The nearest lines:\n2\t    return 1"),
            ("def one():\n  return 1\n", "Only spaces or tabs differ here:\n1\tdef one():\n2\t    return 1"),
            ("def two():\n    return 3\n", "The nearest lines:\n5\tdef two():\n6\t    return 2"),
            ("1\tdef one():\n2\t    return 1\n", "without the line numbers"),
            ("something else entirely", "Nothing like it is in it"),
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
            (b"\xff\xfe\xfd a\xc3\xbc \x80\n"[2:], "aü", "bü", b"\xfd b\xc3\xbc \x80\n"),
        ],
    )
    def test_the_encoding_and_every_other_byte_are_kept(
        self, project: Project, before: bytes, old: str, new: str, after: bytes
    ) -> None:
        project.write("a.txt", before)
        project.call(apply_patch, path="a.txt", old_str=old, new_str=new)
        assert (project.root / "a.txt").read_bytes() == after

    def test_what_the_encoding_cannot_hold_is_refused(self, project: Project) -> None:
        project.write("a.txt", b"a\xfc\n")
        assert "latin-1" in project.error(apply_patch, path="a.txt", old_str="aü", new_str="€")
        assert (project.root / "a.txt").read_bytes() == b"a\xfc\n"


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
    def test_what_an_undo_takes_back_is_taken_back_exactly(
        self, shared: Project, before: str, old: str, new: str
    ) -> None:
        file = shared.write("a.txt", before)
        arguments: dict[str, Any] = {"path": "a.txt", "old_str": old, "new_str": new}
        try:
            result = shared.result(apply_patch, **arguments)
        except ToolError:
            assert file.read_bytes() == before.encode()
            return
        assert file.read_bytes() != before.encode() or old.replace("\r", "") == new.replace("\r", "")
        if result.undo is not None:
            shared.result(apply_patch, **result.undo.arguments)
            assert file.read_bytes() == before.encode()

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


class TestForeignPatches:
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

    @pytest.mark.parametrize(
        ("patch", "received", "files"),
        [
            (CODEX, "a Codex patch (*** Begin Patch)", "src/a.py, b.md, old.txt"),
            (UNIFIED, "a unified diff", "src/a.py, b.md, old.txt"),
            (BLOCKS, "a patch of SEARCH/REPLACE blocks", "src/a.py"),
            (f"*** Begin Patch\n{BLOCKS}*** End Patch", "a Codex patch", "src/a.py"),
        ],
    )
    def test_the_refusal_names_the_files_and_shows_calls_that_work(
        self, project: Project, patch: str, received: str, files: str
    ) -> None:
        """I10: a model that sent the format it knows can go on at once."""
        file = project.write("src/a.py", CODE)
        text = project.error(apply_patch, patch=patch)
        assert text.startswith(f"patch holds {received}")
        assert f"for {files};" in text
        call = '{"path": "src/a.py", "old_str": "def one():\\n    return 1", "new_str": "def one():\\n    return 10"}'
        assert f"apply_patch({call})" in text
        if "b.md" in files:
            assert 'create_file({"path": "b.md", "content": "# Title\\ntext\\n"})' in text
        assert files_below(project.root) == {"src/a.py": CODE.encode()}
        import json

        project.call(apply_patch, **json.loads(call))
        assert file.read_text() == CODE.replace("return 1\n", "return 10\n", 1)

    def test_what_is_no_patch_gets_the_form_of_a_call(self, project: Project) -> None:
        text = project.error(apply_patch, patch="please change the file")
        assert "in no known patch format" in text
        assert 'apply_patch({"path": "FILE"' in text

    @given(PATCHES)
    def test_any_text_gets_an_answer(self, shared: Project, patch: str) -> None:
        before = files_below(shared.root)
        if patch:
            assert "nothing was changed" in shared.error(apply_patch, patch=patch)
        assert files_below(shared.root) == before


def test_only_the_writable_files_can_be_written(tmp_path: Path) -> None:
    from marvin_core.guard.files.sandbox import SandboxPaths

    project = Project(tmp_path / "project")
    project.write("spec.md", "old\n")
    project.write("a.py", CODE)
    project.paths = SandboxPaths(project.root, writable=frozenset({"spec.md"}))
    project.call(apply_patch, path="spec.md", old_str="old", new_str="new")
    for tool, arguments in (
        (apply_patch, {"old_str": "return 1", "new_str": "x"}),
        (write_file, {"content": "x"}),
        (append_file, {"content": "x"}),
    ):
        assert "spec.md" in project.error(tool, path="a.py", **arguments)
    assert "spec.md" in project.error(create_file, path="new.py", content="x")
    assert files_below(project.root) == {"a.py": CODE.encode(), "spec.md": b"new\n"}
