"""glob and code_grep: the same answers with git and without, with ripgrep and without."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from marvin_core.kit.files.listing import _batches
from marvin_core.kit.search.lines import LineReader
from marvin_core.testing import ToolRunner
from marvin_tools_coding.files.folders import tree
from marvin_tools_coding.files.search import code_grep, glob
from tests.tools_coding.support import Project

needs_rg = pytest.mark.skipif(shutil.which("rg") is None, reason="needs rg (ripgrep)")


def furnish(project: Project) -> None:
    """A small project with everything that a listing may leave out."""
    files = {
        ".gitignore": "build/\n*.log\n!keep.log\n/only-here\n",
        "src/.gitignore": "generated.py\n",
        "README.md": "needle\n",
        "src/main.py": "import os\n\n\ndef main():\n    needle = 1\n    return needle\n",
        "src/generated.py": "needle\n",
        "src/pkg/util.py": "def util():\n    pass  # Needle\n",
        "src/pkg/data.json": '{"needle": 1}\n',
        "src/only-here": "needle\n",
        "only-here": "needle\n",
        "web/app.ts": "const needle = 1\r\nconst other = 2\r\n",
        "web/view.tsx": "needle",
        "build/out.py": "needle\n",
        "a.log": "needle\n",
        "src/b.log": "needle\n",
        "keep.log": "needle\n",
        ".github/workflows/ci.yml": "run: needle\n",
        ".tickets/t-1.md": "needle\n",
        "src/.hidden.py": "needle\n",
        "a.txt": "a\nneedle a\nb\nc\nd\ne\nneedle b\nneedle c\n",
        "a/b.txt": "needle\n",
        "-dash.txt": "needle\n",
        "we*ird [x].txt": "needle (x)\n",
        "ünï.txt": "nädel needle\n",
    }
    for path, content in files.items():
        project.write(path, content)
    project.write("binary.dat", b"needle\0\1\2\n")
    project.write("latin.txt", b"needle \xe9 x\n")
    project.write("wide.txt", "needle wide\n".encode("utf-16"))
    project.write("marked.txt", b"\xef\xbb\xbfneedle marked\n")
    project.write("long.txt", "needle " + "x" * 5_000 + "\n")
    (project.root / "link.md").symlink_to("README.md")
    (project.root / "linked").symlink_to("src")


@pytest.fixture(params=["repository", "project"])
def furnished(request: pytest.FixtureRequest) -> Project:
    """The small project as a git repository, and as a folder that is none."""
    made: Project = request.getfixturevalue(request.param)
    furnish(made)
    if request.param == "repository":
        made.git("add", "src", "web", "a.txt")
    return made


_NO_BLOB = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"


def test_of_a_large_index_what_git_knows_and_does_not_know_is_listed_as_of_a_small_one(repository: Project) -> None:
    """Git lists the one beside the other then."""
    furnish(repository)
    repository.write("inner/own.py")
    repository.write("src/odd\\x(1).ts")
    repository.git("init", "--quiet", "inner")
    repository.git("add", "src", "web", "a.txt")
    (repository.root / "src/pkg/data.json").unlink()
    patterns = ["**/*.py", "**/*", "*", "src/**", "**/*.{ts,txt}", "**/.*", "inner/*", "no/such/*", "**/*\\x(1).ts"]

    def listed() -> list[list[str]]:
        return [sorted(repository.call(glob, pattern=pattern).splitlines()) for pattern in patterns]

    small = listed()
    gone = "".join(f"100644 {_NO_BLOB} 0\tgone/{'x' * 100}/{number}.py\n" for number in range(8_000))
    repository.git("update-index", "--add", "--index-info", stdin=gone.encode())
    assert (repository.root / ".git/index").stat().st_size > 1_000_000
    assert listed() == small
    assert "inner/own.py" in small[0]
    assert len(small[-1]) == 1


class TestGlob:
    @pytest.mark.parametrize(
        ("pattern", "path", "expected"),
        [
            ("**/*.py", ".", {"src/main.py", "src/pkg/util.py"}),
            ("src/**", ".", {"src/main.py", "src/pkg/util.py", "src/pkg/data.json", "src/only-here"}),
            ("*.py", "src", {"src/main.py"}),
            ("./src/*.py", ".", {"src/main.py"}),
            ("**/*.{ts,tsx}", ".", {"web/app.ts", "web/view.tsx"}),
            ("*.log", ".", {"keep.log"}),
            ("**/only-here", ".", {"src/only-here"}),
            ("link.md", ".", {"link.md"}),
            ("*.md", ".", {"README.md", "link.md"}),
            ("**/*.yml", ".github", {".github/workflows/ci.yml"}),
            (".github/**/*.yml", ".", {".github/workflows/ci.yml"}),
            ("**/.*.py", ".", {"src/.hidden.py"}),
            ("[!a-z]*.txt", ".", {"-dash.txt", "ünï.txt"}),
            ("we[*]ird*", ".", {"we*ird [x].txt"}),
            ("*.py", "build", {"build/out.py"}),
            ("**/*.py", "linked", {"src/main.py", "src/pkg/util.py"}),
            ("src/m?in.py", ".", {"src/main.py"}),
        ],
    )
    def test_files_are_found_as_git_sees_them(
        self, furnished: Project, pattern: str, path: str, expected: set[str]
    ) -> None:
        assert set(furnished.call(glob, pattern=pattern, path=path).split("\n")) == expected

    def test_everything_but_what_is_excluded_or_hidden(self, furnished: Project) -> None:
        found = furnished.call(glob, pattern="**").split("\n")
        assert "src/main.py" in found
        assert "-dash.txt" in found
        for absent in ("build/out.py", "a.log", "only-here", "src/generated.py", ".gitignore", "linked/main.py"):
            assert absent not in found
        assert not any(".git/" in name or ".tickets" in name for name in found)

    @pytest.mark.parametrize("pattern", [".tickets/*", ".*/**", ".git/*", "**/.git/**"])
    def test_git_and_the_tickets_are_never_listed(self, furnished: Project, pattern: str) -> None:
        found = furnished.call(glob, pattern=pattern)
        assert "t-1.md" not in found
        assert ".git/HEAD" not in found

    def test_the_newest_come_first_and_the_rest_is_counted(self, furnished: Project) -> None:
        for age, name in enumerate(["a.txt", "web/app.ts", "README.md"]):
            os.utime(furnished.root / name, (1_000_000_000 - age, 2_000_000_000 - age))
        found = furnished.call(glob, pattern="**", max_results=3).split("\n")
        assert found[:3] == ["a.txt", "web/app.ts", "README.md"]
        assert "more of" in found[3]
        assert "raise max_results" in found[3]

    def test_a_deleted_file_that_git_still_knows_is_not_listed(self, repository: Project) -> None:
        repository.write("a.py")
        repository.write("b.py")
        repository.git("add", ".")
        (repository.root / "a.py").unlink()
        assert repository.call(glob, pattern="*.py") == "b.py"

    def test_a_folder_is_named_literally(self, repository: Project) -> None:
        for name in ("[ab]/x.py", "a/y.py", ":(top)c/z.py", "*/w.py"):
            repository.write(name)
        for folder, file in (("[ab]", "x.py"), (":(top)c", "z.py"), ("*", "w.py")):
            assert repository.call(glob, pattern="**", path=folder) == f"{folder}/{file}"

    def test_repositories_inside_are_looked_into(self, repository: Project) -> None:
        inner = Project(repository.root / "vendor")
        inner.git("init", "--quiet")
        inner.write("lib.py")
        inner.write(".gitignore", "*.tmp\n")
        inner.write("x.tmp")
        assert repository.call(glob, pattern="vendor/**") == "vendor/lib.py"

    def test_no_result_says_what_may_be_meant(self, furnished: Project) -> None:
        """I10: an empty answer still helps."""
        assert "2 match '**/*.py'" in furnished.call(glob, pattern="*.py")
        assert "It is a folder: use 'src/**'" in furnished.call(glob, pattern="src")
        assert "1 match if case is ignored, such as src/main.py." in furnished.call(glob, pattern="SRC/Main.py")
        assert "2 match if case is ignored" in furnished.call(glob, pattern="**/*.PY")
        assert "List the files with tree" in furnished.call(glob, pattern="**/*.rs")

    @pytest.mark.parametrize(
        ("pattern", "path", "words"),
        [
            ("", ".", "pattern is empty"),
            ("../*", ".", "leads out of the folder"),
            ("[z-a]", ".", "valid glob pattern"),
            ("{a,b}" * 10, ".", "too many patterns"),
            ("*", "missing", "File not found"),
            ("*", "a.txt", "is a file, not a folder"),
            ("*", "..", "leads out of the working directory"),
        ],
    )
    def test_what_is_wrong_is_named(self, furnished: Project, pattern: str, path: str, words: str) -> None:
        assert words in furnished.error(glob, pattern=pattern, path=path)

    def test_an_absolute_pattern_inside_is_as_good_as_the_relative_one(self, furnished: Project) -> None:
        found = furnished.call(glob, pattern="src/*.py")
        assert furnished.call(glob, pattern=f"{furnished.root}/src/*.py") == found
        assert furnished.call(glob, pattern=f"{furnished.root}/src/*.py", path="src") == found
        assert "it is outside of the working directory" in furnished.error(glob, pattern="/etc/*.conf")

    def test_a_repository_cannot_have_a_program_run_by_listing(self, repository: Project) -> None:
        """A configured file-system monitor is a program; a downloaded project may bring one."""
        ran = repository.root / "ran"
        monitor = repository.write("monitor.sh", f"#!/bin/sh\n: > {ran}\n")
        monitor.chmod(0o755)
        repository.write("a.py")
        repository.git("add", "a.py")
        repository.git("config", "core.fsmonitor", str(monitor))
        assert repository.call(glob, pattern="*.py") == "a.py"
        assert "a.py" in repository.call(tree)
        assert not ran.exists()


class TestGrepAnswers:
    @pytest.fixture(params=["rg", "own"])
    def searcher(self, request: pytest.FixtureRequest, tmp_path: Path) -> Project:
        """The small project, searched with ripgrep and without."""
        if request.param == "rg" and shutil.which("rg") is None:
            pytest.skip("needs rg (ripgrep)")
        made = Project(tmp_path / "project", programs=("git", "rg") if request.param == "rg" else ("git",))
        furnish(made)
        return made

    def test_matches_come_with_path_line_and_context(self, searcher: Project) -> None:
        assert searcher.call(code_grep, pattern="needle", path="a.txt", context_lines=1) == (
            "a.txt-1- a\na.txt:2: needle a\na.txt-3- b\n--\na.txt-6- e\na.txt:7: needle b\na.txt:8: needle c"
        )

    def test_groups_of_different_files_are_separated(self, searcher: Project) -> None:
        assert searcher.call(code_grep, pattern="def ", path="src", context_lines=0) == (
            "src/main.py:4: def main():\nsrc/pkg/util.py:1: def util():"
        )
        assert "\n--\n" in searcher.call(code_grep, pattern="def ", path="src", context_lines=1)

    def test_the_number_of_matches_is_bounded_and_the_cut_is_told(self, searcher: Project) -> None:
        found = searcher.call(code_grep, pattern="needle", path="a.txt", context_lines=1, max_results=1)
        assert found.split("\n")[:3] == ["a.txt-1- a", "a.txt:2: needle a", "a.txt-3- b"]
        assert found.split("\n")[3].startswith("[There are more matches than these 1.")
        assert len(found.split("\n")) == 4

    def test_exactly_as_many_matches_as_asked_for_are_no_cut(self, searcher: Project) -> None:
        found = searcher.call(code_grep, pattern="needle", path="a.txt", max_results=3)
        assert "There are more" not in found

    def test_long_lines_are_cut(self, searcher: Project) -> None:
        found = searcher.call(code_grep, pattern="needle", path="long.txt")
        assert found.endswith("x [... 4,607 more characters]")
        assert len(found) < 500

    @pytest.mark.parametrize("pattern", ["(?<=needle )a", r"(nee)d\w+ (?!b)c", "needle (?=b)"])
    def test_expressions_that_only_python_has_work_all_the_same(self, searcher: Project, pattern: str) -> None:
        assert searcher.call(code_grep, pattern=pattern, path="a.txt", context_lines=0).startswith("a.txt:")

    @pytest.mark.parametrize("pattern", ["foo(", "[a", "*x", "a{2,1}"])
    def test_a_wrong_expression_is_answered_with_the_escaped_one(self, searcher: Project, pattern: str) -> None:
        """I10: most such patterns were meant as plain text."""
        import re

        text = searcher.error(code_grep, pattern=pattern)
        assert "valid regular expression" in text
        assert f"use {re.escape(pattern)!r}" in text

    @pytest.mark.parametrize("pattern", ["--pre=touch ran", "-f/etc/passwd", "--", "-e"])
    def test_a_pattern_is_never_an_option(self, searcher: Project, pattern: str) -> None:
        """I27: what a model writes is a pattern, whatever it begins with."""
        searcher.write("options.txt", f"x {pattern} y\n")
        found = searcher.call(code_grep, pattern=pattern, path="options.txt")
        assert found == f"options.txt:1: x {pattern} y"
        assert not (searcher.root / "ran").exists()

    def test_a_file_name_is_never_an_option(self, searcher: Project) -> None:
        """I27: nor are paths and filters options."""
        assert searcher.call(code_grep, pattern="needle", path="-dash.txt") == "-dash.txt:1: needle"
        assert searcher.call(code_grep, pattern="needle", glob_filter="-dash*") == "-dash.txt:1: needle"

    def test_configuration_of_ripgrep_does_not_matter(self, searcher: Project) -> None:
        searcher._env["RIPGREP_CONFIG_PATH"] = str(searcher.write("config", "--files-with-matches\n"))
        assert searcher.call(code_grep, pattern="needle", path="a/b.txt") == "a/b.txt:1: needle"

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ({"pattern": ""}, "pattern is empty"),
            ({"pattern": "a\nb"}, "line break"),
            ({"pattern": "a", "path": "missing.py"}, "File not found: 'missing.py'"),
            ({"pattern": "a", "path": "../x"}, "leads out of the working directory"),
            ({"pattern": "a", "path": ".tickets"}, "tickets"),
            ({"pattern": "a", "path": "binary.dat"}, "a binary file"),
        ],
    )
    def test_what_is_wrong_is_named(self, searcher: Project, arguments: dict[str, str], words: str) -> None:
        assert words in searcher.error(code_grep, **arguments)

    def test_no_match_says_what_to_try(self, searcher: Project) -> None:
        text = searcher.call(code_grep, pattern="nowhere(x)?", path="src")
        assert text.startswith("No line matches 'nowhere(x)?' in 'src'.")
        assert r"literal, or 'nowhere\\(x\\)\\?', for the literal text" in text
        assert "No file in '.' matches glob_filter" in searcher.call(code_grep, pattern="x", glob_filter="*.rs")

    def test_a_link_to_the_outside_is_not_followed(self, searcher: Project, tmp_path: Path) -> None:
        """I4: neither by its own name nor on the way."""
        (tmp_path / "secret").mkdir()
        (tmp_path / "secret/a.txt").write_text("needle outside")
        (searcher.root / "away").symlink_to(tmp_path / "secret")
        (searcher.root / "away.txt").symlink_to(tmp_path / "secret/a.txt")
        assert "outside" not in searcher.call(code_grep, pattern="needle", max_results=500)
        assert "outside" not in searcher.call(code_grep, pattern="needle", glob_filter="*.txt", max_results=500)
        for path in ("away", "away.txt", "away/a.txt"):
            assert "leads out" in searcher.error(code_grep, pattern="needle", path=path)


@pytest.mark.parametrize("programs", [("git", "rg"), ("git",), ()])
def test_rules_of_a_home_folder_above_do_not_hide_a_project(repository: Project, programs: tuple[str, ...]) -> None:
    """Many keep their settings in a repository that ignores everything else in the home folder."""
    repository.write(".gitignore", "*\n")
    inner = Project(repository.root / "work", programs=programs)
    inner.write("a.py", "needle\n")
    inner.write("b.log", "needle\n")
    inner.write(".gitignore", "*.log\n")
    assert inner.call(glob, pattern="**") == "a.py"
    assert inner.call(code_grep, pattern="needle") == "a.py:1: needle"


@needs_rg
class TestBothSearchesAgree:
    @pytest.mark.slow
    @pytest.mark.parametrize("kind", ["repository", "project"])
    def test_over_many_queries(self, kind: str, request: pytest.FixtureRequest) -> None:
        """The answers of ripgrep and of the program that stands in for it are the same text."""
        with_rg: Project = request.getfixturevalue(kind)
        furnish(with_rg)
        without = Project(with_rg.root, programs=("git",))
        queries: list[dict[str, object]] = [
            {"pattern": pattern, "ignore_case": ignore_case, "context_lines": context, "max_results": most}
            for pattern, ignore_case, context, most in itertools.product(
                ["needle", r"^\s*$", r"\bn\w+e\b.$"], [False, True], [0, 2], [2, 500]
            )
        ]
        patterns = ["é", "nädel", r"n.del", "needle$", "^needle", r"\d+", "[(]x[)]", "marked|wide", "other = 2$"]
        places: list[dict[str, object]] = [
            {"path": "src"}, {"path": "linked"}, {"path": "web"}, {"path": ".github"}, {"path": "a.txt"},
            {"path": "we*ird [x].txt"}, {"path": "link.md"}, {"path": "build"}, {"path": "wide.txt"},
            {"glob_filter": "*.py"}, {"glob_filter": "*.{ts,tsx}"}, {"glob_filter": "src/**/*.py,!util.py"},
            {"glob_filter": "*.log"}, {"glob_filter": ".github/**"}, {"glob_filter": "*.txt", "path": "a"},
            {"glob_filter": "!*.md"},
        ]  # fmt: skip
        queries += [{"pattern": pattern} for pattern in patterns]
        queries += [{"pattern": "needle", "max_results": 500, **place} for place in places]
        for query in queries:
            assert with_rg.call(code_grep, **query) == without.call(code_grep, **query), query
        found = with_rg.call(code_grep, pattern="needle", max_results=500, context_lines=0)
        for absent in ("build/", "a.log:", "generated", ".tickets", ".hidden", "binary", "linked/", "link.md"):
            assert absent not in found
        for present in ("src/main.py:5:", "keep.log:1:", "wide.txt:1: needle wide", "marked.txt:1: needle marked"):
            assert present in found


def test_an_expression_that_never_ends_can_be_cancelled(project: Project) -> None:
    """I25: the search runs in a child process, which a time-out ends."""
    lonely = Project(project.root, programs=())
    lonely.write("a.txt", "a" * 60 + "!\n")

    async def go() -> None:
        lonely.processes = lonely._runner()
        try:
            async with asyncio.timeout(1):
                await code_grep.function(lonely.context, pattern="(?:a|aa)+$")
        finally:
            await lonely.processes.close()

    with pytest.raises(TimeoutError):
        asyncio.run(go())  # which ends, as the child does


@pytest.mark.slow
def test_a_large_listing_lets_other_work_go_on_and_can_be_cancelled(project: Project) -> None:
    for number in range(200):
        project.write(f"d{number}/f.txt")

    async def go() -> int:
        turns = 0
        project.processes = project._runner()
        task = asyncio.ensure_future(glob.function(project.context, pattern="**/*.txt"))
        while not task.done():
            turns += 1
            await asyncio.sleep(0)
        await project.processes.close()
        return turns

    assert asyncio.run(go()) > 100


def test_files_for_keys_are_left_out_unless_they_are_named(project: Project) -> None:
    """With context lines, by ripgrep and without it, hidden files asked for: what they hold is not shown."""
    for name in ("server.pem", "sub/tls.key", ".env", ".env.example", "plain.txt"):
        project.write(name, f"needle of {name}\n")
    everything = {"pattern": "needle", "glob_filter": ".*,*", "context_lines": 2}
    for arguments in ({"pattern": "needle"}, everything, {**everything, "pattern": "(?=n)needle"}):
        found = project.call(code_grep, **arguments)
        assert "needle of plain.txt" in found
        assert not [name for name in ("server.pem", "tls.key", ".env:") if name in found]
    assert "needle of server.pem" in project.call(code_grep, pattern="needle", path="server.pem")


def test_a_search_in_the_home_folder_leaves_out_what_marvin_keeps(tmp_path: Path) -> None:
    """Settings and sessions are below the working directory then."""
    for name in (".config/marvin/a.txt", ".local/share/marvin/sessions/b.txt", ".config/other/c.txt"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("needle\n")
    with ToolRunner(tmp_path, tmp_path) as runner:
        assert runner.call(glob, pattern=".*/**/*.txt").text.splitlines()[:1] == [".config/other/c.txt"]
        for tool, arguments in (
            (glob, {"pattern": ".config/marvin/**"}),
            (code_grep, {"pattern": "needle", "glob_filter": ".*/**"}),
            (code_grep, {"pattern": "needle", "path": ".local/share/marvin"}),
        ):
            said = runner.call(tool, **arguments).text
            assert "a.txt" not in said, arguments
            assert "b.txt" not in said, arguments


@pytest.fixture(params=["rg", "own"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    """An empty folder, searched with ripgrep and without."""
    if request.param == "rg" and shutil.which("rg") is None:
        pytest.skip("needs rg (ripgrep)")
    return Project(tmp_path / "project", programs=("git", "rg") if request.param == "rg" else ("git",))


class TestWhatIsShown:
    def test_of_a_long_line_the_part_around_the_match(self, either: Project) -> None:
        either.write("a.js", "é" * 5_000 + "needle" + "y" * 5_000 + "\n")
        found = either.call(code_grep, pattern="needle")
        assert "needle" in found
        assert found.startswith("a.js:1: [4,900 characters ...] éé")
        assert found.endswith("yy [... 4,706 more characters]")
        assert len(found) < 500

    def test_files_are_listed_once_and_bounded(self, either: Project) -> None:
        for name in ("a.py", "b.py", "c.py"):
            either.write(name, "needle\nneedle\n")
        assert either.call(code_grep, pattern="needle", output="files") == "a.py\nb.py\nc.py"
        cut = either.call(code_grep, pattern="needle", output="files", max_results=2).split("\n")
        assert cut[:2] == ["a.py", "b.py"]
        assert cut[2].startswith("[There are more files.")

    def test_matching_lines_are_counted_for_each_file_and_in_all(self, either: Project) -> None:
        either.write("a.py", "needle needle\nneedle\n")
        either.write("b.md", "needle\n")
        either.write("server.pem", "needle\n")
        assert either.call(code_grep, pattern="needle", output="count") == "a.py: 2\nb.md: 1\n[3 matching lines in all]"
        assert either.call(code_grep, pattern="needle", output="count", max_results=1).startswith("a.py: 2\n[3 ")
        assert either.call(code_grep, pattern="needle", output="count", glob_filter="*.md").startswith("b.md: 1\n[1 ")

    def test_a_literal_pattern_is_the_text_itself(self, either: Project) -> None:
        either.write("a.py", "f(x)\nfx\n")
        assert either.call(code_grep, pattern="f(x)", literal=True, context_lines=0) == "a.py:1: f(x)"
        assert either.call(code_grep, pattern="(", literal=True, context_lines=0) == "a.py:1: f(x)"

    def test_a_name_with_a_line_break_is_no_other_file(self, either: Project) -> None:
        either.write("new\nline.txt", "needle\n")
        either.write("other\x1b[2J.txt", "needle\n")
        assert either.call(code_grep, pattern="needle", context_lines=0).split("\n") == [
            r"'new\nline.txt':1: needle",
            r"'other\x1b[2J.txt':1: needle",
        ]
        assert set(either.call(glob, pattern="*").split("\n")) == {r"'new\nline.txt'", r"'other\x1b[2J.txt'"}
        assert r"'new\nline.txt'" in either.call(tree)
        assert "\x1b" not in either.call(tree)

    def test_what_a_binary_file_says_does_not_hide_the_next_file(self, either: Project) -> None:
        either.write("a.bin", "needle\n" * 20_000 + "\0")
        either.write("b.txt", "needle of b\n")
        assert "b.txt:1: needle of b" in either.call(code_grep, pattern="needle of|needle$", glob_filter="b*")
        assert "b.txt:1: needle of b" in either.call(code_grep, pattern="needle of")

    def test_lines_of_a_file_in_latin_1_are_shown_as_they_are(self, either: Project) -> None:
        either.write("a.txt", b"caf\xe9 needle\n")
        assert either.call(code_grep, pattern="needle") == "a.txt:1: café needle"

    def test_an_excluded_folder_takes_what_is_in_it_along(self, either: Project) -> None:
        either.write("vendor/a/b.py", "needle\n")
        either.write("src/b.py", "needle\n")
        assert either.call(code_grep, pattern="needle", glob_filter="!vendor") == "src/b.py:1: needle"
        assert either.call(code_grep, pattern="needle", glob_filter="*.py,!vendor") == "src/b.py:1: needle"

    def test_a_filter_brings_back_nothing_that_is_excluded_or_hidden(self, either: Project) -> None:
        either.write(".gitignore", "*.log\nbuild/\n!keep.log\n!.shown.py\n")
        for name in ("a.log", "keep.log", "build/a.py", ".hidden.py", ".shown.py", "src/a.py", ".d/a.py"):
            either.write(name, "needle\n")
        for pattern, expected in (("*.log", "keep.log"), ("*.py", "src/a.py"), ("src/**", "src/a.py")):
            assert either.call(code_grep, pattern="needle", glob_filter=pattern) == f"{expected}:1: needle"

    def test_what_gitignore_brings_back_stays_hidden(self, either: Project) -> None:
        """Whoever writes the rules could show .git so, which holds passwords of remotes."""
        either.write(".gitignore", "!.*\n!.git/\n")
        for name in (".git/config", ".git/x/y", ".tickets/t.md", ".env2", "src/.hidden", "src/.d/a.py", "src/a.py"):
            either.write(name, "needle\n")
        for output in ("lines", "files", "count"):
            shown = either.call(code_grep, pattern="needle", output=output)
            assert "src/a.py" in shown
            assert not [name for name in (".git", ".tickets", ".env2", ".hidden", ".d/") if name in shown]
        assert either.call(code_grep, pattern="needle", glob_filter="*.py") == "src/a.py:1: needle"
        assert either.call(code_grep, pattern="needle", path="src") == "src/a.py:1: needle"


def test_a_pattern_that_never_ends_is_given_up_with_advice(either: Project) -> None:
    """With look-ahead ripgrep counts its steps; Marvin's own program has a time."""
    either.timeouts = either.timeouts.replace(search=0.2)
    either.write("a.txt", "a" * 60 + "!b\n")
    assert "takes too long" in either.error(code_grep, pattern="(?:a|aa)+(?=b)$")


