"""The control groups of sandboxes: those of the living are left alone, those of the dead are removed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from marvin_core.guard.sandbox.cgroups import ControlGroup


def test_a_group_that_another_marvin_has_just_made_is_left_alone(tmp_path: Path) -> None:
    """It is empty until its sandbox has begun, as one that was left behind is."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        theirs = tmp_path / f"marvin-sandbox-{other.pid}-1"
        theirs.mkdir()
        ControlGroup().add(tmp_path, {}, "2")
        assert theirs.is_dir()
        other.communicate(b"\n")
    ControlGroup().add(tmp_path, {}, "2")
    assert not theirs.exists()
    assert {folder.name.split("-")[2] for folder in tmp_path.iterdir()} == {str(os.getpid())}
