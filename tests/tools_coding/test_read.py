"""read_file: what the model sees of a file, and the limits that keep its context free."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core import Image, Text
from marvin_core.tools.schema import describe, validator
from marvin_tools_coding.files.read import BLOCK_AT, WARN_AT, WHOLE_FILE_LIMIT, read_file
from tests.tools_coding.support import Project, files_below

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def test_lines_are_numbered(project: Project) -> None:
    project.write("a.txt", "one\n\n  three\n")
    assert project.call(read_file, path="a.txt") == "1\tone\n2\t\n3\t  three"


def test_a_missing_newline_at_the_end_is_told(project: Project) -> None:
    project.write("a.txt", "one\ntwo")
    assert project.call(read_file, path="a.txt") == "1\tone\n2\ttwo\n[No newline at the end of the file.]"


def test_only_line_feeds_end_lines(project: Project) -> None:
    project.write("a.txt", "a\x0cb\u2028c\u0085d\n")
    assert project.call(read_file, path="a.txt") == "1\ta\x0cb\u2028c\u0085d"


class TestRanges:
    @pytest.mark.parametrize(
        ("first", "last", "shown", "note"),
        [
            (2, 3, "2\tb\n3\tc", "[Lines 2 to 3 of 5.]"),
            (4, None, "4\td\n5\te", "[Lines 4 to 5 of 5.]"),
            (None, 2, "1\ta\n2\tb", "[Lines 1 to 2 of 5.]"),
            (0, 1, "1\ta", "[Lines 1 to 1 of 5.]"),
            (5, 0, "5\te", "[Lines 5 to 5 of 5.]"),
            (4, 99, "4\td\n5\te", "[Lines 4 to 5: the file ends there.]"),
        ],
    )
    def test_a_range_is_inclusive_and_says_where_the_file_ends(
        self, project: Project, first: int | None, last: int | None, shown: str, note: str
    ) -> None:
        project.write("a.txt", "a\nb\nc\nd\ne\n")
        assert project.call(read_file, path="a.txt", start_line=first, end_line=last) == f"{shown}\n{note}"

    def test_a_range_beyond_the_end_is_told_the_number_of_lines(self, project: Project) -> None:
        """I10: the error shows a call that works."""
        project.write("a.txt", "a\nb\nc\n")
        text = project.error(read_file, path="a.txt", start_line=4, end_line=9)
        assert "has 3 lines" in text
        assert 'read_file({"path": "a.txt", "start_line": 1, "end_line": 3})' in text

    def test_a_reversed_range_is_an_error(self, project: Project) -> None:
        project.write("a.txt", "a\nb\nc\n")
        text = project.error(read_file, path="a.txt", start_line=3, end_line=2)
        assert 'read_file({"path": "a.txt", "start_line": 2, "end_line": 3})' in text

    def test_start_and_end_are_accepted_and_the_schema_shows_the_full_names(self) -> None:
        check = validator(read_file)
        same = {"path": "a", "start_line": 2, "end_line": 3}
        assert check({"path": "a", "start": 2, "end": 3}) == same
        assert check({"path": "a", "start_line": 2, "end": "3"}) == same
        assert check({"path": "a", "start": 0})["start_line"] == 0
        assert list(describe(read_file).parameters["properties"]) == ["path", "start_line", "end_line"]

    @given(
        lines=st.lists(st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), max_size=8)),
        first=st.integers(1, 12),
        last=st.integers(1, 12),
        closed=st.booleans(),
    )
    def test_any_range_shows_exactly_its_lines(
        self, shared: Project, lines: list[str], first: int, last: int, closed: bool
    ) -> None:
        text = "\n".join(lines) + ("\n" if closed and lines else "")
        real = text.removesuffix("\n").split("\n") if text else []
        if "\0" in text or not text or first > last or first > len(real):
            return
        shared.write("a.txt", text)
        shown = shared.call(read_file, path="a.txt", start_line=first, end_line=last)
        wanted = [f"{number}\t{line}" for number, line in enumerate(real, 1) if first <= number <= last]
        wanted[0] = wanted[0].replace("\t\ufeff", "\t", 1) if first == 1 else wanted[0]
        assert shown.startswith("\n".join(wanted) + "\n[")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """One project for all examples of a property."""
    return Project(tmp_path_factory.mktemp("read") / "project")


class TestLimits:
    def test_a_large_file_needs_a_range(self, project: Project) -> None:
        """I9: over 10 KB nothing is read without a range; I10: the error shows how to go on."""
        project.write("small.txt", "x" * 99 + "\n" + "y" * (WHOLE_FILE_LIMIT - 101) + "\n")
        project.write("large.txt", "line\n" * 3_000)
        assert project.call(read_file, path="small.txt").startswith("1\txxx")
        text = project.error(read_file, path="large.txt")
        assert "has 3,000 lines and 15,000 bytes" in text
        assert 'read_file({"path": "large.txt", "start_line": 1, "end_line": 200})' in text
        assert 'read_file({"path": "large.txt", "start_line": 201, "end_line": 400})' in text
        shown = project.call(read_file, path="large.txt", start_line=2_999, end_line=3_000)
        assert shown == "2999\tline\n3000\tline\n[Lines 2,999 to 3,000 of 3,000.]"

    def test_a_file_of_many_chunks_is_counted_and_read_right(self, project: Project) -> None:
        lines = [f"{number:06}" + "ü" * (number % 50) for number in range(1, 60_001)]
        project.write("large.txt", "\n".join(lines))
        for first in (1, 12_345, 30_000, 59_998):
            shown = project.call(read_file, path="large.txt", start_line=first, end_line=first + 2)
            expected = [f"{number}\t{lines[number - 1]}" for number in range(first, first + 3)]
            assert shown.startswith("\n".join(expected) + "\n[")
        assert "has 60,000 lines" in project.error(read_file, path="large.txt", start_line=60_001)

    def test_a_very_long_line_is_cut_with_a_note(self, project: Project) -> None:
        project.write("a.js", "ü" * 9_000 + "\nshort\n")
        shown = project.call(read_file, path="a.js", start_line=1, end_line=2)
        first, second, *notes = shown.split("\n")
        assert first == "1\t" + "ü" * 2_000 + " [... cut, the line has 18,000 bytes]"
        assert second == "2\tshort"
        assert "[1 long line(s) cut where marked.]" in notes

    def test_a_huge_single_line_is_bounded(self, project: Project) -> None:
        project.write("a.js", b"x" * 5_000_000)
        assert "1 lines" in project.error(read_file, path="a.js")
        assert len(project.call(read_file, path="a.js", start_line=1)) < 2_200


class TestBudget:
    def test_from_the_first_limit_on_a_warning_is_added(self, project: Project) -> None:
        """I9: the sum of what read_file shows is bounded, too."""
        project.write("a.txt", "a\nb\n")
        project.session.read_characters = WARN_AT - 8
        assert project.call(read_file, path="a.txt") == "1\ta\n2\tb"
        project.session.read_characters = WARN_AT - 7
        assert f"has used {WARN_AT:,} of {BLOCK_AT:,} characters" in project.call(read_file, path="a.txt")

    def test_what_comes_near_the_second_limit_is_cut_to_fit(self, project: Project) -> None:
        project.write("a.txt", "0123456789\n" * 50)
        project.session.read_characters = BLOCK_AT - 100
        shown = project.call(read_file, path="a.txt")
        numbered = shown.partition("\n[")[0]
        assert 60 <= len(numbered) <= 100
        last = numbered.count("\n") + 1
        assert f"Cut after line {last} of 50" in shown
        assert f'"start_line": {last + 1}' in shown

    def test_at_the_second_limit_the_content_is_kept_in_a_file(self, project: Project) -> None:
        project.write("src/deep/a.txt", "a\nb\nc\n")
        project.session.read_characters = BLOCK_AT
        text = project.error(read_file, path="src/deep/a.txt", start_line=2, end_line=3)
        assert "300,000" in text
        assert ".marvin/memories/dump-src__deep__a.txt-2-3.txt" in text
        assert "compact_history" in text
        assert (project.root / ".marvin/memories/dump-src__deep__a.txt-2-3.txt").read_text() == "b\nc\n"

    def test_the_dump_may_lie_outside_of_the_project_where_the_session_says_so(
        self, project: Project, tmp_path: Path
    ) -> None:
        project.write("a.txt", "a\n")
        project.session.read_characters = BLOCK_AT
        project.session.memory_folder = tmp_path / "data" / "memories"
        assert str(tmp_path / "data/memories/dump-a.txt-1-1.txt") in project.error(read_file, path="a.txt")
        assert (tmp_path / "data/memories/dump-a.txt-1-1.txt").read_text() == "a\n"

    def test_a_memory_folder_that_leads_outside_is_not_written_to(self, project: Project, tmp_path: Path) -> None:
        """I4: a repository can bring a link in the place of the memory folder."""
        (tmp_path / "elsewhere").mkdir()
        project.write("a.txt", "a\n")
        (project.root / ".marvin").symlink_to(tmp_path / "elsewhere")
        project.session.read_characters = BLOCK_AT
        assert "Nothing was saved" in project.error(read_file, path="a.txt")
        assert files_below(tmp_path / "elsewhere") == {}


class TestKinds:
    def test_an_empty_file_says_so(self, project: Project) -> None:
        project.write("a.txt")
        assert project.call(read_file, path="a.txt") == "(The file is empty: 0 bytes.)"

    @pytest.mark.parametrize(
        ("content", "shown"),
        [
            (b"\xef\xbb\xbfa\n", "1\ta\n[The file starts with a byte order mark; edits keep it.]"),
            ("aü\n".encode("utf-16"), "1\taü\n[The file is UTF-16; edits keep that.]"),
            (b"\xfe\xff" + "aü\n".encode("utf-16-be"), "1\taü\n[The file is UTF-16; edits keep that.]"),
            ("aü\n".encode("latin-1"), "1\taü\n[The file is not valid UTF-8; it is shown as Latin-1.]"),
            (b"a\r\nb\r\n", "1\ta\n2\tb\n[Line ends are CRLF; apply_patch keeps them.]"),
        ],
    )
    def test_encodings_and_line_ends_are_shown_as_text_with_a_note(
        self, project: Project, content: bytes, shown: str
    ) -> None:
        project.write("a.txt", content)
        assert project.call(read_file, path="a.txt") == shown

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"\x7fELF\x02\x01\0\0", "a program of 8 bytes"),
            (b"PK\x03\x04....", "a ZIP archive"),
            (b"%PDF-1.7\n", "a PDF document"),
            (b"abc\0def", "a binary file of 7 bytes"),
        ],
    )
    def test_binary_files_are_refused_by_kind(self, project: Project, content: bytes, words: str) -> None:
        project.write("a.bin", content)
        assert words in project.error(read_file, path="a.bin")

    @pytest.mark.parametrize(
        ("content", "kind"),
        [
            (PNG, "image/png"),
            (b"\xff\xd8\xff\xe0rest", "image/jpeg"),
            (b"GIF89arest", "image/gif"),
            (b"RIFF\x10\0\0\0WEBPrest", "image/webp"),
        ],
    )
    def test_images_come_as_images(self, project: Project, content: bytes, kind: str) -> None:
        project.write("picture", content)
        said, image = project.result(read_file, path="picture").blocks
        assert isinstance(said, Text)
        assert said.text == f"picture: {kind}, {len(content)} bytes"
        assert isinstance(image, Image)
        assert image.media_type == kind
        assert base64.b64decode(image.data) == content

    def test_an_image_that_no_service_takes_is_refused(self, project: Project) -> None:
        project.write("picture.png", PNG + b"\0" * 4_000_000)
        assert "up to 3,750,000 can be shown" in project.error(read_file, path="picture.png")

    def test_paths_are_those_of_the_sandbox(self, project: Project) -> None:
        project.write("main.py", "x")
        assert "Did you mean 'main.py'?" in project.error(read_file, path="mian.py")
        assert "absolute paths are not allowed" in project.error(read_file, path="/etc/passwd")
