"""read_file: what the model sees of a file, and the limits that keep its context free."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core import Image, Text
from marvin_core.tools.schema import describe, validator
from marvin_tools_coding.files.edit import write_file
from marvin_tools_coding.files.read import read_file
from marvin_tools_coding.files.reading import BLOCK_AT, CALL_LIMIT, CALL_LINES, HEAD_LIMIT, WARN_AT
from tests.support.counting import times_called
from tests.support.images import gif, jpeg, webp
from tests.tools_coding.support import Project, files_below

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

UNCERTAIN = (
    "[The encoding of the file is not certain; bytes that are not UTF-8 are shown as in \\xe9. "
    "It cannot be edited as text.]"
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


def test_where_a_file_is_and_what_its_bytes_mean_is_found_out_once(project: Project) -> None:
    project.write("folder/a.txt", "one\n")
    for name in ("_descent", "_look"):
        assert times_called(name, lambda: project.call(read_file, path="folder/a.txt")) == 1


def test_what_was_read_through_a_link_counts_as_read_by_its_other_name(project: Project) -> None:
    project.write("a.txt", "one\n")
    (project.root / "link.txt").symlink_to("a.txt")
    project.call(read_file, path="link.txt")
    project.call(write_file, path="a.txt", content="two\n")
    assert (project.root / "a.txt").read_text() == "two\n"


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
        same = {"path": "a", "start_line": 2, "end_line": 3, "column": None}
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
    def test_without_a_range_the_beginning_comes_and_two_calls_that_read_on(self, project: Project) -> None:
        """I9: over 10 KB no more than 10 KB come without a range; I10: with how to go on."""
        project.write("small.txt", "x" * 99 + "\n" + "y\n" * 500)
        project.write("large.txt", "line\n" * 3_000)
        assert project.call(read_file, path="small.txt").endswith("\n501\ty")
        shown, _, notes = project.call(read_file, path="large.txt").partition("\n[")
        last = shown.count("\n") + 1
        assert HEAD_LIMIT - 100 < len(shown) <= HEAD_LIMIT
        assert shown.endswith(f"{last}\tline")
        assert f"The first {last} of 3,000 lines and 15,000 bytes".replace(str(last), f"{last:,}") in notes
        assert f'read_file({{"path": "large.txt", "start_line": {last + 1}, "end_line": {last + 200}}})' in notes
        assert f'read_file({{"path": "large.txt", "start_line": {last + 201}, "end_line": {last + 400}}})' in notes
        shown = project.call(read_file, path="large.txt", start_line=2_999, end_line=3_000)
        assert shown == "2999\tline\n3000\tline\n[Lines 2,999 to 3,000 of 3,000.]"

    @pytest.mark.parametrize(
        "line", ["line\n", "a somewhat longer line of some fifty characters ...\n", "ü" * 100 + "\n"]
    )
    @pytest.mark.parametrize("asked", [{"start_line": 1}, {"end_line": 9_999}, {"start_line": 7, "end_line": 9_000}])
    def test_one_call_is_bounded_and_says_how_to_go_on(
        self, project: Project, line: str, asked: dict[str, int]
    ) -> None:
        project.write("large.txt", line * 10_000)
        shown, _, notes = project.call(read_file, path="large.txt", **asked).partition("\n[")
        lines = shown.count("\n") + 1
        assert len(shown.encode()) <= CALL_LIMIT
        assert lines == CALL_LINES or len(shown.encode()) > CALL_LIMIT - 300
        following = asked.get("start_line", 1) + lines
        assert f"Cut after line {following - 1:,} of 10,000: one call shows at most 50 KB or 2,000 lines" in notes
        assert f'"start_line": {following}' in notes

    @pytest.mark.parametrize("lines", [CALL_LINES - 1, CALL_LINES, CALL_LINES + 1])
    def test_what_just_fits_is_not_called_cut(self, project: Project, lines: int) -> None:
        project.write("a.txt", "x\n" * lines)
        assert ("Cut after" in project.call(read_file, path="a.txt", start_line=1)) == (lines > CALL_LINES)

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
        assert notes[1].startswith("[1 long line(s) cut where marked. The rest of line 1: ")

    def test_the_rest_of_a_long_line_is_read_by_columns(self, project: Project) -> None:
        """Following what each answer says leads through the whole line, whatever its characters."""
        content = "".join(f"<{number}é{chr(0x1F600 + number % 50)}>" for number in range(4_000))
        project.write("a.js", f"short\n{content}\r\nlast")
        first = project.call(read_file, path="a.js", start_line=2, end_line=2)
        text = first.split("\n")[0].removeprefix("2\t").partition(" [... cut")[0]
        call = {"start_line": 2, "column": 2_001}
        assert f"read_file({json.dumps({'path': 'a.js', **call})})" in first
        for _ in range(20):
            shown, _, notes = project.call(read_file, path="a.js", **call).partition("\n[")
            assert len(shown.encode()) <= HEAD_LIMIT + 2
            text += shown.removeprefix("2\t")
            if "which ends there" in notes:
                break
            call = {**call, "column": len(text) + 1}
            assert f'"column": {call["column"]}}}' in notes
        assert text == content
        beyond = project.error(read_file, path="a.js", start_line=2, column=len(content) + 1)
        assert f"has {len(content):,} characters" in beyond
        assert "has 3 lines" in project.error(read_file, path="a.js", start_line=9, column=5)

    def test_a_column_counts_from_the_text_not_from_a_byte_order_mark(self, project: Project) -> None:
        project.write("a.txt", b"\xef\xbb\xbfabcdef\n")
        assert project.call(read_file, path="a.txt", start_line=1, column=3).startswith("1\tcdef\n[Characters 3 to 6")

    def test_a_huge_single_line_is_bounded(self, project: Project) -> None:
        project.write("a.js", b"x" * 5_000_000)
        for asked in ({}, {"start_line": 1}):
            shown = project.call(read_file, path="a.js", **asked)
            assert len(shown) < 2_500
            assert '"column": 2001' in shown
        assert "1 line and 5,000,000 bytes" in project.call(read_file, path="a.js")

    @pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="nothing tells here how much was read")
    def test_only_as_much_of_a_large_file_is_read_as_is_needed(self, project: Project) -> None:
        """A file that has holes takes no room; lines beyond the first ones are not counted."""
        path = project.write("large.log", "".join(f"line {number}\n" for number in range(1, 200_001)))
        with path.open("r+b") as stream:
            stream.truncate(3_000_000_000)
        before = Counted.bytes_read()
        shown = project.call(read_file, path="large.log", start_line=100_000, end_line=100_001)
        assert shown == "100000\tline 100000\n100001\tline 100001\n[Lines 100,000 to 100,001.]"
        head = project.call(read_file, path="large.log")
        assert "of about " in head
        assert "lines and 3,000,000,000 bytes" in head
        assert Counted.bytes_read() - before < 100_000_000

    def test_reading_far_into_a_large_file_can_be_cancelled(self, project: Project) -> None:
        path = project.write("large.log", "line\n" * 100_000)
        with path.open("r+b") as stream:
            stream.truncate(2_000_000_000_000)

        async def go() -> None:
            reading = asyncio.ensure_future(
                cast(
                    "Coroutine[Any, Any, Any]",
                    read_file.function(project.context, path="large.log", start_line=900_000),
                )
            )
            done, _ = await asyncio.wait([reading], timeout=0.2)
            assert not done
            threads = threading.active_count()
            reading.cancel()
            await asyncio.wait([reading])
            for _ in range(3_000):
                if threading.active_count() < threads:
                    return
                await asyncio.sleep(0.01)
            raise AssertionError("the thread goes on reading")

        asyncio.run(go())


class Counted:
    """What this process has read so far."""

    @staticmethod
    def bytes_read() -> int:
        facts = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
        return int(facts["rchar"])


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
        assert "The file has 3 lines and 6 bytes; read so far: nothing." in text
        assert (project.root / ".marvin/memories/dump-src__deep__a.txt-2-3.txt").read_text() == "b\nc\n"

    def test_at_the_second_limit_the_ranges_that_were_read_are_named(self, project: Project) -> None:
        project.write("a.txt", "line\n" * 100)
        for first, last in ((1, 10), (50, 60), (11, 20), (55, 70)):
            project.call(read_file, path="a.txt", start_line=first, end_line=last)
        project.session.read_characters = BLOCK_AT
        text = project.error(read_file, path="./a.txt", start_line=80, end_line=90)
        assert "has 100 lines and 500 bytes; read so far: lines 1 to 20, lines 50 to 70." in text
        assert "compact_history" in text

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
            ("naïve café\n".encode("latin-1"), "1\tnaïve café\n[The file is in cp1252; edits keep that.]"),
            (
                b"\xe2\x82\xac and \xe9\n",
                "1\t€ and \\xe9\n" + UNCERTAIN,
            ),
            (b"a\r\nb\r\n", "1\ta\n2\tb\n[Line endings are CRLF; apply_patch keeps them.]"),
            (b"a\rb\r", "1\ta\rb\n[No newline at the end of the file.]"),
        ],
    )
    def test_encodings_and_line_ends_are_shown_as_text_with_a_note(
        self, project: Project, content: bytes, shown: str
    ) -> None:
        project.write("a.txt", content)
        assert project.call(read_file, path="a.txt") == shown

    def test_an_encoding_that_shows_only_far_into_a_file_is_told(self, project: Project) -> None:
        line = "Le café de la forêt est très agréable à l'été. ".encode("cp1252") * 100
        project.write("a.txt", b"ascii\n" * 300_000 + line + b"\n" + line)
        shown = project.call(read_file, path="a.txt", start_line=300_001)
        assert shown.startswith("300001\tLe café de la forêt")
        assert "[The file is in cp1252; edits keep that.]" in shown
        shown = project.call(read_file, path="a.txt", start_line=300_002, column=4)
        assert shown.startswith("300002\tcafé de la forêt")

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"\x7fELF\x02\x01\0\0", "a program of 8 bytes"),
            (b"PK\x03\x04....", "a ZIP archive"),
            (b"abc\0def", "a binary file of 7 bytes"),
        ],
    )
    def test_binary_files_are_described_by_kind(self, project: Project, content: bytes, words: str) -> None:
        project.write("a.bin", content)
        assert words in project.call(read_file, path="a.bin")

    @pytest.mark.parametrize(
        ("content", "kind"),
        [
            (PNG, "image/png"),
            (jpeg(), "image/jpeg"),
            (gif(), "image/gif"),
            (webp(), "image/webp"),
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
        project.write("cut.png", PNG[:40])
        assert "cannot be shown as an image: it is cut off" in project.error(read_file, path="cut.png")
        project.write("picture.png", PNG + b"\0" * 4_000_000)
        assert "up to 3,750,000 can be shown" in project.error(read_file, path="picture.png")

    def test_paths_are_those_of_the_sandbox(self, project: Project) -> None:
        project.write("main.py", "x")
        assert "Did you mean 'main.py'?" in project.error(read_file, path="mian.py")
        assert "it is outside of the working directory" in project.error(read_file, path="/etc/passwd")
