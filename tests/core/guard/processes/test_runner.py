"""Child processes: what comes back, what they may not reach, and that nothing of them is left."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

import pexpect
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core import ProcessResult
from marvin_core.api.errors import ToolError
from marvin_core.api.limits import Limits
from marvin_core.api.timeouts import Timeouts
from marvin_core.guard.processes.child import Capture
from marvin_core.guard.processes.outputs import Reports, remove_old
from marvin_core.guard.processes.runner import ProcessRunner
from marvin_core.guard.processes.table import Place, Table, adopts_orphans, children_of, entry_of, parse_ps, ticks
from marvin_core.guard.processes.tree import Family
from marvin_core.util.terminal_text import disarm
from tests.support.examples import examples
from tests.support.folders import Folders
from tests.support.sandboxes import in_sandbox

T = TypeVar("T")

# Leaves its parent, its session and its group, closes every descriptor, wipes its environment.
ESCAPE = """
import os, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 100)
        os.execve(sys.argv[1], [sys.argv[2], "300"], {})
    os._exit(0)
os.wait()
"""


FAR = 50.0
"""Seconds; a time-out that no machine is slow enough to reach, and less than the `sleep 300` of what is to be ended."""
READY = "while [ ! -e go ]; do sleep 0.01; done"
"""Timeouts until the test has made the file."""


inside = False
"""Whether the programs of the test at hand run in the sandbox."""


@pytest.fixture(params=["outside", "inside"])
def anywhere(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that asks for this runs twice: what holds outside of the sandbox holds in it."""
    global inside
    inside = request.param == "inside"
    yield
    inside = False


anywhere_too = pytest.mark.usefixtures("anywhere")


def with_runner(
    tmp_path: Path, use: Callable[[ProcessRunner], Awaitable[T]], timeouts: Timeouts | None = None, **env: str
) -> T:
    """What `use` returns; the runner is closed afterwards."""
    if inside:
        return in_sandbox(
            tmp_path, lambda place: use(place.runner), root=tmp_path, env=env, timeouts=timeouts, home=tmp_path
        )

    async def go() -> T:
        runner = ProcessRunner(
            Folders(root=tmp_path, base=tmp_path),
            {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **env},
            timeouts or Timeouts(),
        )
        try:
            return await use(runner)
        finally:
            await runner.close()

    return asyncio.run(go())


def living(text: str) -> list[int]:
    """The processes, zombies aside, with this in their command line."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            command = (folder / "cmdline").read_bytes()
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if text.encode() in command and state not in "ZX":
            found.append(int(folder.name))
    return found


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that the test can only see from outside."""
    while True:
        if condition():
            return
        await asyncio.sleep(0.02)


@pytest.fixture
def name(tmp_path: Path) -> str:
    """A name for a program of this test alone: a link to `sleep`."""
    program = tmp_path / f"sleeper-{os.getpid()}-{time.monotonic_ns()}"
    sleep = next(p for p in ("/bin/sleep", "/usr/bin/sleep") if Path(p).exists())
    program.symlink_to(sleep)
    return str(program)


def test_output_streams_and_exit_code(tmp_path: Path) -> None:
    """Standard output and error come back apart, with the exit code and the time it took."""
    begin = time.monotonic()
    result = with_runner(tmp_path, lambda r: r.run(["sh", "-c", "echo out; echo err >&2; exit 3"]))
    assert (result.exit_code, result.output, result.stderr) == (3, b"out\n", b"err\n")
    assert not result.timed_out
    assert 0 < result.elapsed <= time.monotonic() - begin


@anywhere_too
def test_merged_output_keeps_the_order(tmp_path: Path) -> None:
    """Merged, both streams stand in the order they were written in."""
    script = "echo 1; echo 2 >&2; echo 3; echo 4 >&2"
    result = with_runner(tmp_path, lambda r: r.run(["sh", "-c", script], merge_stderr=True))
    assert result.output == b"1\n2\n3\n4\n"
    assert result.stderr == b""


@anywhere_too
def test_death_by_signal_is_told(tmp_path: Path) -> None:
    """A program that died by a signal has that signal, negative, as exit code."""
    result = with_runner(tmp_path, lambda r: r.run(["sh", "-c", "kill -SEGV $$"]))
    assert result.exit_code == -signal.SIGSEGV


@anywhere_too
def test_input_is_given_or_empty(tmp_path: Path) -> None:
    """The program reads the bytes given, however many, and end of file where none are."""
    data = os.urandom(3_000_000)
    given = with_runner(tmp_path, lambda r: r.run(["cat"], stdin=data, output_limit=len(data)))
    assert given.output == data
    assert with_runner(tmp_path, lambda r: r.run(["cat"], timeout=FAR)).output == b""


def test_input_that_is_not_read_does_no_harm(tmp_path: Path) -> None:
    """A program may end without reading what it was given."""
    result = with_runner(tmp_path, lambda r: r.run(["true"], stdin=b"x" * 1_000_000, timeout=FAR))
    assert result.exit_code == 0


@anywhere_too
def test_working_directory_and_added_variables(tmp_path: Path) -> None:
    """A call names its folder and adds to the environment; else the root and the given environment count."""
    (tmp_path / "sub").mkdir()

    async def use(runner: ProcessRunner) -> tuple[bytes, bytes]:
        at_root = await runner.run(["sh", "-c", "pwd; echo $KEPT$ADDED"])
        below = await runner.run(["sh", "-c", "pwd; echo $KEPT$ADDED"], cwd=tmp_path / "sub", env={"ADDED": "a"})
        return at_root.output, below.output

    root = os.path.realpath(tmp_path)
    assert with_runner(tmp_path, use, KEPT="k") == (f"{root}\nk\n".encode(), f"{root}/sub\nka\n".encode())


