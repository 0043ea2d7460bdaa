"""The sandbox that is kept for a session: what dies with what, and what it says."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from marvin_core.api.config import NetworkPolicy
from marvin_core.api.errors import ToolError
from marvin_core.guard.sandbox.network import PlainNetwork
from marvin_core.guard.sandbox.private import PrivateFolder
from marvin_core.guard.sandbox.resident import Resident
from marvin_core.guard.sandbox.state import RESULT
from tests.support.sandboxes import Place, in_sandbox, tried

LIMIT = 60.0
NAMED = 0x7FFF_FFFF
"""The bits of the signals that have names; the C library keeps two more for itself."""


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that the test can only see from outside."""
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        await asyncio.sleep(0.02)


def living(marker: str) -> list[int]:
    """The processes, zombies aside, that have this in their command line."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            command = (folder / "cmdline").read_bytes() if folder.name.isdigit() else b""
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0] if command else ""
        except OSError:
            continue
        if marker.encode() in command and state not in "ZX" and int(folder.name) != os.getpid():
            found.append(int(folder.name))
    return found


async def resident(place: Place) -> Resident:
    """The sandbox that the next command runs in."""
    found = await place.sandbox.launcher()
    assert isinstance(found, Resident)
    return found


@pytest.mark.slow
def test_programs_that_end_at_once_are_not_lost(tmp_path: Path) -> None:
    """A program may have ended before Marvin looks at what its pidfd stands for."""

    async def use(place: Place) -> None:
        first = await resident(place)
        for _ in range(15):
            results = await asyncio.gather(*(place.runner.run(["true"]) for _ in range(8)))
            assert [result.exit_code for result in results] == [0] * 8
        assert await resident(place) is first

    in_sandbox(tmp_path, use)


def test_commands_share_tmp_and_the_network(tmp_path: Path) -> None:
    """What one command leaves in /tmp is there for the next, also where the working directory has changed."""

    async def use(place: Place) -> None:
        await place.sh("echo kept > /tmp/out")
        first = await resident(place)
        assert (await place.sh("cat /tmp/out")).output == b"kept\n"
        (place.root / ".marvin").mkdir()
        assert (await place.sh("cat /tmp/out")).output == b"kept\n"
        assert await resident(place) is not first

    in_sandbox(tmp_path, use)
    assert list((tmp_path / "home" / ".cache" / "marvin" / "sandbox").iterdir()) == []


def test_a_job_goes_on_where_the_sandbox_is_made_anew(tmp_path: Path) -> None:
    """It stays in the one that it was started in, until the session ends."""

    async def use(place: Place) -> str:
        marker = f"sleeper-{os.getpid()}-{time.monotonic_ns()}"
        job = await place.sh(f"exec -a {marker} sleep 300 &", leave_jobs=True)
        (place.root / ".tickets").mkdir()
        await place.sh("true")
        assert living(marker)
        assert [found.running for found in place.runner.job_list()] == [True]
        assert job.job
        return marker

    assert not living(in_sandbox(tmp_path, use))


def test_a_killed_supervisor_is_replaced_and_the_loss_of_jobs_told(tmp_path: Path) -> None:
    """The command at hand ends as killed, and the next one says what is gone."""

    async def use(place: Place) -> None:
        await place.sh("sleep 300 &", leave_jobs=True)
        first = await resident(place)
        begun = asyncio.Event()
        program = ["bash", "-c", "echo begun; exec sleep 300"]
        running = asyncio.create_task(place.runner.run(program, timeout=60, on_output=lambda _: begun.set()))
        await asyncio.wait_for(begun.wait(), 30)
        os.kill(first.place.keeper, signal.SIGKILL)
        assert (await running).exit_code == -signal.SIGKILL
        result = await place.sh("echo works")
        assert (result.output, "every background job" in result.held_back) == (b"works\n", True)
        assert [job.running for job in place.runner.job_list()] == [False]
        assert (await place.sh("true")).held_back == ""

    in_sandbox(tmp_path, use)


@pytest.mark.slow
def test_nothing_outlives_a_killed_marvin(tmp_path: Path) -> None:
    """I25: SIGKILL of Marvin ends what it started in the sandbox, whatever it did to get away."""
    tried()
    marker = f"sleeper-{os.getpid()}-{time.monotonic_ns()}"
    escaping = f"setsid sh -c '(exec -a {marker} sleep 300 &)' & (exec -a {marker} sleep 300) & nohup env -i sleep 0 &"
    code = f"""
import sys
from pathlib import Path
from tests.support.sandboxes import in_sandbox
async def use(place):
    await place.sh({escaping!r}, leave_jobs=True)
    print("started", flush=True)
    await place.sh("sleep 300")
