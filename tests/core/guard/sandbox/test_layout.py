"""Working directories that are not like others, and what of Marvin itself lies in one."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from marvin_core.api.errors import ToolError
from marvin_core.api.timeouts import Timeouts
from marvin_core.guard.processes.runner import ProcessRunner
from marvin_core.guard.sandbox.bubblewrap import Bubblewrap, candidates
from marvin_core.guard.sandbox.policy import Layout, SandboxPolicy
from marvin_core.guard.sandbox.private import PrivateFolder
from marvin_core.guard.sandbox.resident import Resident, Start, start
from marvin_core.guard.sandbox.state import RESULT
from marvin_core.guard.sandbox.trial import FixedSandbox, own_limits, ready
from tests.support.escapes import KEY, prepare
from tests.support.sandboxes import Place, in_sandbox, tried

LIMIT = 60.0
MANY = 600
FORKING = f"""
import os, signal
made = 0
try:
    while made < {MANY}:
        if os.fork() == 0:
            signal.pause()
        made += 1
except OSError:
    pass
print(made)
"""


def test_everything_as_the_working_directory(tmp_path: Path) -> None:
    """In `/`, as containers have it, commands run; the home, keys, processes, devices and the system stay."""
    prepare(tmp_path / "home")

    async def use(place: Place) -> None:
        result = await place.sh(
            "cat ~/.ssh/id; echo evil >> ~/.bashrc; ls -d /proc/[0-9]* | wc -l; ls /dev | wc -l; ls /run;"
            f" for f in /proc/sys/kernel/core_pattern /sys/kernel/uevent_helper; do : > $f; done; touch {tmp_path}/x"
        )
        numbers = [int(line) for line in result.output.split() if line.isdigit()]
        assert len(numbers) == 2, result.output
        assert numbers[0] < 8
        assert numbers[1] < 30
        assert KEY.encode() not in result.output
        assert (place.home / ".bashrc").read_text() == "echo hello\n"

    pattern = Path("/proc/sys/kernel/core_pattern").read_text()
    in_sandbox(tmp_path, use, root=Path("/"))
    assert Path("/proc/sys/kernel/core_pattern").read_text() == pattern


def test_the_home_as_the_working_directory_where_nobody_is_there_is_read_only(tmp_path: Path) -> None:
    """A task that begins in the home folder, as those of cron do, leaves nothing there that runs later."""
    home = tmp_path / "home"
    prepare(home)

    async def use(place: Place) -> None:
        result = await place.sh(
            "echo evil >> .bashrc; mkdir -p .config/autostart; touch /tmp/x && echo fine; touch new"
        )
        assert b"fine" in result.output
        assert "is read-only: the working directory is the home folder, and" in result.held_back
        assert "--working-dir" in result.held_back
        assert (home / ".bashrc").read_text() == "echo hello\n"
        assert not (home / "new").exists()
        assert not (home / ".config" / "autostart").exists()

    in_sandbox(tmp_path, use, root=home, argv=("--non-interactive",))


@pytest.mark.parametrize("argv", [(), ("--non-interactive", "--working-dir", ".")])
def test_the_home_as_the_working_directory_that_a_person_chose(tmp_path: Path, argv: tuple[str, ...]) -> None:
    """It can be written, but for what runs by itself, and what that lies in cannot be moved away."""
    home = tmp_path / "home"
    prepare(home)
    (home / ".config" / "autostart").mkdir()
    (home / "dots").mkdir()
    (home / "dots" / "profile").write_text("hello")
    (home / ".profile").symlink_to("dots/profile")

    async def use(place: Place) -> None:
        result = await place.sh(
            "echo evil >> .bashrc; touch .config/autostart/x; mv .config other; echo evil >> .profile; mv dots d2;"
            " rm .profile; touch new; cat .ssh/id"
        )
        assert (home / ".bashrc").read_text() == "echo hello\n"
        assert list((home / ".config" / "autostart").iterdir()) == []
        assert (home / "dots" / "profile").read_text() == "hello"
        assert (home / "new").exists()
        assert KEY.encode() not in result.output
        assert "change: programs of the user run or obey it automatically" in result.held_back
        place.sandbox.news()
        assert os.readlink(home / ".profile") == "dots/profile", "no mount holds a link, so it is made again"

    in_sandbox(tmp_path, use, root=home, argv=argv)


def test_code_of_packs_in_a_temporary_folder_is_seen(tmp_path: Path) -> None:
    """As of a pack that somebody works on in /tmp: what its tools start are modules beside them."""
    for name in ("home", "project", "pack"):
        (tmp_path / name).mkdir()
    (tmp_path / "pack" / "module.py").write_text("print('seen')\n")

    async def use(place: Place) -> None:
        result = await place.sh(f"python3 {tmp_path}/pack/module.py; echo x > {tmp_path}/pack/module.py")
        assert b"seen" in result.output

    sys.path.append(str(tmp_path / "pack"))
    try:
        in_sandbox(tmp_path, use)
    finally:
        sys.path.remove(str(tmp_path / "pack"))
    assert (tmp_path / "pack" / "module.py").read_text() == "print('seen')\n"


def test_a_folder_above_the_home_leaves_it_read_only(tmp_path: Path) -> None:
    """What is written is the working directory, and not the home that lies in it."""
    prepare(tmp_path / "home")

    async def use(place: Place) -> None:
        result = await place.sh("touch written; echo evil >> ~/.bashrc; mv home other")
        assert (tmp_path / "written").exists(), result.output
        assert (place.home / ".bashrc").read_text() == "echo hello\n"

    in_sandbox(tmp_path, use, root=tmp_path)


@pytest.mark.parametrize("folder", ["/proc", "/sys/kernel", "/dev"])
def test_folders_of_the_system_are_no_working_directory(tmp_path: Path, folder: str) -> None:
    """Writable, they would lead to the machine."""

    async def use(place: Place) -> None:
        with pytest.raises(ToolError, match="Work in another folder"):
            await place.sh("echo x")

    in_sandbox(tmp_path, use, root=Path(folder))


@pytest.mark.slow
def test_marvins_own_code_in_the_working_directory_is_kept(tmp_path: Path) -> None:
    """A command could else change the program that starts the next sandbox, outside of it."""
    tried()
    environment = tmp_path / "home" / "project" / "tools" / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    site = next(environment.glob("lib/python*/site-packages"))
    (site / "here.pth").write_text("\n".join(path for path in sys.path if path), encoding="utf-8")
    code = """
