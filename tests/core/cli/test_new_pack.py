"""`marvin packs new`: which names it takes, and what it writes."""

from __future__ import annotations

import ast
import keyword
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.api.errors import UsageError
from marvin_core.cli.new_pack.names import pack_names
from marvin_core.cli.new_pack.writing import write_pack
from tests.support.examples import examples

LONGEST = "a" * 30


@pytest.mark.parametrize("name", ["dice", "Dice", "marvin-dice", "marvin_dice", "MARVIN.dice"])
def test_one_name_however_it_is_written(name: str) -> None:
    names = pack_names(name)
    assert names.as_dict() == {
        "distribution": "marvin-dice",
        "module": "marvin_dice",
        "pack": "dice",
        "tool": "dice_count_words",
    }


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "Use letters, digits"),
        ("-dice", "Use letters, digits"),
        ("dice-", "Use letters, digits"),
        ("dice game", "Use letters, digits"),
        ("../dice", "Use letters, digits"),
        ("würfel", "Use letters, digits"),
        ("dice\n", "Use letters, digits"),
        ("marvin-", "Use letters, digits"),
        ("3d", "Begin with a letter"),
        ("a" * 31, "at most 30"),
        ("marvin", "another project"),
        ("marvin-core", "reserved by Marvin"),
        ("core", "reserved by Marvin"),
        ("marvin-tools-web", "reserved by Marvin"),
        ("tools-mine", "reserved by Marvin"),
        ("pipeline", "reserved by Marvin"),
        ("coding", "reserved by Marvin"),
        ("all", "reserved by Marvin"),
        ("marvin-marvin", "another project"),
    ],
)
def test_names_that_would_be_refused_elsewhere_are_refused_here(name: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        pack_names(name)


@examples(200)
@given(st.one_of(st.text(max_size=35), st.from_regex(r"[A-Za-z0-9._-]{1,35}", fullmatch=True)))
def test_whatever_is_taken_is_a_name_everywhere(name: str) -> None:
    try:
        names = pack_names(name)
    except UsageError:
        return
    assert names.distribution.isascii()
    for word in (names.module, names.tool):
        assert word.isidentifier()
        assert not keyword.iskeyword(word)
        assert word not in sys.stdlib_module_names
    assert len(names.tool) <= 64


@pytest.mark.parametrize("name", ["x", LONGEST, "word-games"])
def test_what_is_written_is_complete_and_in_form(tmp_path: Path, name: str) -> None:
    folder = write_pack(pack_names(name), tmp_path)
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    module = f"marvin_{name.replace('-', '_')}"
    parts = ("__init__.py", "plugin.py", "tools.py", "phrases.toml", "py.typed")
    assert files == {
        *(f"src/{module}/{part}" for part in parts),
        *("pyproject.toml", "README.md", "CHANGELOG.md", ".gitignore", ".github/workflows/check.yml"),
        *("docs/tools.md", "tests/conftest.py", "tests/test_tools.py"),
    }
    for path in folder.rglob("*"):
        text = path.read_text(encoding="utf-8") if path.is_file() else path.name
        assert "__pack__" not in text
        assert "__module__" not in text
        assert "__tool__" not in text
        if path.suffix == ".py":
            ast.parse(text)
        if path.suffix == ".toml":
            tomllib.loads(text)
    assert "license" not in tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    ruff = Path(sys.executable).with_name("ruff")
    for words in (["check"], ["format", "--check"]):
        done = subprocess.run([ruff, *words], cwd=folder, capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode == 0, done.stdout
    assert list(tmp_path.iterdir()) == [folder]


def _empty(path: Path) -> None:
    path.mkdir()


def _full(path: Path) -> None:
    path.mkdir()
    (path / "README.md").write_text("mine")


def _file(path: Path) -> None:
    path.write_text("mine")


def _dead_link(path: Path) -> None:
    path.symlink_to("nowhere")


@pytest.mark.parametrize("there", [_empty, _full, _file, _dead_link])
def test_nothing_is_overwritten(tmp_path: Path, there: object) -> None:
    assert callable(there)
    there(tmp_path / "marvin-dice")
    before = sorted((path, path.lstat().st_mtime_ns) for path in tmp_path.rglob("*"))
    with pytest.raises(UsageError, match="already exists"):
        write_pack(pack_names("dice"), tmp_path)
    assert sorted((path, path.lstat().st_mtime_ns) for path in tmp_path.rglob("*")) == before


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Choose another --folder"):
        write_pack(pack_names("dice"), tmp_path / "missing")
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="Choose another --folder"):
        write_pack(pack_names("dice"), tmp_path / "file")
    assert os.listdir(tmp_path) == ["file"]


def test_a_module_that_is_installed_already_is_no_name() -> None:
    with pytest.raises(UsageError, match="reserved by Marvin"):
        pack_names("tools_life")
