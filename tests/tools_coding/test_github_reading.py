"""github_read_file and github_grep: the habits and limits of read_file and code_grep, held to the clone."""

from __future__ import annotations

import json
import shutil
from copy import copy
from pathlib import Path
from typing import Any

import pytest

from marvin_core.guard.files.sandbox import SandboxPaths
from marvin_tools_coding.files.edit import write_file
from marvin_tools_coding.files.reading import BLOCK_AT, WARN_AT
from marvin_tools_coding.github.reading import github_read_file
from tests.support.images import png
from tests.tools_coding.support import Project
from tests.tools_coding.support_github import Desk

LINES = "".join(f"line {number}\n" for number in range(1, 401))
FILES: dict[str, str | bytes] = {
    "README.md": "# Flask\nneedle here\n",
    "src/app.py": "def run():\n    return 'Needle'\n",
    "long.txt": LINES,
    "wide.txt": "needle wide\n".encode("utf-16"),
    "empty.txt": "",
    "nb.ipynb": json.dumps({"cells": [{"cell_type": "code", "source": ["1 + 1"], "outputs": []}]}),
    "picture.png": png(),
    ".github/ci.yml": "run: needle\n",
    ".gitignore": "build/\n",
    "new\nline.txt": "needle\n",
}


@pytest.fixture
def cloned(desk: Desk) -> Desk:
    """A session with a clone that lies there already."""
    clone = desk.clones / "Pallets/Flask"
    clone.mkdir(parents=True)
    desk.hub.git(clone, "init", "--quiet")
    desk.hub.commit(clone, FILES)
    return desk


def test_a_file_is_read_as_read_file_does(cloned: Desk) -> None:
    assert cloned.text("github_read_file", repo="pallets/flask", path="README.md") == "1\t# Flask\n2\tneedle here"
    assert "(The file is empty" in cloned.text("github_read_file", repo="pallets/flask", path="empty.txt")
    assert "1 + 1" in cloned.text("github_read_file", repo="pallets/flask", path="nb.ipynb")
    assert "apply_patch" not in cloned.text("github_read_file", repo="pallets/flask", path="nb.ipynb")
    shown = cloned.text("github_read_file", repo="pallets/flask", path="wide.txt")
    assert shown == "1\tneedle wide\n[The file is UTF-16.]"
    picture = cloned.call("github_read_file", repo="pallets/flask", path="picture.png")
    assert len(picture.content) == 2


def test_ranges_and_how_to_read_on_name_this_tool(cloned: Desk) -> None:
    text = cloned.text("github_read_file", repo="pallets/flask", path="long.txt", start=5, end=6)
    assert text == "5\tline 5\n6\tline 6\n[Lines 5 to 6 of 400.]"
    (cloned.clones / "Pallets/Flask/huge.txt").write_text("word word\n" * 9_000)
    text = cloned.text("github_read_file", repo="pallets/flask", path="huge.txt")
    assert 'Continue with: github_read_file({"repo": "Pallets/Flask", "path": "huge.txt", "start": ' in text
    assert "Or find the place with github_grep." in text
    text = cloned.error("github_read_file", repo="pallets/flask", path="long.txt", start=9, end=3)
    assert 'Swap them: github_read_file({"repo": "Pallets/Flask", "path": "long.txt", "start": 3, "end": 9})' in text
    (cloned.clones / "Pallets/Flask/line.txt").write_text("x" * 9_000)
    text = cloned.text("github_read_file", repo="pallets/flask", path="line.txt", start=1, column=8_990)
    assert text.startswith("1\txxxxxxxxxxx\n")
    assert "are line numbers that start at 1. Leave them out to start at the first line" in cloned.error(
        "github_read_file", repo="pallets/flask", path="long.txt", start=-1
    )


@pytest.mark.slow
def test_a_folder_lists_its_names(cloned: Desk) -> None:
    listed = cloned.text("github_read_file", repo="pallets/flask", path=".").split("\n")
    assert listed[:3] == [".github/", "src/", ".gitignore"]
    assert ".git/" not in listed
    assert repr("new\nline.txt") in listed
    assert cloned.text("github_read_file", repo="pallets/flask", path="src/") == "src/app.py"
    many = cloned.clones / "Pallets/Flask/many"
    many.mkdir()
    assert "is empty" in cloned.text("github_read_file", repo="pallets/flask", path="many")
    for number in range(600):
        (many / f"{number}").touch()
    assert "[More than 500 names." in cloned.text("github_read_file", repo="pallets/flask", path="many")