def test_a_pattern_of_100_000_characters_is_answered(either: Project) -> None:
    either.write("a.txt", "x\n")
    with pytest.raises(AssertionError, match="no error"):
        either.error(code_grep, pattern="x" * 50_000)
    if either.processes.which("rg"):
        assert "longer than" in either.error(code_grep, pattern="x" * 200_000)


@needs_rg
def test_a_search_ends_with_the_first_match_that_is_not_shown(project: Project) -> None:
    """What ripgrep still writes when enough was found is never read."""
    line = "needle " + "x" * 90 + "\n"
    for number in range(60):
        project.write(f"f{number:02}.txt", line * 10_000)  # 60 MB in all

    read = 0
    reader = LineReader(20, lambda path: True)

    async def go() -> None:
        nonlocal read
        runner = project._runner()

        def enough(chunk: bytes) -> bool:
            nonlocal read
            read += len(chunk)
            return reader(chunk)

        argv = ["rg", "--null", "--column", "--byte-offset", "--line-number", "--with-filename", "needle", "."]
        result = await runner.run(argv, enough=enough)
        assert result.exit_code == 0
        await runner.close()

    asyncio.run(go())
    assert reader.is_enough
    assert read < 1_000_000
    assert project.call(code_grep, pattern="needle", max_results=2, context_lines=0).count("needle") == 2