import json, sys
from pathlib import Path
from tests.support.sandboxes import in_sandbox
async def use(place):
    result = await place.sh(
        "touch tools/.venv/bin/bwrap;"
        " echo evil > tools/.venv/bin/python; rm -rf tools/.venv; mv tools t; touch fine; false"
    )
    print(json.dumps(result.held_back))
in_sandbox(Path(sys.argv[1]), use)
"""
    python = environment / "bin" / "python"
    run = subprocess.run(
        [python, "-P", "-c", code, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert run.returncode == 0, run.stderr
    assert "Marvin itself" in json.loads(run.stdout)
    assert sorted(path.name for path in (environment.parent.parent).iterdir()) == ["fine", "tools"]
    assert python.is_symlink()
    assert not (environment / "bin" / "bwrap").exists()
    assert (site / "here.pth").exists()


def _executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_a_bubblewrap_of_the_project_is_none(tmp_path: Path) -> None:
    """A folder of the search path that commands can write to is left out, also behind a link."""
    theirs, ours = _executable(tmp_path / "project" / "bin" / "bwrap"), _executable(tmp_path / "other" / "bwrap")
    link = tmp_path / "link"
    link.symlink_to(theirs.parent)
    search = os.pathsep.join(map(str, (theirs.parent, link, "bin", ours.parent)))
    found = candidates(search, tmp_path / "project")
    assert str(ours) in found
    assert not {str(theirs), str(link / "bwrap"), "bin/bwrap"} & set(found)


def test_what_an_earlier_trial_found_names_no_other_program(tmp_path: Path) -> None:
    """The file with it lies in the cache, which may be the working directory's."""
    evil = tmp_path / "evil"

    async def use(place: Place) -> None:
        evil.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n", encoding="utf-8")
        evil.chmod(0o755)
        kept = place.config.cache_folder / RESULT
        data = json.loads(kept.read_bytes())
        data["found"]["bubblewrap"]["program"] = str(evil)
        kept.write_text(json.dumps(data), encoding="utf-8")
        assert (await place.sh("echo works")).output == b"works\n"
        assert not (tmp_path / "ran").exists()

    in_sandbox(tmp_path, use)


