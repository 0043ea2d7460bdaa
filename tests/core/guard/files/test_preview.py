"""Files as a call would leave them: what is read and refused is as on the disk, and the disk stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from marvin_core.api.errors import PathRefused, ToolError
from marvin_core.guard.files.preview import NoPreviewError, PreviewPaths
from marvin_core.guard.files.sandbox import SandboxPaths


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_text("one")
    (folder / "link").symlink_to("a.txt")
    (folder / "out").symlink_to(tmp_path)
    (folder / ".git").mkdir()
    return folder


@pytest.fixture
def paths(root: Path) -> PreviewPaths:
    return PreviewPaths(SandboxPaths(root))


def state(root: Path) -> list[tuple[str, bytes]]:
    return [(str(path), path.read_bytes() if path.is_file() else b"") for path in sorted(root.rglob("*"))]


def read(paths: PreviewPaths, path: str) -> bytes:
    with paths.open(path) as stream:
        stream.fileno()  # tools ask for its size
        return stream.read()


def test_what_was_written_is_read_and_nothing_is_on_the_disk(root: Path, paths: PreviewPaths) -> None:
    before = state(root)
    with paths.trying():
        paths.replace("new/deep/b.txt", b"b")
        paths.replace("./a.txt", b"two")
        paths.append("a.txt", b"!")
        assert read(paths, "sub/../a.txt") == b"two!"
        assert read(paths, "link") == b"two!", "the file behind a link is the same one"
        assert read(paths, "new/deep/b.txt") == b"b"
        with paths.open("link") as planned, paths.open("sub/../new/deep/b.txt") as new:
            assert (planned.name, new.name) == ("a.txt", "new/deep/b.txt")
    assert paths.changes == {"new/deep/b.txt": (b"", b"b"), "a.txt": (b"one", b"two!")}
    assert state(root) == before


def test_each_call_sees_what_those_before_it_would_write_and_has_its_own_changes(paths: PreviewPaths) -> None:
    with paths.trying():
        paths.replace("a.txt", b"two")
    with paths.trying():
        paths.append("a.txt", b"!")
    assert paths.changes == {"a.txt": (b"two", b"two!")}


def test_of_a_call_that_fails_nothing_stays(paths: PreviewPaths) -> None:
    def fail() -> None:
        with paths.trying():
            paths.replace("a.txt", b"two")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert read(paths, "a.txt") == b"one"


def test_what_is_removed_is_gone_until_it_is_written_again(paths: PreviewPaths) -> None:
    with paths.trying():
        paths.remove("a.txt")
        assert not paths.exists("a.txt")
        with pytest.raises(ToolError, match="File not found"):
            read(paths, "a.txt")
        with pytest.raises(ToolError, match="File not found"):
            paths.remove("a.txt")
        paths.replace("a.txt", b"new", create_only=True)
        assert paths.exists("a.txt")
    assert paths.changes == {"a.txt": (b"one", b"new")}


REFUSED = [
    "../x",
    "/etc/x",
    "out/x",
    "out/root2/x",
    ".git/config",
    ".marvin/logs/x",
    ".tickets/1",
    "a\0b",
    "sub/",
    "sub",
    ".",
    "a.txt/x",
]


@pytest.mark.parametrize("path", REFUSED)
def test_what_the_real_one_refuses_is_refused_in_the_same_way(root: Path, paths: PreviewPaths, path: str) -> None:
    with pytest.raises(ToolError) as real:
        SandboxPaths(root).replace(path, b"")
    before = state(root)
    with pytest.raises(ToolError) as tried, paths.trying():
        paths.replace(path, b"")
    assert isinstance(tried.value, PathRefused) is isinstance(real.value, PathRefused)
    assert str(tried.value).partition("\n")[0] == str(real.value).partition("\n")[0]
    assert state(root) == before


def test_only_the_writable_files_may_be_written(root: Path) -> None:
    paths = PreviewPaths(SandboxPaths(root, writable=["a.txt"]))
    with pytest.raises(PathRefused, match="you may write only these files"), paths.trying():
        paths.replace("b.txt", b"")
    with paths.trying():
        paths.replace("a.txt", b"")


def test_create_only_fails_where_there_is_something(paths: PreviewPaths) -> None:
    with pytest.raises(ToolError, match="already exists") as caught, paths.trying():
        paths.replace("a.txt", b"", create_only=True)
    assert isinstance(caught.value.__cause__, FileExistsError)


def test_what_cannot_be_known_is_not_guessed(root: Path, paths: PreviewPaths) -> None:
    (root / "large").write_bytes(b" " * 4_000_001)
    with pytest.raises(NoPreviewError), paths.trying():
        paths.replace("large", b"")
    with pytest.raises(NoPreviewError), paths.trying(), paths.real_file("x.db", writing=True):
        pass
    with paths.trying():
        assert [entry.path for entry in paths.list("sub")] == []
        assert list(paths.glob("*.txt")) == ["a.txt"]
        paths.replace("b.txt", b"")
        for look in (paths.list, lambda: paths.glob("*"), lambda: paths.stat("b.txt")):
            with pytest.raises(NoPreviewError):
                look()
