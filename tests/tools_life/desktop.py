"""A desktop for tests: a display without a screen, a bus, and a server of notices that tells what it showed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

_LIMIT = 60.0


class Desktop:
    """A running desktop; `environment` is what programs need to find it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = environment

    def notices(self) -> list[tuple[str, str]]:
        """The titles and texts that were shown, the oldest first."""
        told = subprocess.run(
            ["dunstctl", "history"], env={**os.environ, **self.environment}, capture_output=True, check=True
        )
        (entries,) = json.loads(told.stdout)["data"]
        return [(one["summary"]["data"], one["body"]["data"]) for one in reversed(entries)]

    def shown(self) -> list[tuple[str, str]]:
        """Close what is on the screen, which puts it into the history, and tell it."""
        subprocess.run(["dunstctl", "close-all"], env={**os.environ, **self.environment}, check=True)
        return self.notices()


@contextmanager
def desktop(folder: Path) -> Iterator[Desktop]:
    """A display, a bus and dunst, ended with the block."""
    need("Xvfb", "dbus-daemon", "dunst", "notify-send")
    with ExitStack() as stack:
        number, write = os.pipe()
        argv = ["Xvfb", "-displayfd", str(write), "-screen", "0", "320x240x24", "-nolisten", "tcp"]
        stack.enter_context(running(argv, pass_fds=(write,)))
        os.close(write)
        with os.fdopen(number) as told:
            display = f":{told.readline().strip()}"
        address = f"unix:path={folder / 'bus'}"
        stack.enter_context(running(["dbus-daemon", "--session", "--nofork", "--nopidfile", f"--address={address}"]))
        until((folder / "bus").exists)
        environment = {"DISPLAY": display, "DBUS_SESSION_BUS_ADDRESS": address, "HOME": str(folder)}
        stack.enter_context(running(["dunst"], env={**os.environ, **environment}))
        found = Desktop(environment)
        until(lambda: _answers(found))
        yield found


def need(*programs: str) -> None:
    """Skip the test where one of these programs is not installed."""
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


@contextmanager
def running(
    argv: list[str], env: Mapping[str, str] | None = None, pass_fds: tuple[int, ...] = ()
) -> Iterator[subprocess.Popen[bytes]]:
    """A program that runs as long as the block."""
    quiet = subprocess.DEVNULL
    with subprocess.Popen(argv, env=env, pass_fds=pass_fds, stdin=quiet, stdout=quiet, stderr=quiet) as process:
        try:
            yield process
        finally:
            process.terminate()


def until(is_so: Callable[[], object], limit: float = _LIMIT) -> None:
    """Wait until a function says yes."""
    end = time.monotonic() + limit
    while not is_so():
        assert time.monotonic() < end, "it did not come to that in time"
        time.sleep(0.05)


def _answers(found: Desktop) -> bool:
    try:
        found.notices()
    except subprocess.CalledProcessError:
        return False
    return True