@pytest.mark.parametrize("rule", ["foo\\", "[z-a]", "[[a]", "!"])
def test_a_line_that_is_no_rule_takes_no_other_with_it(
    either: Project, rule: str, recwarn: pytest.WarningsRecorder
) -> None:
    either.write(".gitignore", f"{rule}\n*.log\n")
    either.write("a.log", "needle\n")
    either.write("a.txt", "needle\n")
    found, *said = either.call(glob, pattern="**").split("\n")
    assert found == "a.txt"
    shown = either.call(tree)
    assert "a.log" not in shown
    for line in said:
        assert line == f"[Not a valid rule, ignored: .gitignore:1: {rule}]"
        assert line in shown
    assert bool(said) == (rule in ("foo\\", "[z-a]", "!"))
    assert either.call(code_grep, pattern="needle") == "a.txt:1: needle"
    assert either.call(code_grep, pattern="needle", glob_filter="a.*") == "a.txt:1: needle"
    assert not recwarn.list


def test_what_git_tracks_is_in_the_tree_though_a_rule_names_it(repository: Project) -> None:
    repository.write(".gitignore", "build/\n*.log\n")
    repository.write("build/deep/kept.txt")
    repository.write("a.log")
    repository.git("add", "-f", ".")
    repository.write("build/other.txt")
    repository.write("b.log")
    repository.write("out/build/x.txt")
    shown = repository.call(tree, max_depth=5)
    assert "kept.txt" in shown
    assert "a.log" in shown
    for absent in ("b.log", "x.txt"):
        assert absent not in shown


