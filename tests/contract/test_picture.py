"""The picture of the README is what the chat shows."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed")
def test_the_picture_can_be_made_again_and_is_that_of_the_chat() -> None:
    command = [sys.executable, "-P", str(ROOT / "scripts" / "picture.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "assets/chat.svg" in (ROOT / "README.md").read_text("utf-8")
