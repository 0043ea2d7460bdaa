"""Tests the sandbox on this machine: whether one starts, and what it blocks."""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...api.config import NetworkKind
from ...api.record import Record
from ...api.timeouts import Timeouts
from ...util.state_files import make_private_folder
from ..processes.program import Launcher
from ..processes.runner import ProcessRunner
from .bubblewrap import Bubblewrap, candidates
from .cgroups import ControlGroup, control_group
from .policy import Layout, Network, SandboxPolicy
from .private import PrivateFolder
from .resident import Resident, SandboxFailed, SandboxSlow, Start, start
from .state import SandboxState

_OUTPUT = 100_000
_MEMORY = 200_000_000
"""The memory in bytes that the trial of the memory limit allows; its command requests twice as much."""
_PROCESSES = 310
"""A process limit above 300, below which Linux does not count for root."""
ITEMS: Mapping[str, str] = {
    "writes": "writes outside of the working directory",
    "home": "changes in the home folder",
    "keys": "the reading of keys",
    "git": "changes of files that git runs",
    "network": "connections to this machine and the network",
    "sockets": "abstract sockets of other programs",
    "processes": "looks into other processes",
}
"""The tested actions, each as the end of "It does not hold back ..."."""
_PROBE = """
import json, os, socket, sys
asked = json.loads(sys.argv[1])
def tries(action):
    try:
        action()
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return ""
def writes(path):
    with open(path, "a") as stream:
        stream.write("x")
def connects(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as client:
        client.settimeout(asked["patience"])
        client.connect(address)
def moves(path):
    os.rename(path, path + ".moved")
    os.mkdir(path)
found = {
    "writes": tries(lambda: writes(asked["outside"])),
    "home": tries(lambda: writes(asked["home"])),
    "keys": tries(lambda: open(asked["key"]).read()) and tries(lambda: os.listdir(asked["own"])),
    "git": tries(lambda: writes(asked["git"] + "/config")) and tries(lambda: writes(asked["git"] + "/hooks/pre-commit"))
        and tries(lambda: moves(asked["git"])),
    "network": tries(lambda: connects(socket.AF_INET, ("127.0.0.1", asked["port"]))),
    "sockets": tries(lambda: connects(socket.AF_UNIX, "\\0" + asked["name"])),
    "processes": tries(lambda: open(f"/proc/{asked['pid']}/environ").read()),
    "works": tries(lambda: writes(asked["inside"])),
}
print(json.dumps(found))
"""
_GREEDY = "import sys; x = bytearray(int(sys.argv[1])); print(len(x))"
_FORKING = """
import os, sys
made = 0
try:
    for _ in range(int(sys.argv[1])):
        if os.fork() == 0:
            os.read(0, 1) or __import__("time").sleep(60)
            os._exit(0)
        made += 1
except OSError:
    pass
print(made)
"""


class Found(Record):
    """The result of the trial. `held` says for each of `ITEMS` how it was refused; it is empty for one that was not."""

    bubblewrap: Bubblewrap | None
    held: Mapping[str, str]
    why: str = ""
    """Why there is none, as the end of a sentence."""
    slow: bool = False
    """Whether it timed out, so that the result is unknown."""

    @property
    def lacks(self) -> tuple[str, ...]:
        """The actions that it does not block."""
        return tuple(name for name in ITEMS if not self.held.get(name))

    def state(self, network: NetworkKind) -> SandboxState:
        """The result for a session whose commands reach this much of the network."""
        if self.bubblewrap is None:
            return SandboxState(kind="none", why=self.why)
        needless = "network" if network == "all" else "sockets"
        lacks = tuple(ITEMS[name] for name in self.lacks if name != needless)
        return SandboxState(kind="bubblewrap", lacks=lacks)


class FixedSandbox:
    """A sandbox that already exists."""

    def __init__(self, resident: Resident) -> None:
        self._resident = resident

    async def launcher(self) -> Launcher:
        """The sandbox."""
        return self._resident

    def news(self) -> str:
        """No notes."""
        return ""

    async def close(self) -> None:
        """Does nothing: the creator ends the sandbox."""

    def kill(self) -> None:
        """Does nothing."""


class _Folders(Record):
    root: Path

    def folder(self, name: str) -> Path:
        return self.root / name


