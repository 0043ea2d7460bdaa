"""The sandbox: what may be read and written, what is refused and with which words, and that races do not matter."""

from __future__ import annotations

import os
import resource
import shutil
import socket
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.api.errors import PathRefused, ToolError
from marvin_core.guard.files.sandbox import SandboxPaths
from tests.support.examples import examples

from .support_files import swapping

RACE_SECONDS = 0.5


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with links of every kind, and a secret beside it."""
    root = tmp_path / "project"
    _furnish(root)
    return root


def _furnish(root: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("secret")
    for folder in ("src", ".tickets", ".git", ".marvin/logs", ".marvin/report/junit.xml", ".marvin/upstream"):
        (root / folder).mkdir(parents=True)
    (root / "readme.md").write_text("readme")
    (root / "src/main.py").write_text("main")
    (root / ".tickets/t-1.md").write_text("ticket")
    (root / ".git/config").write_text("config")
    (root / ".marvin/pipeline_state").write_text("2a")
    links = {
        "link.md": "readme.md",
        "code": "src",
        "src/back": "..",
        "absolute": str(root / "src" / "main.py"),
        "chain": "code/back/link.md",
        "away": "../outside",
        "away.txt": "../outside/secret.txt",
        "away-absolute": str(outside / "secret.txt"),
        "up": "..",
        "loop": "loop",
        "nowhere": "missing.txt",
        "nowhere-outside": "../outside/new.txt",
        "board": ".tickets",
        "ticket.md": ".tickets/t-1.md",
        "repository": ".git",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)


def read(root: Path, path: str) -> str:
    with SandboxPaths(root).open(path) as file:
        return file.read().decode()


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(PathRefused) as caught:
        call()
    return str(caught.value)


def failure(call: Callable[[], object]) -> str:
    with pytest.raises(ToolError) as caught:
        call()
    return str(caught.value)


@contextmanager
def unprivileged() -> Iterator[Path]:
    """A folder of a user whom permissions bind, and the rest of the block as that user."""
    folder = Path(tempfile.mkdtemp(prefix="marvin-test-")).resolve()
    folder.chmod(0o755)
    root = folder / "project"
    root.mkdir()
    (root / "a.txt").write_text("a")
    is_superuser = os.geteuid() == 0
    try:
        if is_superuser:
            for place in (root, root / "a.txt"):
                os.chown(place, 65534, 65534)
            os.seteuid(65534)
        yield root
    finally:
        if is_superuser:
            os.seteuid(0)
        shutil.rmtree(folder)


class TestReading:
    @pytest.mark.parametrize(
        ("path", "content"),
        [
            ("readme.md", "readme"),
            ("./src//main.py", "main"),
            ("src/../readme.md", "readme"),
            ("missing/../readme.md", "readme"),
            ("link.md", "readme"),
            ("code/main.py", "main"),
            ("src/back/readme.md", "readme"),
            ("absolute", "main"),
            ("chain", "readme"),
            (".git/config", "config"),
        ],
    )
    def test_what_is_inside_is_read_links_included(self, root: Path, path: str, content: str) -> None:
        assert read(root, path) == content

    @pytest.mark.parametrize(
        "path",
        [
            "", "  ", "..", "../outside/secret.txt", "src/../../outside/secret.txt", "/etc/passwd", "~/.ssh/id_rsa",
            "~root/x", "a\0b", "a\ud800b", "away/secret.txt", "away.txt", "away-absolute", "up/outside/secret.txt",
            ".tickets/t-1.md", ".TICKETS/t-1.md", "src/.tickets/x", "board/t-1.md", "ticket.md",
        ],
    )  # fmt: skip
    def test_what_leads_outside_is_refused_and_the_text_says_where_one_is(self, root: Path, path: str) -> None:
        """I4: no path reaches what is outside or hidden. I10: the refusal shows the working directory."""
        for call in (SandboxPaths(root).open, SandboxPaths(root).locate, SandboxPaths(root).remove):
            text = refusal(partial(call, path))
            assert f"Working directory: {root}" in text
            assert "\n  src/\n" in text
            assert "\n  readme.md" in text
            assert ".tickets" not in text.partition("Working directory")[2]
        text = refusal(lambda: SandboxPaths(root).replace(path, b"x"))
        assert f"Working directory: {root}" in text
        assert (root.parent / "outside/secret.txt").read_text() == "secret"
        assert (root / ".tickets/t-1.md").read_text() == "ticket"

    @pytest.mark.parametrize("path", ["{}/src/main.py", "{}//src/./main.py", "/{}/src/../src/main.py"])
    def test_an_absolute_path_inside_is_as_good_as_the_relative_one(self, root: Path, path: str) -> None:
        paths = SandboxPaths(root)
        with paths.open(path.format(root)) as file:
            assert file.read() == b"main"
        assert paths.locate(path.format(root)) == "src/main.py"
        assert paths.locate(str(root)) == "."

    def test_an_absolute_path_may_lead_inside_through_links_outside(self, root: Path, tmp_path: Path) -> None:
        (tmp_path / "links").mkdir()
        for name, target in (
            ("root", root),
            ("way", "root"),
            ("src", root / "src"),
            ("file", root / "src" / "main.py"),
        ):
            (tmp_path / "links" / name).symlink_to(target)
        paths = SandboxPaths(root)
        for path in ("root/src/main.py", "way/src/main.py", "way/./src//main.py", "src/main.py", "file"):
            assert paths.locate(f"{tmp_path}/links/{path}") == "src/main.py"
        assert paths.locate(f"{tmp_path}/links/way") == "."
        assert paths.locate(f"{tmp_path}/links/root/new/deep/file") == "new/deep/file"
        for path in (
            "root/../outside/secret.txt",
            "root/away/secret.txt",
            "root/.tickets/a",
            "src/../../outside",
            "none",
        ):
            with pytest.raises(PathRefused):
                paths.locate(f"{tmp_path}/links/{path}")
        with pytest.raises(PathRefused):
            paths.replace(f"{tmp_path}/links/root/.git/config", b"x")

    def test_an_absolute_path_outside_stays_outside(self, root: Path) -> None:
        for path in (f"{root}/../outside/secret.txt", f"{root}x/a", "/", f"{root}/away-absolute"):
            refusal(lambda path=path: SandboxPaths(root).open(path))  # type: ignore[misc]

    def test_the_link_by_which_the_root_was_named_is_known_too(self, root: Path) -> None:
        alias = root.parent / "alias"
        alias.symlink_to(root)
        paths = SandboxPaths(alias)
        assert paths.root == root
        assert paths.locate(f"{alias}/src/main.py") == paths.locate(f"{root}/src/main.py") == "src/main.py"

    def test_a_missing_file_is_told_with_similar_names(self, root: Path) -> None:
        text = failure(lambda: read(root, "src/mian.py"))
        assert text.startswith("File not found: 'src/mian.py'. Did you mean 'src/main.py'?")
        assert f"Working directory: {root}" in text

    def test_what_is_no_regular_file_is_refused_without_waiting(self, root: Path) -> None:
        os.mkfifo(root / "pipe")
        (root / "null").symlink_to("/dev/null")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(root / "socket"))
            assert "named pipe" in refusal(lambda: read(root, "pipe"))
            assert "socket" in refusal(lambda: read(root, "socket"))
        assert "leads out" in refusal(lambda: read(root, "null"))
        assert "named pipe" in refusal(lambda: SandboxPaths(root).replace("pipe", b"x"))
        assert "named pipe" in refusal(lambda: SandboxPaths(root).remove("pipe"))

    @pytest.mark.parametrize(
        ("path", "words"),
        [
            ("src", "is a folder"),
            (".", "is a folder"),
            ("readme.md/x", "not a folder"),
            ("x" * 300, "too long"),
            ("loop", "form a circle"),
            ("nowhere", "File not found"),
        ],
    )
    def test_other_failures_say_what_to_do(self, root: Path, path: str, words: str) -> None:
        assert words in failure(lambda: read(root, path))

    def test_a_working_directory_that_is_gone_is_named(self, root: Path) -> None:
        paths = SandboxPaths(root)
        shutil.rmtree(root)
        for call in (partial(paths.open, "a"), partial(paths.replace, "a", b""), partial(paths.locate, "a")):
            assert "no longer exists. Choose another one" in failure(call)

    def test_permissions_hold(self) -> None:
        with unprivileged() as root:
            (root / "a.txt").chmod(0)
            assert "Permission denied" in failure(lambda: read(root, "a.txt"))
            (root / "a.txt").chmod(0o644)
            root.chmod(0o311)  # may be entered and not listed
            assert read(root, "a.txt") == "a"


class TestLocate:
    @pytest.mark.parametrize(
        ("path", "located"),
        [
            (".", "."), ("src/", "src"), ("./src/main.py", "src/main.py"), ("code/main.py", "src/main.py"),
            ("link.md", "link.md"), ("new/deep/file", "new/deep/file"), ("code/new/file", "src/new/file"),
            ("src/back/readme.md", "readme.md"), ("nowhere", "nowhere"), ("--pre=x", "--pre=x"), ("up/project", ""),
        ],
    )  # fmt: skip
    def test_folders_are_resolved_and_the_last_name_stays(self, root: Path, path: str, located: str) -> None:
        if located:
            assert SandboxPaths(root).locate(path) == located
        else:
            refusal(lambda: SandboxPaths(root).locate(path))

    @pytest.mark.parametrize("path", ["nowhere-outside", "nowhere-outside/x", "away", "away/new", "up"])
    def test_a_link_that_leads_outside_is_refused_also_where_nothing_is_there(self, root: Path, path: str) -> None:
        """I4: a program that is handed the path could otherwise create what the link names."""
        refusal(lambda: SandboxPaths(root).locate(path))


class TestOpen:
    @pytest.mark.parametrize("path", ["readme.md", "./readme.md", "link.md", "src/back/readme.md"])
    def test_a_file_has_one_name_however_it_was_reached(self, root: Path, path: str) -> None:
        with SandboxPaths(root).open(path) as file:
            assert file.name == "readme.md"


class TestWriting:
    def test_folders_are_made_and_the_mode_is_what_the_umask_leaves(self, root: Path) -> None:
        (root / "by-open").touch()
        SandboxPaths(root).replace("new/deep/file.txt", b"data")
        made = root / "new/deep/file.txt"
        assert made.read_bytes() == b"data"
        assert made.stat().st_mode == (root / "by-open").stat().st_mode
        assert os.listdir(made.parent) == ["file.txt"]

    @pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o4750])
    def test_the_mode_of_an_existing_file_is_kept(self, root: Path, mode: int) -> None:
        (root / "readme.md").chmod(mode)
        SandboxPaths(root).replace("readme.md", b"new")
        assert stat.S_IMODE((root / "readme.md").stat().st_mode) == mode
        assert (root / "readme.md").read_bytes() == b"new"

    @pytest.mark.parametrize(
        ("link", "target"),
        [("link.md", "readme.md"), ("chain", "readme.md"), ("absolute", "src/main.py"), ("nowhere", "missing.txt")],
    )
    def test_a_link_inside_is_followed_and_stays_a_link(self, root: Path, link: str, target: str) -> None:
        SandboxPaths(root).replace(link, b"new")
        assert (root / link).is_symlink()
        assert (root / target).read_bytes() == b"new"

    def test_a_reader_sees_the_old_content_or_the_new(self, root: Path) -> None:
        paths = SandboxPaths(root)
        contents = [letter * 200_000 for letter in (b"a", b"b")]
        paths.replace("readme.md", contents[0])
        seen = set()

        def write() -> None:
            for turn in range(100):
                paths.replace("readme.md", contents[turn % 2])

        writer = threading.Thread(target=write)
        writer.start()
        while writer.is_alive():
            seen.add((root / "readme.md").read_bytes())
        writer.join()
        assert seen <= set(contents)

    @pytest.mark.parametrize(
        "path",
        [
            ".git/config", ".git", ".GIT/hooks/pre-commit", "sub/.git/config", "sub/.git", "repository/config",
            "repository/new/file", ".marvin/pipeline_state", ".marvin/upstream/design.md", ".marvin/logs/x.log",
            ".marvin/logs", ".marvin/review-history-1a.md", "sub/.marvin/pipeline_state", "src/../.git/config",
            # As NTFS and HFS+ take them for the same name.
            "GIT~1/config", "git~2/hooks/x", ".git./config", ".git /config", ".git. ./config", ".git::$DATA/config",
            ".g\u200cit/config", ".GI\ufeffT/config", ".marvin./logs/x", "MARVIN~1/logs/x", ".marvin/review~1",
        ],
    )  # fmt: skip
    def test_protected_places_are_not_written(self, root: Path, path: str) -> None:
        """I4: tools never write to git's own files nor to the pipeline's."""
        before = sorted(str(file) for file in root.rglob("*"))
        assert "tools may not write to" in refusal(lambda: SandboxPaths(root).replace(path, b"x"))
        failure(lambda: SandboxPaths(root).remove(path))
        assert sorted(str(file) for file in root.rglob("*")) == before
        assert (root / ".git/config").read_text() == "config"
        assert (root / ".marvin/pipeline_state").read_text() == "2a"

    @pytest.mark.parametrize(
        "path",
        [".gitignore", ".github/x.yml", ".marvin/spec.md", ".marvin/notes/n.md", "git/x", "git~", "gita~1", "a:.git"],
    )
    def test_their_neighbours_are(self, root: Path, path: str) -> None:
        SandboxPaths(root).replace(path, b"x")
        assert (root / path).read_bytes() == b"x"

    def test_only_the_writable_files_are_written_where_they_are_named(self, root: Path) -> None:
        paths = SandboxPaths(root, writable=frozenset({"./.marvin/spec.md", "readme.md"}))
        paths.replace(".marvin/spec.md", b"spec")
        paths.replace("link.md", b"by its link")
        before = sorted(str(file) for file in root.rglob("*"))
        for path in ("src/main.py", "absolute", "new/deep/file", ".marvin/spec.md/x", ".git/config"):
            failure(partial(paths.replace, path, b"x"))
        assert ".marvin/spec.md, readme.md" in refusal(lambda: paths.remove("src/main.py"))
        assert sorted(str(file) for file in root.rglob("*")) == before
        paths.remove("readme.md")

    def test_create_only_never_replaces(self, root: Path) -> None:
        paths = SandboxPaths(root)
        assert "already exists" in failure(lambda: paths.replace("readme.md", b"x", create_only=True))
        assert "already exists" in failure(lambda: paths.replace("link.md", b"x", create_only=True))
        paths.replace("new/file", b"x", create_only=True)
        assert (root / "new/file").read_bytes() == b"x"
        assert (root / "readme.md").read_text() == "readme"

    def test_of_many_creators_one_wins(self, root: Path) -> None:
        paths = SandboxPaths(root)
        won: list[int] = []
        failures: set[str] = set()
        start = threading.Barrier(8)

        def create(number: int) -> None:
            for turn in range(20):
                start.wait()
                try:
                    paths.replace(f"race/{turn}/deep/er/file", str(number).encode(), create_only=True)
                except ToolError as error:
                    failures.add(str(error))
                else:
                    won.append(turn)

        threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(won) == list(range(20))
        assert all("already exists" in text for text in failures)
        assert all(os.listdir(root / f"race/{turn}/deep/er") == ["file"] for turn in range(20))

    def test_writers_that_make_the_same_folder_do_not_hinder_each_other(self, root: Path) -> None:
        paths = SandboxPaths(root)
        start = threading.Barrier(8)
        failures: list[ToolError] = []

        def write(number: int) -> None:
            for turn in range(30):
                start.wait()
                try:
                    paths.replace(f"shared/{turn}/deep/er/{number}", b"x")
                except ToolError as error:
                    failures.append(error)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert all(len(os.listdir(root / f"shared/{turn}/deep/er")) == 8 for turn in range(30))

    def test_a_write_that_fails_midway_leaves_nothing_behind(self, root: Path) -> None:
        paths = SandboxPaths(root)
        before = sorted(str(file) for file in root.rglob("*"))
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        writes_none, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # it would be cut off, too, and stay so
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))
        try:
            for path, create_only in (("readme.md", False), ("new/deep/file", False), ("new/file", True)):
                text = failure(partial(paths.replace, path, b"x" * 5_000, create_only=create_only))
                assert "nothing was changed" in text
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            sys.dont_write_bytecode = writes_none
        assert sorted(str(file) for file in root.rglob("*")) == before
        assert (root / "readme.md").read_text() == "readme"

    def test_read_only_files_and_folders_are_respected(self) -> None:
        with unprivileged() as root:
            paths = SandboxPaths(root)
            (root / "a.txt").chmod(0o444)
            assert "Permission denied" in failure(lambda: paths.replace("a.txt", b"x"))
            (root / "a.txt").chmod(0o644)
            root.chmod(0o555)
            for path in ("a.txt", "b.txt", "new/b.txt"):
                assert "Permission denied" in failure(partial(paths.replace, path, b"x"))
            assert "Permission denied" in failure(lambda: paths.remove("a.txt"))
            root.chmod(0o755)
            assert os.listdir(root) == ["a.txt"]
            assert (root / "a.txt").read_text() == "a"

    @pytest.mark.parametrize("path", ["src", "src/", ".", "new/", "readme.md/x", "x" * 300, "loop"])
    def test_what_cannot_be_a_file_is_not_written(self, root: Path, path: str) -> None:
        before = sorted(str(file) for file in root.rglob("*"))
        failure(lambda: SandboxPaths(root).replace(path, b"x"))
        assert sorted(str(file) for file in root.rglob("*")) == before

    def test_removing_takes_the_link_and_not_its_target(self, root: Path) -> None:
        paths = SandboxPaths(root)
        for path in ("link.md", "nowhere", "src/main.py"):
            paths.remove(path)
            assert not os.path.lexists(root / path)
        assert (root / "readme.md").read_text() == "readme"
        assert "is a folder" in failure(lambda: paths.remove("src"))
        assert "File not found" in failure(lambda: paths.remove("src/main.py"))


NAMES = st.sampled_from(
    [
        "..", ".", "", "src", "readme.md", "main.py", "link.md", "code", "back", "away", "away.txt", "up", "outside",
        "secret.txt", "project", "absolute", "away-absolute", "chain", "loop", "nowhere", "nowhere-outside", "board",
        ".tickets", "t-1.md", ".git", "config", "repository", "~", "ü", "\u202e", "a b", "-n", "C:\\x",
    ]
)  # fmt: skip
PATHS = st.one_of(
    st.builds(lambda start, names: start + "/".join(names), st.sampled_from(["", "", "", "/", "//", "./"]),
              st.lists(NAMES, min_size=1, max_size=6)),
    st.text(max_size=20),
    st.text(alphabet="./~\0a", max_size=12),
)  # fmt: skip


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One project for all examples of a property that only reads."""
    root = tmp_path_factory.mktemp("property") / "project"
    _furnish(root)
    return root


