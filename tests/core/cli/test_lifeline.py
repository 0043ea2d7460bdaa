"""A process ends with its standard input where that is the pipe that its parent holds, and else does not care."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from marvin_core.testing import ModelServer, text

WATCHES = """
import sys, threading
from marvin_core.api.timeouts import Timeouts
from marvin_core.cli.lifeline import end_with_parent
end_with_parent(sys.argv[1], Timeouts(close=0.2, kill_limit=0.2))
print(threading.active_count(), flush=True)
{then}
"""
DEAF = (
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); threading.Event().wait()"
)


def started(lifeline: str, stdin: int, then: str = "threading.Event().wait()") -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-P", "-c", WATCHES.format(then=then), lifeline]
    return subprocess.Popen(argv, stdin=stdin, stdout=subprocess.PIPE)


@pytest.mark.parametrize(("then", "signal"), [("threading.Event().wait()", 15), (DEAF, 9)])
def test_the_end_of_the_pipe_ends_the_process(then: str, signal: int) -> None:
    """One that does not hear is killed."""
    theirs, ours = os.pipe()
    with started(str(os.fstat(theirs).st_ino), theirs, then) as process:
        os.close(theirs)
        assert process.stdout is not None
        assert process.stdout.readline() == b"2\n"
        if then == DEAF:
            assert process.stdout.readline() == b"deaf\n"
        os.write(ours, b"what is written there means nothing")
        assert process.poll() is None
        os.close(ours)
        assert process.wait(60) == -signal


@pytest.mark.parametrize("lifeline", ["1", "", "x"])
def test_another_pipe_is_none_of_its_business(lifeline: str) -> None:
    theirs, ours = os.pipe()
    with started(lifeline, theirs, "") as process:
        os.close(theirs)
        os.close(ours)
        assert process.communicate()[0] == b"1\n"
        assert process.returncode == 0


def test_a_file_is_no_lifeline(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (tmp_path / "file").open("rb") as stream:
        with started(str(os.fstat(stream.fileno()).st_ino), stream.fileno(), "") as process:
            assert process.communicate()[0] == b"1\n"


def run(env: Mapping[str, str], home: Path, server: ModelServer) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-P", "-m", "marvin_core", "--non-interactive", "--prompt", "Do it."]
    given = {"PATH": os.environ["PATH"], "HOME": str(home), "OPENAI_COMPAT_URL": server.url, **env}
    return subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=given, cwd=home
    )


@pytest.mark.slow
def test_a_run_that_inherits_the_variable_alone_is_no_agent(tmp_path: Path) -> None:
    """A command of an agent may start a Marvin with what it finds in its environment."""
    with ModelServer(text("It is done.")) as server, run({"MARVIN_LIFELINE": "1"}, tmp_path, server) as process:
        out, err = process.communicate()
        assert (process.returncode, out) == (0, b"It is done.\n"), err