@anywhere_too
def test_only_the_given_environment_reaches_a_child(tmp_path: Path) -> None:
    """I8: a child has the runner's environment and nothing of Marvin's own, so no GIT_DIR and no secret."""
    os.environ["GIT_DIR"] = "/elsewhere/.git"
    try:
        result = with_runner(tmp_path, lambda r: r.run(["env"]))
    finally:
        del os.environ["GIT_DIR"]
    names = {line.partition(b"=")[0] for line in result.output.splitlines()}
    assert names <= {b"PATH", b"HOME", b"MARVIN_PROC", b"PWD", b"SHLVL", b"_"}


def test_no_terminal_can_be_opened(tmp_path: Path) -> None:
    """A child of a Marvin that has a terminal cannot open it: no hidden question, no painted screen."""
    script = f"""
import asyncio, os
from pathlib import Path
from marvin_core.guard.processes.runner import ProcessRunner
from marvin_core.api.timeouts import Timeouts
from tests.support.folders import Folders
os.close(os.open("/dev/tty", os.O_RDWR))
env = dict(PATH={os.environ["PATH"]!r})
runner = ProcessRunner(Folders(root=Path("/"), base=Path("/")), env, Timeouts())
result = asyncio.run(runner.run(["sh", "-c", "test -t 0 || echo no-input; (: > /dev/tty) || echo no-tty"]))
print("seen:", result.output.split())
"""
    with pexpect.spawn(sys.executable, ["-c", script], timeout=FAR) as terminal:
        terminal.expect_exact("seen: [b'no-input', b'no-tty']")
        terminal.expect(pexpect.EOF)


def test_time_out_keeps_the_output_and_kills(tmp_path: Path, name: str) -> None:
    """I25: when the time is over the result says so, has the output so far, and nothing is alive."""
    result = with_runner(tmp_path, lambda r: r.run(["sh", "-c", f"echo before; {name} 300; echo after"], timeout=2.0))
    assert (result.timed_out, result.exit_code, result.output) == (True, None, b"before\n")
    assert 2.0 <= result.elapsed < FAR
    assert not living(name)


def test_a_program_is_asked_to_end_once(tmp_path: Path) -> None:
    """A second signal would break off the cleaning up that many programs do on the first."""
    program = (
        "import signal, time\n"
        "asked = []\n"
        "signal.signal(signal.SIGTERM, lambda *_: (asked.append(1), open('asked', 'a').write('x')))\n"
        "print('ready', flush=True)\n"
        "while not asked: time.sleep(0.01)\n"
        "for _ in range(20): time.sleep(0.01)\n"
    )

    async def use(runner: ProcessRunner) -> ProcessResult:
        return await runner.run(["sh", "-c", f'{sys.executable} -S -c "$0"; true', program], timeout=1.5)

    result = with_runner(tmp_path, use, timeouts=Timeouts(terminate=30.0))
    assert (result.timed_out, (tmp_path / "asked").read_text()) == (True, "x")


@pytest.mark.slow
def test_a_program_without_children_is_ended_without_a_look_at_all_processes(tmp_path: Path) -> None:
    """A search is cut short often, and to list what runs on the machine holds up everything else meanwhile."""
    if sys.platform != "linux":
        pytest.skip("elsewhere it takes a list of all processes")
    # In a process of its own: this one may have children that other tests left.
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-P", "-c", CUT_SHORT, str(tmp_path)], env=env, check=True, timeout=60)


CUT_SHORT = """
import sys
from pathlib import Path

from tests.core.guard.processes.test_runner import with_runner
from tests.support.counting import times_called


def cut_short(*argv):
    assert with_runner(Path(sys.argv[1]), lambda r: r.run(argv, timeout=0.3)).timed_out


cut_short("sleep", "300")  # what is done once, is done
assert times_called("_proc_table", lambda: cut_short("sleep", "300")) == 0
# On a busy machine the shell may be ended before it has a child.
looks = (times_called("_proc_table", lambda: cut_short("sh", "-c", "sleep 300; true")) for _ in range(20))
assert any(looks)
"""


@anywhere_too
def test_time_out_kills_what_ignores_sigterm(tmp_path: Path, name: str) -> None:
    """I25: a program that ignores SIGTERM is killed all the same."""
    script = f"trap '' TERM; {name} 300 & {name} 300"
    result = with_runner(tmp_path, lambda r: r.run(["sh", "-c", script], timeout=0.2))
    assert result.timed_out
    assert not living(name)


@anywhere_too
def test_a_program_may_clean_up_before_it_is_killed(tmp_path: Path) -> None:
    """At a time-out a program gets SIGTERM first, so that git removes its lock files."""
    script = "trap 'rm lock; exit' TERM; touch lock; while :; do sleep 0.02; done"
    timeouts = Timeouts(terminate=FAR)
    assert with_runner(tmp_path, lambda r: r.run(["sh", "-c", script], timeout=0.5), timeouts).timed_out
    assert not (tmp_path / "lock").exists()


