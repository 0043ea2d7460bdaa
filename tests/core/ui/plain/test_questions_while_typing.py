"""A question that appears in the middle of a word changes nothing that is typed, and no key of the word answers it."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys

import pytest

from tests.support import typing_driver

LIMIT = 500.0


def wrong_in(count: int, seed: int, pause: float = 0.25) -> list[str]:
    """What went wrong in so many rounds, in a program of its own: the editor takes the standard streams."""
    argv = [sys.executable, typing_driver.__file__, str(count), str(seed), str(pause)]
    env = {**os.environ, "TERM": "xterm-256color"}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT, env=env, check=False)
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout)
    return found


@pytest.mark.slow
def test_a_few_timings() -> None:
    assert wrong_in(4, 1) == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_a_thousand_timings(part: int) -> None:
    seed = random.SystemRandom().randrange(1_000_000)
    assert wrong_in(125, seed) == [], f"seed {seed}, part {part}"
