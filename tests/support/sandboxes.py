"""The real sandbox of a session for tests; trying it on this machine is done once for all of them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import gettempdir
from typing import TypeVar

from marvin_core import ProcessResult, Record
from marvin_core.api.config import Config, NetworkPolicy
from marvin_core.api.timeouts import Timeouts
from marvin_core.config.load import load
from marvin_core.guard.processes.runner import ProcessRunner
from marvin_core.guard.sandbox.network import PlainNetwork, SandboxNetwork
from marvin_core.guard.sandbox.policy import Network
from marvin_core.guard.sandbox.session import SessionSandbox
from marvin_core.guard.sandbox.state import RESULT, SandboxState
from tests.support.folders import Folders

T = TypeVar("T")


@cache
def tried() -> bytes:
    """What the trial of the sandbox finds on this machine, as it is kept in the cache folder."""
    cache_folder = Path(gettempdir()) / f"marvin-sandbox-tests-{os.getuid()}-{os.getpid()}"
    config = load((), {"HOME": str(cache_folder), "MARVIN_HOME": str(cache_folder)}, cwd=Path("/"))[0]
    state: SandboxState = asyncio.run(_sandbox(config, Folders(root=Path("/"), base=Path("/")), {}).state())
    assert state.holds, f"no sandbox that holds works here: {state}"
    kept = config.cache_folder / RESULT
    found = kept.read_bytes()
    kept.unlink()
    for folder in (config.cache_folder / "sandbox-trial", config.cache_folder, cache_folder):
        folder.rmdir()
    return found


def _sandbox(
    config: Config,
    folders: Folders,
    env: Mapping[str, str],
    network: SandboxNetwork | None = None,
    warn: Callable[[str], None] = lambda text: None,
) -> SessionSandbox:
    environment = {"PATH": os.environ["PATH"], "HOME": str(config.home), **env}
    return SessionSandbox(config, folders, environment, network or PlainNetwork(NetworkPolicy(kind="loopback")), warn)


class Place(Record):
    """A home with a working directory in it, and a runner whose programs are in the sandbox."""

    home: Path
    root: Path
    config: Config
    sandbox: SessionSandbox
    runner: ProcessRunner
    folders: Folders
    network: Network

    async def sh(self, script: str, *, timeout: float = 50.0, leave_jobs: bool = False) -> ProcessResult:
        """Run a script of the shell in it, its errors in its output."""
        return await self.runner.run(["bash", "-c", script], timeout=timeout, merge_stderr=True, leave_jobs=leave_jobs)


def in_sandbox(
    tmp_path: Path,
    use: Callable[[Place], Awaitable[T]],
    *,
    network: Network = "loopback",
    decides: Callable[[Config], SandboxNetwork] | None = None,
    settings: str = "",
    env: Mapping[str, str] | None = None,
    root: Path | None = None,
    home: Path | None = None,
    timeouts: Timeouts | None = None,
    argv: Sequence[str] = (),
) -> T:
    """What `use` returns; everything in the sandbox is ended afterwards.

    `decides` makes a network with a proxy. `settings` is the content of config.yaml, `env` adds to the environment of
    the programs, `argv` are flags of Marvin.
    """
    home = home or tmp_path / "home"
    root = root or home / "project"
    root.mkdir(parents=True, exist_ok=True)
    base = {"HOME": str(home), "PATH": os.environ["PATH"]}
    config_folder = home / ".config" / "marvin"
    config_folder.mkdir(parents=True, exist_ok=True)
    (config_folder / "config.yaml").write_text(settings, encoding="utf-8")
    config = load(argv, base, cwd=root)[0]
    config.cache_folder.mkdir(parents=True, exist_ok=True)
    (config.cache_folder / RESULT).write_bytes(tried())
    (config.cache_folder / RESULT).chmod(0o600)

    async def go() -> T:
        folders = Folders(root=root, base=root)
        decided = PlainNetwork(NetworkPolicy(kind=network)) if decides is None else decides(config)
        sandbox = _sandbox(config, folders, env or {}, decided)
        runner = ProcessRunner(folders, {**base, **(env or {})}, timeouts or config.timeouts, sandbox)
        place = Place(
            home=home, root=root, config=config, sandbox=sandbox, runner=runner, folders=folders, network=network
        )
        try:
            return await use(place)
        finally:
            await runner.close()

    return asyncio.run(go())