@anywhere_too
@pytest.mark.parametrize("how", ["setsid", "double fork"])
def test_time_out_reaches_what_left_the_group(tmp_path: Path, name: str, how: str) -> None:
    """I25: a new session, and a double fork with closed descriptors and no environment, do not get away."""
    if how == "setsid":
        argv = ["sh", "-c", f"setsid {name} 300 & {name} 300"]
    else:
        escape = f'"$1" -c "$2" {name} {name}'
        argv = ["sh", "-c", f"{escape}; {name} 300", "sh", sys.executable, ESCAPE]

    async def use(runner: ProcessRunner) -> int:
        call = asyncio.create_task(runner.run(argv, timeout=3.0))
        most = 0
        while not call.done():
            most = max(most, len(living(name + "\x00300")))
            await asyncio.sleep(0.05)
        assert (await call).timed_out
        return most

    assert with_runner(tmp_path, use) >= 2, "the test started nothing that could have got away"
    assert not living(name)


@anywhere_too
def test_cancel_kills_and_is_raised(tmp_path: Path, name: str) -> None:
    """I25: a cancelled call ends everything it started, escaped descendants included, and stays cancelled."""

    async def use(runner: ProcessRunner) -> None:
        argv = ["sh", "-c", f'"$1" -c "$2" {name} {name}; {name} 300', "sh", sys.executable, ESCAPE]
        call = asyncio.create_task(runner.run(argv))
        await until(lambda: len(living(name + "\x00300")) == 2)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert not living(name)

    with_runner(tmp_path, use)


@anywhere_too
def test_a_second_cancel_does_not_save_the_processes(tmp_path: Path, name: str) -> None:
    """I25: cancelled again while it cleans up, a call still leaves nothing once the session is closed."""

    async def use(runner: ProcessRunner) -> None:
        call = asyncio.create_task(runner.run(["sh", "-c", f"trap '' TERM; {name} 300 & {name} 300"]))
        await until(lambda: len(living(name + "\x00300")) == 2)
        call.cancel()
        await asyncio.sleep(0.05)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    with_runner(tmp_path, use)
    assert not living(name)