class Trial:
    """Tests sandboxes in a separate folder that resembles a home folder with a project."""

    def __init__(self, scratch: Path, search: str, root: Path, timeouts: Timeouts) -> None:
        self._scratch = scratch
        self._search = search
        self._root = root
        self._timeouts = timeouts

    def programs(self) -> Sequence[str]:
        """The available bubblewraps."""
        return candidates(self._search, self._root)

    async def find(self) -> Found:
        """The first bubblewrap that works, with its working features and the actions that it blocks."""
        reasons: list[str] = []
        for program in self.programs():
            new = Bubblewrap(program=program)
            old = new.replace(overlays=False, by_descriptor=False)
            ways = (new, new.replace(overlays=False), old)
            for how in (*ways, *(way.replace(own_network=False) for way in ways)):
                try:
                    return Found(bubblewrap=how, held=await self.held(how))
                except SandboxSlow as error:  # a weaker one would only be quicker by chance
                    return Found(bubblewrap=None, held={}, why=f"trying one took too long: {error}", slow=True)
                except SandboxFailed as error:
                    reasons.append(str(error))
        if not reasons:
            return Found(bubblewrap=None, held={}, why="bubblewrap is not installed")
        return Found(bubblewrap=None, held={}, why=_meaning(reasons[-1]))

    async def held(self, how: Bubblewrap) -> dict[str, str]:
        """The actions that a sandbox blocks, each with how it was refused.

        Raises:
            SandboxFailed: if it does not start, or does not let commands work.
        """
        found = await self._probed(how, "loopback")
        found["sockets"] = (await self._probed(how, "all"))["sockets"]
        if found["works"]:
            raise SandboxFailed(f"a command could not write to the working directory: {found['works']}")
        if not how.own_network:
            found["network"] = ""
        return found

    async def _probed(self, how: Bubblewrap, network: Network) -> dict[str, str]:
        with ExitStack() as stack:
            place = _Place(self._scratch, stack)
            asked = {**place.asked, "patience": self._timeouts.sandbox_start}
            output = await self._ran(place, how, network, [_PROBE, json.dumps(asked)], None)
            went_out = place.outside.exists()
        try:
            found = json.loads(output)
            if not found["writes"] and not went_out:
                found["writes"] = "it went to a folder of the sandbox"
            return {name: str(found[name]) for name in (*ITEMS, "works")}
        except (ValueError, KeyError, TypeError):
            raise SandboxFailed(f"a command said {output[:200]!r} in it") from None

    async def limited(self, how: Bubblewrap) -> dict[str, str]:
        """The mechanisms that enforce the memory and process limits; empty for a limit that is not enforced."""
        group, second = control_group(_MEMORY, _PROCESSES), control_group(_MEMORY, _PROCESSES)
        each, together = "a limit of each process", "a control group"
        by = {name: together if name in group.limited else each for name in ("memory", "pids")}
        if "numbers" in own_limits(second, _MEMORY, _PROCESSES):
            by["pids"] = "the largest number of a process"
        with ExitStack() as stack:
            place = _Place(self._scratch, stack)
            asked = str(2 * _MEMORY)
            memory = await self._ran(place, how, "loopback", [_GREEDY, asked], group)
            made = await self._ran(place, how, "loopback", [_FORKING, str(2 * _PROCESSES)], second)
        stopped = made.strip().isdigit() and int(made) < 2 * _PROCESSES
        return {
            "memory": "" if memory.strip() == asked else by["memory"],
            "processes": by["pids"] if stopped else "",
        }

    async def _ran(
        self, place: _Place, how: Bubblewrap, network: Network, code: Sequence[str], group: ControlGroup | None
    ) -> str:
        """The output of Python code that runs in a sandbox."""
        environment = {"PATH": os.defpath, "HOME": str(place.policy.home)}
        layout = Layout(place.policy.replace(network=network))
        limits = own_limits(group, _MEMORY, _PROCESSES) if group is not None else {}
        resident = start(
            Start(
                bubblewrap=how,
                layout=layout,
                limits={**limits, "abstract": 1},
                group=group,
                patience=self._timeouts.sandbox_start,
            )
        )
        runner = ProcessRunner(_Folders(root=place.policy.root), environment, self._timeouts, FixedSandbox(resident))
        try:
            await ready(resident, self._timeouts.sandbox_start)
            argv = [sys.executable, "-I", "-S", "-c", *code]
            result = await runner.run(argv, timeout=self._timeouts.sandbox_start, output_limit=_OUTPUT)
            if result.timed_out:
                raise SandboxSlow(f"a command did not end within {self._timeouts.sandbox_start:g} s")
            return result.output.decode("utf-8", "replace")
        finally:
            await runner.close()
            resident.kill()
            await runner.until(resident.collect, self._timeouts.kill_limit)


