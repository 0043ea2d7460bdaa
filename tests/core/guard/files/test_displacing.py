"""A file is exchanged with exactly the one that was checked, on real files: what others save meanwhile is kept."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from marvin_core.guard.files.displacing import Displaced, NotTheChecked, displace, put_new
from marvin_core.guard.files.folder_descriptors import Folder, Place
from tests.tools_coding.support import files_below


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """The place of a file with the content `old`; the new one, `new`, is beside it."""
    (tmp_path / "a.txt").write_bytes(b"old")
    (tmp_path / "new").write_bytes(b"ours")
    folder = os.open(tmp_path, os.O_RDONLY)
    yield Place(Folder(folder, ()), "a.txt")
    os.close(folder)


def save(root: Path, content: bytes) -> None:
    """What many editors do: write a new file, and rename it."""
    (root / "saved").write_bytes(content)
    (root / "saved").replace(root / "a.txt")


def displaced(root: Path, place: Place, new: str | None = "new", checked: bytes = b"old") -> Displaced:
    return Displaced(place, new, lambda name: "" if (root / name).read_bytes() == checked else "is another one")


def test_the_old_file_has_another_name_until_it_is_removed(tmp_path: Path, place: Place) -> None:
    old = displaced(tmp_path, place)
    assert (tmp_path / "a.txt").read_bytes() == b"ours"
    assert (tmp_path / old.name).read_bytes() == b"old"
    old.close()
    assert files_below(tmp_path) == {"a.txt": b"ours"}


@pytest.mark.parametrize("new", ["new", None])
def test_another_file_than_the_checked_one_gets_its_place_back(tmp_path: Path, place: Place, new: str | None) -> None:
    save(tmp_path, b"work of the user")
    with pytest.raises(NotTheChecked, match="is another one") as caught:
        displace(place, new, lambda name: "" if (tmp_path / name).read_bytes() == b"old" else "is another one")
    assert caught.value.kept == ""
    left = {} if new else {"new": b"ours"}
    assert files_below(tmp_path) == {"a.txt": b"work of the user", **left}


def test_what_is_saved_over_the_new_file_stays_and_the_one_before_it_is_kept_too(tmp_path: Path, place: Place) -> None:
    """Two saves around the exchange: which of them is right, Marvin cannot know."""
    save(tmp_path, b"first")
    old = displaced(tmp_path, place)
    save(tmp_path, b"second")
    kept = old.give_back()
    old.close()
    assert kept.startswith("a.txt.saved-")
    assert files_below(tmp_path) == {"a.txt": b"second", kept: b"first"}


def test_what_is_saved_over_the_new_file_outlasts_the_checked_one(tmp_path: Path, place: Place) -> None:
    old = displaced(tmp_path, place)
    save(tmp_path, b"work of the user")
    assert old.give_back() == ""
    old.close()
    assert files_below(tmp_path) == {"a.txt": b"work of the user"}


@pytest.mark.parametrize("first", [b"old", b"first"])
def test_what_is_written_into_the_new_file_stays(tmp_path: Path, place: Place, first: bytes) -> None:
    (tmp_path / "a.txt").write_bytes(first)
    old = displaced(tmp_path, place)
    (tmp_path / "a.txt").write_bytes(b"work of the user")
    kept = old.give_back()
    old.close()
    before = {} if first == b"old" else {kept: b"first"}
    assert files_below(tmp_path) == {"a.txt": b"work of the user", **before}


def test_a_new_file_that_was_removed_is_followed_by_the_displaced_one(tmp_path: Path, place: Place) -> None:
    old = displaced(tmp_path, place)
    (tmp_path / "a.txt").unlink()
    assert old.give_back() == ""
    old.close()
    assert files_below(tmp_path) == {"a.txt": b"old"}


def test_an_old_file_that_another_program_removes_ends_no_writing(tmp_path: Path, place: Place) -> None:
    """As `git clean` does."""

    def flaw(name: str) -> str:
        (tmp_path / name).unlink()
        return (tmp_path / name).read_text()

    displace(place, "new", flaw).close()
    assert files_below(tmp_path) == {"a.txt": b"ours"}


def test_three_that_exchange_at_once_leave_the_first_one_in_place(tmp_path: Path, place: Place) -> None:
    """Each but the first finds another file than it has checked; all interleavings of what they do then end alike."""
    for number in (2, 3):
        (tmp_path / f"new{number}").write_bytes(b"theirs %d" % number)
    first = displaced(tmp_path, place)
    others = [displaced(tmp_path, place, f"new{number}") for number in (2, 3)]
    first.close()
    assert [other.give_back() for other in reversed(others)] == ["", ""]
    for other in others:
        other.close()
    assert files_below(tmp_path) == {"a.txt": b"ours"}


@pytest.mark.parametrize("name", ["\u00e9" * 127, os.fsdecode(b"\xff\xfe.txt")], ids=["long", "odd"])
def test_what_is_kept_has_a_valid_name(tmp_path: Path, place: Place, name: str) -> None:
    (tmp_path / "a.txt").rename(tmp_path / name)
    place.name = name
    (tmp_path / name).write_bytes(b"first")
    old = displaced(tmp_path, place)
    (tmp_path / name).write_bytes(b"second")
    kept = old.give_back()
    old.close()
    assert files_below(tmp_path) == {name: b"second", kept: b"first"}


def test_the_first_to_create_a_name_wins(tmp_path: Path, place: Place) -> None:
    with pytest.raises(FileExistsError):
        put_new(place, "new")
    (tmp_path / "a.txt").unlink()
    put_new(place, "new")
    assert files_below(tmp_path) == {"a.txt": b"ours"}