class TestProperties:
    @examples(400)
    @given(path=PATHS)
    def test_what_is_read_is_inside_and_what_is_inside_is_read(self, shared: Path, path: str) -> None:
        """I4: for any string the sandbox agrees with where the path really leads."""
        truth = self._truth(shared, path)
        try:
            content: str | None = read(shared, path)
        except ToolError:
            content = None
        assert content == (None if truth is None else truth.read_text())

    @staticmethod
    def _truth(root: Path, path: str) -> Path | None:
        """The file a path names, if it is a regular one inside of the root and not a ticket."""
        if not path.strip() or "\0" in path or path.startswith(("/", "~")):
            return None
        try:
            lexical = os.path.normpath(os.path.join(root, path))
            inside = lexical.startswith(f"{root}/") and ".." not in self_and_prefixes(path)
            real = Path(os.path.realpath(lexical))
            if not inside or not real.is_file() or not real.is_relative_to(root):
                return None
        except (OSError, ValueError):
            return None
        names = [*Path(lexical).relative_to(root).parts, *real.relative_to(root).parts]
        return None if ".tickets" in map(str.casefold, names) else real

    @pytest.mark.slow
    @examples(300)
    @given(path=PATHS)
    def test_no_string_writes_or_removes_outside(self, path: str) -> None:
        """I4: after any write and any removal, what is outside is as before."""
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder).resolve() / "project"
            _furnish(root)
            before = _outside(root)
            paths = SandboxPaths(root)
            for call in (partial(paths.replace, path, b"changed"), partial(paths.remove, path)):
                try:
                    call()
                except ToolError:
                    pass
            assert _outside(root) == before


