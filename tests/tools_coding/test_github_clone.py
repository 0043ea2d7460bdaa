"""github_clone with the real gh and git: whole or nothing, nothing of it runs, and what is told of it."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from marvin_core.testing.environment import search_path
from marvin_tools_coding.github.repositories import Clones, Repository
from tests.support.github import TOKEN, GitHub, needs_gh
from tests.tools_coding.support import files_below
from tests.tools_coding.support_github import Desk, program

pytestmark = needs_gh

FILES = {"README.md": "# Flask\n", "src/app.py": "def run(): ...\n"}


def test_a_clone_is_made_and_told(desk: Desk) -> None:
    tree = desk.hub.repository("pallets/flask", FILES, description="A framework", archived=True)
    desk.hub.commit(tree, {"new.txt": "new\n"}, "Second")
    text = desk.text("github_clone", repo="pallets/flask")
    assert text.split("\n")[:3] == [
        "Cloned pallets/flask to ~/github-clones/pallets/flask, its newest commit only.",
        "A framework",
        "It is archived, so it is no longer developed.",
    ]
    head = desk.hub.git(tree, "rev-parse", "HEAD")[:7]
    assert f"main at {head}" in text
    assert ": Second\nAt its top: README.md  new.txt  src/\n" in text
    clone = desk.clones / "pallets/flask"
    assert files_below(clone).keys() == {"README.md", "src/app.py", "new.txt"}
    assert len(desk.hub.git(clone, "log", "--format=%h").split()) == 1
    assert not (clone / ".git/hooks").exists()
    assert desk.left() == []


def test_a_whole_clone_has_the_history(desk: Desk) -> None:
    tree = desk.hub.repository("o/r", FILES)
    desk.hub.commit(tree, {"new.txt": "new\n"}, "Second")
    assert "with its history" in desk.text("github_clone", repo="o/r", shallow=False)
    assert len(desk.hub.git(desk.clones / "o/r", "log", "--format=%h").split()) == 2


@pytest.mark.parametrize("spelled", ["o/r", "O/R", "https://github.com/o/r/tree/main/src", "git@github.com:o/r.git"])
def test_a_clone_that_is_there_is_told_with_its_age(desk: Desk, spelled: str) -> None:
    desk.hub.repository("o/r", FILES)
    desk.text("github_clone", repo="o/r")
    past = time.time() - 3 * 86_400
    for name in ("packed-refs", "config"):
        os.utime(desk.clones / "o/r/.git" / name, (past, past))
    asked = len(desk.hub.asked)
    text = desk.text("github_clone", repo=spelled)
    assert text.startswith(
        "o/r is in ~/github-clones/o/r already: it was cloned 3 days ago, and has only the commit that was newest"
    )
    assert 'github_clone({"repo": "o/r", "refresh": true})' in text
    assert len(desk.hub.asked) == asked


@pytest.mark.slow
def test_a_shallow_clone_becomes_whole_and_is_refreshed(desk: Desk) -> None:
    tree = desk.hub.repository("o/r", FILES)
    desk.text("github_clone", repo="o/r")
    desk.hub.commit(tree, {"new.txt": "new\n"}, "Second")
    assert "new.txt" not in desk.text("github_clone", repo="o/r")
    assert "new.txt" in desk.text("github_clone", repo="o/r", refresh=True)
    assert "with its history" in desk.text("github_clone", repo="o/r", shallow=False)
    assert "has its history" in desk.text("github_clone", repo="o/r", shallow=False)
    assert desk.left() == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["changed", "untracked", "ignored", "committed", "stashed", "branch", "detached"])
def test_what_did_not_come_from_github_is_never_replaced(desk: Desk, kind: str) -> None:
    desk.hub.repository("o/r", {**FILES, ".gitignore": "build/\n"})
    desk.text("github_clone", repo="o/r")
    clone = desk.clones / "o/r"
    if kind == "ignored":
        (clone / "build").mkdir()
        (clone / "build/out").write_text("mine\n")
    elif kind == "untracked":
        (clone / "mine.txt").write_text("mine\n")
    else:
        (clone / "README.md").write_text("mine\n")
    if kind == "stashed":
        desk.hub.git(clone, "stash")
    if kind == "branch":
        desk.hub.git(clone, "checkout", "--quiet", "-b", "mine")
    if kind == "detached":
        desk.hub.git(clone, "checkout", "--quiet", "--detach")
    if kind in ("committed", "branch", "detached"):
        desk.hub.git(clone, "commit", "--quiet", "--all", "--message", "Mine")
    if kind == "branch":
        desk.hub.git(clone, "checkout", "--quiet", "main")
    before = files_below(clone)
    for options in ({"refresh": True}, {"shallow": False}):
        assert "was not changed, because it contains" in desk.error("github_clone", repo="o/r", **options)
    assert files_below(clone) == before
    assert desk.left() == []


def test_an_empty_repository_is_told_and_can_be_refreshed(desk: Desk) -> None:
    tree = desk.hub.repository("o/r")
    assert "It is empty" in desk.text("github_clone", repo="o/r")
    assert "It is empty" in desk.text("github_clone", repo="o/r")
    assert (desk.clones / "o/r/.git").is_dir()
    desk.hub.commit(tree, FILES)
    assert "README.md" in desk.text("github_clone", repo="o/r", refresh=True)


def test_a_renamed_repository_is_cloned_by_its_new_name(desk: Desk) -> None:
    desk.hub.repository("new/name", FILES)
    desk.hub.answers_with(
        "/repos/old/name", {"message": "Moved"}, 301, Location="https://api.github.com/repos/new/name"
    )
    text = desk.text("github_clone", repo="old/name")
    assert text.startswith("old/name is now called new/name.\nCloned new/name to ~/github-clones/new/name")
    assert "is in ~/github-clones/new/name already" in desk.text("github_clone", repo="old/name")


def test_a_fork_large_files_and_submodules_are_named(desk: Desk) -> None:
    files = {".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs\n", "a.bin": "version https://git-lfs\n"}
    modules = {".gitmodules": '[submodule "s"]\n\tpath = s\n\turl = https://github.com/o/s\n'}
    desk.hub.repository("o/r", {**files, **modules}, parent={"full_name": "up/stream"})
    text = desk.text("github_clone", repo="o/r")
    assert "It is a fork of up/stream." in text
    assert "Its large files (Git LFS) were not fetched, only their pointers" in text
    assert "Its submodules were not fetched: .gitmodules lists them; clone each one separately" in text


def test_what_is_not_there_leaves_nothing(desk: Desk) -> None:
    text = desk.error("github_clone", repo="no/such")
    assert "GitHub does not have the repository no/such, or it is private" in text
    assert not desk.clones.exists()


def test_what_github_knows_and_git_does_not_get_leaves_nothing(desk: Desk) -> None:
    desk.hub.answers_with("/repos/o/r", {"full_name": "o/r"})
    text = desk.error("github_clone", repo="o/r")
    assert "o/r was not cloned, and no part of it was kept." in text
    assert "does not appear to be a git repository" in text or "not found" in text
    assert desk.left() == []
    assert not (desk.clones / "o/r").exists()


@pytest.mark.slow
def test_github_cannot_choose_another_place_or_address(desk: Desk) -> None:
    """I4."""
    for name in ("../x/y", "o/../../x", "-R/x", "o/r/../..", "", "ext::sh/x", "o", "a" * 3_000):
        desk.hub.answers_with("/repos/o/r", {"full_name": name})
        assert "is not a repository. Give OWNER/REPO" in desk.error("github_clone", repo="o/r")
    assert not desk.clones.exists()


def test_nothing_of_a_clone_runs(desk: Desk) -> None:
    """Neither what the repository asks for nor what the user has git do by itself."""
    ran = desk.home / "ran"
    evil = program(desk.home, "evil", f"touch {ran}; cat")
    hooks = desk.home / "template/hooks"
    hooks.mkdir(parents=True)
    for hook in ("post-checkout", "post-index-change", "reference-transaction"):
        program(hooks, hook, f"touch {ran}")
    with (desk.home / ".gitconfig").open("a") as settings:
        settings.write(
            f"[init]\n\ttemplateDir = {hooks.parent}\n[core]\n\thooksPath = {hooks}\n\tfsmonitor = {evil}\n"
            f'[filter "evil"]\n\tsmudge = {evil}\n\tclean = {evil}\n\trequired = true\n'
            f'[filter "lfs"]\n\tprocess = {evil}\n\tsmudge = {evil}\n\trequired = true\n'
            "[submodule]\n\trecurse = true\n[clone]\n\trejectShallow = false\n"
        )
    desk.hub.repository("o/s", {"inner.txt": "inner\n"})
    tree = desk.hub.repository("o/r", {**FILES, ".gitattributes": "* filter=evil\n*.bin filter=lfs\n", "a.bin": "x\n"})
    modules = f'[submodule "s"]\n\tpath = s\n\turl = {evil}\n\tupdate = !{evil}\n'
    desk.hub.commit(tree, {".gitmodules": modules})
    desk.text("github_clone", repo="o/r")
    desk.text("github_grep", repo="o/r", pattern="def")
    desk.text("github_clone", repo="o/r")
    assert not ran.exists()
    assert (desk.clones / "o/r/README.md").read_text() == "# Flask\n"


@pytest.mark.parametrize("place", ["github-clones/o", "github-clones/o/r"])
def test_a_link_in_the_way_is_not_followed(desk: Desk, tmp_path: Path, place: str) -> None:
    desk.hub.repository("o/r", FILES)
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "r/.git").mkdir(parents=True)
    link = desk.home / place
    link.parent.mkdir(parents=True)
    link.symlink_to(elsewhere)
    assert "is not a folder" in desk.error("github_clone", repo="o/r")
    assert list(elsewhere.rglob("README.md")) == []


def test_a_folder_that_is_no_clone_stays(desk: Desk) -> None:
    desk.hub.repository("o/r", FILES)
    mine = desk.clones / "o/r/mine.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    assert "is not a git clone" in desk.error("github_clone", repo="o/r", refresh=True)
    assert mine.read_text() == "mine"


def test_where_nothing_can_be_written_it_says_so(desk: Desk) -> None:
    desk.hub.repository("o/r", FILES)
    desk.clones.write_text("a file")
    assert f"{desk.clones} is not a folder, so nothing can be cloned there" in desk.error("github_clone", repo="o/r")
    assert desk.clones.read_text() == "a file"


@pytest.mark.slow
def test_the_sandbox_keeps_no_clone_from_being_made(desk: Desk) -> None:
    desk.hub.repository("o/r", FILES)
    other = desk.runner.session(sandbox="required")
    assert not other.call("github_clone", repo="o/r").is_error
    assert "Cloned o/r" in other.call("github_clone", repo="o/r", refresh=True).text


def test_an_agent_that_may_only_read_clones_nothing(desk: Desk) -> None:
    desk.hub.repository("o/r", FILES)
    other = desk.runner.session(read_only=True)
    assert other.call("github_clone", repo="o/r").is_error
    assert not desk.clones.exists()
    desk.text("github_clone", repo="o/r")
    assert "# Flask" in other.call("github_read_file", repo="o/r", path="README.md").text


@pytest.mark.slow
def test_how_far_it_is_is_told(desk: Desk) -> None:
    desk.hub.repository("o/r", {f"{number}.txt": "x\n" * number for number in range(300)}, size=12_345)
    other = desk.runner.session(timeouts={"output_first": 0.0, "output_report": 0.0})
    outcome = other.call("github_clone", repo="o/r")
    assert outcome.progress[0] == "cloning o/r (12 MB on GitHub)"
    assert any(update.done is not None and update.total for update in outcome.updates)


ASKING_GIT = """#!{python} -I
import os, subprocess, sys
words = sys.argv[1:]
if "clone" in words:
    fill = ["{git}", *words[: words.index("clone")], "credential", "fill"]
    done = subprocess.run(fill, input=b"protocol=https\\nhost=github.com\\n\\n", capture_output=True)
    open("{kept}", "wb").write(done.stdout)
