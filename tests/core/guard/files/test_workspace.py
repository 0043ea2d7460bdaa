"""The folder that a session works in, and where its logs and dumps go."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from marvin_core.api.errors import PathRefused
from marvin_core.config.load import load
from marvin_core.guard.files.workspace import Workspace


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "project").mkdir()
    return (tmp_path / "project").resolve()


def workspace(project: Path, *argv: str, coding: bool = False, **env: str) -> Workspace:
    given = {"HOME": str(project.parent / "home"), **env}
    made = Workspace(load(argv, given, cwd=project)[0])
    made.mode = "coding" if coding else made.mode
    return made


def test_logs_go_to_the_data_folder_outside_of_projects(project: Path) -> None:
    place = workspace(project)
    assert place.folder("logs") == project.parent / "home/.local/share/marvin/logs"
    assert list(project.iterdir()) == [], "a folder that only happens to be current is left alone"


def test_logs_go_to_the_project_in_coding_mode_with_a_root_and_in_a_marvin_project(project: Path) -> None:
    assert workspace(project, coding=True).folder("logs") == project / ".marvin" / "logs"
    assert (project / ".marvin" / ".gitignore").read_text().split() == ["logs/", "memories/", "undo/"]
    assert workspace(project).folder("memories") == project / ".marvin" / "memories", "it is one now"
    (project / "sub").mkdir()
    assert workspace(project, "--working-dir", "sub").folder("logs") == project / "sub" / ".marvin" / "logs"


def test_an_existing_gitignore_is_left_as_it_is(project: Path) -> None:
    (project / ".marvin").mkdir()
    (project / ".marvin" / ".gitignore").write_text("mine\n")
    workspace(project, coding=True).folder("logs")
    assert (project / ".marvin" / ".gitignore").read_text() == "mine\n"


@pytest.mark.parametrize("linked", [".marvin", ".marvin/logs"])
def test_a_link_that_a_repository_brings_is_not_written_through(project: Path, linked: str) -> None:
    """I4: a checkout cannot lead Marvin's own logs out of it."""
    outside = project.parent / "outside"
    outside.mkdir()
    (project / linked).parent.mkdir(exist_ok=True)
    (project / linked).symlink_to(outside)
    assert workspace(project, coding=True).folder("logs") == project.parent / "home/.local/share/marvin/logs"
    assert list(outside.iterdir()) == []


def test_a_dangling_link_for_the_gitignore_makes_no_file_elsewhere(project: Path) -> None:
    """I4: as above, for the one file that Marvin writes by itself."""
    (project / ".marvin").mkdir()
    (project / ".marvin" / ".gitignore").symlink_to(project.parent / "made")
    workspace(project, coding=True).folder("logs")
    assert not (project.parent / "made").exists()


def test_moving_changes_the_root_and_where_logs_go(project: Path) -> None:
    other = project.parent / "other"
    other.mkdir()
    (other / "file").write_text("hello")
    place = workspace(project)
    assert place.read("file") is None
    place.move(other)
    assert place.root == other.resolve()
    assert place.read("file") == "hello"
    assert place.folder("logs") == other / ".marvin" / "logs"


def test_writable_files_hold_after_a_move(project: Path) -> None:
    other = project.parent / "other"
    other.mkdir()
    place = workspace(project, MARVIN_WRITABLE_FILES="a.txt")
    for root in (project, other):
        place.move(root)
        place.paths.replace("a.txt", b"fine")
        with pytest.raises(PathRefused):
            place.paths.replace("b.txt", b"refused")


def test_documents_are_read_from_inside_only(project: Path) -> None:
    """I4: AGENTS.md and its like are opened as any path of a model is."""
    (project.parent / "secret").write_text("secret")
    (project / "AGENTS.md").symlink_to("../secret")
    (project / "folder").mkdir()
    (project / "latin").write_bytes(b"caf\xe9")
    place = workspace(project)
    assert place.read("AGENTS.md") is None
    assert place.read("../secret") is None
    assert place.read("folder") is None
    assert place.read("latin") == "caf\N{REPLACEMENT CHARACTER}"


def test_a_pipe_in_place_of_a_document_does_not_hang(project: Path) -> None:
    os.mkfifo(project / "AGENTS.md")
    assert workspace(project).read("AGENTS.md") is None