@anywhere_too
@pytest.mark.parametrize("script", ["trap 'sleep 0.7; echo done >done; exit 1' INT; {} 300", "{} 300; exit 1"])
def test_an_interrupted_program_may_clean_up_for_longer_than_others(tmp_path: Path, name: str, script: str) -> None:
    """As on Ctrl+C: hooks of a commit restore changes, although the program that started them ends at once."""
    (tmp_path / "hook").write_text(script.format(name))

    async def use(runner: ProcessRunner) -> None:
        call = asyncio.create_task(runner.run(["sh", "-c", "sh ./hook; exit 1"], interrupt=True))
        await until(lambda: len(living(name + "\x00300")) == 1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert not living(name)

    with_runner(tmp_path, use, Timeouts(interrupt=FAR))
    assert (tmp_path / "done").exists() == ("done" in script)


@anywhere_too
def test_an_interrupted_program_may_clean_up_although_marvin_ends_meanwhile(tmp_path: Path, name: str) -> None:
    """The user cancels twice and leaves, as with Ctrl+C: the only copy of a change may be what a hook put aside."""
    script = f"trap 'sleep 0.7; echo done >done; exit 1' INT; {name} 300"

    async def use(runner: ProcessRunner) -> None:
        call = asyncio.create_task(runner.run(["sh", "-c", script], interrupt=True))
        await until(lambda: len(living(name + "\x00300")) == 1)
        for _ in range(2):
            call.cancel()
            await asyncio.sleep(0.05)
        with pytest.raises(asyncio.CancelledError):
            await call

    with_runner(tmp_path, use, Timeouts(interrupt=FAR))
    assert not living(name)
    assert (tmp_path / "done").exists()


@anywhere_too
@pytest.mark.parametrize("again", [False, True])
def test_what_ignores_interrupts_is_ended_all_the_same(tmp_path: Path, name: str, *, again: bool) -> None:
    """I25: nothing of a cancelled call is left, whatever its programs ignore."""

    async def use(runner: ProcessRunner) -> None:
        script = f"trap '' INT TERM; {name} 300 & setsid {name} 300"
        call = asyncio.create_task(runner.run(["sh", "-c", script], interrupt=True))
        await until(lambda: len(living(name + "\x00300")) == 2)
        call.cancel()
        if again:
            await asyncio.sleep(0.05)
            call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    with_runner(tmp_path, use, Timeouts(interrupt=0.3))
    assert not living(name)


def test_what_an_interruptible_program_leaves_does_not_delay_it(tmp_path: Path, name: str) -> None:
    async def use(runner: ProcessRunner) -> None:
        result = await runner.run(["sh", "-c", f"{name} 300 & exit 3"], interrupt=True)
        assert result.exit_code == 3
        assert result.elapsed < FAR
        assert not living(name)

    with_runner(tmp_path, use, Timeouts(interrupt=2 * FAR))


@anywhere_too
def test_normal_end_leaves_nothing(tmp_path: Path, name: str) -> None:
    """I25: what a program left in the background, escaped or not, ends with the call and delays it little."""

    async def use(runner: ProcessRunner) -> None:
        begin = time.monotonic()
        held = await runner.run(["sh", "-c", f"{name} 300 & echo done"])
        assert held.output == b"done\n"
        assert 0.4 < time.monotonic() - begin < FAR, "the output is waited for, but not for long"
        assert not living(name)
        escaped = await runner.run([sys.executable, "-c", ESCAPE, name, name])
        assert escaped.exit_code == 0
        assert not living(name)

    with_runner(tmp_path, use)


@pytest.mark.slow
@anywhere_too
def test_forking_all_the_time_does_not_help(tmp_path: Path) -> None:
    """I25: processes that each fork a successor in a new session and end are caught.

    There are few of them at most: on a busy machine many would end before they are looked at, and what has ended and
    is not waited for takes a number of the system's.
    """
    marker = f"hop-{os.getpid()}-{time.monotonic_ns()}"
    hop = """
import os, sys, time
for _ in range(1_000):
    if os.fork():
        os._exit(0)
    os.setsid()
    time.sleep(0.002)
time.sleep(300)
"""
    script = f'for i in 1 2 3; do "$1" -c "$2" {marker} & done; sleep 300'
    result = with_runner(tmp_path, lambda r: r.run(["sh", "-c", script, "sh", sys.executable, hop], timeout=0.5))
    assert result.timed_out
    assert not living(marker)


NO_ROOM = """
import asyncio, os, resource, subprocess, sys
from pathlib import Path
from marvin_core.api.timeouts import Timeouts
from marvin_core.guard.processes.runner import ProcessRunner
from tests.support.folders import Folders

async def go():
    root = Path("/")
    runner = ProcessRunner(Folders(root=root, base=root), {"PATH": os.defpath}, Timeouts().replace(**eval(sys.argv[1])))
    await runner.run(["true"])  # everything is imported from now on: the other user may not read it
    os.setgroups([])
    os.setresgid(*[50_000 + os.getpid()] * 3)
    os.setresuid(*[50_000 + os.getpid()] * 3)
    filler = subprocess.Popen(["sleep", "20"])
    resource.setrlimit(resource.RLIMIT_NPROC, (2, 2))
    def make_room():
        filler.kill()
        filler.wait()
    asyncio.get_running_loop().call_later(0.1, make_room)
    try:
        print((await runner.run(["true"])).exit_code)
    finally:
        make_room()
        await runner.close()

asyncio.run(go())
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root may become a user who has no other process")
@pytest.mark.parametrize(
    ("timeouts", "said"),
    [
        ("{}", "0"),
        ("{'process_backoff': (0.5,)}", "0"),
        ("{'process_backoff': ()}", "Stop processes that are not needed"),
    ],
)
def test_a_program_that_finds_no_room_is_started_again(timeouts: str, said: str) -> None:
    """What used up all processes may just have been killed, and still counts."""
    ended = subprocess.run(
        [sys.executable, "-c", NO_ROOM, timeouts], capture_output=True, text=True, check=False, timeout=60
    )
    assert said in (ended.stdout + ended.stderr).strip().splitlines()[-1]


def test_a_call_does_not_touch_its_neighbours(tmp_path: Path, name: str) -> None:
    """Calls side by side: the time-out of one ends nothing of the other."""

    async def use(runner: ProcessRunner) -> None:
        long = asyncio.create_task(runner.run(["sh", "-c", f"setsid {name} 300 & {name} 300; wait; echo whole"]))
        await until(lambda: len(living(name + "\x00300")) == 2)
        short = await runner.run(["sh", "-c", "setsid sleep 300 & sleep 300"], timeout=0.2)
        assert short.timed_out
        sleepers = living(name + "\x00300")
        assert len(sleepers) == 2
        for pid in sleepers:
            os.kill(pid, signal.SIGTERM)
        assert (await long).output == b"whole\n"

    with_runner(tmp_path, use)


def test_marvins_other_children_are_left_alone(tmp_path: Path, name: str) -> None:
    """A child of another's making is not ended with a call, and its exit status is not taken."""

    async def use(runner: ProcessRunner) -> None:
        own = await asyncio.create_subprocess_exec(name, "300")
        assert (await runner.run(["sh", "-c", "sleep 300"], timeout=0.1)).timed_out
        assert living(name) == [own.pid]
        own.terminate()
        assert await own.wait() == -signal.SIGTERM

    with_runner(tmp_path, use)


def test_output_is_capped_while_it_is_read(tmp_path: Path) -> None:
    """100 MB of output cost neither memory nor much time; head and tail are kept, the rest is counted."""
    script = "echo HEAD; head -c 100000000 /dev/zero; echo; echo TAIL"
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here on
    before = _peak_memory()
    result = with_runner(tmp_path, lambda r: r.run(["sh", "-c", script], output_limit=100_000))
    assert len(result.output) == 100_000
    assert result.output.startswith(b"HEAD\n\0")
    assert result.output.endswith(b"\0\nTAIL\n")
    assert result.omitted == 100_000_000 + len("HEAD\n\nTAIL\n") - 100_000
    assert _peak_memory() - before < 8_000_000
    assert result.elapsed < FAR


def _peak_memory() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


@pytest.mark.parametrize("limit", [0, 1, 2, 7, 8, 100])
def test_head_and_tail_are_exact(tmp_path: Path, limit: int, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever the limit: head and tail are the first and last bytes, and nothing is lost uncounted."""
    script = "for i in 0 1 2 3 4 5 6 7; do printf $i; sleep 0.001; done"
    result = with_runner(tmp_path, lambda r: r.run(["sh", "-c", script], output_limit=limit))
    head = limit - limit // 2
    expected = b"01234567"[:head] + b"01234567"[max(head, 8 - limit // 2) :]
    assert result.output == expected
    assert result.omitted == 8 - len(expected)
    assert caplog.text == ""  # where the loop writes what a callback raises


@anywhere_too
@pytest.mark.parametrize(
    ("argv", "cwd", "says"),
    [
        (["no-such-program"], "", "not installed"),
        (["./no-such-file"], "", "does not exist"),
        (["./data.txt"], "", "chmod"),
        (["./no-shebang"], "", "#!"),
        (["./bad-shebang"], "", "interpreter"),
        (["true"], "missing", "folder .*missing does not exist"),
        (["true"], "data.txt", "data.txt does not exist"),
        (["true", "x" * 3_000_000], "", "too long"),
        (["true", "a\0b"], "", "NUL"),
    ],
)
def test_what_cannot_be_started_says_what_to_do(tmp_path: Path, argv: list[str], cwd: str, says: str) -> None:
    """I10: a program that cannot be started is a ToolError that names the reason; no descriptor leaks."""
    (tmp_path / "data.txt").write_text("x")
    for file, text in (("no-shebang", "nothing"), ("bad-shebang", "#!/no/such/interpreter\n")):
        (tmp_path / file).write_text(text)
        (tmp_path / file).chmod(0o755)

    async def use(runner: ProcessRunner) -> None:
        await runner.run(["true"])
        before = len(os.listdir("/proc/self/fd"))
        with pytest.raises(ToolError, match=says):
            await runner.run(argv, cwd=tmp_path / cwd, stdin=b"x")
        assert len(os.listdir("/proc/self/fd")) == before

    with_runner(tmp_path, use)


def test_programs_of_the_project_are_not_taken_for_installed_ones(tmp_path: Path) -> None:
    """A relative folder in PATH does not make a project's own `git` ours."""
    (tmp_path / "git").write_text("#!/bin/sh\necho theirs\n")
    (tmp_path / "git").chmod(0o755)
    path = f".::{os.environ['PATH']}"

    async def use(runner: ProcessRunner) -> None:
        assert Path(runner.which("git") or "").parent.is_absolute()
        assert runner.which("no-such-program") is None
        assert runner.which("./git") is None
        assert (await runner.run(["git", "--version"])).output.startswith(b"git version")

    with contextlib.chdir(tmp_path):
        with_runner(tmp_path, use, PATH=path)


@anywhere_too
def test_descriptors_do_not_leak(tmp_path: Path) -> None:
    """After calls of every kind no descriptor is left open, in Marvin or in the children."""

    async def use(runner: ProcessRunner) -> None:
        await runner.run(["true"])
        before = sorted(os.listdir("/proc/self/fd"))
        for _ in range(3):
            await runner.run(["cat"], stdin=b"x")
            await runner.run(["sleep", "300"], timeout=0.05, stdin=b"x" * 200_000)
            await runner.run(["sh", "-c", "sleep 300 &"], merge_stderr=True)
        assert sorted(os.listdir("/proc/self/fd")) == before
        listed = await runner.run(["sh", "-c", "ls /proc/$$/fd"])
        assert listed.output.split() == [b"0", b"1", b"2"]

    with_runner(tmp_path, use)


def test_what_a_command_leaves_becomes_a_job(tmp_path: Path, name: str) -> None:
    """A server left in the background is a job: listed, its output logged, stopped with all it started."""

    async def use(runner: ProcessRunner) -> None:
        script = f"echo up; ({READY}; echo later; setsid {name} 300) & echo started"
        result = await runner.run(["sh", "-c", script], merge_stderr=True, leave_jobs=True)
        assert (result.exit_code, result.output, result.job) == (0, b"up\nstarted\n", "1")
        (job,) = runner.job_list()
        assert (job.id, job.running, job.command) == ("1", True, script)
        (tmp_path / "go").touch()
        await until(lambda: b"later" in job.log.read_bytes())
        assert job.log.read_bytes() == b"up\nstarted\nlater\n"
        await until(lambda: bool(living(name + "\x00300")))
        assert not (await runner.stop_job("1")).running
        assert not living(name)
        assert [job.running for job in runner.job_list()] == [False]
        assert not (await runner.stop_job("1")).running, "stopping it again is not an error"

    with_runner(tmp_path, use)


def test_a_job_survives_later_calls_and_ends_with_the_session(tmp_path: Path, name: str) -> None:
    """I25: a daemon that detached fully is a job too: later calls leave it alone, the session ends it."""

    async def use(runner: ProcessRunner) -> None:
        result = await runner.run([sys.executable, "-c", ESCAPE, name, name], leave_jobs=True)
        assert result.job == "1"
        assert (await runner.run(["sleep", "300"], timeout=0.1)).timed_out
        await runner.run(["sh", "-c", "sleep 300 & setsid sleep 300 &"])
        assert len(living(name + "\x00300")) == 1
        assert runner.job_list()[0].running

    with_runner(tmp_path, use)
    assert not living(name)


def test_a_job_that_ended_by_itself_is_told(tmp_path: Path) -> None:
    """A job whose processes are gone is no longer running; its log is complete."""

    async def use(runner: ProcessRunner) -> None:
        await runner.run(["sh", "-c", f"({READY}; echo bye) &"], merge_stderr=True, leave_jobs=True)
        assert runner.job_list()[0].running
        (tmp_path / "go").touch()
        await until(lambda: not runner.job_list()[0].running)
        assert runner.job_list()[0].log.read_bytes() == b"bye\n"

    with_runner(tmp_path, use)


def test_a_job_is_not_given_the_orphans_of_a_call(tmp_path: Path, name: str) -> None:
    """A job ends when its own processes have, whatever calls beside it leave behind."""

    async def use(runner: ProcessRunner) -> None:
        assert (await runner.run(["sh", "-c", f"({READY}) &"], leave_jobs=True)).job
        escape = ["sh", "-c", f'"$1" -c "$2" {name} {name}; sleep 300', "sh", sys.executable, ESCAPE]
        call = asyncio.create_task(runner.run(escape))
        await until(lambda: bool(living(name + "\x00300")))
        (tmp_path / "go").touch()
        await until(lambda: not runner.job_list()[0].running)
        assert living(name + "\x00300")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert not living(name)

    with_runner(tmp_path, use)


def test_no_job_without_a_process(tmp_path: Path, name: str) -> None:
    """Nothing left, a process that is just ending, and a time-out make no job, and no log folder."""

    async def use(runner: ProcessRunner) -> None:
        for script in ("echo x", "(sleep 0.02) >/dev/null 2>&1 &", f"{name} 300 & {name} 300"):
            result = await runner.run(["sh", "-c", script], leave_jobs=True, timeout=1)
            assert not result.job
        assert not runner.job_list()

    with_runner(tmp_path, use, Timeouts(settle=FAR))
    assert not (tmp_path / "logs").exists()
    assert not living(name)


def test_unknown_job(tmp_path: Path) -> None:
    """I10: stopping a job that does not exist says which do."""
    with pytest.raises(ToolError, match=r"no job '7'.*none"):
        with_runner(tmp_path, lambda r: r.stop_job("7"))


def test_a_chatty_job_does_not_fill_the_disk(tmp_path: Path) -> None:
    """The log of a job loses its older half before it grows beyond its limit; the newest output is there."""

    async def use(runner: ProcessRunner) -> None:
        script = f"({READY}; yes | head -c 24000000; echo newest) &"
        await runner.run(["sh", "-c", script], merge_stderr=True, leave_jobs=True)
        (tmp_path / "go").touch()
        await until(lambda: not runner.job_list()[0].running)
        text = runner.job_list()[0].log.read_bytes()
        assert len(text) <= 10_100_000
        assert text.startswith(b"[the older part")
        assert text.endswith(b"y\nnewest\n")

    with_runner(tmp_path, use)


def test_two_sessions_in_one_folder_do_not_share_a_log(tmp_path: Path) -> None:
    """A second Marvin beside the first takes another log file; a later one uses the first again."""

    async def leave(runner: ProcessRunner) -> str:
        result = await runner.run(["sh", "-c", "echo $$; sleep 300 &"], merge_stderr=True, leave_jobs=True)
        job = runner.job_list()[0]
        assert job.log.read_bytes() == result.output
        return job.log.name

    async def both(first: ProcessRunner) -> list[str]:
        second = ProcessRunner(Folders(root=tmp_path, base=tmp_path), {"PATH": os.environ["PATH"]}, Timeouts())
        names = [await leave(first), await leave(second)]
        await second.close()
        return names

    assert with_runner(tmp_path, both) == ["job-1.log", "job-2.log"]
    assert with_runner(tmp_path, leave) == "job-1.log"


def test_a_log_that_cannot_be_written_ends_what_was_left(tmp_path: Path, name: str) -> None:
    """Where no log can be made the model is told, and what was left does not run on unseen."""
    (tmp_path / "logs").write_text("a file in the way")
    with pytest.raises(ToolError, match="no log can be written"):
        with_runner(tmp_path, lambda r: r.run(["sh", "-c", f"{name} 300 &"], leave_jobs=True))
    assert not living(name)


def test_what_is_too_long_is_kept_as_a_whole(tmp_path: Path) -> None:
    """From the first byte that memory does not take, all output is in one file, up to the limit of its size."""
    script = [sys.executable, "-c", "import os\nfor n in range(300): os.write(1, b'%09d\\n' % n)"]
    whole = b"".join(b"%09d\n" % n for n in range(300))

    async def run(runner: ProcessRunner, limit: int) -> ProcessResult:
        return await runner.run(script, output_limit=limit, keep_output=True)

    assert with_runner(tmp_path, lambda r: run(r, 3_000)).file is None
    kept = with_runner(tmp_path, lambda r: run(r, 2_999))
    assert kept.file is not None
    assert (kept.file.read_bytes(), kept.file_size) == (whole, 3_000)
    assert kept.output == whole[:1500] + whole[-1499:]

    async def bounded() -> ProcessResult:
        limits = Limits(output_file=1_234)
        folders = Folders(root=tmp_path, base=tmp_path)
        runner = ProcessRunner(folders, {"PATH": os.environ["PATH"]}, Timeouts(), None, limits)
        try:
            return await run(runner, 100)
        finally:
            await runner.close()

    cut = asyncio.run(bounded())
    assert cut.file is not None
    assert (cut.file.read_bytes(), cut.file_size) == (whole[:1_234], 1_234)
    assert cut.output[-10:] == b"000000299\n"


def test_output_that_cannot_be_kept_costs_nothing(tmp_path: Path) -> None:
    """Where the folder takes no file the call goes on; what lies in the place of old files is left alone."""
    (tmp_path / "logs").write_text("a file in the way")
    result = with_runner(tmp_path, lambda r: r.run(["seq", "1000"], output_limit=100, keep_output=True))
    assert (result.exit_code, result.file) == (0, None)


def test_kept_outputs_are_cleaned_up(tmp_path: Path) -> None:
    """Old ones go, then the oldest beyond the size; links, folders and other files stay."""
    (tmp_path / "output-folder.txt").mkdir()
    (tmp_path / "job-1.log").touch()
    (tmp_path / "output-link.txt").symlink_to("job-1.log")
    now = time.time()
    for age in range(10):
        path = tmp_path / f"output-{age}.txt"
        path.write_bytes(b"x" * 100)
        os.utime(path, (now - age * 86_400 - 60,) * 2)
    descriptor = os.open(tmp_path, os.O_RDONLY)
    others = {"output-folder.txt", "job-1.log", "output-link.txt"}
    try:
        remove_old(descriptor, Limits(output_days=7, output_files=10_000, output_file=1_000))
        assert set(os.listdir(tmp_path)) == {*others, *(f"output-{age}.txt" for age in range(7))}
        remove_old(descriptor, Limits(output_days=7, output_files=500, output_file=250))
        assert set(os.listdir(tmp_path)) == {*others, "output-0.txt", "output-1.txt"}
    finally:
        os.close(descriptor)


@pytest.mark.usefixtures("anywhere")
def test_a_program_started_as_a_job(tmp_path: Path) -> None:
    """It goes on after the call, has an exit code in the end, and ends with the session."""

    async def use(runner: ProcessRunner) -> None:
        job = await runner.start_job(["sh", "-c", f"cat; {READY}; exit 3"], stdin=b"given", title="the job")
        assert (job.command, job.running, job.exit_code) == ("the job", True, None)
        (tmp_path / "go").touch()
        await runner.until(lambda: not runner.job_list()[0].running, FAR)
        assert runner.job_list()[0].exit_code == 3
        assert runner.job_output(job.id, 100) == (b"given", 5)
        assert runner.job_output(job.id, 100, 3) == (b"en", 5)
        assert (await runner.start_job(["sleep", "300"])).running

    with_runner(tmp_path, use)


def test_a_job_that_does_not_start(tmp_path: Path) -> None:
    """It is an error at once, and no job is left."""

    async def use(runner: ProcessRunner) -> None:
        with pytest.raises(ToolError, match="not installed"):
            await runner.start_job(["no-such-program"])
        assert not runner.job_list()

    with_runner(tmp_path, use)


class Piece(NamedTuple):
    """What a program prints, and whether time passes after it."""

    data: bytes
    pause: bool


@given(
    st.lists(st.builds(Piece, st.binary(max_size=40) | st.sampled_from([b"\n", b"\r", b"x" * 5_000]), st.booleans()))
)
@examples(60)
def test_reports_are_whole_lines_in_their_order(pieces: list[Piece]) -> None:
    """Whatever comes in whatever pieces: bounded, never a part of a line, and nothing after the end."""
    told: list[str] = []
    capture = Capture(1_000_000)

    async def go() -> None:
        reports = Reports(capture, told.append, Timeouts(output_first=0.0, output_report=0.0))
        for data, pause in pieces:
            reports.add(data)
            if pause:
                await asyncio.sleep(0)
        reports.close()
        count = len(told)
        reports.add(b"late\n")
        await asyncio.sleep(0)
        assert len(told) == count

    asyncio.run(go())
    printed = b"".join(piece.data for piece in pieces)
    assert capture.data == printed + b"late\n"
    lines = {disarm(line.decode("utf-8", "replace")) for line in re.split(rb"[\r\n]", printed)}
    for text in told:
        assert len(text.encode()) <= 4_000 * 3
        assert set(text.split("\n")) <= lines | {""}


def test_what_was_due_when_the_program_ended_is_told() -> None:
    """On a busy machine all of the output may be there at once, and its end with it."""
    told: list[str] = []

    async def go() -> None:
        due = Reports(Capture(100), told.append, Timeouts(output_first=0.0, output_report=0.0))
        due.add(b"50%\rdone\n")
        early = Reports(Capture(100), told.append, Timeouts(output_first=60.0))
        early.add(b"not yet\n")
        for reports in (due, early):
            reports.close()

    asyncio.run(go())
    assert told == ["done"]


def test_what_telling_raises_comes_out_at_the_end(tmp_path: Path) -> None:
    """The program runs to its end, and the error is not lost."""

    def tell(_: str) -> None:
        (tmp_path / "go").touch()
        raise RuntimeError("no")

    async def use(runner: ProcessRunner) -> None:
        with pytest.raises(RuntimeError, match="no"):
            await runner.run(["sh", "-c", f"echo a; {READY}; touch ended"], on_output=tell)

    with_runner(tmp_path, use, Timeouts(output_first=0.0))
    assert (tmp_path / "ended").exists()


def test_close_ends_running_calls_and_starts_no_more(tmp_path: Path, name: str) -> None:
    """I25: closing ends calls that still run; a call after that is refused."""

    async def use(runner: ProcessRunner) -> None:
        call = asyncio.create_task(runner.run(["sh", "-c", f"setsid {name} 300 & {name} 300"]))
        await until(lambda: len(living(name + "\x00300")) == 2)
        await runner.close()
        assert not living(name)
        # Either the shell itself is reached by the signal, or it reports that what it waited for was.
        assert (await call).exit_code in (-signal.SIGTERM, 128 + signal.SIGTERM)
        with pytest.raises(ToolError, match="closing"):
            await runner.run(["true"])

    with_runner(tmp_path, use)


def test_ended_orphans_are_no_burden(tmp_path: Path) -> None:
    """What children left behind and what has ended is taken off the process table."""

    async def use(runner: ProcessRunner) -> None:
        before = ended_children()
        for _ in range(5):
            await runner.run(["sh", "-c", "(sleep 0.01 &) ; (setsid true &) ; sleep 0.05"])
        # Each call takes off what has ended by then; on a busy machine an orphan may end later than its call.
        async with asyncio.timeout(60):
            while ended_children() - before:
                await runner.run(["true"])

    with_runner(tmp_path, use)


def ended_children() -> set[int]:
    """The children of this process that have ended and that nobody took off."""
    found = ((pid, entry_of(pid)) for pid in children_of(os.getpid()))
    return {pid for pid, entry in found if entry is not None and entry.gone}


class CountedPlace(Place):
    """The system, and how often all of its processes were listed."""

    looks = 0

    def table(self) -> Table:
        """All of them."""
        self.looks += 1
        return super().table()


@contextlib.contextmanager
def ended(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A program that is ended with the block."""
    with subprocess.Popen(command) as process:
        try:
            yield process
        finally:
            process.kill()


class PassingPlace(Place):
    """The system in moments that pass: an orphan becomes another program, its parent ends while all are listed."""

    def __init__(self, ended: int, moments: int) -> None:
        self._ended = ended
        self._moments = moments

    def table(self) -> Table:
        """All processes, as a list tells of them that was begun before the parent of the orphans ended."""
        table = super().table()
        for entry in table.values():
            if entry.parent == os.getpid() and entry.session != os.getsid(0) and entry.pid != self._ended:
                entry.parent = self._ended
        table.pop(self._ended, None)
        return table

    def is_between(self, pid: int) -> bool:
        """For some moments any may be."""
        self._moments -= 1
        return self._moments >= 0 or super().is_between(pid)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the children of a process")
@pytest.mark.parametrize("moments", [0, 1, 5])
def test_a_daemon_is_no_end_whatever_just_happens_to_it(moments: int) -> None:
    """In a process of its own, which has no children of other tests."""
    script = f"from {__name__} import watch_a_daemon as watch; watch({moments})"
    subprocess.run(
        [sys.executable, "-c", script], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )


def watch_a_daemon(moments: int) -> None:
    assert adopts_orphans()
    since = ticks()
    escape = [sys.executable, "-c", ESCAPE, "/bin/sleep", "sleep"]
    with subprocess.Popen(escape, start_new_session=True) as leaving:
        left = Family(leaving.pid, "left", since, PassingPlace(leaving.pid, moments))
        leaving.wait()
        left.reaped()
        assert left.is_alive()
        while left.kill():
            pass
        assert not left.is_alive()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the children of a process")
def test_programs_that_others_wait_for_make_no_end_slow() -> None:
    """In a process of its own, which has no children of other tests."""
    script = f"from {__name__} import watch_what_others_wait_for as watch; watch()"
    subprocess.run(
        [sys.executable, "-c", script], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )


def watch_what_others_wait_for() -> None:
    assert adopts_orphans()
    place, since = CountedPlace(), ticks()
    with ended(["sleep", "300"]) as other, subprocess.Popen(["true"], start_new_session=True) as program:
        others, family = Family(other.pid, "other", since), Family(program.pid, "mine", since, place)
        program.wait()
        family.reaped()
        assert family.is_gone()
        assert place.looks == 0
        escape = [sys.executable, "-c", ESCAPE, "/bin/sleep", "sleep"]
        with subprocess.Popen(escape, start_new_session=True) as leaving:
            left = Family(leaving.pid, "left", since, place)
            leaving.wait()
            left.reaped()
            assert not left.is_gone()
            assert place.looks > 0
            left.kill()
    others.reaped()


def test_the_table_where_there_is_no_proc() -> None:
    """What `ps` lists is understood: groups, parents, zombies; lines that make no sense are passed over."""
    table = parse_ps("    1     0     1 Ss\n  412     1   412 S+\n  500   412   412 Z\n broken\n")
    assert {(e.pid, e.parent, e.group, e.gone) for e in table.values()} == {
        (1, 0, 1, False),
        (412, 1, 412, False),
        (500, 412, 412, True),
    }


@pytest.mark.usefixtures("anywhere")
def test_a_program_is_ended_when_its_output_is_enough(tmp_path: Path) -> None:
    seen: list[bytes] = []

    def enough(chunk: bytes) -> bool:
        seen.append(chunk)
        return sum(map(len, seen)) > 1_000

    async def go(runner: ProcessRunner) -> None:
        result = await runner.run(["sh", "-c", "while echo yes; do :; done"], enough=enough, output_limit=100)
        assert (result.exit_code, result.timed_out) == (0, False)
        assert result.output.startswith(b"yes\n")
        count = len(seen)
        assert sum(map(len, seen[:-1])) <= 1_000
        result = await runner.run(["sh", "-c", "echo no; exit 3"], enough=lambda chunk: False)
        assert (result.exit_code, result.output) == (3, b"no\n")
        assert len(seen) == count

    with_runner(tmp_path, go)
