"""Looking around, adding to files and real paths: as confined as reading and replacing are."""

from __future__ import annotations

import os
import resource
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.api.errors import PathRefused, ToolError
from marvin_core.guard.files.sandbox import SandboxPaths
from tests.support.counting import calls_in_this_thread
from tests.support.examples import examples

from .support_files import swapping

USES: dict[str, Callable[[SandboxPaths, str], object]] = {
    "list": lambda paths, path: paths.list(path),
    "stat": lambda paths, path: paths.stat(path),
    "exists": lambda paths, path: paths.exists(path),
    "glob": lambda paths, path: paths.glob(path),
    "append": lambda paths, path: paths.append(path, b"x"),
    "real_file": lambda paths, path: change(paths, path, b"x"),
}
WRITING = ("append", "real_file")


def change(paths: SandboxPaths, path: str, data: bytes) -> None:
    """Write to a file by its real path."""
    with paths.real_file(path, writing=True) as real:
        real.write_bytes(data)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with links of every kind, and a secret beside it."""
    root = tmp_path / "project"
    for folder in ("src/deep", ".tickets", ".git", "node_modules"):
        (root / folder).mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    for name, text in (("a.txt", "a"), ("src/b.py", "bb"), ("src/deep/c.py", "c"), ("src/.hidden.py", ""),
                       (".tickets/t.md", "t"), (".git/config", "x"), ("../outside/secret.txt", "secret")):  # fmt: skip
        (root / name).write_text(text)
    for name, target in (("away", "../outside"), ("code", "src"), ("link.txt", "a.txt"), ("gone", "missing"),
                         ("board", ".tickets"), ("repository", ".git"), ("loop", "loop")):  # fmt: skip
        (root / name).symlink_to(target)
    os.mkfifo(root / "pipe")
    return root


def test_a_link_to_a_file_outside_is_no_folder_and_nothing_else(root: Path, tmp_path: Path) -> None:
    """Whether there is a file outside is not told."""
    (tmp_path / "there").write_text("x")
    told = set()
    for name in ("there", "not-there"):
        (root / "way").unlink(missing_ok=True)
        (root / "way").symlink_to(tmp_path / name)
        with pytest.raises(ToolError) as raised:
            SandboxPaths(root).list("way")
        told.add(str(raised.value).splitlines()[0])
    assert len(told) == 1
    assert "leads out of the working directory" in told.pop()


def test_a_folder_is_listed_with_what_there_is(root: Path) -> None:
    paths = SandboxPaths(root)
    assert [(each.path, each.kind) for each in paths.list()] == [
        (".git", "folder"), ("a.txt", "file"), ("away", "link"), ("board", "link"), ("code", "link"), ("gone", "link"),
        ("link.txt", "link"), ("loop", "link"), ("node_modules", "folder"), ("pipe", "other"),
        ("repository", "link"), ("src", "folder"),
    ]  # fmt: skip
    listed = paths.list("code")
    assert [(each.path, each.size) for each in listed if each.kind == "file"] == [
        ("code/.hidden.py", 0),
        ("code/b.py", 2),
    ]
    assert listed[1].modified == (root / "src/b.py").stat().st_mtime
    assert [each.path for each in paths.list("src", 2)] == ["src/.hidden.py", "src/b.py"]
    with pytest.raises(ToolError, match="is a file and not a folder"):
        paths.list("a.txt")


def test_one_thing_is_looked_at_with_links_followed(root: Path) -> None:
    paths = SandboxPaths(root)
    assert (paths.stat("link.txt").kind, paths.stat("link.txt").size, paths.stat("link.txt").path) == (
        "file",
        1,
        "link.txt",
    )
    assert (paths.stat(".").kind, paths.stat("code").kind, paths.stat("pipe").kind) == ("folder", "folder", "other")
    assert [paths.exists(path) for path in (".", "a.txt", "code", "pipe", "gone", "no", "a.txt/b")] == [True] * 4 + [
        False
    ] * 3
    with pytest.raises(ToolError, match=r"Did you mean 'a\.txt'"):
        paths.stat("a.txd")
    with pytest.raises(
        ToolError,
        match="is reached through links that form a circle or changed just",
    ):
        paths.exists("loop")


def test_patterns_find_files_and_folders_but_enter_no_link(root: Path) -> None:
    paths = SandboxPaths(root)
    assert paths.glob("**/*.py") == ("src/b.py", "src/deep/c.py")
    assert paths.glob("*") == ("a.txt", "away", "board", "code", "gone", "link.txt", "loop", "node_modules", "pipe",
                               "repository", "src")  # fmt: skip
    assert paths.glob("src/**") == ("src/b.py", "src/deep", "src/deep/c.py")
    assert paths.glob("**/.hidden*") == ("src/.hidden.py",)
    assert paths.glob("[s]??/**/c.p[xy]") == ("src/deep/c.py",)
    assert paths.glob("away/*") == paths.glob("board/*") == paths.glob("nothing/**/x") == ()
    assert paths.glob("**/*.py", 1) == ("src/b.py",)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("path", ["/etc/passwd", "../outside/secret.txt", "~/x", "a\0b", "", ".tickets/t.md"])
def test_what_is_outside_or_hidden_is_refused(root: Path, use: str, path: str) -> None:
    with pytest.raises(PathRefused):
        USES[use](SandboxPaths(root), path)


@pytest.mark.parametrize("use", [use for use in USES if use != "glob"])
@pytest.mark.parametrize("path", ["away/secret.txt", "board/t.md", "away", "board"])
def test_links_lead_nowhere_outside_or_hidden(root: Path, use: str, path: str) -> None:
    with pytest.raises(PathRefused):
        USES[use](SandboxPaths(root), path)
    assert os.listdir(root.parent / "outside") == ["secret.txt"]


@pytest.mark.parametrize("use", WRITING)
@pytest.mark.parametrize("path", [".git/config", "repository/config", ".git/hooks/new", "repository/new"])
def test_protected_places_are_not_written(root: Path, use: str, path: str) -> None:
    with pytest.raises(PathRefused, match=r"tools may not write to '\.git"):
        USES[use](SandboxPaths(root), path)
    assert sorted(os.listdir(root / ".git")) == ["config"]


@pytest.mark.parametrize("use", WRITING)
def test_only_writable_files_are_written(root: Path, use: str) -> None:
    paths = SandboxPaths(root, writable=["a.txt"])
    USES[use](paths, "link.txt")
    with pytest.raises(PathRefused, match=r"is refused: you may write only these files: a\.txt"):
        USES[use](paths, "src/b.py")
    assert (root / "src/b.py").read_text() == "bb"


class TestAppending:
    def test_files_and_folders_are_made_and_added_to(self, root: Path) -> None:
        paths = SandboxPaths(root)
        paths.append("new/log.txt", b"one\n")
        paths.append("new/log.txt", b"two\n")
        paths.append("link.txt", b"!")
        assert (root / "new/log.txt").read_bytes() == b"one\ntwo\n"
        assert (root / "a.txt").read_text() == "a!"
        assert (root / "link.txt").is_symlink()

    @pytest.mark.parametrize("path", ["pipe", "src", "src/"])
    def test_what_is_no_file_is_refused(self, root: Path, path: str) -> None:
        with pytest.raises(ToolError):
            SandboxPaths(root).append(path, b"x")

    def test_a_file_with_another_name_outside_is_refused(self, root: Path) -> None:
        os.link(root.parent / "outside/secret.txt", root / "hard.txt")
        with pytest.raises(PathRefused, match="hard links"):
            SandboxPaths(root).append("hard.txt", b"x")
        assert (root.parent / "outside/secret.txt").read_text() == "secret"

    def test_many_writers_lose_nothing(self, root: Path) -> None:
        code = (
            "import sys; from pathlib import Path; from marvin_core.guard.files.sandbox import SandboxPaths\n"
            "paths = SandboxPaths(Path(sys.argv[1]))\n"
            "for number in range(200): paths.append('log', f'{sys.argv[2]} {number}\\n'.encode())"
        )
        argv = [sys.executable, "-P", "-c", code, str(root)]
        for child in [subprocess.Popen([*argv, str(number)]) for number in range(4)]:
            assert child.wait(150) == 0
        lines = (root / "log").read_text().splitlines()
        assert sorted(lines) == sorted(f"{writer} {number}" for writer in range(4) for number in range(200))

    def test_what_the_disk_takes_in_part_is_taken_back(self, root: Path) -> None:
        """A limit for the size of files stands for a disk that is full."""
        code = (
            "import resource, signal, sys; from pathlib import Path\n"
            "from marvin_core.guard.files.sandbox import SandboxPaths\n"
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
            "sys.dont_write_bytecode = True\n"  # it would be cut off, too, and stay so
            "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
            "for path in ('a.txt', 'fresh/new.txt'):\n"
            "    try: SandboxPaths(Path(sys.argv[1])).append(path, b'x' * 200)\n"
            "    except Exception as error: print(type(error).__name__, error)"
        )
        done = subprocess.run(
            [sys.executable, "-P", "-c", code, str(root)], capture_output=True, text=True, timeout=150
        )
        assert done.stdout.count("ToolError") == 2, done
        assert (root / "a.txt").read_text() == "a"
        assert not (root / "fresh").exists()


class TestRealPaths:
    def test_a_database_is_made_changed_and_read(self, root: Path, tmp_path: Path) -> None:
        paths = SandboxPaths(root, copies=tmp_path / "copies")
        for number in range(3):
            with paths.real_file("data/my.db", writing=True) as real:
                assert real.name == "my.db"
                database = sqlite3.connect(real)
                database.execute("create table if not exists t (n)")
                database.execute("insert into t values (?)", [number])
                database.commit()
                database.close()
        with paths.real_file("data/my.db") as real:
            database = sqlite3.connect(real)
            assert database.execute("select n from t").fetchall() == [(0,), (1,), (2,)]
            database.close()
        assert os.listdir(root / "data") == ["my.db"]
        assert os.listdir(tmp_path / "copies") == []
        assert (tmp_path / "copies").stat().st_mode & 0o777 == 0o700

    def test_reading_changes_nothing(self, root: Path) -> None:
        before = (root / "a.txt").stat()
        with SandboxPaths(root).real_file("a.txt") as real:
            real.write_text("other")
        with SandboxPaths(root).real_file("a.txt", writing=True) as real:
            assert real.read_text() == "a"
        assert (root / "a.txt").stat().st_ino == before.st_ino
        assert (root / "a.txt").read_text() == "a"

    def test_what_fails_is_not_written(self, root: Path) -> None:
        paths = SandboxPaths(root)

        def fail(path: str) -> None:
            with paths.real_file(path, writing=True) as real:
                real.write_text("half")
                raise ZeroDivisionError

        for path in ("a.txt", "deep/new.txt"):
            with pytest.raises(ZeroDivisionError):
                fail(path)
        assert (root / "a.txt").read_text() == "a"
        assert not (root / "deep").exists()

    def test_a_change_of_another_is_kept(self, root: Path) -> None:

        def both(path: str) -> None:
            with SandboxPaths(root).real_file(path, writing=True) as real:
                real.write_text("mine")
                (root / path).write_text("theirs")

        for path in ("a.txt", "fresh.txt"):
            with pytest.raises(ToolError, match="was changed in the meantime, so it was not written"):
                both(path)
            assert (root / path).read_text() == "theirs"

    def test_a_database_that_was_not_closed_is_not_written_in_part(self, root: Path) -> None:
        opened: list[sqlite3.Connection] = []

        def use() -> None:
            with SandboxPaths(root).real_file("my.db", writing=True) as real:
                opened.append(sqlite3.connect(real))
                opened[0].execute("pragma journal_mode = wal")
                opened[0].execute("create table t (n)")
                opened[0].commit()

        with pytest.raises(
            ToolError, match=r"my\.db-wal is still open beside it. Close what was opened before the block ends"
        ):
            use()
        opened[0].close()
        assert not (root / "my.db").exists()

    def test_a_missing_file_can_only_be_written(self, root: Path) -> None:
        with pytest.raises(ToolError, match="File not found"), SandboxPaths(root).real_file("no.txt"):
            pass

    def test_the_mode_of_a_file_stays(self, root: Path) -> None:
        (root / "a.txt").chmod(0o640)
        change(SandboxPaths(root), "a.txt", b"new")
        assert (root / "a.txt").stat().st_mode & 0o777 == 0o640

    def test_what_killed_programs_left_is_removed(self, root: Path, tmp_path: Path) -> None:
        old, fresh, other = (tmp_path / "copies" / name for name in ("copy-old", "copy-fresh", "other"))
        for folder in (old, fresh, other):
            folder.mkdir(parents=True)
            (folder / "x").write_text("x")
        for folder in (old, other):
            os.utime(folder, (1, 1))
        with SandboxPaths(root, copies=tmp_path / "copies").real_file("a.txt"):
            pass
        assert sorted(os.listdir(tmp_path / "copies")) == ["copy-fresh", "other"]


OUTSIDE = "OUTSIDE" * 10_000
"""Longer than what is inside ever becomes, of which some bytes are added all the time."""


class TestRaces:
    @pytest.mark.slow
    @pytest.mark.parametrize("swapped", ["folder", "file"])
    def test_a_link_that_is_swapped_all_the_time_never_leads_outside(self, tmp_path: Path, swapped: str) -> None:
        """I4: whatever is done through the link sees and changes what is inside, or is refused."""
        root, outside = tmp_path / "project", tmp_path / "outside"
        for folder, content in ((root / "real", "in"), (outside, OUTSIDE)):
            folder.mkdir(parents=True)
            (folder / "data").write_text(content)
        (outside / "secret").write_text("secret")
        path, rest = ("current/data", "") if swapped == "folder" else ("current", "/data")
        os.symlink(f"real{rest}", root / "current")
        with swapping(root, [f"real{rest}", f"../outside{rest}"]):
            seen = self._use(root, path)
        assert min(seen.values()) > 0
        assert (outside / "data").read_text() == OUTSIDE
        assert sorted(os.listdir(outside)) == ["data", "secret"]
        assert set((root / "real/data").read_text()) <= set("inx")

    @staticmethod
    def _use(root: Path, path: str) -> dict[str, int]:
        paths = SandboxPaths(root)
        seen = {"done": 0, "refused": 0}
        end = time.monotonic() + 50
        while time.monotonic() < end and (min(seen.values()) < 30 or sum(seen.values()) < 500):
            for use in ("append", "stat", "exists", "real_file"):
                try:
                    found = USES[use](paths, path)
                except ToolError:
                    seen["refused"] += 1
                else:
                    seen["done"] += 1
                    assert getattr(found, "size", 0) != len(OUTSIDE)
            for pattern in ("current/*", "**/*"):
                assert not {each for each in paths.glob(pattern) if each.endswith("secret")}
            try:
                assert "current/secret" not in [each.path for each in paths.list("current")]
            except ToolError:
                pass
        return seen


NAMES = st.sampled_from(["a", "b", "a.py", "b.py", "ab", "[", "x-y"])
PARTS = st.one_of(NAMES, st.sampled_from(["*", "**", "*.py", "?", "[ab]", "a*", "*b*", "[!a]*", "**a"]))


@examples(150)
@given(
    files=st.lists(st.lists(NAMES, min_size=1, max_size=4).map("/".join), max_size=8),
    # Behind `**` at the end Python also finds the folder itself.
    pattern=st.lists(PARTS, min_size=1, max_size=4).map("/".join).filter(lambda pattern: not pattern.endswith("**")),
)
def test_patterns_find_what_those_of_python_find(files: list[str], pattern: str) -> None:
    from glob import glob
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        for file in files:
            try:
                (Path(folder) / file).parent.mkdir(parents=True, exist_ok=True)
                (Path(folder) / file).touch()
            except OSError:
                pass  # a file where a folder would be
        found = SandboxPaths(Path(folder)).glob(pattern)
        expected = {each.rstrip("/") for each in glob(pattern, root_dir=folder, recursive=True)}
        assert len(found) == len(set(found))
        assert set(found) == expected


def test_files_that_do_not_fit_a_pattern_are_passed_over(tmp_path: Path) -> None:
    """Not one function is called for each of them: of ten thousand notes, one has the name that is looked for."""
    for number in range(600):
        (tmp_path / f"part{number // 300}").mkdir(exist_ok=True)
        (tmp_path / f"part{number // 300}" / f"note{number}.md").touch()
    (tmp_path / "needle.md").touch()
    paths = SandboxPaths(tmp_path)
    assert paths.glob("**/*[nN]eedle*") == ("needle.md",)
    assert calls_in_this_thread(lambda: paths.glob("**/*[nN]eedle*"), "marvin_core") < 300


def test_a_pattern_over_a_deep_tree_opens_few_files_at_a_time(root: Path) -> None:
    """Descriptors of folders that were looked into are closed again, and no depth is too deep."""
    here = root
    for _ in range(400):
        here = here / "d"
        here.mkdir()
    (here / "end.txt").touch()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard))
    try:
        assert len(SandboxPaths(root).glob("**/end.txt")) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_folder_that_goes_away_is_told_as_missing(root: Path) -> None:
    with pytest.raises(ToolError, match="File not found"):
        SandboxPaths(root).list("src/none")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the kernel may spell a path in another way")
@pytest.mark.parametrize("use", ["list", "stat", "append", "real_file"])
def test_a_link_above_the_root_leads_nowhere_else(tmp_path: Path, use: str) -> None:
    """I4: an agent works in a part of a project, in which a command of the one that started it puts a link."""
    for place in ("project/part", "outside/part"):
        (tmp_path / place / "deep").mkdir(parents=True)
        (tmp_path / place / "deep" / "a.txt").write_text(place)
    paths = SandboxPaths(tmp_path / "project" / "part" / "deep")
    USES[use](paths, "a.txt" if use != "list" else ".")
    (tmp_path / "project" / "part").rename(tmp_path / "project" / "moved")
    (tmp_path / "project" / "part").symlink_to(tmp_path / "outside" / "part")
    (tmp_path / "outside" / "part" / "deep" / "secret-name").touch()
    with pytest.raises(PathRefused) as refused:
        USES[use](paths, "a.txt" if use != "list" else ".")
    assert "secret-name" not in str(refused.value)
    assert (tmp_path / "outside" / "part" / "deep" / "a.txt").read_text() == "outside/part"