@pytest.mark.slow
def test_a_tree_of_many_files_is_shown(repository: Project) -> None:
    """To look each name up in the index took 42 s for 20,000 files, and four times that for each doubling."""
    for number in range(4_000):
        repository.write(f"d{number % 40}/f{number}.txt")
    repository.git("add", ".")
    shown = repository.call(tree)
    assert "d0/" in shown
    assert "Only 500 entries are shown" in shown


def test_a_file_in_conflict_is_listed_once_and_a_deleted_one_not_at_all(repository: Project) -> None:
    repository.write("a.txt", "first\n")
    repository.write("gone.txt", "x\n")
    repository.git("add", ".")
    repository.git("commit", "-qm", "first")
    repository.git("checkout", "-qb", "other")
    repository.write("a.txt", "other\n")
    repository.git("commit", "-qam", "other")
    repository.git("checkout", "-q", "-")
    repository.write("a.txt", "this\n")
    repository.git("commit", "-qam", "this")
    subprocess.run(["git", "merge", "-q", "other"], cwd=repository.root, check=False, capture_output=True)
    (repository.root / "gone.txt").unlink()
    for pattern in ("*.txt", "**/*.txt", "**/*"):
        assert repository.call(glob, pattern=pattern) == "a.txt"


def test_names_are_looked_at_in_parts_that_keep_the_lines_of_a_conflict_together() -> None:
    names = [*(f"a{number:05}" for number in range(4_999)), "b", "b", "b", "c"]
    parts = [*_batches(names)]
    assert [name for part in parts for name in part] == names
    assert [part[0] for part in parts] == ["a00000", "c"]


