"""What Marvin keeps is for its user alone, also where an earlier umask left it open."""

from __future__ import annotations

import os
from pathlib import Path

from marvin_core.util.state_files import close_to_others, make_private_folder


def modes(folder: Path) -> set[int]:
    return {path.lstat().st_mode & 0o777 for path in (folder, *folder.rglob("*")) if not path.is_symlink()}


def test_a_folder_that_was_open_is_closed_once(tmp_path: Path) -> None:
    folder = tmp_path / "marvin"
    (folder / "sessions").mkdir(parents=True)
    (folder / "sessions" / "a.jsonl").write_text("{}")
    (folder / "config.yaml").write_text("")
    outside = tmp_path / "outside"
    outside.write_text("")
    outside.chmod(0o644)
    (folder / "link").symlink_to(outside)
    folder.chmod(0o755)
    assert close_to_others(folder)
    assert modes(folder) <= {0o700, 0o600}
    assert outside.stat().st_mode & 0o777 == 0o644, "what a link leads to is not ours"
    assert not close_to_others(folder), "it is told once"
    assert not close_to_others(tmp_path / "missing")


def test_a_new_folder_is_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make_private_folder(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    assert modes(tmp_path / "a") == {0o700}
