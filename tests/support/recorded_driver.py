"""Runs command lines one by one as process 1 of a sandbox, and tells which recorders each one started.

A program by itself, which `recorded.py` starts: it imports the standard library alone. Standard input holds a JSON
object with `texts`, `seconds` and `files`; standard output gets one JSON object a line, in the order of the texts.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

RECORD = Path("/tmp/record/started")
WORK = Path("/tmp/work")
PROJECT = WORK / "project"
HOME = WORK / "home"
DEVICES = ("sda", "nvme0n1")
_OUTPUT_LIMIT = 1_000_000


def main() -> None:
    """Answer each text with what it started."""
    task = json.load(sys.stdin)
    for text in task["texts"]:
        _prepare(task["files"])
        finished = _run(text, task["seconds"])
        answer = {"started": _records(), "devices": _devices(), "finished": finished, **_changes(task["files"])}
        print(json.dumps(answer), flush=True)


def _prepare(files: dict[str, str]) -> None:
    shutil.rmtree(WORK, ignore_errors=True)
    HOME.mkdir(parents=True)
    RECORD.parent.mkdir(exist_ok=True)
    RECORD.unlink(missing_ok=True)
    PROJECT.mkdir()
    for name, content in files.items():
        path = Path(os.path.normpath(PROJECT / name))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def _run(text: str, seconds: float) -> bool:
    """Whether the shell and all that it started ended in time."""
    child = os.fork()
    if not child:
        _become_shell(text)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        if not ended:
            _until_a_child_ends(min(0.2, deadline - time.monotonic()))
    os.kill(-1, signal.SIGKILL)  # all but this process, which is the first one of its namespace
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return False


def _until_a_child_ends(seconds: float) -> None:
    signal.sigtimedwait({signal.SIGCHLD}, max(seconds, 0.001))


def _become_shell(text: str) -> None:
    import resource

    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        os.setsid()
        os.chdir(PROJECT)
        nothing = os.open("/dev/null", os.O_RDWR)
        for descriptor in range(3):
            os.dup2(nothing, descriptor)
        resource.setrlimit(resource.RLIMIT_FSIZE, (_OUTPUT_LIMIT, _OUTPUT_LIMIT))
        resource.setrlimit(resource.RLIMIT_AS, (500_000_000, 500_000_000))
        os.execv(shutil.which("bash") or "/bin/sh", ["bash", "-c", text])
    finally:
        os._exit(126)


def _records() -> list[dict[str, Any]]:
    try:
        found = RECORD.read_bytes().decode(errors="replace")
    except FileNotFoundError:
        return []
    records = []
    for entry in found.split("\x1e")[1:]:
        name, folder, *arguments = entry.split("\x1f")[:-1]
        records.append({"name": os.path.basename(name), "folder": folder, "arguments": arguments})
    return records


def _devices() -> list[str]:
    """The files that stand where a device would be: what was written to."""
    found = [f"/dev/{name}" for name in DEVICES if os.path.exists(f"/dev/{name}")]
    for path in found:
        os.unlink(path)
    return found


def _changes(files: dict[str, str]) -> dict[str, list[str]]:
    """The files of the working directory that were not there before, and those of before that are gone."""
    there = {os.path.normpath(name) for name in files}
    found = {str(path.relative_to(PROJECT)) for path in PROJECT.rglob("*") if not path.is_dir()}
    gone = [name for name in there if not (PROJECT / name).exists()]
    return {"written": sorted(found - there), "removed": sorted(gone)}


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    main()