def test_what_is_there_but_excluded_is_explained(repository: Project) -> None:
    repository.write(".gitignore", "node_modules/\n*.log\n")
    repository.write("node_modules/x/index.js")
    repository.write("a.log")
    found = repository.call(glob, pattern="node_modules/*/*.js")
    assert "path='node_modules', pattern='*/*.js'" in found
    assert repository.call(glob, pattern="*/*.js", path="node_modules") == "node_modules/x/index.js"
    assert ".gitignore excludes it" in repository.call(glob, pattern="a.log")
    assert "excludes" not in repository.call(glob, pattern="nowhere/*.js")


def test_a_left_out_file_that_matches_is_named(either: Project) -> None:
    either.write(".gitignore", "*.log\n")
    either.write("x.log", "needle\n")
    either.write(".hid/h.py", "needle\n")
    assert "x.log is left out: .gitignore excludes it." in either.call(glob, pattern="*.log")
    assert ".hid/h.py is left out: it is hidden." in either.call(glob, pattern="**/h.py")
    assert "x.log is left out: .gitignore excludes it" in either.call(code_grep, pattern="needle", glob_filter="*.log")
    assert ".hid/h.py is left out: it is hidden" in either.call(code_grep, pattern="needle", glob_filter="h.py")
    assert ".hid/h.py is left out: it is hidden." in either.call(glob, pattern="h.py")
    assert "what .gitignore excludes, are searched only if path names them" in either.call(code_grep, pattern="needle")
    assert "is left out" not in either.call(glob, pattern="*.zip")
    assert "is left out" not in either.call(code_grep, pattern="needle", glob_filter="*.zip")


