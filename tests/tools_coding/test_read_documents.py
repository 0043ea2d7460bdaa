"""read_file and what is no text: documents by page, notebooks by cell, archives and databases described."""

from __future__ import annotations

import base64
import io
import json
import os
import shutil
import sqlite3
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from marvin_core import Image, Text, ToolError
from marvin_tools_coding.files.read import read_file
from marvin_tools_coding.files.reading import BLOCK_AT, CALL_LIMIT, HEAD_LIMIT
from tests.tools_coding.support import Project
from tests.tools_coding.test_read import PNG


def pdf(*pages: str) -> bytes:
    """A PDF document whose pages have one line of text each."""
    count = len(pages)
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(count))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {count} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(pages):
        drawn = f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET" if text else ""
        font = "/Resources << /Font << /F1 3 0 R >> >>"
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 200] /Contents {5 + 2 * number} 0 R {font} >>",
            f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream",
        ]
    out = io.BytesIO(b"%PDF-1.4\n")
    out.seek(0, io.SEEK_END)
    places = []
    for number, one in enumerate(objects, 1):
        places.append(out.tell())
        out.write(f"{number} 0 obj\n{one}\nendobj\n".encode())
    table = out.tell()
    entries = "".join(f"{place:010} 00000 n \n" for place in places)
    out.write(f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{entries}".encode())
    out.write(f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n".encode())
    return out.getvalue()


def shown(project: Project, path: str, **asked: Any) -> tuple[str, list[Image]]:
    """The text of an answer, and its pictures."""
    text, *rest = project.result(read_file, path=path, **asked).blocks
    assert isinstance(text, Text)
    return text.text, [picture for picture in rest if isinstance(picture, Image)]


class TestDocuments:
    @pytest.mark.slow
    def test_pages_come_as_text_and_ranges_count_pages(self, project: Project) -> None:
        project.write("a.pdf", pdf(*(f"Text of page {number}" for number in range(1, 31))))
        text, pictures = shown(project, "a.pdf", start_line=2, end_line=3)
        assert text.startswith("--- page 2 of 30 ---\nText of page 2\n--- page 3 of 30 ---\nText of page 3\n[")
        assert "Pages 2 to 3 of 30; start_line and end_line count pages here." in text
        assert 'read_file({"path": "a.pdf", "start_line": 4, "end_line": 13})' in text
        assert pictures == []
        text, _ = shown(project, "a.pdf")
        assert "Text of page 20\n[Pages 1 to 20 of 30;" in text
        text, _ = shown(project, "a.pdf", start_line=30, end_line=99)
        assert text.endswith("[Pages 30 to 30 of 30; start_line and end_line count pages here.]")
        assert "has 30 pages, so 31 does not exist" in project.error(read_file, path="a.pdf", start_line=31)

    @pytest.mark.slow
    def test_long_pages_are_bounded(self, project: Project) -> None:
        project.write("a.pdf", pdf(*("x" * 8_000 for _ in range(9)), "y" * 90_000))
        text, _ = shown(project, "a.pdf")
        assert len(text) < HEAD_LIMIT + 300
        assert "Pages 1 to 1 of 10" in text
        text, _ = shown(project, "a.pdf", start_line=1)
        assert len(text) < CALL_LIMIT + 300
        assert "Pages 1 to 6 of 10" in text
        text, _ = shown(project, "a.pdf", start_line=10)
        assert len(text) < CALL_LIMIT + 300
        assert "more characters]" in text

    @pytest.mark.slow
    @pytest.mark.skipif(shutil.which("pdftoppm") is None, reason="pdftoppm is not installed")
    def test_a_page_that_is_read_alone_or_has_no_text_comes_as_a_picture_too(self, tmp_path: Path) -> None:
        project = Project(tmp_path / "project", ("pdftoppm",))
        project.write("a.pdf", pdf("one", "", "three"))
        _, pictures = shown(project, "a.pdf", start_line=3, end_line=3)
        _, blank = shown(project, "a.pdf")
        assert [picture.media_type for picture in (*pictures, *blank)] == ["image/png"] * 2
        assert base64.b64decode(pictures[0].data).startswith(b"\x89PNG")

    @pytest.mark.parametrize("content", [b"%PDF-1.7\n", b"%PDF-1.4\n" + b"\xff" * 500, pdf("one")[:-200]])
    def test_a_damaged_document_is_an_error_or_is_read(self, project: Project, content: bytes) -> None:
        project.write("a.pdf", content)
        try:
            text = shown(project, "a.pdf")[0]
        except ToolError as error:
            text = str(error)
        assert "page 1 of 1" in text or "whose text cannot be read" in text

    def test_the_budget_of_all_calls_holds(self, project: Project) -> None:
        project.write("a.pdf", pdf("one"))
        project.session.read_characters = BLOCK_AT
        assert "compact_history" in project.error(read_file, path="a.pdf")


class TestNotebooks:
    def test_cells_come_with_what_they_put_out(self, project: Project) -> None:
        picture = base64.b64encode(PNG).decode()
        cells = [
            {"cell_type": "markdown", "source": ["# Title\n", "text"]},
            {
                "cell_type": "code",
                "source": "print('ü')",
                "outputs": [
                    {"output_type": "stream", "text": ["ü\n"]},
                    {"output_type": "display_data", "data": {"text/plain": "<Figure>", "image/png": picture}},
                    {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": ["\x1b[31m"]},
                ],
            },
            {"cell_type": "code", "source": "x" * 9_000, "outputs": [{"text": "y" * 9_000}]},
        ]
        project.write("a.ipynb", json.dumps({"cells": cells, "metadata": {"kernelspec": {"language": "python"}}}))
        text, pictures = shown(project, "a.ipynb")
        assert text.startswith(
            "--- cell 1 (markdown) ---\n# Title\ntext\n--- cell 2 (code, python) ---\nprint('ü')\n--- output ---\nü\n"
        )
        assert "ValueError: no" in text
        assert "Cells 1 to 2 of 3; start_line and end_line count cells here." in text
        assert 'read_file({"path": "a.ipynb", "start_line": 3, "end_line": 3})' in text
        assert len(pictures) == 1
        assert base64.b64decode(pictures[0].data) == PNG
        text, pictures = shown(project, "a.ipynb", start_line=3)
        assert "x" * 9_000 in text
        assert "[... cut, 7,000 more characters]" in text
        assert pictures == []
        assert "has 3 cells, so 4 does not exist" in project.error(read_file, path="a.ipynb", start_line=4)

    @pytest.mark.parametrize("data", ["no base64!", "QUJD", base64.b64encode(b"\xff\xd8\xff").decode(), "", 5])
    def test_a_picture_that_is_none_is_not_sent(self, project: Project, data: object) -> None:
        """A service refuses the request for it, and with it every one that comes after."""
        outputs = [{"data": {"image/png": data, "text/plain": "<Figure>"}}]
        cell = {"cell_type": "code", "source": "plot()", "outputs": outputs}
        project.write("a.ipynb", json.dumps({"cells": [cell]}))
        text, pictures = shown(project, "a.ipynb")
        assert "<Figure>" in text
        assert pictures == []

    @pytest.mark.parametrize(
        "content", ["[]", "{}", "not JSON", '{"cells": [1]}', '{"cells": {}}', '{"cells": [{}]}', ""]
    )
    def test_what_is_no_notebook_is_text(self, project: Project, content: str) -> None:
        project.write("a.ipynb", content)
        text, _ = shown(project, "a.ipynb")
        assert text.startswith(f"1\t{content}" if content else "(The file is empty")


class TestOthers:
    @pytest.mark.slow
    def test_archives_are_described_by_their_names(self, project: Project) -> None:
        held = io.BytesIO()
        with zipfile.ZipFile(held, "w") as archive:
            archive.writestr("a.txt", "text")
            archive.writestr("src/b\nc\x1b[31m.txt", "text")
        project.write("a.zip", held.getvalue())
        text, _ = shown(project, "a.zip")
        assert "'a.zip' is a ZIP archive" in text
        assert text.endswith("It has 2 entries:\na.txt (4 bytes)\nsrc/b\\nc\\x1b[31m.txt (4 bytes)")
        for way in ("w", "w:gz", "w:bz2", "w:xz"):
            held = io.BytesIO()
            with tarfile.open(fileobj=held, mode=way) as tar:
                for number in range(300):
                    tar.addfile(tarfile.TarInfo(f"file-{number}"))
            project.write("a.tar", held.getvalue())
            text, _ = shown(project, "a.tar")
            assert "It has 300 entries:\nfile-0 (0 bytes)\nfile-1 (0 bytes)" in text
            assert text.endswith("[The first 200 of 300 entries.]")

    def test_databases_are_described_by_their_tables(self, project: Project) -> None:
        connection = sqlite3.connect(project.root / "a.db")
        connection.execute("CREATE TABLE people (name TEXT)")
        connection.commit()
        connection.close()
        text, _ = shown(project, "a.db")
        assert "an SQLite database" in text
        assert text.endswith("It has 1 table:\npeople")

    def test_special_files_are_refused_without_waiting(self, project: Project) -> None:
        os.mkfifo(project.root / "pipe")
        (project.root / "folder").mkdir()
        (project.root / "device").symlink_to("/dev/zero")
        assert "Only regular files can be used" in project.error(read_file, path="pipe")
        assert "folder" in project.error(read_file, path="folder")
        assert "device" in project.error(read_file, path="device")