@pytest.mark.parametrize(
    "path", ["../Other/secret", "/etc/passwd", "leak", "up/passwd", "src/../../Other/secret", "\0"]
)
def test_nothing_outside_of_the_clone_is_read(cloned: Desk, path: str) -> None:
    """I4."""
    clone = cloned.clones / "Pallets/Flask"
    (clone.parent / "Other").mkdir()
    (clone.parent / "Other/secret").write_text("needle-secret")
    (clone / "leak").symlink_to("../Other/secret")
    (clone / "up").symlink_to("/etc")
    text = cloned.error("github_read_file", repo="pallets/flask", path=path)
    assert "secret" not in text.replace(path, "")
    found = cloned.text("github_grep", repo="pallets/flask", pattern="needle-secret|root:")
    assert "No line matches" in found


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"pattern": "needle"}, "README.md-1- # Flask\nREADME.md:2: needle here"),
        ({"pattern": "needle", "glob_filter": "*.py"}, "No line matches 'needle' in '.' (*.py)"),
        ({"pattern": "needle", "glob_filter": "*.py", "ignore_case": True}, "src/app.py:2:     return 'Needle'"),
        ({"pattern": "needle", "glob_filter": "*.zig"}, "No file in '.' matches glob_filter."),
        ({"pattern": "needle", "path": ".github"}, ".github/ci.yml:1: run: needle"),
        ({"pattern": "n(e+)dle|Needle", "output": "files"}, "README.md\n"),
        ({"pattern": "line 1", "output": "count"}, "long.txt: 111\n[111 matching lines in all]"),
        ({"pattern": "line", "max_results": 2}, "[There are more matches than these 2."),
        ({"pattern": "(", "literal": True}, "src/app.py:1: def run():"),
        ({"pattern": "--files"}, "No line matches '--files'"),
        ({"pattern": "--pre=sh"}, "No line matches '--pre=sh'"),
        ({"query": "needle", "include": "*.md", "limit": 900}, "README.md:2: needle here"),
    ],
)
def test_a_clone_is_searched_as_code_grep_does(cloned: Desk, given: dict[str, Any], shown: str) -> None:
    assert shown in cloned.text("github_grep", repo="PALLETS/flask", **given)


def test_what_cannot_be_searched_for_says_so(cloned: Desk) -> None:
    assert "pattern is empty" in cloned.error("github_grep", repo="pallets/flask", pattern="")
    assert "lines are searched one by one" in cloned.error("github_grep", repo="pallets/flask", pattern="a\nb")
    assert cloned.call("github_grep", repo="pallets/flask", pattern="x", path="../..").is_error


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"file_path": "long.txt", "offset": 10, "limit": 2}, "10\tline 10\n11\tline 11\n"),
        ({"path": "long.txt", "start_line": 398}, "400\tline 400"),
        ({"path": "long.txt", "view_range": [3, 4]}, "3\tline 3\n4\tline 4\n"),
        ({"filePath": "long.txt", "start": "7", "end": 7}, "7\tline 7\n"),
    ],
)
def test_calls_in_the_habits_of_others_work(cloned: Desk, given: dict[str, Any], shown: str) -> None:
    assert shown in cloned.text("github_read_file", repository="pallets/flask", **given)
    assert shown in cloned.text("github_read_file", owner="Pallets", repo="Flask", **given)


def test_a_branch_cannot_be_chosen(cloned: Desk) -> None:
    for tool, given in (("github_read_file", {"path": "x"}), ("github_grep", {"pattern": "x"}), ("github_clone", {})):
        assert "Nothing was done: " in cloned.error(tool, repo="pallets/flask", branch="dev", **given)


def test_a_clone_that_is_not_there_is_told_with_what_is_near(cloned: Desk) -> None:
    for tool, given in (("github_read_file", {"path": "x"}), ("github_grep", {"pattern": "x"})):
        text = cloned.error(tool, repo="pallets/flusk", **given)
        assert "There is no clone of pallets/flusk. Create one with github_clone. Did you mean 'Pallets/Flask'?" in text
        assert "is not a repository" in cloned.error(tool, repo="../..", **given)


class WithClones(Project):
    """A project beside a home folder with clones."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.home = root.parent / "home"

    def setting(self, name: str) -> None:
        """No host is set."""

    def reading(self, folder: Path) -> WithClones:
        """The same, with other files."""
        other = copy(self)
        other.paths = SandboxPaths(folder, writable=())
        return other


def test_the_budget_of_what_was_read_is_one_for_both_tools(tmp_path: Path) -> None:
    """I9: characters count whichever of the tools has read them, and the dump is the project's."""
    project = WithClones(tmp_path / "project")
    clone = project.home / "github-clones/o/r"
    (clone / ".git").mkdir(parents=True)
    (clone / "README.md").write_text("hello\n")
    project.session.read_characters = WARN_AT
    text = project.call(github_read_file, repo="o/r", path="README.md")
    assert "[github_read_file has used 200,007 of 300,000 characters" in text
    project.session.read_characters = BLOCK_AT
    text = project.error(github_read_file, repo="o/r", path="README.md")
    assert "github_read_file has used 300,000 of its 300,000 characters and shows no more" in text
    assert "read so far: lines 1 to 1" in text
    assert (project.root / ".marvin/memories/dump-o__r__README.md-1-1.txt").read_text() == "hello\n"
    assert not (clone / ".marvin").exists()


def test_a_file_of_a_clone_is_not_taken_for_one_of_the_project(tmp_path: Path) -> None:
    """Whoever has read a README elsewhere has not read that of the project."""
    project = WithClones(tmp_path / "project")
    clone = project.home / "github-clones/o/r"
    (clone / ".git").mkdir(parents=True)
    (clone / "README.md").write_text("theirs\n")
    mine = project.write("README.md", "mine\n")
    project.call(github_read_file, repo="o/r", path="README.md")
    assert "Read it" in project.error(write_file, path="README.md", content="other\n")
    assert mine.read_text() == "mine\n"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("rg") is None, reason="needs rg (ripgrep)")
def test_the_sandbox_lets_clones_be_read_and_not_written(cloned: Desk) -> None:
    other = cloned.runner.session(sandbox="required", answers=["yes"] * 3)
    assert "README.md:2: needle here" in other.call("github_grep", repo="pallets/flask", pattern="needle").text
    assert "2\tneedle here" in other.call("github_read_file", repo="pallets/flask", path="README.md").text
    target = cloned.clones / "Pallets/Flask/new.txt"
    other.call("run_command", command=f"echo x > {target}")
    assert not target.exists()
