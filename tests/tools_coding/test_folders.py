"""tree, set_working_dir and get_working_dir."""

from __future__ import annotations

from pathlib import Path

import pytest

from marvin_tools_coding.files.folders import get_working_dir, set_working_dir, tree
from tests.tools_coding.support import Project


@pytest.fixture(params=["repository", "project"])
def furnished(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    """A small project as a git repository, and as a folder that is none."""
    made: Project = request.getfixturevalue(request.param)
    for path in ("b.txt", "a.log", "src/main.py", "src/deep/er/est.py", "build/out.o", ".env", ".tickets/t.md", ":odd"):
        made.write(path)
    made.write(".gitignore", "*.log\nbuild/\n")
    made.write("src/.gitignore", "!kept.log\n")
    made.write("src/kept.log")
    (made.root / "empty").mkdir()
    (made.root / "link").symlink_to("src")
    (made.root / "away").symlink_to(tmp_path)
    return made


class TestTree:
    def test_folders_come_first_and_links_are_shown_and_not_followed(self, furnished: Project, tmp_path: Path) -> None:
        assert furnished.call(tree) == (
            "./\n"
            "  empty/\n"
            "  src/\n"
            "    deep/\n"
            "      er/\n"
            "    .gitignore\n"
            "    kept.log\n"
            "    main.py\n"
            "  .env\n"
            "  .gitignore\n"
            "  :odd\n"
            f"  away -> {tmp_path}\n"
            "  b.txt\n"
            "  link -> src"
        )

    def test_what_is_ignored_can_be_asked_for(self, furnished: Project) -> None:
        shown = furnished.call(tree, respect_gitignore=False, max_depth=2)
        assert "  build/\n    out.o\n" in shown
        assert "  a.log\n" in shown
        assert ".git/" not in shown
        assert ".tickets" not in shown
        assert furnished.call(tree, path="build") == "build/\n  out.o"

    def test_a_folder_of_which_all_is_ignored_is_not_called_empty(self, furnished: Project) -> None:
        furnished.write("all/.gitignore", "*\n")
        furnished.write("all/x.txt")
        assert "everything here is ignored by git" in furnished.call(tree, path="all")
        assert furnished.call(tree, path="all", respect_gitignore=False) == "all/\n  .gitignore\n  x.txt"

    def test_the_depth_and_the_start_are_chosen(self, furnished: Project) -> None:
        assert furnished.call(tree, path="src", max_depth=1) == ("src/\n  deep/\n  .gitignore\n  kept.log\n  main.py")
        assert furnished.call(tree, path="link", max_depth=1).startswith("src/\n")
        assert furnished.call(tree, path="src/deep", max_depth=10) == "src/deep/\n  er/\n    est.py"
        assert furnished.call(tree, path="empty") == "empty/\n  (empty)"

    @pytest.mark.parametrize(
        ("path", "words"),
        [
            ("b.txt", "is a file, not a folder"),
            ("missing", "File not found: 'missing'"),
            ("away", "leads out of the working directory"),
            ("..", "leads out of the working directory"),
            (".tickets", "tickets"),
        ],
    )
    def test_what_is_wrong_is_named(self, furnished: Project, path: str, words: str) -> None:
        assert words in furnished.error(tree, path=path)

    def test_what_git_tracks_is_shown_though_a_rule_matches_it(self, furnished: Project) -> None:
        if (furnished.root / ".git").exists():
            furnished.git("add", "--force", "a.log")
            assert "\n  a.log\n" in furnished.call(tree)

    @pytest.mark.slow
    def test_large_folders_are_cut_with_a_note(self, project: Project) -> None:
        for number in range(150):
            project.write(f"many/{number:03}.txt")
        shown = project.call(tree)
        assert "\n    099.txt\n    ... 50 more" in shown
        for folder in range(40):
            for number in range(20):
                project.write(f"d{folder:02}/{number:02}.txt")
        shown = project.call(tree)
        assert all(f"\n  d{folder:02}/" in shown for folder in range(40))
        assert shown.endswith("[Only 500 entries are shown. Give a folder as path, or lower max_depth.]")
        assert len(shown.split("\n")) < 600


class TestWorkingDir:
    def test_it_is_told(self, project: Project) -> None:
        assert project.call(get_working_dir) == str(project.root)

    def test_it_is_moved_after_a_yes(self, project: Project, tmp_path: Path) -> None:
        (tmp_path / "other").mkdir()
        (tmp_path / "alias").symlink_to("other")
        project.answers = ["yes"]
        said = project.call(set_working_dir, path=f"{tmp_path}/alias")
        assert project.session.moved_to == tmp_path / "other"
        assert project.questions == [f"Change the working directory from {project.root} to {tmp_path}/other?"]
        assert str(tmp_path / "other") in said

    def test_after_a_no_it_stays(self, project: Project, tmp_path: Path) -> None:
        project.answers = ["no"]
        assert "The user said no" in project.error(set_working_dir, path=str(tmp_path))
        assert project.session.moved_to is None

    @pytest.mark.parametrize(
        ("path", "words"),
        [
            ("relative", "is not an absolute path"),
            ("~/x", "is not an absolute path"),
            ("/a\0b", "is not an absolute path"),
            ("/nowhere/at/all", "There is no folder"),
            ("/etc/hosts", "There is no folder"),
        ],
    )
    def test_only_an_existing_folder_is_asked_about(self, project: Project, path: str, words: str) -> None:
        assert words in project.error(set_working_dir, path=path)
        assert project.questions == []

    def test_where_nobody_can_confirm_it_is_refused(self, project: Project, tmp_path: Path) -> None:
        for interactive, depth in ((False, 0), (True, 1)):
            project.session.interactive, project.session.depth = interactive, depth
            text = project.error(set_working_dir, path=str(tmp_path))
            assert "The working directory is fixed in this run, because nobody can confirm another one. Work in" in text
            assert str(project.root) in text
        assert project.session.moved_to is None