def test_a_folder_behind_a_link_and_one_with_a_slash_are_explained(project: Project) -> None:
    project.write("a/m.py")
    (project.root / "link").symlink_to("a")
    found = project.call(glob, pattern="link/**")
    assert "'link' leads over a link, which is not followed. Use its target: path='a', pattern='**'." in found
    assert "gitignore" not in found
    assert "use 'a/**'" in project.call(glob, pattern="a/")


def test_rules_of_other_programs_hide_nothing(either: Project) -> None:
    """Only those of git count, as for glob."""
    either.write(".rgignore", "a.txt\n")
    either.write(".ignore", "b.txt\n")
    either.write("a.txt", "needle\n")
    either.write("b.txt", "needle\n")
    assert either.call(code_grep, pattern="needle", output="files") == "a.txt\nb.txt"


@pytest.mark.parametrize("count", [30, 2_500])
@pytest.mark.parametrize("output", ["lines", "files"])
def test_many_threads_find_the_same_as_one_in_the_same_order(project: Project, count: int, output: str) -> None:
    """In the order of the files a frequent word is found soon; a rare one is found sooner in any order."""
    for number in range(0, count, 10):
        text = "".join(f"needle {line}\nbetween\n" for line in range(10))
        project.write(f"part{number % 7}/inner.{number % 3}/file{number}.txt", text)
    found = []
    for seconds in (60.0, 0.0):
        project.timeouts = project.timeouts.replace(search_in_order=seconds)
        found.append(project.call(code_grep, pattern="needle", max_results=25, context_lines=1, output=output))
    assert found[0] == found[1]
    assert ("There are more" in found[1] or "There are more files" in found[1]) == (count > 30 or output == "lines")


