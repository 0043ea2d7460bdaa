"""The folder that a session works in, and where its logs and dumps go."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from marvin_core.api.errors import MarvinError, PathRefused
from marvin_core.api.messages import user
from marvin_core.config.load import load
from marvin_core.conversation.backups import Backups
from marvin_core.guard.files.workspace import Workspace
from marvin_core.guard.kept_texts import KeptTexts
from marvin_core.guard.processes.jobs import open_log
from marvin_core.guard.redaction import Redactor
from tests.support.swapping import swapped


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
    assert (project / ".marvin" / ".gitignore").read_text().split() == ["logs/", "memories/", "report/", "undo/"]
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


def test_writable_files_are_the_same_ones_after_a_move(project: Path) -> None:
    """They were named for the folder of the start, and are no other files elsewhere."""
    other = project.parent / "other"
    other.mkdir()
    place = workspace(project, MARVIN_WRITABLE_FILES=f"a.txt,{other}/c.txt")
    place.paths.replace("a.txt", b"fine")
    place.move(other)
    place.paths.replace("c.txt", b"fine")
    for file in ("a.txt", "b.txt"):
        with pytest.raises(PathRefused):
            place.paths.replace(file, b"refused")
    place.move(project.parent)
    place.paths.replace(f"{project.name}/a.txt", b"fine")


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


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="two names change places in one step on Linux only")
def test_a_link_that_is_swapped_in_is_not_written_through(project: Path) -> None:
    """I4: a command that runs at this moment cannot lead Marvin's own files out of the project."""
    outside = project.parent / "outside"
    (outside / "logs").mkdir(parents=True)
    (outside / "memories").mkdir()
    (project / ".marvin" / "logs").mkdir(parents=True)
    (project / "link").symlink_to(outside)
    place = workspace(project, coding=True)
    kept = KeptTexts(Redactor(list), print)
    backups = Backups(place, load((), {"HOME": str(project.parent / "home")}, cwd=project)[0], kept)
    with swapped(project / ".marvin", project / "link"):
        for number in range(150):
            with suppress(OSError, MarvinError):
                open_log(place.root, lambda: place.folder("logs"), number)[1].close()
            with suppress(OSError, MarvinError):
                backups.add_to_index(backups.write([user("text")], float(number)), float(number))
    assert sorted(str(path.relative_to(outside)) for path in outside.rglob("*")) == ["logs", "memories"]


FULL = """
import resource, signal, sys
from pathlib import Path
from marvin_core.config.load import load
from marvin_core.guard.files.workspace import Workspace

place = Workspace(load([], {"HOME": sys.argv[1]}, cwd=Path(sys.argv[1]))[0])
place.mode = "coding"
sys.dont_write_bytecode = True
import marvin_core.guard.files.no_links
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
try:
    place.folder("logs")
except OSError:
    print("full")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
place.folder("logs")
"""


def test_what_git_is_to_ignore_is_not_left_empty_by_a_full_disk(project: Path) -> None:
    """Nothing would ever fill it, and logs with what tools read would be committed."""
    done = subprocess.run([sys.executable, "-c", FULL, str(project)], capture_output=True, check=True, timeout=150)
    assert done.stdout == b"full\n"
    assert "logs" in (project / ".marvin/.gitignore").read_text()


OWN = {".config/marvin": "config_folder", ".local/share/marvin": "data_folder", ".state/m": "state_folder"}


def in_home(home: Path, **changes: Any) -> Workspace:
    """A workspace whose root is the home folder, where Marvin's own folders are as well."""
    for name in OWN:
        (home / name).mkdir(parents=True)
    (home / "cache").mkdir()
    config = load([], {"HOME": str(home)}, cwd=home)[0]
    folders = {field: home / name for name, field in OWN.items()}
    return Workspace(config.replace(cache_folder=home / "cache", **folders, **changes))


@pytest.mark.parametrize(
    "path",
    [
        ".config/marvin/config.yaml",
        ".Config/MARVIN/config.yaml",
        "./x/../.config/marvin/packs/new.py",
        ".local/share/marvin/undo/0/1.json",
        ".state/m/trusted.json",
        "cache/index.json",
        "linked/config.yaml",
    ],
)
def test_no_tool_reaches_what_marvin_itself_keeps(tmp_path: Path, path: str) -> None:
    """Who works in the home folder has Marvin's rules, keys and undo ledger below the root."""
    paths = in_home(tmp_path).paths
    (tmp_path / "linked").symlink_to(tmp_path / ".config" / "marvin")
    for act in (
        lambda: paths.replace(path, b"permissions: {allow: [run_command]}"),
        lambda: paths.append(path, b"x"),
        lambda: paths.remove(path),
        lambda: paths.open(path),
        lambda: paths.locate(path),
    ):
        with pytest.raises(PathRefused, match="use the ticket tools for tickets"):
            act()
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


def test_a_link_to_what_marvin_keeps_is_not_replaced(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "marvin"
    real.mkdir(parents=True)
    (tmp_path / ".config").mkdir()
    link = tmp_path / ".config" / "marvin"
    link.symlink_to(real)
    config = load([], {"HOME": str(tmp_path)}, cwd=tmp_path)[0]
    paths = Workspace(config.replace(config_folder=link)).paths
    for path in (".config/marvin", ".config/marvin/config.yaml", "dotfiles/marvin/config.yaml"):
        with pytest.raises(PathRefused):
            paths.replace(path, b"x")
    with pytest.raises(PathRefused):
        paths.remove(".config/marvin")
    assert link.is_symlink()


def test_only_marvins_own_places_are_kept_from_tools(tmp_path: Path) -> None:
    workspace = in_home(tmp_path)
    for path in ("src/.config/marvin/a.txt", "src/cache/a.txt", "caches/a.txt", ".config/other.txt"):
        workspace.paths.replace(path, b"x")
    playground = tmp_path / ".local/share/marvin/playground"
    playground.mkdir()
    with workspace.playing_in(playground):
        workspace.paths.replace("a.txt", b"x")
    assert (playground / "a.txt").read_bytes() == b"x"


@pytest.mark.parametrize("place", ["calls.jsonl", "out/agents/calls.jsonl"])
def test_no_tool_changes_the_log_of_calls(tmp_path: Path, place: str) -> None:
    """It tells whoever started the agent what that did."""
    log = tmp_path / place
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("{}")
    config = load([], {"HOME": "/nowhere", "MARVIN_SUBAGENT_LOG": place}, cwd=tmp_path)[0]
    paths = Workspace(config).paths
    with pytest.raises(PathRefused):
        paths.replace(place, b"")
    with pytest.raises(PathRefused):
        paths.append(place, b"x")
    with pytest.raises(PathRefused):
        paths.remove(place)
    with paths.open(place) as stream:
        assert stream.read() == b"{}"
    paths.replace(f"other/{place}", b"x")
