"""The number of instructions of a program, counted by valgrind: it does not depend on the machine's load.

The kernel's work, waiting and child processes are not counted.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence

from benchmarks.answers import Description
from benchmarks.lab import BenchmarkError, Lab

_VALGRIND = shutil.which("valgrind")
_COUNTED = re.compile(r"I\s+refs:\s+([\d,]+)")
AVAILABLE = _VALGRIND is not None
"""Whether they can be counted on this machine."""


def counted(lab: Lab, command: Sequence[str], script: Sequence[Description] = ()) -> float:
    """Millions of instructions from exec to exit.

    Raises:
        BenchmarkError: the command failed, or there is no valgrind.
    """
    if _VALGRIND is None:
        raise BenchmarkError("instructions are counted by valgrind, which is not installed")
    log = lab.folder / "valgrind.log"
    options = ["--cache-sim=no", "--cachegrind-out-file=/dev/null", f"--log-file={log}"]
    lab.run([_VALGRIND, "--tool=cachegrind", *options, *command], script)
    found = _COUNTED.search(log.read_text())
    if not found:
        raise BenchmarkError(f"valgrind told no number of instructions for {' '.join(command)}")
    return int(found[1].replace(",", "")) / 1e6
