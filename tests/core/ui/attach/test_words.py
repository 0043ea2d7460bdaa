"""What stands behind @ in a message."""

from __future__ import annotations

from pathlib import Path

import pytest

from marvin_core.ui.attach.words import is_outside, mentions, place_of, written


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("look at @app.py", ["app.py"]),
        ("@a @b/c, and (no@mail.org) @a", ["a", "b/c,"]),
        ('see @"my notes.txt" now', ["my notes.txt"]),
        ("nothing@here and @", []),
        ("two\n@lines", ["lines"]),
    ],
)
def test_mentions(line: str, found: list[str]) -> None:
    assert [mention.text for mention in mentions(line)] == found


def test_what_ends_a_sentence_is_no_part_of_a_path() -> None:
    (mention,) = mentions("Is it in @src/app.py?")
    assert list(mention.readings) == ["src/app.py?", "src/app.py"]
    (quoted,) = mentions('@"what?"')
    assert list(quoted.readings) == ["what?"]


@pytest.mark.parametrize(("word", "path"), [("app.py", True), ("src/app", True), ("ada", False), ("v1.0, ", True)])
def test_what_looks_like_a_path(word: str, path: bool) -> None:
    assert mentions(f"@{word}")[0].looks_like_a_path is path


@pytest.mark.parametrize("path", ["a.py", "my notes.txt", "sub folder/ä"])
def test_a_path_is_written_so_that_it_is_found_again(path: str) -> None:
    assert [mention.text for mention in mentions(f"see {written(path)} now")] == [path]


def test_where_paths_lead(tmp_path: Path) -> None:
    root, home = tmp_path / "root", tmp_path / "home"
    root.mkdir()
    (root / "link").symlink_to(tmp_path)
    assert place_of("~/x", root, home) == home / "x"
    assert place_of("/etc/hosts", root, home) == Path("/etc/hosts")
    assert place_of("../x", root, home) == root / "../x"
    assert [is_outside(root / path, root) for path in ("x", ".", "a/../b", "../x", "link/x", "../root2")] == [
        False,
        False,
        False,
        True,
        True,
        True,
    ]