def without_control_groups(tmp_path: Path, use: Callable[[ProcessRunner], Awaitable[None]], memory: int) -> None:
    """Use a sandbox whose processes have limits of their own alone: so much memory each, and 310 of them."""

    async def used(place: Place) -> None:
        private = PrivateFolder(tmp_path / "private")
        policy = SandboxPolicy(
            root=place.root, home=place.home, own=(), network="none", environment={}, private=private.path
        )
        how = Bubblewrap(**json.loads(tried())["found"]["bubblewrap"])
        limits = own_limits(None, memory, 310)
        made: Resident = start(Start(bubblewrap=how, layout=Layout(policy), limits=limits, group=None, patience=LIMIT))
        runner = ProcessRunner(place.folders, {"PATH": os.defpath}, Timeouts(), FixedSandbox(made))
        try:
            await ready(made, LIMIT)
            await use(runner)
        finally:
            await runner.close()
            made.kill()
            await runner.until(made.collect, LIMIT)
            private.remove()

    in_sandbox(tmp_path, used)


def test_processes_are_limited_without_a_control_group(tmp_path: Path) -> None:
    """For root too, whom the limit of the user does not stop; the rest of the machine keeps its own limit."""
    whole = Path("/proc/sys/kernel/pid_max").read_text()

    async def use(runner: ProcessRunner) -> None:
        result = await runner.run([sys.executable, "-I", "-S", "-c", FORKING], timeout=LIMIT)
        assert 10 < int(result.output) < 310
        assert (await runner.run(["echo", "alive"])).output == b"alive\n"

    if os.getuid() == 0 and "numbers" not in own_limits(None, 1, 310):
        pytest.skip("Linux counts the processes of a sandbox since 6.14")
    without_control_groups(tmp_path, use, 2_000_000_000)
    assert Path("/proc/sys/kernel/pid_max").read_text() == whole


def test_shared_memory_is_limited_without_a_control_group(tmp_path: Path) -> None:
    """What lies there counts as no process's, and would stay until the sandbox ends."""

    async def use(runner: ProcessRunner) -> None:
        for place, most in (("/dev/shm/file", 51_000_000), ("/dev/file", 0)):
            script = f"head -c 80000000 /dev/zero > {place}; stat -c %s {place} || echo 0; rm -f {place}"
            result = await runner.run(["bash", "-c", script], timeout=LIMIT)
            assert int(result.output) <= most, result
        script = "from multiprocessing import Lock; Lock(); import os; os.openpty(); print('works')"
        result = await runner.run([sys.executable, "-I", "-S", "-c", script], timeout=LIMIT)
        assert result.output == b"works\n", result.stderr

    without_control_groups(tmp_path, use, 200_000_000)


def test_a_new_sandbox_only_where_something_changed(tmp_path: Path) -> None:
    """Each look for changes must find none where there are none: servers and jobs are in one sandbox."""
    prepare(tmp_path / "home")

    async def use(place: Place) -> None:
        first = await place.sandbox.launcher()
        for script in ("touch file; mkdir folder", "git status", "echo x > ~/.cache/tool/kept", "true"):
            await place.sh(script)
            assert await place.sandbox.launcher() is first
        await asyncio.gather(*(place.sh("true") for _ in range(4)))
        assert await place.sandbox.launcher() is first

    in_sandbox(tmp_path, use)


def test_commands_run_what_skills_of_the_user_bring_and_see_nothing_else_of_marvins(tmp_path: Path) -> None:
    async def use(place: Place) -> None:
        own = place.config.config_folder
        script = own / "skills" / "pdf" / "run.sh"
        script.parent.mkdir(parents=True)
        script.write_text("echo ran\n")
        (own / "config.yaml").write_text("instructions: PRIVATE\n")
        result = await place.sh(f"sh {script}; cat {own}/config.yaml; ls {own}; echo evil > {script}")
        assert b"ran\n" in result.output
        assert b"PRIVATE" not in result.output
        assert script.read_text() == "echo ran\n"

    in_sandbox(tmp_path, use)
