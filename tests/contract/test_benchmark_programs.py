"""What the benchmark starts as programs of its own works with the core as it is: no type checker reads these texts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import compaction, sessions
from marvin_core.api.messages import user
from marvin_core.api.timeouts import Timeouts
from marvin_core.sessions.writer import SessionWriter


def answer(program: str, *arguments: str | Path) -> object:
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, *arguments], capture_output=True, text=True, timeout=150, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("work", ["compact", "copy"])
def test_a_conversation_is_compacted_and_copied(tmp_path: Path, work: str) -> None:
    found = answer(compaction._TIMED, work, tmp_path, "60000")
    assert isinstance(found, list)
    assert found[0] > 0
    assert found[2] > 0


@pytest.mark.parametrize("work", ["decode", "resume"])
def test_a_session_is_decoded_and_resumed(tmp_path: Path, work: str) -> None:
    writer = SessionWriter(tmp_path, Timeouts(), pytest.fail)
    writer.begin(0.0, "A chat", "p", "m", "/w")
    writer.save(user("one"))
    (path,) = tmp_path.glob("*.jsonl")
    found = answer(sessions._TIMED, work, path)
    assert isinstance(found, float)
    assert found > 0
