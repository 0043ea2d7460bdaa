"""The sandbox of a session: started with the first command, and restarted when its policy changes."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from ...api.config import Config
from ...api.errors import ToolError
from ...util.state_files import make_private_folder, read_trusted_json, write_cache
from ...util.threads import in_thread
from ...version import __version__
from ..processes.program import Launcher
from . import seatbelt
from .bubblewrap import Bubblewrap
from .cgroups import control_group
from .network import SandboxNetwork
from .policy import Layout, SandboxPolicy
from .private import PrivateFolder
from .repository import put_right
from .resident import Resident, SandboxFailed, SandboxSlow, Start, start
from .state import RESULT, SandboxState
from .trial import Found, Trial, own_limits, ready

_PERCENT = 100
_OF_SYSTEM = ("/proc", "/sys", "/dev")
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Where(Protocol):
    """The working directory, evaluated again each time."""

    @property
    def root(self) -> Path:
        """The folder that commands may change."""
        ...

    @property
    def playing(self) -> bool:
        """Whether it belongs to an agent alone, and shares no folder with the commands of the chat."""
        ...


class SessionSandbox:
    """Starts the commands of one session in a sandbox.

    Args:
        where: the working directory.
        environment: the environment of the commands.
        network: the network that they may reach.
        warn: shows a warning to the person.
    """

    def __init__(
        self,
        config: Config,
        where: Where,
        environment: Mapping[str, str],
        network: SandboxNetwork,
        warn: Callable[[str], None],
    ) -> None:
        self._config = config
        self._where = where
        self._environment = environment
        self._network = network
        self._warn = warn
        self._found: Found | None = None
        self._private: dict[bool, PrivateFolder] = {}
        self._current: Resident | None = None
        self._signs: tuple[object, ...] = ()
        self._others: list[Resident] = []
        self._news: list[str] = []
        self._mark = 0
        self._port = 0
        self._said = False
        self._kept: dict[Path, str | None] = {}
        self._busy = asyncio.Lock()

    async def state(self) -> SandboxState:
        """The sandbox that restricts commands. The first use after a boot tests it (some tenths of a second)."""
        if self._config.sandbox == "off":
            return SandboxState(kind="none", why="it is switched off")
        if seatbelt.is_there():
            return SandboxState(kind="sandbox-exec", lacks=seatbelt.LACKS)
        return (await self._tried()).state(self._network.policy.kind)

    async def launcher(self) -> Launcher | None:
        """The launcher of programs in the sandbox; None if there is no sandbox."""
        if self._config.sandbox == "off":
            return None
        async with self._busy:
            if seatbelt.is_there():
                return await self._by_profile(self._policy())
            found = await self._tried()
            if found.slow:
                raise ToolError(
                    f"Nothing was started: the sandbox could not be tested, because {found.why}. Try again. The user "
                    "can raise timeouts.sandbox_start, or turn the sandbox off with --sandbox off."
                )
            if found.bubblewrap is None:
                if self._config.sandbox == "required":
                    raise ToolError(
                        f"Nothing was started: a sandbox is required but not available, because {found.why}. Leave "
                        "it to the user: the sub-command doctor says how to fix it."
                    )
                if not self._said:
                    self._said = True
                    self._warn(
                        f"Commands run without a sandbox, because {found.why}. The sub-command doctor says more."
                    )
                return None
            policy = self._policy()
            signs = policy.signs()
            current = self._current
            if current is not None and current.alive and signs == self._signs and current.layout.is_current():
                return current
            return await self._renewed(found.bubblewrap, policy, signs)

    async def _by_profile(self, policy: SandboxPolicy) -> Launcher:
        """The launcher by sandbox-exec: one sandbox for each program, with a newly made profile."""
        if policy.network == "hosts" and not self._port:
            listener = socket.create_server(("127.0.0.1", 0))
            self._port = listener.getsockname()[1]
            await self._network.serve(listener)
        layout = await in_thread(lambda: Layout(policy))
        return seatbelt.Seatbelt(layout, self._port)

    def _policy(self) -> SandboxPolicy:
        root = self._where.root
        if any(root.is_relative_to(place) for place in _OF_SYSTEM) and not root.is_relative_to("/dev/shm"):
            raise ToolError(
                f"Nothing was started: the working directory {root} is a system folder, which the sandbox replaces "
                "by its own. Work in another folder."
            )
        config, playing = self._config, self._where.playing
        private = self._private.get(playing)
        if private is None:
            private = self._private[playing] = PrivateFolder(config.cache_folder / "sandbox")
        return SandboxPolicy(
            root=root,
            home=config.home,
            own=(config.config_folder, config.data_folder, config.cache_folder, config.state_folder),
            # The list of hosts may change while the sandbox runs; the proxy checks them.
            network="hosts" if self._network.is_filtered else self._network.policy.kind,
            environment=self._environment,
            private=private.path,
            log=_begun(config.subagent_log),
            root_kept=_is_kept(root, config),
        )

    async def _renewed(self, how: Bubblewrap, policy: SandboxPolicy, signs: tuple[object, ...]) -> Resident:
        """A new sandbox. Programs in the previous one continue there."""
        if self._current is not None:
            if not self._current.alive:
                self._news.append(
                    "The sandbox had ended, and with it every background job; a new sandbox was "
                    "created for this command."
                )
            self._others.append(self._current)
            self._current = None
        for other in tuple(self._others):
            if other.is_idle:
                other.kill()
                if other.collect():
                    self._others.remove(other)
        if self._others and not how.by_descriptor:
            raise ToolError(
                "Nothing was started: the sandbox must be created again, and this version of bubblewrap cannot do "
                "that while jobs run. Stop them with the tool jobs first. The user can install bubblewrap 0.10 or "
                "newer."
            )
        try:
            made = await self._begun(how, policy)
        except SandboxSlow as error:
            raise _not_begun(error) from None
        except SandboxFailed:  # a path to mount may have been removed meanwhile
            try:
                made = await self._begun(how, policy)
            except SandboxFailed as error:
                raise _not_begun(error) from None
        self._current, self._signs = made, signs
        self._kept.update(made.layout.kept)
        return made

    async def _begun(self, how: Bubblewrap, policy: SandboxPolicy) -> Resident:
        """A sandbox that is ready.

        Raises:
            SandboxFailed: if it did not start.
        """
        layout = await in_thread(lambda: Layout(policy))
        limits = self._config.limits
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * limits.sandbox_memory // _PERCENT
        group = control_group(memory, limits.sandbox_processes)
        patience = self._config.timeouts.sandbox_start
        made = start(
            Start(
                bubblewrap=how,
                layout=layout,
                limits={
                    **own_limits(group, memory, limits.sandbox_processes),
                    "abstract": int(policy.network == "all"),
                    "proxy": int(policy.network == "hosts"),
                },
                group=group,
                patience=patience,
            )
        )
        try:
            await ready(made, patience)
            if made.listener is not None:
                listener, made.listener = made.listener, None
                await self._network.serve(listener)
        except BaseException:
            made.kill()
            self._others.append(made)
            raise
        return made

    def news(self) -> str:
        """One-time notes for the model."""
        if self._current is not None:
            self._news += _put_right(self._current.layout.kept)
        refused, self._mark = self._network.refused_since(self._mark), self._network.mark()
        if refused:
            self._news.append(
                f"The sandbox did not let commands reach {', '.join(refused)}. Do without it, or ask the user to "
                "allow it."
            )
        news, self._news = "\n".join(self._news), []
        return news

    async def _tried(self) -> Found:
        found = self._found
        if found is None:
            kept = self._config.cache_folder / RESULT
            key = self._key()
            known = self.trial().programs
            found = await in_thread(lambda: _read(kept, key, known()))
            if found is None:
                found = await self.trial().find()
                if found.slow:
                    return found
                write_cache(kept, {"key": key, "found": _as_data(found)})
            self._found = found
        return found

    def trial(self) -> Trial:
        """The trial of sandboxes on this machine."""
        scratch = self._config.cache_folder / "sandbox-trial"
        return Trial(scratch, self._environment.get("PATH", os.defpath), self._where.root, self._config.timeouts)

    def _key(self) -> list[str]:
        """Identifies the conditions of a trial: the boot, kernel, user, Marvin and Python."""
        try:
            boot = _BOOT.read_text(encoding="ascii").strip()
        except OSError:
            boot = str(int(time.time() - time.monotonic()) // 60)
        search = self._environment.get("PATH", "")
        return [boot, os.uname().release, str(os.getuid()), __version__, sys.prefix, search]

    async def close(self) -> None:
        """End all processes in it, and remove its files."""
        self.kill()
        await self._network.close()
        timeouts = self._config.timeouts
        deadline = time.monotonic() + timeouts.kill_limit
        while self._others and time.monotonic() < deadline:
            self._others = [other for other in self._others if not other.collect()]
            if self._others:
                await asyncio.sleep(timeouts.kill_poll)
        for said in await in_thread(lambda: _put_right(self._kept)):
            self._warn(said)
        while self._private:
            await in_thread(self._private.popitem()[1].remove)

    def kill(self) -> None:
        """End all processes in it, immediately."""
        if self._current is not None:
            self._others.append(self._current)
            self._current = None
        for other in self._others:
            other.kill()


def _is_kept(root: Path, config: Config) -> bool:
    """Whether a non-interactive run has the home folder as its working directory without an explicit choice."""
    chosen = config.rooted and config.depth == 0
    return config.non_interactive and config.on_ask != "allow-all" and not chosen and root == config.home.resolve()


def _not_begun(error: SandboxFailed) -> ToolError:
    return ToolError(
        f"Nothing was started: its sandbox did not start ({error}). The sub-command doctor says how to fix it; "
        "--sandbox off turns the sandbox off."
    )


def _put_right(kept: Mapping[Path, str | None]) -> list[str]:
    """Undo changes that no mount could prevent; returns the notes about them."""
    said = []
    for path, link in kept.items():
        try:
            if put_right(path, link):
                done = "removed" if link is None else f"restored as the link to {link}"
                said.append(
                    f"{path} was {done}: it would have changed which settings programs outside of the sandbox use."
                )
        except OSError as error:
            said.append(
                f"{path} changes which settings programs outside of the sandbox use, and could not be "
                f"removed: {error.strerror}."
            )
    return said


def _as_data(found: Found) -> dict[str, Any]:
    how = found.bubblewrap
    return {"bubblewrap": how.as_dict() if how is not None else None, "held": dict(found.held), "why": found.why}


def _read(path: Path, key: list[str], programs: Sequence[str]) -> Found | None:
    kept = read_trusted_json(path)
    if not isinstance(kept, dict) or kept.get("key") != key:
        return None
    try:
        data = kept["found"]
        how = Bubblewrap(**data["bubblewrap"]) if data["bubblewrap"] else None
        found = Found(bubblewrap=how, held=dict(data["held"]), why=str(data["why"]))
    except (KeyError, TypeError, ValueError):
        return None
    # One may have been installed since, so it is searched again; that is cheap.
    return found if how is not None and how.program in programs else None


def _begun(log: Path | None) -> Path | None:
    """The log of calls, which must exist to be protected from commands; a failure to create it is reported later."""
    if log is not None:
        with suppress(OSError):
            make_private_folder(log.parent)
            log.touch(0o600)
    return log
