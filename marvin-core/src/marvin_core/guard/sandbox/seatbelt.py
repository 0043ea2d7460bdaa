"""The sandbox of macOS: a profile for sandbox-exec, by which each command is started.

It has not been tested on macOS yet, so no call skips approval because of it. Apple does not document its language; the
rules follow the profiles in /System/Library/Sandbox/Profiles, of Chromium and of other agents.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from . import places
from .blocked import explain
from .policy import Layout, Mount
from .proxy_environment import proxy_environment

if TYPE_CHECKING:
    from ..processes.program import Program, Request
    from ..processes.table import Place

PROGRAM = "/usr/bin/sandbox-exec"
LACKS = ("anything for certain, because it was not tested on macOS yet",)
"""The value of `SandboxState.lacks`."""

_ALWAYS = """\
(version 1)
(deny default)
(allow process-exec process-fork)
(allow process-info* signal (target same-sandbox))
(allow sysctl-read)
(allow ipc-posix-sem ipc-posix-shm*)
(allow mach-lookup
  (global-name "com.apple.system.logger")
  (global-name "com.apple.system.notification_center")
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.opendirectoryd.membership")
  (global-name "com.apple.bsd.dirhelper")
  (global-name "com.apple.trustd.agent"))
(allow file-read*)
(allow file-write-data file-ioctl
  (literal "/dev/null") (literal "/dev/zero") (literal "/dev/dtracehelper"))
"""
# A service that starts programs for others, such as launchd, would start them outside: none is listed above.
_RESOLVER = """\
(allow network*)
(allow mach-lookup (global-name "com.apple.dnssd.service") (global-name "com.apple.SystemConfiguration.configd"))
"""


def profile(layout: Layout, port: int) -> str:
    """The policy in the language of sandbox-exec. The last matching rule applies.

    Args:
        port: the port of the proxy on this machine; 0 if there is none.
    """
    rules = [_ALWAYS, *_network(layout, port)]
    rules += [f"(allow file-write* (subpath {_quoted(layout.policy.private)}))\n"]
    for mount in layout.mounts:
        rules += _mounted(mount)
    rules += [f"(deny file-write-unlink (literal {_quoted(path)}))\n" for path in _kept(layout)]
    return "".join(rules)


def _network(layout: Layout, port: int) -> Iterator[str]:
    match layout.policy.network:
        case "all":
            yield _RESOLVER
        case "hosts":
            yield f'(allow network-outbound (remote ip "localhost:{port}"))\n'
        case "loopback":
            # The sandbox shares the loopback interface of the machine.
            yield '(allow network-bind network-inbound (local ip "localhost:*"))\n'
            yield '(allow network-outbound (remote ip "localhost:*"))\n'


def _mounted(mount: Mount) -> Iterator[str]:
    place = f"({'subpath' if mount.path.is_dir() else 'literal'} {_quoted(mount.path)})"
    match mount.kind:
        case "writable":
            yield f"(allow file-write* {place})\n"
        case "read-only" | "cache":  # there are no copies that commands could change
            yield f"(deny file-write* {place})\n"
        case "hidden" | "bare" | "empty":
            yield f"(deny file-read* file-write* {place})\n"


def _kept(layout: Layout) -> Iterator[Path]:
    """The paths that must not be moved or removed, since their content would go with them: the rules apply to paths."""
    root = layout.policy.root
    found = {root: None}
    for mount in layout.mounts:
        if mount.path.is_relative_to(root) and mount.path != root:
            found.update(dict.fromkeys(path for path in (mount.path, *mount.path.parents) if path.is_relative_to(root)))
    yield from found


def _quoted(path: Path) -> str:
    text = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


class Seatbelt:
    """Starts each program by sandbox-exec with the profile of a policy."""

    def __init__(self, layout: Layout, port: int) -> None:
        self._layout = layout
        self._port = port
        self._profile = profile(layout, port)

    @property
    def place(self) -> Place:
        """The processes that Marvin itself starts."""
        from ..processes.table import OWN

        return OWN

    def launch(self, request: Request) -> asyncio.Future[Program]:
        """Start a program."""
        from ..processes.program import start

        launched: asyncio.Future[Program] = asyncio.get_running_loop().create_future()
        try:
            launched.set_result(start(self.wrapped(request)))
        except (OSError, ValueError) as error:
            launched.set_exception(error)
        return launched

    def wrapped(self, request: Request) -> Request:
        """The request that starts a program with the profile."""
        argv = (PROGRAM, "-p", self._profile, "--", request.program, *request.argv[1:])
        return request.replace(program=PROGRAM, argv=argv)

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """The environment with the values that apply inside: temporary files and caches belong to the session."""
        private = self._layout.policy.private
        caches = {name: str(private / f"cache-{name.lower()}") for name in places.CACHE_VARIABLES}
        proxy = proxy_environment(self._port, given) if self._port else {}
        return {**given, **caches, "TMPDIR": str(private), **proxy}

    def explain(self, output: bytes, cwd: Path) -> str:
        """A hint that the sandbox blocked something, from the output of a failed program."""
        return explain(output, cwd, self._layout)


def is_there() -> bool:
    """Whether this system has sandbox-exec, as macOS does."""
    return os.access(PROGRAM, os.X_OK)
