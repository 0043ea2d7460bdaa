"""Every listed place of a home folder counts, whatever the quick look at a path's parts says."""

from __future__ import annotations

from pathlib import Path

import pytest

from marvin_core.guard.sandbox import home_places, places

HISTORIES = [pattern.replace("*", "x") for pattern in places.HISTORIES]


def found_in(tmp_path: Path, look: object, name: str) -> str:
    assert callable(look)
    return str(look([str(tmp_path / name), str(tmp_path / name / "inner")], tmp_path, tmp_path))


@pytest.mark.parametrize("name", [*places.KEYS, *places.BROWSERS, *HISTORIES])
def test_each_private_place_of_a_home_is_known(name: str, tmp_path: Path) -> None:
    for spelled in (name, name.upper()) if name not in HISTORIES else (name,):
        assert found_in(tmp_path, home_places.private_place, spelled) == str(tmp_path / spelled)


@pytest.mark.parametrize("name", [*places.KEYS, *places.BROWSERS, *places.RUN_BY_THEMSELVES])
def test_each_place_that_is_kept_from_changes_is_known(name: str, tmp_path: Path) -> None:
    for spelled in (name, name.upper()):
        assert found_in(tmp_path, home_places.kept_place, spelled) == str(tmp_path / spelled)


@pytest.mark.parametrize("name", ["notes.txt", "src/main.py", "binary/x", "snapshots/x", "a.b/c"])
def test_other_files_of_a_home_are_not(name: str, tmp_path: Path) -> None:
    assert not found_in(tmp_path, home_places.private_place, name)
    assert not found_in(tmp_path, home_places.kept_place, name)
