"""git tools, while another process swaps a folder of the project for a link that leads outside.

git goes by names, so that the link can lead it there. The sandbox keeps what is there as it is; what git has read there
is not shown, in the sandbox or without it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

import pytest

from marvin_core import Tool, ToolError, ToolResult, open_without_links
from marvin_core.engine.calls.processes import CallProcesses
from marvin_core.engine.calls.timer import CallTimer
from marvin_core.guard.processes.runner import ProcessRunner
from marvin_tools_coding.git.committing import git_commit
from marvin_tools_coding.git.history import git_blame, git_show
from marvin_tools_coding.git.inspecting import git_diff, git_log, git_status
from marvin_tools_coding.git.place import Place as GitPlace
from marvin_tools_coding.git.staging import stage
from marvin_tools_coding.git.switching import git_checkout
from tests.support.sandboxes import Place, in_sandbox
from tests.support.swapping import lasting, swapped

from .support_shell import Folder, text

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="two names change places in one step on Linux only"),
    pytest.mark.slow,
]
CALLS: dict[str, tuple[Tool, dict[str, object]]] = {
    "restored": (git_checkout, {"target": "HEAD", "path": "area"}),
    "file": (git_checkout, {"target": "other", "path": "area/inner/data.txt"}),
    "switched": (git_checkout, {"target": "-"}),
    "committed": (git_commit, {"message": "All of it"}),
}
READING: dict[str, tuple[Tool, dict[str, object]]] = {
    "status": (git_status, {}),
    "status_below": (git_status, {"path": "area"}),
    "diff": (git_diff, {}),
    "diff_below": (git_diff, {"path": "area"}),
    "diff_other": (git_diff, {"ref": "other", "path": "area/inner/data.txt"}),
    "diff_between": (git_diff, {"ref": "other..HEAD"}),
    "log": (git_log, {"path": "area"}),
    "show": (git_show, {"path": "area/inner/data.txt"}),
    "show_commit": (git_show, {}),
    "blame": (git_blame, {"path": "area/inner/data.txt"}),
}
SECONDS = 6


def content(folder: Path) -> dict[str, str]:
    return {str(file.relative_to(folder)): file.read_text() for file in sorted(folder.rglob("*")) if file.is_file()}


def prepared(root: Path) -> Path:
    """A repository with two branches, and a folder beside it that looks like one of its own."""
    outside = root.parent / "outside"
    (root / "area" / "inner").mkdir(parents=True)
    script = "git init -qb main . && git config user.name T && git config user.email t@example.org && git add area "
    script += "&& git commit -qm first && git switch -qc other && echo other > area/inner/data.txt "
    script += "&& git commit -qam second && git switch -q main && git config advice.detachedHead false"
    (root / "area" / "inner" / "data.txt").write_text("inside\n")
    subprocess.run(["sh", "-ec", script], cwd=root, check=True, timeout=60)
    shutil.copytree(root / "area", outside)
    (outside / "inner" / "data.txt").write_text("outside\n")
    (root / "link").symlink_to("../outside")
    return outside


@pytest.mark.parametrize("name", CALLS)
def test_what_is_outside_stays_as_it_is(tmp_path: Path, name: str) -> None:
    """I4."""
    called, arguments = CALLS[name]
    root = tmp_path / "home" / "project"
    outside = prepared(root)
    before = content(outside)

    async def work(place: Place) -> None:
        folder = Folder(place.root)
        folder.processes = cast("ProcessRunner", CallProcesses(place.runner, CallTimer(500), outside=False))
        await folder.called(called, **arguments)
        with swapped(place.root / "area", place.root / "link", may_be_missing=True):
            for number in range(20):
                changed = {"message": f"Number {number}"} if name == "committed" else {}
                try:
                    await folder.called(called, **{**arguments, **changed})
                except ToolError:
                    continue

    in_sandbox(tmp_path, work, root=root)
    assert content(outside) == before


@pytest.mark.parametrize("name", ["restored", "file", "switched"])
def test_a_checkout_changes_nothing_outside_without_a_sandbox_either(tmp_path: Path, name: str) -> None:
    """I4."""
    called, arguments = CALLS[name]
    root = tmp_path / "project"
    outside = prepared(root)
    before = content(outside)
    git(root, "switch", "-q", "-")
    git(root, "switch", "-q", "-")
    said = said_beside_swaps(root, lambda folder, number: folder.called(called, **arguments), may_be_missing=True)
    assert said
    assert content(outside) == before


@pytest.mark.parametrize("name", READING)
def test_what_is_outside_is_not_shown(tmp_path: Path, name: str) -> None:
    """I4."""
    called, arguments = READING[name]
    root = tmp_path / "home" / "project"
    outside = prepared(root)
    (outside / "inner" / "data.txt").write_text("SECRET\n")
    (outside / "inner" / "secret-name.txt").touch()
    (root / "area" / "inner" / "data.txt").write_text("inside changed\n")
    said = said_beside_swaps(root, lambda folder, number: folder.called(called, **arguments))
    assert said
    assert not any(map(is_told, said))


@pytest.mark.parametrize("path", [None, "area", "area/inner/data.txt"], ids=["all", "folder", "file"])
def test_a_file_outside_is_not_shown_in_place_of_what_is_staged(tmp_path: Path, path: str | None) -> None:
    """I4: git itself reads the file of the working tree if it takes it for what is staged."""
    root = beside_secrets(tmp_path)
    (root / "area" / "inner" / "data.txt").write_text("staged\n")
    git(root, "add", "area")
    said = said_beside_swaps(root, lambda folder, number: folder.called(git_diff, staged=True, path=path))
    assert any("+staged" in one for one in said)
    assert not any(map(is_told, said))


@pytest.mark.parametrize("given", [{}, {"ref": "HEAD"}, {"path": "area/inner/data.txt"}], ids=str)
def test_a_file_outside_is_not_shown_as_a_filter_of_the_user_makes_it(tmp_path: Path, given: dict[str, object]) -> None:
    """I4."""
    root = beside_secrets(tmp_path)
    filter_of_the_user(root)
    (root / "area" / "inner" / "data.txt").write_text("inside changed\n")
    said = said_beside_swaps(root, lambda folder, number: folder.called(git_diff, **given))
    assert any("+INSIDE CHANGED" in one for one in said)
    assert not any(map(is_told, said))


SAME = "git config core.checkStat minimal; git config core.trustctime false; touch -d @1000000000 FILE; git add area; "


@pytest.mark.parametrize("given", [{}, {"ref": "HEAD"}, {"path": "."}, {"ref": "other"}], ids=str)
def test_a_file_outside_is_not_shown_in_place_of_what_was_before(tmp_path: Path, given: dict[str, object]) -> None:
    """I4: of a file that is gone, because its folder is a link, git shows what it takes for its content."""
    root = beside_secrets(tmp_path)
    script = SAME.replace("FILE", "area/inner/data.txt ../outside/inner/data.txt")
    subprocess.run(["sh", "-ec", script + "rm -r area; mv link area"], cwd=root, check=True, timeout=60)
    folder = Folder(root)
    try:
        told = folder.call(git_diff, **given)
    except ToolError as error:
        told = str(error)
    assert not is_told(told)


def test_a_file_outside_is_not_shown_in_place_of_what_is_committed(tmp_path: Path) -> None:
    """I4: git knows the index once a commit changes a submodule."""
    root = beside_secrets(tmp_path)
    commit = git(root, "rev-parse", "HEAD").strip()
    script = SAME.replace("FILE", "area/inner/data.txt ../outside/inner/data.txt")
    script += f"git update-index --add --cacheinfo 160000,{commit},sub; git commit -qm sub; rm -r area; mv link area"
    (root / "area" / "inner" / "data.txt").write_text("PUBLIC\n")
    subprocess.run(["sh", "-ec", script], cwd=root, check=True, timeout=60)
    told = Folder(root).call(git_show)
    assert "+PUBLIC" in told
    assert not is_told(told)


@pytest.mark.parametrize("clean", ["", "tr a-z A-Z"], ids=["plain", "filtered"])
@pytest.mark.parametrize("paths", [None, ["area"], ["area/inner/data.txt"]], ids=["all", "folder", "file"])
def test_what_is_outside_is_not_committed(tmp_path: Path, paths: list[str] | None, clean: str) -> None:
    """I4."""
    root = beside_secrets(tmp_path)
    if clean:
        git(root, "config", "filter.up.clean", clean)
        (root / ".git" / "info" / "attributes").write_text("*.txt filter=up\n")

    def commit(folder: Folder, number: int) -> Awaitable[str | ToolResult]:
        change(root, number)
        return folder.called(git_commit, message=f"Number {number}", paths=paths)

    def is_done(said: str) -> bool:
        return said.startswith("Committed")

    said = said_beside_swaps(root, commit, is_done)
    assert any(map(is_done, said))
    assert not is_told(git(root, "log", "--patch", "--all", "--reflog"))
    assert not is_told(staged(root))


def test_names_outside_are_not_told_as_left_out(tmp_path: Path) -> None:
    """I4: git lists new files, of which git_commit names those that it leaves out."""
    root = beside_secrets(tmp_path)
    for number in range(15):
        (root.parent / "outside" / "inner" / f"secret-name-{number}.pem").touch()
    (root / "own.pem").touch()
    (root / ".git" / "info" / "exclude").write_text("/link\n")
    place = GitPlace(git_dir=root / ".git", top=root, root=root)

    async def left_out(folder: Folder, number: int) -> str:
        return (await stage(folder.context, place, [])).note

    said = said_beside_swaps(root, left_out, lambda one: "own.pem" in one)
    assert any("own.pem" in one for one in said)
    assert not any(map(is_told, said))


@pytest.mark.parametrize("name", ["pre-commit", "post-commit"])
def test_what_is_outside_is_not_committed_by_a_hook(tmp_path: Path, name: str) -> None:
    """I4: of what is staged git reads no file, and a hook that stages does."""
    root = beside_secrets(tmp_path)
    hook = root / ".git" / "hooks" / name
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ngit add area || true\n")
    hook.chmod(0o755)
    (root / "own.txt").touch()

    def commit(folder: Folder, number: int) -> Awaitable[str | ToolResult]:
        change(root, number)
        (root / "own.txt").write_text(f"{number}\n")
        git(root, "add", "own.txt")
        return folder.called(git_commit, message=f"Number {number}", add_all=False)

    def is_done(said: str) -> bool:
        return said.startswith(("Committed", "The commit was undone"))

    said = said_beside_swaps(root, commit, is_done)
    assert any(map(is_done, said))
    assert not is_told(git(root, "log", "--patch", "--all", "--reflog"))
    assert not is_told(staged(root))


@pytest.mark.parametrize("path", ["area", "area/inner/data.txt"])
def test_what_is_outside_is_not_saved_before_a_checkout(tmp_path: Path, path: str) -> None:
    """I4."""
    root = beside_secrets(tmp_path)

    def restore(folder: Folder, number: int) -> Awaitable[str | ToolResult]:
        change(root, number)
        return folder.called(git_checkout, target="HEAD", path=path)

    assert said_beside_swaps(root, restore, may_be_missing=True)
    assert not is_told(git(root, "log", "--patch", "--all", "--reflog", "--diff-merges=separate"))


def said_beside_swaps(
    root: Path,
    call: Callable[[Folder, int], Awaitable[str | ToolResult]],
    is_sought: Callable[[str], bool] = bool,
    *,
    may_be_missing: bool = False,
) -> list[str]:
    """What numbered calls say, with their errors, while another process swaps the folder for the link.

    One of them at least is what is sought, or there was none in a minute.
    """
    folder = Folder(root)
    said: list[str] = []

    async def work() -> None:
        with swapped(root / "area", root / "link", may_be_missing=may_be_missing):
            for number in lasting(SECONDS, lambda: any(map(is_sought, said))):
                try:
                    said.append(text(await call(folder, number)))
                except ToolError as error:
                    said.append(str(error))

    folder.run(work)
    return said


def beside_secrets(tmp_path: Path) -> Path:
    """A repository, whose folder outside has a secret."""
    root = tmp_path / "home" / "project"
    outside = prepared(root)
    (outside / "inner" / "data.txt").write_text("SECRET\n")
    (outside / "inner" / "secret-name.txt").write_text("SECRET\n")
    return root


def filter_of_the_user(root: Path) -> None:
    """Have the user's settings convert each text of the repository."""
    home = root.parent / "home"
    home.mkdir()
    (home / ".gitconfig").write_text('[filter "up"]\n\tclean = tr a-z A-Z\n')
    (root / ".git" / "info" / "attributes").write_text("*.txt filter=up\n")


def change(root: Path, number: int) -> None:
    """Give the file of the project other content, under the name that its folder has right now."""
    for name in ("area", "link"):
        try:
            with open_without_links(root, f"{name}/inner/data.txt"):
                descriptor = os.open(root / name / "inner" / "data.txt", os.O_RDWR)
        except OSError:
            continue
        with open(descriptor, "r+") as file:
            if "SECRET" not in file.read():
                file.write(f"{number}\n")


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True, timeout=60).stdout


def staged(root: Path) -> str:
    """The names and contents of what is staged, of which git reads no file."""
    listed = git(root, "ls-files", "--stage")
    return listed + "".join(git(root, "cat-file", "blob", line.split()[1]) for line in listed.splitlines())


def is_told(output: str) -> bool:
    return "SECRET" in output or "secret-name" in output