in_sandbox(Path(sys.argv[1]), use)
"""
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE) as marvin:
        assert marvin.stdout is not None
        assert marvin.stdout.readline() == b"started\n"
        assert len(living(marker)) >= 2
        marvin.kill()
    asyncio.run(until(lambda: not living(marker)))


def test_a_session_that_was_killed_leaves_its_folder_to_be_removed(tmp_path: Path) -> None:
    """The next session in the same place removes what one left that could not end."""
    left = tmp_path / "home" / ".cache" / "marvin" / "sandbox" / "tmpleft"
    (left / "tmp" / "closed").mkdir(parents=True)
    (left / "tmp" / "closed" / "file").touch()
    (left / "tmp" / "closed").chmod(0o500)
    (left / "lock").touch()

    async def use(place: Place) -> None:
        await place.sh("true")
        assert not left.exists()

    in_sandbox(tmp_path, use)


def test_long_commands_and_environments_arrive(tmp_path: Path) -> None:
    """What is too long for a message is handed over in a file."""

    async def use(place: Place) -> None:
        text = "x" * 120_000
        result = await place.runner.run(["printf", "%s", text], env={"LONG": text})
        assert result.output == text.encode()

    in_sandbox(tmp_path, use)


def test_a_command_begins_as_programs_expect_it(tmp_path: Path) -> None:
    """No signal is ignored or held back, nothing but its own three descriptors is open, and its session is its own."""

    async def use(place: Place) -> None:
        status = (await place.runner.run(["cat", "/proc/self/status"])).output.decode()
        for name in ("SigIgn", "SigBlk"):
            assert int(status.partition(f"{name}:")[2].split()[0], 16) & NAMED == 0
        opened = (await place.runner.run(["ls", "/proc/self/fd"])).output.split()
        assert opened == [b"0", b"1", b"2", b"3"]  # the last one is the folder that is listed
        fields = (await place.runner.run(["cat", "/proc/self/stat"])).output.rpartition(b")")[2].split()
        assert fields[2] == fields[3] != b"0"  # it leads its group, and that its session
        inner = place.root / "inner"
        inner.mkdir()
        assert (await place.runner.run(["pwd"], cwd=inner)).output.decode().strip() == str(inner)
        assert (await place.runner.run(["pwd"])).output.decode().strip() == str(place.root)

    in_sandbox(tmp_path, use)


def test_what_cannot_be_started_is_told_and_the_sandbox_goes_on(tmp_path: Path) -> None:
    async def use(place: Place) -> None:
        first = await resident(place)
        plain, gone = place.root / "plain", place.root / "gone"
        plain.write_bytes(b"\x7fELF no program")
        plain.chmod(0o755)
        for program, cwd, env, why in [
            (str(plain), None, {}, "was not started"),
            ("/no/such/program", None, {}, "does not exist"),
            ("true", gone, {}, f"the folder {gone} does not exist"),
            ("true", None, {"A=B": "c"}, "was not started"),
            ("true", None, {"A": "\ud800"}, "was not started"),
        ]:
            with pytest.raises(ToolError, match=why):
                await place.runner.run([program], cwd=cwd, env=env)
        assert (await place.runner.run(["true"])).exit_code == 0
        assert await resident(place) is first

    in_sandbox(tmp_path, use)


def test_a_cancelled_start_leaves_nothing(tmp_path: Path) -> None:
    """Who is cancelled while a program is being started leaves none of it behind."""

    async def use(place: Place) -> None:
        launcher = await resident(place)
        for _ in range(10):
            call = asyncio.create_task(place.sh("sleep 300"))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        await until(launcher.place.is_empty)

    in_sandbox(tmp_path, use)


def test_a_busy_machine_does_not_open_the_sandbox(tmp_path: Path) -> None:
    """Where there was no time to tell whether one works, commands do not run bare, and it is tried again."""

    async def use(place: Place) -> None:
        (place.config.cache_folder / RESULT).unlink()
        with pytest.raises(ToolError, match="Try again"):
            await place.sh("touch ran")
        assert not (place.root / "ran").exists()
        assert not (place.config.cache_folder / RESULT).exists()
        assert (await place.sandbox.state()).kind == "none"

    in_sandbox(tmp_path, use, settings="timeouts:\n  sandbox_start: 0.0001\n")
    asyncio.run(until(lambda: not living(str(tmp_path))))


def test_folders_of_several_sessions_do_not_sweep_each_other(tmp_path: Path) -> None:
    """Each session that begins removes what is left over, and never one that begins at the same time."""

    def begin(_: int) -> bool:
        folder = PrivateFolder(tmp_path)
        found = (folder.path / "tmp").is_dir()
        folder.remove()
        return found

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(begin, range(200)))
    assert list(tmp_path.iterdir()) == []


def test_without_a_sandbox_required_refuses(tmp_path: Path) -> None:
    """`required` starts nothing where no sandbox works, `auto` starts it bare and says so once."""
    from marvin_core.config.load import load
    from marvin_core.guard.sandbox.session import SessionSandbox
    from tests.support.folders import Folders

    def session(use: str, told: list[str]) -> SessionSandbox:
        home = tmp_path / use
        home.mkdir()
        config = load(("--sandbox", use), {"HOME": str(home)}, cwd=tmp_path)[0]
        # A user namespace that may hold none of its own: there no sandbox can be made.
        network = PlainNetwork(NetworkPolicy(kind="loopback"))
        return SessionSandbox(config, Folders(root=tmp_path, base=tmp_path), {}, network, told.append)

    async def tried_out() -> None:
        told: list[str] = []
        auto, required = session("auto", told), session("required", told)
        assert await auto.launcher() is None
        assert await auto.launcher() is None
        with pytest.raises(ToolError, match="a sandbox is required"):
            await required.launcher()
        assert (await auto.state()).kind == "none"
        assert len(told) == 1
        await auto.close()
        await required.close()

    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            _in_closed_namespace()
            asyncio.run(tried_out())
            status = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0


def _in_closed_namespace() -> None:
    """Go to a user namespace in which no further one can be made."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    assert libc.unshare(0x10000000) == 0, os.strerror(ctypes.get_errno())
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    Path("/proc/sys/user/max_user_namespaces").write_text("0")
