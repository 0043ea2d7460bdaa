"""Attempts to escape from the sandbox, each carried out. A successful one fails with an `AssertionError`."""

from __future__ import annotations

import os
import shlex
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from marvin_core.api.errors import ToolError
from tests.support.sandboxes import Place

KEY = "the-key-of-the-user"
Scenario = Callable[[Place], Awaitable[None]]


def prepare(home: Path) -> None:
    """A home with what is to be hidden and kept, and a project in it that is a repository."""
    for name in (".ssh/id", ".aws/credentials", ".mozilla/cookies", ".bash_history", ".config/marvin/secret"):
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(KEY, encoding="utf-8")
    (home / ".bashrc").write_text("echo hello\n", encoding="utf-8")
    (home / ".cache" / "tool").mkdir(parents=True)
    (home / ".cache" / "tool" / "kept").write_text("kept", encoding="utf-8")
    git = home / "project" / ".git"
    for name in ("hooks", "objects", "refs/heads", "info"):
        (git / name).mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    (git / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = false\n", encoding="utf-8")
    own = home / "project" / ".marvin"
    (own / "logs").mkdir(parents=True)
    (own / "report").mkdir()
    (own / "upstream").mkdir()
    (own / "pipeline_state").write_text("1a", encoding="utf-8")
    (own / "review-history-1.md").write_text("reviewed", encoding="utf-8")
    (home / "project" / ".tickets").mkdir()
    (home / "project" / ".tickets" / "t-1.md").write_text(KEY, encoding="utf-8")


async def _python(place: Place, code: str, *arguments: str) -> str:
    argv = [sys.executable, "-I", "-S", "-c", code, *arguments]
    return (await place.sh(shlex.join(argv))).output.decode("utf-8", "replace")


async def writes_outside(place: Place) -> None:
    """Neither by a path nor through a link, and not by moving the working directory away."""
    outside = place.home.parent / "outside.txt"
    targets = [
        outside,
        place.home / ".bashrc",
        place.home / "new.txt",
        Path("/etc/marvin-escape"),
        Path("/marvin-escape"),
    ]
    for target in targets:
        before = target.read_bytes() if target.exists() else None
        quoted = shlex.quote(str(target))
        await place.sh(
            f"echo owned >> {quoted}; ln -sf {quoted} link; echo owned >> link; cp link {quoted}; rm -f {quoted}"
        )
        assert (target.read_bytes() if target.exists() else None) == before, target
    await place.sh("mv $PWD $PWD-moved; mkdir $PWD")
    assert place.root.is_dir()
    assert not place.root.with_name("project-moved").exists()


async def home_is_kept(place: Place) -> None:
    """The home folder is read, and not changed; of caches there is a copy that can be changed."""
    result = await place.sh(
        "cat ~/.bashrc ~/.cache/tool/kept; echo changed > ~/.cache/tool/kept; cat ~/.cache/tool/kept"
    )
    assert result.output.split() == [b"echo", b"hello", b"keptchanged"], result.output
    assert (place.home / ".cache" / "tool" / "kept").read_text(encoding="utf-8") == "kept"
    await place.sh("mkdir ~/folder; chmod 777 ~; mv ~/.bashrc ~/.profile")
    assert not (place.home / "folder").exists()
    assert (place.home / ".bashrc").exists()


async def keys_are_hidden(place: Place) -> None:
    """Keys, profiles, histories, tickets and Marvin's own files cannot be read, by their path or any other."""
    result = await place.sh(
        "grep -rs . ~/.ssh ~/.aws ~/.mozilla ~/.bash_history ~/.config/marvin .tickets; cat ~/.ssh/id; ls -a ~/.ssh;"
        " ln -s ~/.ssh s; cat s/id; mv ~/.ssh ~/x; cat ~/x/id; cat /proc/self/root$HOME/.ssh/id;"
        " chmod 777 ~/.ssh .tickets; cat ~/.ssh/id .tickets/*; mkdir -p up; mv .tickets up/; cat up/.tickets/*; rm s"
    )
    assert KEY.encode() not in result.output


async def namespaces_do_not_help(place: Place) -> None:
    """A user namespace inside the sandbox gives no right over what was mounted outside of it."""
    result = await place.sh(
        "unshare -Urm sh -c 'umount ~/.ssh; umount -l ~/.ssh; cat ~/.ssh/id; mount -o remount,rw,bind / ; "
        "mount -o remount,rw / ; umount .git/config; echo owned >> ~/.bashrc; echo owned >> .git/config; "
        "mount --bind ~ /mnt && cat /mnt/.ssh/id; mount -t proc proc /mnt; cat /mnt/1/environ' 2>&1"
    )
    assert KEY.encode() not in result.output
    assert "owned" not in (place.home / ".bashrc").read_text(encoding="utf-8")
    assert "owned" not in (place.root / ".git" / "config").read_text(encoding="utf-8")


async def git_is_kept(place: Place) -> None:
    """What makes git run programs stays, whatever is moved; the rest of the repository can be worked with."""
    git = place.root / ".git"
    before = (git / "config").read_bytes()
    await place.sh(
        "mv .git x; git init; for f in config config.worktree info/attributes hooks/pre-commit commondir; do"
        " echo evil > .git/$f; rm -f .git/$f; ln -sf /tmp/evil .git/$f; done; mv .git/info .git/i;"
        " mv .git/hooks .git/h; mkdir -p .git/hooks .git/info; echo evil > .git/hooks/post-checkout;"
        " echo evil > .git/info/attributes"
    )
    assert (git / "config").read_bytes() == before
    assert list((git / "hooks").iterdir()) == []
    assert (git / "info" / "attributes").read_bytes() == b""
    await place.sh("true")
    assert "commondir" not in os.listdir(git)
    result = await place.sh("git config user.name evil; git config core.fsmonitor evil")
    assert (git / "config").read_bytes() == before
    assert str(git / "config") in result.held_back
    done = await place.sh(
        "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b;"
        " echo x > file && git add file && git commit -qm one && git checkout -qb two && git log --oneline"
    )
    assert done.exit_code == 0, done.output


async def marvins_own_files_are_kept(place: Place) -> None:
    """What the pipeline goes by is not changed by commands."""
    await place.sh(
        "echo 5 > .marvin/pipeline_state; rm -rf .marvin/upstream; touch .marvin/logs/x .marvin/report/x;"
        " mv .marvin m; mkdir .marvin;"
        " rm .marvin/review-history-1.md; echo 5 > m/pipeline_state; echo note > .marvin/note.md"
    )
    own = place.root / ".marvin"
    assert (own / "pipeline_state").read_text(encoding="utf-8") == "1a"
    assert (own / "upstream").is_dir()
    assert list((own / "logs").iterdir()) == list((own / "report").iterdir()) == []
    assert (own / "review-history-1.md").exists()
    assert (own / "note.md").exists()


async def loopback_is_its_own(place: Place) -> None:
    """No server of the machine is reached; one that a command started is reached by the next."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        result = await place.sh(f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached")
        assert b"reached" not in result.output
    serving = (
        "import socket; s = socket.create_server(('127.0.0.1', 7321)); open('ready', 'w').close(); "
        "c = s.accept()[0]; c.sendall(b'hello'); c.close(); s.close()"
    )
    python = shlex.quote(sys.executable)
    job = await place.sh(
        f"{python} -I -c {shlex.quote(serving)} & while [ ! -e ready ]; do sleep 0.01; done", leave_jobs=True
    )
    assert job.job, job.output
    result = await place.sh("cat < /dev/tcp/127.0.0.1/7321")
    assert result.output == b"hello", result.output


async def abstract_sockets_are_out_of_reach(place: Place) -> None:
    """With the network of the machine as well."""
    name = f"marvin-escape-{os.getpid()}"
    code = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(chr(0) + sys.argv[1]); print('reached')"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0{name}")
        server.listen()
        assert "reached" not in await _python(place, code, name)
    with socket.create_server(("127.0.0.1", 0)) as there:
        result = await place.sh(f"exec 3<>/dev/tcp/127.0.0.1/{there.getsockname()[1]} && echo reached")
        assert (b"reached" in result.output) == (place.network == "all")
    assert (await place.sh("ls /run")).output.split() in ([], [b"systemd"], [b"resolvconf"])


async def processes_are_out_of_sight(place: Place) -> None:
    """Marvin is not there, and the supervisor can be neither traced, read, signalled nor stopped."""
    code = """
import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
for pid in (1, int(sys.argv[1]), os.getppid()):
    if pid != os.getpid() and libc.ptrace(16, pid, 0, 0) == 0 and pid != os.getppid():
        print("traced", pid)
for path in ("/proc/1/mem", "/proc/1/environ", "/proc/1/fd/3", f"/proc/{sys.argv[1]}/environ"):
    try:
        open(path, "rb").read(1)
        print("read", path)
    except OSError:
        pass
system = ["/proc/sysrq-trigger", "/sys/kernel/uevent_helper", "/proc/sys/kernel/core_pattern"]
for top in ("/proc/sys/kernel", "/proc/sys/vm", "/proc/sys/fs", "/proc/irq", "/sys/kernel"):
    system += [os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names]
for path in system[:20_000]:
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        print("opened", path)
    except OSError:
        pass
for number in (signal.SIGSTOP, signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
    try:
        os.kill(1, number)
    except OSError:
        pass
try:
    os.kill(int(sys.argv[1]), 0)
    print("signalled")
except OSError:
    pass
"""
    said = await _python(place, code, str(os.getpid()))
    assert said == "", said
    assert (await place.sh("echo alive")).output == b"alive\n"
    assert int((await place.sh("ls -d /proc/[0-9]* | wc -l")).output) < 8
    await place.sh("kill -9 -1")
    assert (await place.sh("echo alive")).output == b"alive\n"


async def nothing_is_gained(place: Place) -> None:
    """No new privileges, no capabilities, no terminal, no descriptor but the three, no device, no cgroup."""
    status = (await place.sh("cat /proc/self/status")).output.decode()
    fields: Mapping[str, str] = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert (fields["NoNewPrivs"], int(fields["CapEff"], 16), int(fields["CapBnd"], 16)) == ("1", 0, 0)
    code = """
import fcntl, os, termios
for n in (0, 1, 2):
    try:
        fcntl.ioctl(n, termios.TIOCSTI, b"x")
        print("pushed")
    except OSError:
        pass
for path in ("/dev/tty", "/dev/kmsg", "/dev/mem", "/dev/sda", "/dev/vda", "/sys/fs/cgroup/cgroup.procs"):
    try:
        os.close(os.open(path, os.O_RDWR))
        print("opened", path)
    except OSError:
        pass
print(sorted(os.listdir("/proc/self/fd"))[:-1])
try:
    os.mknod("disk", 0o60600, os.makedev(8, 0))
    print("made a device")
except OSError:
    pass
"""
    assert await _python(place, code) == "['0', '1', '2']\n"


async def processes_are_limited(place: Place) -> None:
    """What forks without end is stopped at the limit; once it is gone, work goes on."""
    code = """
import os, sys
made = 0
try:
    while made < 300:
        if os.fork() == 0:
            os.setsid()
            os.pause() if hasattr(os, "pause") else __import__("signal").pause()
        made += 1
except OSError:
    pass
print(made)
"""
    made = int(await _python(place, code))
    assert 10 < made < 150, made
    assert (await place.sh("echo alive")).output == b"alive\n"


async def links_swapped_meanwhile_lead_nowhere(place: Place) -> None:
    """A job replaces a folder with a link to the keys while sandboxes are created: nothing outside is mounted."""
    swapping = (
        "while :; do rm -rf .marvin2; mkdir .marvin2; mv -T .marvin .old 2>/dev/null; ln -sfn ../.ssh .marvin;"
        " rm -f .marvin; mkdir .marvin; mkdir .marvin/logs; ls .marvin >> seen 2>/dev/null; done"
    )
    job = await place.sh(f"rm -rf .marvin; ({swapping}) > /dev/null 2>&1 & sleep 0.1", leave_jobs=True)
    assert job.job
    for _ in range(8):
        try:
            result = await place.sh("cat .marvin/id ~/.ssh/id; touch .marvin/owned; ls .marvin")
        except ToolError:  # a sandbox that cannot be made correctly is not made
            continue
        assert KEY.encode() not in result.output
        assert not (place.home / ".ssh" / "owned").exists()
    await place.runner.stop_job(job.job)


SCENARIOS: Mapping[str, tuple[Scenario, Mapping[str, str]]] = {
    "writes outside": (writes_outside, {}),
    "home": (home_is_kept, {}),
    "keys": (keys_are_hidden, {}),
    "namespaces": (namespaces_do_not_help, {}),
    "git": (git_is_kept, {}),
    "marvin's own": (marvins_own_files_are_kept, {}),
    "loopback": (loopback_is_its_own, {"network": "none"}),
    "abstract sockets": (abstract_sockets_are_out_of_reach, {"network": "all"}),
    "processes": (processes_are_out_of_sight, {}),
    "privileges": (nothing_is_gained, {}),
    "fork bomb": (processes_are_limited, {"settings": "limits:\n  sandbox_processes: 60\n"}),
    "swapped links": (links_swapped_meanwhile_lead_nowhere, {}),
}
"""Each way with what its sandbox is made with."""