class _Place:
    """A home folder with a key, a project with a repository, and files outside of both."""

    def __init__(self, scratch: Path, stack: ExitStack) -> None:
        make_private_folder(scratch)
        base = Path(stack.enter_context(TemporaryDirectory(dir=scratch)))
        own = base / "private"
        private = PrivateFolder(own)
        stack.callback(private.remove)
        home, root = base / "home", base / "home" / "project"
        for folder in (".git/hooks", ".git/objects", ".git/refs"):
            (root / folder).mkdir(parents=True)
        for name in ("HEAD", "config"):
            (root / ".git" / name).touch()
        (home / ".ssh").mkdir()
        (home / ".ssh" / "key").write_text("a key", encoding="ascii")
        self.policy = SandboxPolicy(
            root=root, home=home, own=(own,), network="loopback", environment={}, private=private.path
        )
        self.outside = base / "outside"
        name = f"marvin-{secrets.token_hex(8)}"
        self.asked: dict[str, Any] = {
            "outside": str(self.outside),
            "home": str(home / "file"),
            "key": str(home / ".ssh" / "key"),
            "git": str(root / ".git"),
            "port": _listening(stack, socket.AF_INET, ("127.0.0.1", 0)).getsockname()[1],
            "name": name,
            "pid": os.getpid(),
            "own": str(own),
            "inside": str(root / "file"),
        }
        if sys.platform == "linux":
            _listening(stack, socket.AF_UNIX, f"\0{name}")


def _listening(stack: ExitStack, family: int, address: Any) -> socket.socket:
    server = stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
    server.bind(address)
    server.listen()
    return server


async def ready(resident: Resident, patience: float) -> None:
    """Wait until programs can be started in a sandbox.

    Raises:
        SandboxFailed: if it does not start.
    """
    import asyncio

    try:
        async with asyncio.timeout(patience):
            await resident.ready
    except TimeoutError:
        raise SandboxSlow(f"it did not start within {patience:g} s") from None


def own_limits(group: ControlGroup | None, memory: int, processes: int) -> dict[str, int]:
    """The limits that the supervisor sets without a control group; they apply to each process separately.

    They do not limit the number of processes for root. For root, Linux counts the processes of a sandbox since 6.14;
    earlier versions have only a limit for the whole machine.
    """
    limited = group.limited if group is not None else frozenset()
    return {
        **({} if "pids" in limited else {"RLIMIT_NPROC": processes}),
        **({"numbers": processes} if "pids" not in limited and _is_counted_for_root() else {}),
        **({} if "memory" in limited else {"RLIMIT_DATA": memory}),
    }


def _is_counted_for_root() -> bool:
    version = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return os.getuid() == 0 and version is not None and (int(version[1]), int(version[2])) >= (6, 14)


_MEANINGS: Sequence[tuple[str, str]] = (
    ("uid map", "this system allows user namespaces for some programs only (AppArmor, as on Ubuntu 24.04)"),
    ("no permissions to create", "user namespaces are not allowed here, which is common in containers"),
    ("creating new namespace failed", "user namespaces are not allowed here, which is common in containers"),
    ("user namespace", "user namespaces are not allowed here, which is common in containers"),
    ("can't mount proc", "the container that Marvin runs in does not allow mounting /proc"),
    ("loopback", "the container that Marvin runs in does not allow network namespaces"),
)


def _meaning(said: str) -> str:
    """The meaning of bubblewrap's error, if it is known, with its text."""
    known = next((meaning for sign, meaning in _MEANINGS if sign in said.lower()), "")
    return f"{known}; bubblewrap says: {said}" if known else f"bubblewrap says: {said or 'nothing'}"
