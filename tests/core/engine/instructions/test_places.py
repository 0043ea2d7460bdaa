"""Where instructions and skills may be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from marvin_core.engine.instructions.places import instruction_places, project_folders


def folders(tmp_path: Path, *names: str, git: str = "") -> Path:
    """A folder of these names, one in the other, and a repository at one of them."""
    folder = tmp_path.joinpath(*names)
    folder.mkdir(parents=True)
    if git:
        (tmp_path / git / ".git").mkdir()
    return folder


def test_all_folders_from_the_top_of_the_repository_count(tmp_path: Path) -> None:
    here = folders(tmp_path, "repo", "packages", "api", git="repo")
    top = tmp_path / "repo"
    assert project_folders(here, tmp_path / "home") == [str(top), str(top / "packages"), str(here)]
    assert project_folders(top, tmp_path / "home") == [str(top)]


def test_a_repository_in_another_one_is_a_project_of_its_own(tmp_path: Path) -> None:
    """A work tree has a file of this name, and no folder."""
    here = folders(tmp_path, "repo", "tree", "src", git="repo")
    (tmp_path / "repo" / "tree" / ".git").write_text("gitdir: ../.git/worktrees/tree\n")
    assert project_folders(here, tmp_path / "home") == [str(tmp_path / "repo" / "tree"), str(here)]


def test_outside_of_a_repository_the_folder_counts_alone(tmp_path: Path) -> None:
    here = folders(tmp_path, "a", "b")
    assert project_folders(here, tmp_path / "home") == [str(here)]


@pytest.mark.parametrize("home", ["home", "home/work"])
def test_what_is_at_home_or_above_is_no_project(tmp_path: Path, home: str) -> None:
    """Many keep their home folder in git: that says nothing about what lies in it."""
    here = folders(tmp_path, "home", "work", "app", git="home")
    assert project_folders(here, tmp_path / home) == [str(here)]


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a folder to somebody else takes root")
def test_a_folder_of_somebody_else_counts_for_nothing(tmp_path: Path) -> None:
    here = folders(tmp_path, "shared", "app", git="shared")
    os.chown(tmp_path / "shared", 12345, 12345)
    assert project_folders(here, tmp_path / "home") == [str(here)]


def test_places_are_named_as_tools_name_them_and_the_nearest_are_last(tmp_path: Path) -> None:
    places = instruction_places(["/srv/repo", "/srv/repo/a", "/srv/repo/a/b"], Path("/home/ada"))
    names = [place.name for place in places]
    assert names[0] == "../../AGENTS.md"
    assert names[4] == "/home/ada/.marvin/instructions/srv/repo.md"
    assert names[5] == "../AGENTS.md"
    assert names[-5:] == [
        "AGENTS.md",
        "CLAUDE.md",
        ".marvin-instructions",
        ".marvin/instructions.md",
        "/home/ada/.marvin/instructions/srv/repo/a/b.md",
    ]
    assert {place.base for place in places} == {"/srv/repo", "/home/ada/.marvin/instructions"}
    assert places[-5].file == "/srv/repo/a/b/AGENTS.md"
