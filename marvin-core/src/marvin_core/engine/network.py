"""Network access of the commands of a session: the policy, questions about hosts, and refusals."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol, TypeAlias

from ..api.config import Config, NetworkPolicy
from ..api.errors import MarvinError
from ..util.patterns.hosts import HostList
from ..util.threads import in_thread

if TYPE_CHECKING:
    from ..http.filter_proxy import NoteRefused
    from ..http.proxy_thread import Decide, ProxyThread
    from ..util.bus import Bus

Asker: TypeAlias = "Callable[[str, Sequence[str]], Awaitable[str]]"
_REMEMBERED = 200
"""The maximum number of refusals that are stored for the results of commands."""
_CHOICES = ("session", "always", "no")
_PRIVATE = "an address of this machine or of a private network: allow_addresses in config.yaml allows it"


def policy_of(config: Config, *, unattended: bool) -> NetworkPolicy:
    """The policy without questions: the configured one, else loopback, or all in a non-interactive run."""
    return config.network or NetworkPolicy(kind="all" if unattended else "loopback")


class ProxySource(Protocol):
    """Creates the proxy."""

    def proxy(self, decide: Decide, note_refused: NoteRefused = ...) -> ProxyThread:
        """A proxy that connects programs only to hosts that `decide` allows.

        It calls `note_refused` for such a host whose address is of this machine or of a private network.
        """
        ...


class SessionNetwork:
    """Decides which hosts the commands of a session can connect to, and runs the proxy that enforces it.

    Args:
        asker: asks the user about other hosts; None in a non-interactive run.
        environment: of the commands. A nested Marvin gets the policy of that time.
        held: stops the time-outs of commands while such a question is open.
    """

    def __init__(
        self,
        config: Config,
        clients: ProxySource,
        bus: Bus,
        asker: Asker | None,
        environment: MutableMapping[str, str],
        held: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._held = held
        named = policy_of(config, unattended=asker is None)
        self._config = config
        self._clients = clients
        self._bus = bus
        self._asker = asker
        self._environment = environment
        self.may_ask: Callable[[], bool] = lambda: True
        """Whether the user may be asked now."""
        self._kind = named.kind
        self._hosts = HostList(named.hosts)
        self._answers: dict[tuple[str, int], asyncio.Future[bool]] = {}
        self._refused: deque[tuple[int, str]] = deque(maxlen=_REMEMBERED)
        self._refusals = 0
        self._proxy: ProxyThread | None = None

    @property
    def policy(self) -> NetworkPolicy:
        """The current policy, including hosts that the user has allowed; a sub-agent gets no wider one."""
        hosts = self._hosts.entries()
        return NetworkPolicy(kind="hosts" if hosts else self._kind, hosts=hosts)

    @property
    def is_filtered(self) -> bool:
        """Whether commands use the network through the proxy only, so that `serve` has to be called."""
        return self._kind in ("loopback", "hosts")

    async def serve(self, listener: socket.socket) -> None:
        """Serve a listening socket that was opened on the loopback interface inside a sandbox.

        A socket stays in the network namespace in which it was created: no other process outside can connect to it, and
        the sandbox needs no process for it.

        Raises:
            ConfigError: a configured proxy cannot be used.
        """
        if self._proxy is None:
            self._proxy = self._clients.proxy(self.refusal, self._note_address)
        await self._proxy.serve(listener)

    async def refusal(self, host: str, port: int) -> str:
        """Why commands cannot connect to a host and port; empty if they can. May ask the user, once for each."""
        if self._kind == "all" or self._hosts.allows(host, port):
            return ""
        if self._asker is not None and self.may_ask() and await self._allowed(host, port):
            return ""
        self._note(f"{host}:{port}")
        return (
            f"commands in the sandbox cannot reach {host}, port {port}. Do without it, or ask the user to allow it: "
            "`network` in config.yaml, or --network"
        )

    def _note(self, refused: str) -> None:
        self._refusals += 1
        self._refused.append((self._refusals, refused))

    def _note_address(self, host: str, port: int) -> None:
        """A host is allowed, but its address is not."""
        self._note(f"{host}:{port} ({_PRIVATE})")

    async def _allowed(self, host: str, port: int) -> bool:
        answer = self._answers.get((host, port))
        if answer is None:
            # A program that asks again while the question is open, for instance in parallel, waits for the same answer.
            answer = self._answers[host, port] = asyncio.ensure_future(self._ask(host, port))
        try:
            return await asyncio.shield(answer)
        except BaseException:
            if answer.done():  # nobody answered, so that it may be asked again
                self._answers.pop((host, port), None)
            raise

    async def _ask(self, host: str, port: int) -> bool:
        assert self._asker is not None
        entry = _entry(host, port)
        question = (
            f"A command wants to reach {entry} on the network. Let commands reach it: for this session, always, or no?"
        )
        with self._held():
            answer = await self._asker(question, _CHOICES)
        if answer == "no":
            return False
        self._hosts.add(entry)
        self._environment["MARVIN_NETWORK"] = self.policy.as_text()
        if answer == "always":
            await self._keep(entry)
        return True

    async def _keep(self, entry: str) -> None:
        from ..util.state_files import update_file
        from ..util.yaml.edit import load_mapping, with_value

        def changed(content: bytes | None) -> bytes:
            text = (content or b"").decode()
            named = (load_mapping(text) or {}).get("network")
            hosts = list(named.get("hosts") or []) if isinstance(named, dict) else []
            if isinstance(named, str):
                text = with_value(text, ["network"], None)
            return with_value(text, ["network", "hosts"], [*hosts, *([] if entry in hosts else [entry])]).encode()

        path = self._config.config_folder / "config.yaml"
        try:
            await in_thread(lambda: update_file(path, changed, self._config.timeouts))
        except (OSError, ValueError, MarvinError) as error:
            self._bus.warn(f"{entry} is allowed for this session only: {path} cannot be changed ({error}).")

    def mark(self) -> int:
        """A mark in the list of refusals, for `refused_since`."""
        return self._refusals

    def refused_since(self, mark: int) -> tuple[str, ...]:
        """The refused hosts with their ports since a mark, each once."""
        return tuple(dict.fromkeys(name for number, name in self._refused if number > mark))

    async def close(self) -> None:
        """Close the proxy and all its connections."""
        for answer in self._answers.values():
            answer.cancel()
        if self._proxy is not None:
            await self._proxy.close()


def _entry(host: str, port: int) -> str:
    """The entry of a list of hosts for exactly this host and port, which the user allowed."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
