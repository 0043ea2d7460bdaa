"""What the tests of the sandbox share: a program that swaps a link without end."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from tests.support.swapping import running

SWAPPER = """
import os, sys
root, targets = sys.argv[1], sys.argv[2:]
os.chdir(root)
print("ready", flush=True)
while True:
    for target in targets:
        os.symlink(target, "next")
        os.replace("next", "current")
"""


def swapping(root: Path, targets: Sequence[str]) -> AbstractContextManager[None]:
    """Have the link `current` in a folder lead to each of the targets in turn, as fast as that goes."""
    return running(SWAPPER, root, *targets)
