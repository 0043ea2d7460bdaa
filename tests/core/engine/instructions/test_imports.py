"""What a CLAUDE.md brings along: files that it names, and those that they name."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.engine.instructions.imports import Expanded, Imports, named_files
from marvin_core.guard.files.sandbox import SandboxPaths


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def expanded(root: Path, text: str, path: str = "CLAUDE.md") -> Expanded:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)
    return Imports(SandboxPaths, str(root), root.parent / "home").expanded(path, text)


def put(root: Path, **texts: str) -> None:
    for name, text in texts.items():
        (root / f"{name}.md").write_text(text)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("@a.md", ["a.md"]),
        ("See @docs/a.md, and @b.md.", ["docs/a.md", "b.md"]),
        ("- @./a.md\n- (@b.md) no", ["./a.md"]),
        ("mail ada@example.com, `@c.md` and ``@d.md``", []),
        ("```\n@a.md\n```\n@b.md\n~~~~\n@c.md\n~~~\n@d.md\n~~~~\n@e.md", ["b.md", "e.md"]),
        ("@a\\ b.md", ["a b.md"]),
        ("@", []),
        ("@@a @~/x.md", ["~/x.md"]),
    ],
)
def test_a_name_counts_outside_of_code(text: str, names: list[str]) -> None:
    assert list(named_files(text)) == names


def test_the_files_follow_in_their_order_each_once(root: Path) -> None:
    put(root, a="A @c.md", b="B @a.md @CLAUDE.md", c="C")
    found = expanded(root, "First @b.md then @a.md and @a.md, @types/node")
    assert found.text == (
        "First @b.md then @a.md and @a.md, @types/node\n\n(@b.md)\nB @a.md @CLAUDE.md\n\n(@a.md)\nA @c.md\n\n(@c.md)\nC"
    )
    assert found.notes == ()


def test_a_name_is_meant_from_the_folder_of_its_file(root: Path) -> None:
    (root / "docs").mkdir()
    (root / "docs" / "a.md").write_text("A @b.md")
    (root / "docs" / "b.md").write_text("B")
    assert "(@b.md)\nB" in expanded(root, "@docs/a.md").text
    assert "(@../docs/b.md)\nB" in expanded(root, "@../docs/b.md", "sub/CLAUDE.md").text


def test_nothing_outside_of_the_project_is_read_but_marvins_folder_at_home(root: Path) -> None:
    """I4."""
    home = root.parent / "home"
    (home / ".marvin").mkdir(parents=True)
    (home / ".marvin" / "me.md").write_text("Mine.")
    (home / "secret.md").write_text("SECRET")
    (root.parent / "other.md").write_text("OTHER")
    (root / "link.md").symlink_to(root.parent / "other.md")
    found = expanded(root, f"@~/.marvin/me.md @~/secret.md @../other.md @{home}/secret.md @link.md @/etc/passwd")
    assert "Mine." in found.text
    assert "SECRET" not in found.text
    assert "OTHER" not in found.text
    assert "root:" not in found.text
    for name in ("~/secret.md", "../other.md", "/etc/passwd"):
        assert f"@{name} is not read: it is outside of the project" in found.notes
    assert any(note.startswith("@link.md is not read: ") for note in found.notes)


def test_files_with_keys_folders_and_what_is_no_text_are_told_and_left_out(root: Path) -> None:
    (root / ".env").write_text("KEY=secret-value")
    (root / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (root / "folder.md").mkdir()
    found = expanded(root, "@.env @image.png @folder.md @not/there.md")
    assert found.text.endswith("@not/there.md")
    assert found.notes == (
        "@.env is not read: it may hold keys or passwords",
        "@image.png is not read: it is an image, not text",
    )


def test_a_chain_ends_after_five_files_and_a_crowd_after_twenty(root: Path) -> None:
    put(root, **{f"c{number}": f"deep {number} @c{number + 1}.md" for number in range(9)})
    found = expanded(root, "@c0.md")
    assert "deep 4" in found.text
    assert "deep 5" not in found.text
    assert found.notes == ("@c5.md is not read: it is too deep",)
    put(root, **{f"m{number}": f"many {number}." for number in range(30)})
    found = expanded(root, " ".join(f"@m{number}.md" for number in range(30)))
    assert found.text.count("many ") == 20
    assert len(found.notes) == 10


def test_a_thousand_names_are_looked_at_however_many_there_are(root: Path) -> None:
    """Each is looked for on the disk, and a file of a megabyte has hundreds of thousands."""
    put(root, last="The last one.", first="The first one.")
    found = expanded(root, "@first.md " + "@x.md " * 100_000 + "@last.md")
    assert "The first one." in found.text
    assert "The last one." not in found.text
    assert found.notes == ("@x.md and the imports after it are not read: there are too many",)
    assert len(found.files) <= 2


@given(st.lists(st.lists(st.integers(0, 5), max_size=4), min_size=6, max_size=6))
def test_any_files_that_name_each_other_come_to_an_end(
    tmp_path_factory: pytest.TempPathFactory, names: list[list[int]]
) -> None:
    root = tmp_path_factory.mktemp("graph")
    for number, named in enumerate(names):
        (root / f"f{number}.md").write_text(f"text{number}. " + " ".join(f"@f{other}.md" for other in named))
    found = Imports(SandboxPaths, str(root), root / "home").expanded("f0.md", (root / "f0.md").read_text())
    assert all(found.text.count(f"text{number}.") <= 1 for number in range(6))
    reached, waiting = {0}, [0]
    while waiting:
        waiting += (new := set(names[waiting.pop()]) - reached)
        reached |= new
    assert {number for number in range(6) if f"text{number}." in found.text} == reached
