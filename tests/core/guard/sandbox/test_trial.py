"""What the trial of the sandbox finds, wherever the home folder of the user lies."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from marvin_core.api.timeouts import Timeouts
from marvin_core.guard.sandbox.trial import Found, Trial


def found(scratch: Path) -> Found:
    return asyncio.run(Trial(scratch, os.environ["PATH"], scratch, Timeouts()).find())


def test_it_holds_where_the_home_folder_is_no_temporary_one() -> None:
    """A sandbox has a `/tmp` of its own, which hides what lies there; the environment of Python it shows anywhere."""
    with TemporaryDirectory(dir=sys.prefix) as folder:
        trial = found(Path(folder) / "scratch")
        assert trial.state("loopback").holds, trial
        assert trial.lacks == ()
