"""glob and code_grep: the same answers with git and without, with ripgrep and without."""

from __future__ import annotations

import itertools
import os
import shutil
from pathlib import Path

import pytest

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
        assert "Look at what is there with tree" in furnished.call(glob, pattern="**/*.rs")

    @pytest.mark.parametrize(
        ("pattern", "path", "words"),
        [
            ("", ".", "pattern is empty"),
            ("../*", ".", "leads out of the folder"),
            ("[z-a]", ".", "no valid glob pattern"),
            ("{a,b}" * 10, ".", "too many patterns"),
            ("*", "missing", "File not found"),
            ("*", "a.txt", "is a file, not a folder"),
            ("*", "..", "leads out of the working directory"),
        ],
    )
    def test_what_is_wrong_is_named(self, furnished: Project, pattern: str, path: str, words: str) -> None:
        assert words in furnished.error(glob, pattern=pattern, path=path)

    def test_an_absolute_pattern_is_answered_with_the_relative_one(self, furnished: Project) -> None:
        text = furnished.error(glob, pattern=f"{furnished.root}/src/*.py")
        assert "Use the relative path 'src/*.py'" in text

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
        assert found.split("\n")[3].startswith("[There is more.")
        assert len(found.split("\n")) == 4

    def test_exactly_as_many_matches_as_asked_for_are_no_cut(self, searcher: Project) -> None:
        found = searcher.call(code_grep, pattern="needle", path="a.txt", max_results=3)
        assert "There is more" not in found

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
        assert f"{pattern!r} is no valid regular expression" in text
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
        assert r"'nowhere\\(x\\)\\?' for the text itself" in text
        assert "No file in '.' passes glob_filter" in searcher.call(code_grep, pattern="x", glob_filter="*.rs")

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
    import asyncio

    lonely = Project(project.root, programs=())
    lonely.write("a.txt", "a" * 60 + "!\n")

    async def go() -> None:
        lonely.processes = lonely._runner()
        try:
            async with asyncio.timeout(1):
                await code_grep.function(lonely.context, pattern="(a+)+$")
        finally:
            await lonely.processes.close()

    with pytest.raises(TimeoutError):
        asyncio.run(go())  # which ends, as the child does


def test_a_large_listing_lets_other_work_go_on_and_can_be_cancelled(project: Project) -> None:
    import asyncio

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