os.execv("{git}", ["git", *words])
"""
"""Git that keeps what a server would be told that wants a login."""


@pytest.mark.slow
def test_a_private_repository_is_fetched_with_the_login_of_gh(desk: Desk) -> None:
    """Git is told to ask gh, and nobody else; what it asks for is seen in a git of the test's own."""
    desk.hub.repository("o/r", FILES)
    folder = desk.home / "programs"
    folder.mkdir()
    kept = desk.home / "kept"
    (folder / "git").write_text(ASKING_GIT.format(python=sys.executable, git=shutil.which("git"), kept=kept))
    (folder / "git").chmod(0o755)
    other = desk.runner.session(env={"PATH": f"{folder}:{search_path()}"})
    assert not other.call("github_clone", repo="o/r").is_error
    assert f"password={TOKEN}" in kept.read_text().split("\n")


def test_one_who_clones_it_already_is_waited_for(desk: Desk) -> None:
    desk.hub.repository("o/r", FILES)
    desk.workshop.mkdir(parents=True)
    (desk.workshop / "o,r,dead").mkdir()
    (desk.workshop / "o,r.x,alive").mkdir()
    with (desk.workshop / "o,r.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        answers: list[str] = []
        thread = threading.Thread(target=lambda: answers.append(desk.text("github_clone", repo="o/r")))
        thread.start()
        while not desk.hub.asked:
            thread.join(0.01)
        desk.hub.git(
            desk.home, "clone", "--quiet", "--depth=1", f"file://{desk.hub.mirror}/o/r.git", "github-clones/o/r"
        )
        assert (desk.workshop / "o,r,dead").exists()
    thread.join()
    assert "is in ~/github-clones/o/r already" in answers[0]
    assert desk.left() == ["o,r.x,alive"]


@pytest.mark.slow
def test_two_at_once_make_one_clone(desk: Desk) -> None:
    desk.hub.repository("o/r", FILES)
    others = [desk.runner.session() for _ in range(3)]
    answers: list[str] = []
    threads = [
        threading.Thread(target=lambda one=one: answers.append(one.call("github_clone", repo="o/r").text))
        for one in others
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.startswith("Cloned o/r") for answer in answers) == [False, False, True]
    assert desk.left() == []


@contextmanager
def silent_server() -> Iterator[tuple[str, threading.Event]]:
    """An address at which connections are taken, and nothing is ever said; the event tells of the first one."""
    came = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        held: list[socket.socket] = []

        def accept() -> None:
            try:
                while True:
                    held.append(listener.accept()[0])
                    came.set()
            except OSError:
                return

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/", came
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            for connection in held:
                connection.close()
            thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_one_that_is_broken_off_leaves_nothing_half(desk: Desk, sign: signal.Signals) -> None:
    """I25. What a killed Marvin leaves goes with the next call."""
    desk.hub.repository("o/r", FILES)
    with silent_server() as (address, came):
        settings = desk.home / ".gitconfig"
        usual = settings.read_text()
        settings.write_text(f'[url "{address}"]\n\tinsteadOf = https://github.com/\n')
        argv = [sys.executable, "-P", "-m", "marvin_core", "tools", "call", "github_clone", "repo=o/r"]
        env = {"HOME": str(desk.home), "PATH": search_path()}
        child = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=desk.home)
        assert came.wait(60)
        child.send_signal(sign)
        child.communicate(timeout=60)
        settings.write_text(usual)
    assert not (desk.clones / "o/r").exists()
    if sign != signal.SIGKILL:
        assert desk.left() == []
    assert "Cloned o/r" in desk.text("github_clone", repo="o/r")
    assert desk.left() == []


