"""What the tests of the sandbox share: a program that swaps a link without end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

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


@contextmanager
def swapping(root: Path, targets: Sequence[str]) -> Iterator[None]:
    """Have the link `current` in a folder lead to each of the targets in turn, as fast as that goes."""
    argv = [sys.executable, "-c", SWAPPER, str(root), *targets]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as swapper:
        assert swapper.stdout is not None
        swapper.stdout.readline()
        try:
            yield
        finally:
            swapper.kill()