class TestOldEncodings:
    """What read_file shows of a file is found there, by ripgrep and without it."""

    GERMAN = "Die Prüfung der Größe läuft über die Straße.\nnur ASCII hier\nZwölf Boxkämpfer jagen Viktor quer.\n"
    JAPANESE = "日本語のテキストを検索する。\nこれは次の行です。\n三行目はここまで。\n" * 3
    RUSSIAN = "Съешь же ещё этих мягких французских булок.\nА затем выпей чаю.\n" * 3

    @pytest.mark.parametrize(
        ("encoding", "text", "pattern", "shown"),
        [
            ("latin-1", GERMAN, "Prüfung", "a.txt:1: Die Prüfung der Größe läuft über die Straße."),
            ("cp1252", GERMAN, "Pr.fung", "a.txt:1: Die Prüfung der Größe läuft über die Straße."),
            ("cp1252", GERMAN, r"Gr\w+e l", "a.txt:1: Die Prüfung der Größe läuft über die Straße."),
            ("cp1252", GERMAN, "B[^a]xk[äö]mpfer", "a.txt:3: Zwölf Boxkämpfer jagen Viktor quer."),
            ("cp1252", GERMAN, r"\büber\b", "a.txt:1: Die Prüfung der Größe läuft über die Straße."),
            ("cp1252", GERMAN, "(?i)ZWÖLF", "a.txt:3: Zwölf Boxkämpfer jagen Viktor quer."),
            ("cp1252", GERMAN, "^nur", "a.txt:2: nur ASCII hier"),
            ("cp1252", "„Es kostet 5 €“ – so Äußerung\n" + GERMAN, "5 €", "a.txt:1: „Es kostet 5 €“ – so Äußerung"),
            ("shift_jis", JAPANESE, "次の行", "\n".join(f"a.txt:{n}: これは次の行です。" for n in (2, 5, 8))),
            ("shift_jis", JAPANESE, "^三.目.+$", "\n".join(f"a.txt:{n}: 三行目はここまで。" for n in (3, 6, 9))),
            ("cp1251", RUSSIAN, "выпей", "\n".join(f"a.txt:{n}: А затем выпей чаю." for n in (2, 4, 6))),
            ("utf-16", GERMAN, "Boxk.mpfer", "a.txt:3: Zwölf Boxkämpfer jagen Viktor quer."),
        ],
    )  # fmt: skip
    def test_lines_are_found_as_they_are_shown(
        self, either: Project, encoding: str, text: str, pattern: str, shown: str
    ) -> None:
        either.write("a.txt", text.encode(encoding))
        either.write("b.txt", "nothing of it\n")
        assert either.call(code_grep, pattern=pattern, context_lines=0) == shown
        files = either.call(code_grep, pattern=pattern, output="files")
        assert files == "a.txt"
        matches = shown.count("\n") + 1
        count = either.call(code_grep, pattern=pattern, output="count")
        assert count == f"a.txt: {matches}\n[{matches:,} matching lines in all]"

    def test_with_all_options_and_beside_files_of_utf_8(self, either: Project) -> None:
        either.write("a.txt", "eins\nGröße (x)\ndrei\n".encode("cp1252"))
        either.write("b.txt", "Größe (x)\n")
        either.write("c/d.txt", "GRÖẞE\nGRÖßE (x)\n".encode())
        either.write("e.txt", "Größe (y)\r\nvier\r\n".encode("cp1252"))
        found = either.call(code_grep, pattern="größe (", literal=True, ignore_case=True, context_lines=1)
        assert found == (
            "a.txt-1- eins\na.txt:2: Größe (x)\na.txt-3- drei\n--\nb.txt:1: Größe (x)\n--\n"
            "c/d.txt-1- GRÖẞE\nc/d.txt:2: GRÖßE (x)\n--\ne.txt:1: Größe (y)\ne.txt-2- vier"
        )
        cut = either.call(code_grep, pattern="Größe", max_results=2, context_lines=0)
        assert cut.startswith("a.txt:2: Größe (x)\nb.txt:1: Größe (x)\n[There are more matches than these")
        assert either.call(code_grep, pattern="Größe", path="e.txt", context_lines=0) == "e.txt:1: Größe (y)"
        assert either.call(code_grep, pattern="Gr.ße .y", glob_filter="e*", context_lines=0) == "e.txt:1: Größe (y)"

    def test_what_only_the_widened_expression_fits_is_no_match(self, either: Project) -> None:
        """`..` is not one letter of three bytes, also where there are many of them before the first match."""
        for number in range(40):
            either.write(f"f{number:02}.txt", "だ\n本\n")
        either.write("z.txt", "だ本\n")
        assert either.call(code_grep, pattern="^..$", context_lines=0) == "z.txt:1: だ本"
        assert either.call(code_grep, pattern="^..$", output="count") == "z.txt: 1\n[1 matching lines in all]"
        assert either.call(code_grep, pattern="^...$").startswith("No line matches")

    def test_bytes_of_no_encoding_are_found_as_latin_1(self, either: Project) -> None:
        either.write("a.txt", b"x\xff\xfe\x81 needle caf\xe9\n" + bytes(range(0x80, 0x100)) + b"\n")
        assert "needle café" in either.call(code_grep, pattern="caf.$", context_lines=0)

    def test_a_file_whose_name_is_a_dash_is_searched(self, either: Project) -> None:
        either.write("-", "needle\n")
        assert either.call(code_grep, pattern="needle", path="./-") == "-:1: needle"
        assert either.call(code_grep, pattern="needle", glob_filter="-") == "-:1: needle"

    @pytest.mark.slow
    def test_many_files_are_searched_together_and_shown_apart(self, either: Project) -> None:
        for number in range(70):
            lines = ("Größe", "eins", "zwei") if number % 2 else ("eins", "zwei", "Größe")
            end = "\n" if number % 3 else ""
            either.write(f"f{number:02}.txt", ("\n".join(lines) + end).encode("cp1252"))
        expected = [
            f"f{number:02}.txt:1: Größe\nf{number:02}.txt-2- eins"
            if number % 2
            else f"f{number:02}.txt-2- zwei\nf{number:02}.txt:3: Größe"
            for number in range(70)
        ]
        found = either.call(code_grep, pattern="Größe", context_lines=1, max_results=500)
        assert found == "\n--\n".join(expected)
        cut = either.call(code_grep, pattern="Gr.ße", context_lines=1, max_results=60).split("\n[")
        assert cut[0] == "\n--\n".join(expected[:60])
        assert cut[1].startswith("There are more matches than these 60.")
        files = either.call(code_grep, pattern="Größe", output="files", max_results=500)
        assert files == "\n".join(f"f{number:02}.txt" for number in range(70))
        count = either.call(code_grep, pattern="Größe", output="count", max_results=500)
        assert count.endswith("f69.txt: 1\n[70 matching lines in all]")