@pytest.mark.slow
def test_what_would_fill_the_disk_is_not_written(desk: Desk) -> None:
    """Some kilobytes of git are ten million files: each tree names the one below it ten times."""
    tree = desk.hub.repository("o/r", FILES)
    inner = desk.hub.git(tree, "rev-parse", "HEAD:README.md").strip()
    for kind, mode in (("blob", "100644"), *[("tree", "040000")] * 6):
        listed = "".join(f"{mode} {kind} {inner}\t{name}\n" for name in range(10))
        inner = desk.hub.git(tree, "mktree", given=listed).strip()
    commit = desk.hub.git(tree, "commit-tree", "-m", "Bomb", inner).strip()
    desk.hub.git(tree, "update-ref", "refs/heads/main", commit)
    assert "Nothing was kept: it has 2," in desk.error("github_clone", repo="o/r")
    assert desk.left() == []


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="needs a second file system (/dev/shm)")
def test_a_clone_is_brought_from_another_file_system(desk: Desk) -> None:
    with TemporaryDirectory(dir="/dev/shm") as cache:
        assert os.stat(cache).st_dev != desk.home.stat().st_dev
        desk.hub.repository("o/r", {**FILES, "run.sh": "x"})
        (desk.hub.mirror / "o/r.git/link").symlink_to("README.md")
        desk.hub.commit(desk.hub.mirror / "o/r.git", {})
        other = desk.runner.session(env={"XDG_CACHE_HOME": cache})
        assert not other.call("github_clone", repo="o/r").is_error
        assert not other.call("github_clone", repo="o/r", refresh=True).is_error
        assert os.readlink(desk.clones / "o/r/link") == "README.md"
        assert [path for path in Path(cache).glob("marvin/packs/coding/clones/*") if path.suffix != ".lock"] == []
    assert desk.left() == []


def test_the_place_of_a_clone_is_never_outside(tmp_path: Path) -> None:
    """I4."""
    clones = Clones(tmp_path)
    assert clones.place(Repository(owner="o", name="r")) == tmp_path / "github-clones/o/r"
    assert clones.find(Repository(owner="o", name="r")) is None


def test_the_hub_serves_what_it_is_told(hub: GitHub) -> None:
    tree = hub.repository("o/r", FILES)
    assert files_below(tree).keys() == set(FILES)