def self_and_prefixes(path: str) -> list[str]:
    """What each prefix of the path normalises to, its first name only: `..` where one leaves the root."""
    names = path.split("/")
    return [os.path.normpath("/".join(names[: end + 1]) or ".").partition("/")[0] for end in range(len(names))]


def _outside(root: Path) -> dict[str, bytes]:
    """Everything beside the project, and in it what is hidden or protected."""
    places = [root.parent / "outside", root / ".tickets", root / ".git"]
    found = {str(file): file.read_bytes() for place in places for file in place.rglob("*") if file.is_file()}
    return {**found, "beside": " ".join(sorted(os.listdir(root.parent))).encode()}


class TestRaces:
    @pytest.mark.parametrize("swapped", ["folder", "file"])
    def test_a_link_that_is_swapped_all_the_time_never_leads_outside(self, tmp_path: Path, swapped: str) -> None:
        """I4: between looking and opening there is no moment in which a link could be swapped."""
        root, outside = tmp_path / "project", tmp_path / "outside"
        for folder, content in ((root / "real", "inside"), (outside, "OUTSIDE")):
            folder.mkdir(parents=True)
            (folder / "data").write_text(content)
        path, rest = ("current/data", "") if swapped == "folder" else ("current", "/data")
        os.symlink(f"real{rest}", root / "current")
        with swapping(root, [f"real{rest}", f"../outside{rest}"]):
            found = self._use(root, path)
        assert found == {"inside", "refused"}
        assert (outside / "data").read_text() == "OUTSIDE"
        assert os.listdir(outside) == ["data"]
        assert (root / "real/data").read_text() == "inside"

    @staticmethod
    def _use(root: Path, path: str) -> set[str]:
        """What is read through the link, while it is also written to."""
        paths = SandboxPaths(root)
        found: set[str] = set()
        end = time.monotonic() + RACE_SECONDS
        number = 0
        while time.monotonic() < end or (len(found) < 2 and time.monotonic() < end + 50):
            try:
                with paths.open(path) as file:
                    found.add(file.read().decode())
            except ToolError:
                found.add("refused")
            number += 1
            if number % 10 == 0:
                for written in (path, f"current/{number}/new"):
                    try:
                        paths.replace(written, b"inside")
                    except ToolError:
                        pass
        return found


def test_what_killed_writers_left_goes_with_the_next_write_there(root: Path) -> None:
    now, rest = time.time_ns(), "0123456789abcdef.tmp"
    left = f".marvin-{now - 7_200 * 10**9:020}-{rest}"
    names = [left, f".marvin-{now:020}-{rest}", ".marvin-notes.txt", ".marvin-notes.tmp", "x.tmp"]
    for name in names:
        (root / "src" / name).write_text("half")
        os.utime(root / "src" / name, (1, 1))
    (root / left).write_text("half")
    SandboxPaths(root).replace("src/new.py", b"new")
    assert {name for name in names if (root / "src" / name).exists()} == set(names[1:])
    assert (root / left).exists()
